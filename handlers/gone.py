"""Which tests of a breakage trunk has no more: no run will ever tell again whether they pass."""

from __future__ import annotations

import asyncio

from bot.context import Breakage, GitError
from bot.core.config import Config
from bot.core.manifest import adjust
from bot.core.triage import Test, Trunk, Word, capacity_of, suite_of, suite_test
from bot.core.types import Level
from handlers.fork import FORK, Fork
from handlers.manifest import changes_between


async def gone_tests(fork: Fork, trunk: Trunk, row: Breakage) -> dict[Test, bool]:
    """The tests of suites that are not run any more, and those that a commit since their last red deleted or renamed,
    once their suite ran there and did not miss them: True for one that passed under a new name. A renamed one is gone
    once it ran under that.
    """
    found: dict[Test, bool] = {}
    for series, names in row.data.get("suites", {}).items():
        tests = [Test(series, name) for name in names]
        if not _is_run(fork.config, series):
            found |= dict.fromkeys(tests, False)
            continue
        red = {test.id for test in map(_test, row.data.get("red", [])) if test.suite == series}
        for since, unseen in _unseen(trunk, tests, red, row.data.get("first_bad")).items():
            newest = trunk.judged(series)[-1]
            try:
                gone = await asyncio.to_thread(_gone, fork, trunk, since, newest, tuple(unseen))
            except GitError as error:
                fork.ctx.log.warning("whether tests are gone can't be told", suite=series, error=str(error))
                continue
            found |= gone
    return found


async def parted_at(fork: Fork, trunk: Trunk, row: Breakage) -> str | None:
    """Where trunk was rewritten since the breakage was first seen: the newest commit that it has of what it was."""
    first = row.data.get("first_bad")
    if not first or first in trunk.at:
        return None
    try:
        if await asyncio.to_thread(fork.git.is_ancestor, first, FORK):
            return None  # older than what is looked at
        return await asyncio.to_thread(fork.git.merge_base, first, FORK)
    except GitError:  # nobody has that commit any more
        return None


def _is_run(config: Config, series: str) -> bool:
    """Whether something may still be heard of it."""
    if any(suite.suite == series for suite in config.triage.other_ci):
        return True
    named = [suite for level in Level for suite in config.validation.of(level) if suite.suite == suite_of(series)]
    return any(suite.second is not None or not capacity_of(series) for suite in named)


def _test(pair: list[str]) -> Test:
    return Test(*pair)


def _unseen(trunk: Trunk, tests: list[Test], red: set[str], first: str | None) -> dict[str, list[Test]]:
    """The tests that were red when last seen, and of which the suite's newest run says nothing, by that commit."""
    found: dict[str, list[Test]] = {}
    for test in tests:
        judged, looks = trunk.judged(test.suite), trunk.looks(test)
        if not judged or test.id == suite_test(test.suite):
            continue
        if (looks and looks[-1].word is Word.SUCCESSFUL) or (not looks and test.id not in red):
            continue
        runs = [run for run in trunk.runs(test.suite, judged[-1]) if run.judged]
        if any(run.crashed or run.unknown or test.id in run.silent for run in runs):
            continue
        if not any(run.passed or run.failures for run in runs):
            continue
        since = looks[-1].sha if looks else first
        if since is not None and (not looks or looks[-1].at < judged[-1]):
            found.setdefault(since, []).append(test)
    return found


def _gone(fork: Fork, trunk: Trunk, since: str, newest: int, tests: tuple[Test, ...]) -> dict[Test, bool]:
    changes = changes_between(fork.git.path, since, trunk.order[newest], tuple(test.id for test in tests))
    gone = {}
    for test in tests:
        (now,) = adjust(tests=[test.id], changes=changes, include_added=False) or ("",)
        word = trunk.look(Test(test.suite, now), newest).word
        if now != test.id and (not now or word is not Word.UNKNOWN):
            gone[test] = word is Word.SUCCESSFUL
    return gone
