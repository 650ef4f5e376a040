"""Trunk as triage reads it: its newest commits in git's order, and each ended run there, read once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import replace
from datetime import datetime
from weakref import WeakKeyDictionary

from bot.context import Git, Run, Store
from bot.core.triage import Digest, Trunk, digest, series_of
from bot.core.types import Level, Outcome
from bot.core.validation import Report
from handlers.fork import FORK, Fork

WINDOW = 300  # commits
RUNS_OF_A_SUITE = 120
_BEFORE = 40  # runs
_KEPT = 3_000


class _Digests:
    """The digests of one store's ended runs, which never change; sets of tests that are equal are kept once.

    A run's id is made of what it stands for, so that a store begun anew has the same ids with other reports: when the
    run ended belongs to the key.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, datetime | None], Digest] = OrderedDict()
        self._sets: dict[frozenset[str], frozenset[str]] = {}

    def get(self, run: Run) -> Digest | None:
        return self._kept.get((run.id, run.attempt, run.finished_at))

    def put(self, run: Run, made: Digest) -> Digest:
        made = replace(made, passed=self._sets.setdefault(made.passed, made.passed))
        self._kept[run.id, run.attempt, run.finished_at] = made
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        if len(self._sets) > _KEPT:
            self._sets.clear()
        return made


_digests: WeakKeyDictionary[Store, _Digests] = WeakKeyDictionary()


async def read_trunk(fork: Fork, runs: list[Run]) -> Trunk:
    """Trunk's window with all that those of `runs` (ended ones, newest first) say of it that are its own.

    What was run for a search, or to compare a pull request with, is not heard: it may be unable to work at an old
    commit, and says nothing of what trunk is now.
    """
    order = await asyncio.to_thread(trunk_order, fork.git)
    on_trunk = set(order)
    counts: dict[tuple[str, str, str], int] = {}
    chosen = []
    for run in runs:
        if not run.turn.tells_of_trunk:
            continue
        key = (run.level, run.suite, run.capacity)
        counts[key] = counts.get(key, 0) + 1
        if run.sha in on_trunk and counts[key] <= RUNS_OF_A_SUITE:
            chosen.append(run)
    return Trunk(order, await read_runs(fork, chosen))


async def read_runs(fork: Fork, runs: list[Run]) -> list[Digest]:
    """What ended runs (newest first) said, oldest first."""
    kept = _digests.setdefault(fork.ctx.store, _Digests())
    return [kept.get(run) or kept.put(run, await _read(fork, run)) for run in reversed(runs)]


async def read_before(fork: Fork, sha: str, runs: list[Run], *, level: str, series: str) -> list[Digest]:
    """What trunk's own runs of a suite said at `sha` and the commits before it, the newest commit first; only the last
    few. `runs` are ended ones, newest first.
    """
    older = await asyncio.to_thread(fork.git.commits, sha, newest=WINDOW)
    place = {commit.sha: index for index, commit in enumerate(older)}
    chosen = [
        run
        for run in runs
        if run.turn.tells_of_trunk
        and run.sha in place
        and run.level == level
        and series_of(run.suite, run.capacity) == series
    ]
    chosen.sort(key=lambda run: place[run.sha], reverse=True)
    return (await read_runs(fork, chosen[:_BEFORE]))[::-1]


def trunk_order(git: Git) -> list[str]:
    """The newest commits of the fork's main branch, oldest first; of merges the first parents only."""
    oldest = git.resolve(f"{FORK}~{WINDOW}")
    return [commit.sha for commit in git.commits(FORK, [oldest] if oldest else [])]


async def _read(fork: Fork, light: Run) -> Digest:
    run = await fork.ctx.store.run(light.id)
    raw = run.report if run is not None else None
    return await asyncio.to_thread(_digest, light, raw)


def _digest(run: Run, raw: object) -> Digest:
    return digest(
        run=run.id,
        sha=run.sha,
        level=Level(run.level),
        suite=run.suite,
        capacity=run.capacity,
        outcome=Outcome(run.outcome or Outcome.INFRA),
        report=Report.model_validate(raw) if raw else None,
    )
