"""What a suite must run at a commit: learned from trunk's last good runs, adjusted by what the change did."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from bot.context import Git, GitError, Run, RunState
from bot.core.config import Suite
from bot.core.manifest import Learned, TestChanges, adjust, learn
from bot.core.testdiff import Sources, changes_of, files_of
from bot.core.types import Level, Outcome
from bot.core.validation import Report, RunRequest
from handlers.fork import Fork
from handlers.reading import blobs_of
from handlers.sourcing import ensure_source

GOOD_RUNS = 5
_READ = (".py", ".mlir", ".ll", ".ttir", ".ttgir", ".txt", ".test", ".td", ".cpp", ".cc", ".cxx", ".cu", ".h", ".hpp")
_MOST_FILES = 4_000
_SET_UP = ("harness", "run", "env", "lab", "canary")


async def expectation(
    fork: Fork, sha: str, level: Level, suite: Suite, *, number: int | None = None, capacity: str = ""
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests that must report and those that may be skipped; nothing is expected before trunk was green once.

    Held against the very commit that was green: what the change, or trunk meanwhile, deleted or renamed is not missed.
    `number` is that of the pull request whose head it is, if any. Raises FetchError where its source can't be had.
    """
    good = await _good_runs(fork, level, suite, capacity)
    if not good:
        return (), ()
    await ensure_source(fork.ctx, fork.scope, sha, number)
    start = await asyncio.to_thread(_start, fork.git, good, sha)
    learned = learn(reports=[_report(run) for run in good[good.index(start) :]], canary=suite.canary)
    if start.sha == sha:
        return learned.tests, learned.skipped
    try:
        changes = await asyncio.to_thread(changes_between, fork.git.path, start.sha, sha, learned.tests)
    except GitError as error:
        fork.ctx.log.warning("a change of tests was not read, all are expected", suite=suite.suite, error=str(error))
        return learned.tests, learned.skipped
    return adjusted(learned, changes)


async def canary_before(fork: Fork, level: Level, suite: Suite) -> bool:
    """Whether a lab that showed a canary of its own in trunk's last good run has to show it here.

    Of other suites it is known without looking. One that is set up otherwise now begins anew.
    """
    if suite.harness != "http" or suite.canary is not None:
        return False
    good = (await _good_runs(fork, level, suite))[:1]
    before = [RunRequest.model_validate(run.request).suite for run in good]
    same = all(getattr(one, name) == getattr(suite, name) for one in before for name in _SET_UP)
    return same and learn(reports=[_report(run) for run in good]).canary


def adjusted(learned: Learned, changes: TestChanges) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests that must report and those that may be skipped, after the change.

    An added test has to report, be it a skip. Skips that the change adds are excused, but not where nothing would run.
    """
    tests = adjust(tests=learned.tests, changes=changes)
    before = adjust(tests=learned.skipped, changes=changes, include_added=False)
    may_skip = dict.fromkeys((*before, *(changes.skipped or ())))
    ran = set(tests) - {*before, *changes.added}
    if ran and all(test in may_skip or test.partition("[")[0] in may_skip for test in ran):
        may_skip = dict.fromkeys(before)
    return tests, tuple(dict.fromkeys((*may_skip, *changes.added)))


async def learned_of(fork: Fork, level: Level, suite: Suite) -> Learned:
    """What trunk's last good runs of the suite ran."""
    good = await _good_runs(fork, level, suite)
    return learn(reports=[_report(run) for run in good], canary=suite.canary)


async def _good_runs(fork: Fork, level: Level, suite: Suite, capacity: str = "") -> list[Run]:
    return await fork.ctx.store.runs(
        fork.name,
        level=level.value,
        suite=suite.suite,
        trunk=True,
        states=(RunState.DONE,),
        outcome=Outcome.PASSED,
        capacity=capacity,
        limit=GOOD_RUNS,
    )


def _start(git: Git, good: Sequence[Run], target: str) -> Run:
    """The newest good run at a commit that the target holds; the newest of all where it holds none."""
    for run in good:
        try:
            if git.is_ancestor(run.sha, target):
                return run
        except GitError:
            continue
    return good[0]


@lru_cache(maxsize=64)
def changes_between(path: Path, old: str, new: str, tests: tuple[str, ...]) -> TestChanges:
    """What became of tests from one commit to another, by the repository at `path`. Raises GitError."""
    with Git(path) as git:
        return changes_of(tests=tests, sources=_sources(git, old, new, tests))


def _sources(git: Git, old: str, new: str, tests: Sequence[str]) -> Sources:
    """The files that differ, and of the suite's own files those that speak of one that differs."""
    changes = [c for c in git.changed_files(old, new) if any(p.endswith(_READ) for p in c.paths)]
    if len(changes) > _MOST_FILES:
        raise GitError(["diff-tree", old, new], f"{len(changes)} files differ", 1)
    gone = {c.old_path: c.old_oid for c in changes if c.status not in "AC"}
    come = {c.path: c.new_oid for c in changes if c.status != "D"}
    tree = {entry.path: entry.oid for entry in git.list_tree(old)}
    mine = {p for p in files_of(tests, tree).values() if p not in gone}
    stems = {p.rpartition("/")[2].removesuffix(".py") for p in {*gone, *come} if p.endswith(".py")} - {"__init__"}
    same = {p: tree[p] for p in mine} if stems else {}
    blobs = blobs_of(git, sorted({*gone.values(), *come.values(), *same.values()}))
    speaks = re.compile("|".join(rf"\b{re.escape(stem)}\b" for stem in sorted(stems)).encode() or rb"(?!)")
    helpers = "conftest" in stems
    beside = {p: blobs[o] for p, o in same.items() if o in blobs and (helpers or speaks.search(blobs[o]))}
    return Sources(
        before=beside | {p: blobs[o] for p, o in gone.items() if o in blobs},
        after=beside | {p: blobs[o] for p, o in come.items() if o in blobs},
        renames={c.old_path: c.path for c in changes if c.status == "R"},
        paths=frozenset(tree),
    )


def _report(run: Run) -> Report:
    return Report.model_validate(run.report)
