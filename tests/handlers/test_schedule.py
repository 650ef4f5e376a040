"""L2 of trunk by the schedule of the file: after L1 passed there, no oftener than it says, never twice at a commit."""

from __future__ import annotations

from pathlib import Path

from tests.handlers.runs import CONFIG, gated


async def test_trunk_is_measured_by_schedule_once_its_cheaper_level_passed(tmp_path: Path) -> None:
    async with gated(tmp_path, config=CONFIG.replace("  l1:\n", "  l2_every: 1d\n  l1:\n", 1)) as fork:
        await fork.sweep()
        assert await fork.waiting(None, "l2") == []  # L1 has not passed yet
        await fork.ends(None)
        await fork.sweep()
        (run,) = await fork.waiting(None, "l2")
        assert run.suite == "speed"
        await fork.ends(None, level="l2", measured={"ms": [100.0]})
        # a new tip within the day, then a day without one: neither is measured
        await fork.sets({"other.txt": "two\n"})
        await fork.ends(None)
        await fork.sweep()
        assert await fork.waiting(None, "l2") == []
        fork.world.clock.forward(days=1)
        await fork.sweep()
        (later,) = await fork.waiting(None, "l2")
        assert later.sha != run.sha
        await fork.ends(None, level="l2", measured={"ms": [100.0]})
        fork.world.clock.forward(days=2)
        await fork.sweep()
        assert await fork.waiting(None, "l2") == []
