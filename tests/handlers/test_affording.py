"""GPU time on demand: refused once the month's budget is used up, allowed by a maintainer, shown on the dashboard."""

from __future__ import annotations

from pathlib import Path

from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG, Gated, gated, report_of

FILE = CONFIG.replace("owners: [olga, acme/compilers]}", "owners: [olga, acme/compilers], gpu_hours_per_month: 2}")
FILE = FILE.replace("  l3:\n", "  l3:\n    - {suite: heavy, area: core}\n    - {suite: texts, area: docs}\n")


async def spends(fork: Gated, number: int, suite: str, hours: float, *, level: str = "l3") -> None:
    """The waiting run of that suite ends after so many GPU hours."""
    (run,) = [one for one in await fork.waiting(number, level) if one.suite == suite]
    report = report_of(run).model_copy(update={"gpu_seconds": hours * 3600})
    store, now = fork.world.context.store, fork.world.context.now()
    await store.finish_run(run.id, outcome=report.outcome.value, report=report.model_dump(mode="json"), now=now)
    await fork.world.settle()


async def test_a_request_over_the_budget_is_answered_and_what_runs_runs_on(tmp_path: Path) -> None:
    async with gated(tmp_path, config=FILE) as fork:
        world = fork.world
        number = await fork.opens("walter", "small", {"lib/code.txt": "two\n"})
        await fork.proved(number)
        assert "Queued" in await world.says("walter", number, "/validate l3 heavy")
        answer = await world.says("walter", number, "/gpu-budget")
        assert "`core`: 0.0 of 2 GPU hours are used" in answer
        await spends(fork, number, "heavy", 1.75)

        # one more may start, and runs on though the budget is gone by then; the next is refused, others go ahead
        assert "Queued" in await world.says("walter", number, "/validate l3 heavy")
        assert "is used up" in await world.says("walter", number, "/validate l2")
        assert [run.suite for run in await fork.waiting(number, "l3")] == ["heavy"]
        await spends(fork, number, "heavy", 1.0)
        answer = await world.says("walter", number, "/validate l3")
        assert "Queued on" in answer
        assert "`texts`. " in answer
        assert "Not queued: `heavy`: the GPU budget of `core` for" in answer
        assert "2.8 of 2 GPU hours are used" in answer
        assert "/gpu-budget core add=" in answer
        assert "gpu_hours_per_month" in answer
        assert [run.suite for run in await fork.waiting(number, "l3")] == ["texts"]
        await fork.ends(number, level="l3")

        # trunk is not held up, and the level that is free of charge is not
        assert "Queued" in await world.says("walter", number, "/validate l1")
        await fork.ends(number)
        await world.ask("dashboard")
        await world.settle()
        assert "| `core` | ⛔ 2.8 of 2 GPU hours are used |" in world.dashboard().body
        notes = await world.context.store.notes_everywhere("gpu-budget")
        assert [one["spent"] for note in notes.values() if "areas" in note for one in note["areas"]] == [True]

        # who may not allow more, what can't be allowed, and who may
        assert "for maintainers" in await world.says("walter", number, "/gpu-budget core add=5")
        assert "no GPU budget" in await world.says("maria", number, "/gpu-budget docs add=5")
        assert "no number of GPU hours" in await world.says("maria", number, "/gpu-budget core add=5%")
        assert "the area is missing" in await world.says("maria", number, "/gpu-budget add=5")
        answer = await world.says("maria", number, "/gpu-budget core add=1.5h")
        assert "2.8 of 3.5 GPU hours are used (+1.5 by maria)" in answer
        assert "Queued" in await world.says("walter", number, "/validate l3 heavy")
        # next month counts anew
        await spends(fork, number, "heavy", 9)
        assert "is used up" in await world.says("walter", number, "/validate l3 heavy")
        world.clock.forward(days=32)
        await world.settle()
        assert "0.0 of 2 GPU hours" in await world.says("walter", number, "/gpu-budget core")
        kinds = [row.body["command"] for row in await world.context.store.audit_entries(FORK) if row.kind == "command"]
        assert "/gpu-budget core add=1.5h" in kinds
