"""Where one upstream commit does not merge, hunk by hunk: onto the fork's tip, or only onto what lands before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.context import Git, GitError, PickResult
from bot.core.conflict import MarkersBroken, read_marked
from bot.core.footprint import FootprintCache
from bot.core.render.plan import places
from bot.core.types import Plan, Verdict
from handlers.planning import deleted_by_fork

_FORK = "<<<<<<< fork"


@dataclass(frozen=True, slots=True)
class ConflictHunk:
    """A place in a file: `line` (from 1) is that of what it is merged onto, `text` the three sides between markers
    (diff3).
    """

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Clash:
    """Where one commit does not merge: what it was merged `onto`, in words, and the hunks that this leaves.

    `text` is what has to be said beside them, "" for nothing. `partners` are the commits to land before it that change
    files in which it conflicts, where it conflicts with no more than those.
    """

    onto: str
    hunks: tuple[ConflictHunk, ...] = ()
    text: str = ""
    partners: tuple[str, ...] = ()


def clash(git: Git, plan: Plan, sha: str, *, cache: FootprintCache | None = None) -> Clash:
    """Why the plan calls a commit conflicting. Writes nothing to the repository."""
    tip = f"the fork's tip {plan.fork_tip[:12]}"
    keep = deleted_by_fork(git, upstream=plan.upstream_tip, base=plan.fork_tip)
    with git.scratch() as scratch:
        try:
            alone = scratch.pick(sha, plan.fork_tip, keep_deleted=keep)
            before = [
                result
                for result in scratch.picks(_earlier(plan, sha), plan.fork_tip, keep_deleted=keep, kept=cache)
                if result.kind == "clean"
            ]
            late = scratch.pick(sha, before[-1].tree or "", keep_deleted=keep) if before else alone
            if alone.kind == "conflict":
                return _with_tip(scratch, tip, alone, late, len(before))
            if late.kind == "conflict":
                return _with_order(scratch, tip, late, [result.commit for result in before])
        except GitError as error:
            return Clash(tip, text=f"git can't merge it: {error}")
    return Clash(tip, text="It merges there, and with what lands before it: the reasons say what stands against it.")


def _earlier(plan: Plan, sha: str) -> list[str]:
    """The undecided commits before this one in upstream order that the plan has tried."""
    planned = places(plan)
    order = [entry.sha for entry in plan.ledger.entries]
    before = order[: order.index(sha)] if sha in order else []
    return [one for one in before if one in planned and planned[one][1].verdict is not Verdict.SKIPPED]


def _with_tip(scratch: Git, tip: str, alone: PickResult, late: PickResult, count: int) -> Clash:
    hunks = _hunks_of(scratch, alone)
    said = [_wordless(alone, hunks)]
    more = [path for path in _paths(late) if path not in _paths(alone)]
    if more:
        said.append(f"With {_before(count)}, it conflicts in {', '.join(more)} too.")
    return Clash(tip, hunks, " ".join(part for part in said if part))


def _with_order(scratch: Git, tip: str, late: PickResult, before: Sequence[str]) -> Clash:
    files = frozenset(_paths(late))
    changes = scratch.changes_of(scratch.commits_of(before))
    partners = tuple(sha for sha in before if any(files.intersection(change.paths) for change in changes[sha]))
    # the fork's side of each hunk has what is to land before it, too
    hunks = tuple(
        replace(hunk, text=hunk.text.replace(_FORK, f"{_FORK}, with what merges before", 1))
        for hunk in _hunks_of(scratch, late)
    )
    said = [
        f"It merges with {tip} as that stands: only the order of landing conflicts. It does not merge once"
        f" {_before(len(before))} {'is' if len(before) == 1 else 'are'} in the fork.",
        _wordless(late, hunks),
    ]
    onto = f"{tip} with {_before(len(before))}"
    return Clash(onto, hunks, " ".join(part for part in said if part), partners)


def _before(count: int) -> str:
    if count == 1:
        return "the one undecided upstream commit that merges before it"
    return f"the {count} undecided upstream commits that merge before it"


def _paths(result: PickResult) -> list[str]:
    return [conflict.path for conflict in result.conflicts]


def _wordless(result: PickResult, hunks: Sequence[ConflictHunk]) -> str:
    """The conflicts that show no lines."""
    shown = {hunk.path for hunk in hunks}
    found = [f"{conflict.path} ({conflict.kind})" for conflict in result.conflicts if conflict.path not in shown]
    return f"No lines to show of {', '.join(found)}." if found else ""


def _hunks_of(scratch: Git, result: PickResult) -> tuple[ConflictHunk, ...]:
    if result.marked_tree is None:
        return ()
    files = ((c.path, scratch.read_file(result.marked_tree, c.path)) for c in result.conflicts)
    return tuple(hunk for path, text in files if text is not None for hunk in _hunks(path, text))


def _hunks(path: str, text: bytes) -> Iterator[ConflictHunk]:
    try:
        marked = read_marked(text)
    except MarkersBroken:
        return  # text of its own that looks like markers: where the hunks begin can't be told
    line = 1
    for merged, hunk in zip(marked.merged, marked.hunks, strict=False):
        line += merged.count(b"\n")
        yield ConflictHunk(path, line, hunk.marked.decode("utf-8", "replace"))
        line += hunk.ours.count(b"\n")
