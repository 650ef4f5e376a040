"""Trunk's newest commit, where a machine spoilt its runs: run again, seldom and not for ever, until they tell."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from bot.context import Run
from bot.core.triage import Trunk, suite_of
from bot.core.types import Level
from handlers.fork import Fork
from handlers.validate import Target, start_level

WAITS = (timedelta(minutes=30), timedelta(hours=2), timedelta(hours=8))  # after the first such run, the second …


async def repeat_spoilt(fork: Fork, trunk: Trunk, runs: Sequence[Run]) -> list[Run]:
    """Queue the L1 suites of trunk's tip anew whose newest run there a machine spoilt, once it is that long ago; gives
    the new runs. Where trunk moves on its next commit tells; where it does not, nothing else would.
    """
    note = await fork.note("trunk") or {}
    tip = note.get("tip")
    if tip is None or tip != (trunk.order or ("",))[-1]:
        return []
    ended = {run.id: run for run in runs}
    spoilt: dict[str, list[Run]] = {}
    for one in trunk.digests:  # oldest first
        run = ended.get(one.run)
        if run is None or one.sha != tip or one.level is not Level.L1 or one.source:
            continue
        if one.infra:
            spoilt.setdefault(one.suite, []).append(run)
        else:
            spoilt.pop(one.suite, None)
    created = []
    for name in dict.fromkeys(suite_of(series) for series, those in spoilt.items() if _due(fork, those)):
        target = Target(tip, note.get("green") or tip)
        created += await start_level(fork, target, Level.L1, suites=(name,), again=True)
    return created


def _due(fork: Fork, spoilt: Sequence[Run]) -> bool:
    last = spoilt[-1].finished_at
    return len(spoilt) <= len(WAITS) and last is not None and fork.now - last >= WAITS[len(spoilt) - 1]
