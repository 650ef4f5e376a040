"""Trunk's tip where a machine spoilt its runs, and nobody pushes: it is run again, seldom and not for ever."""

from __future__ import annotations

from pathlib import Path

from bot.core.types import Outcome
from handlers.repeating import WAITS
from tests.handlers.test_stories_of_trunk import A, B, C, broken
from tests.handlers.trunk import Trunk, trunk

BUSY = "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"


async def waiting(t: Trunk, sha: str) -> int:
    """How many runs of the suite wait at the commit."""
    return sum(run.suite == "unit" and run.sha == sha for run in await t.fork.waiting(None))


async def test_a_quiet_trunk_whose_machine_was_down_is_looked_at_again(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, outcome=Outcome.INFRA, reason="no report by its deadline", tests=())
        await t.fork.sweep()
        assert await waiting(t, fix) == 0, "not at once: the machine is as it was"
        t.world.clock.forward(minutes=31)
        await t.fork.sweep()
        await t.fork.sweep()
        assert await waiting(t, fix) == 1, "once"
        await t.told(fix, red={A: BUSY}, green=[B, C])
        t.world.clock.forward(minutes=31)
        await t.fork.sweep()
        assert (await waiting(t, fix), issue.state) == (0, "open"), "later each time"
        t.world.clock.forward(hours=2)
        await t.fork.sweep()
        await t.told(fix, green=[A, B, C])
        assert issue.state == "closed"
        t.world.clock.forward(days=2)
        await t.fork.sweep()
        assert await waiting(t, fix) == 0, "it told"
        assert await t.world.failures() == []


async def test_a_machine_that_stays_down_is_not_asked_for_ever_and_older_commits_not_at_all(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        old, _ = await broken(t, A)
        tip = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        for _ in range(len(WAITS) + 1):
            await t.told(tip, outcome=Outcome.INFRA, reason="no report by its deadline", tests=())
            t.world.clock.forward(days=1)
            await t.fork.sweep()
        assert await waiting(t, tip) == 0
        newer = await t.moves("Go on more", {"lib/other.py": "x = 2\n"})
        await t.told(newer, green=[A, B, C])
        t.world.clock.forward(days=1)
        await t.fork.sweep()
        assert (await waiting(t, tip), await waiting(t, old)) == (0, 0)
        assert await t.world.failures() == []
