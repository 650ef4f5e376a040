"""A suite that is proved twice, on trunk and by its numbers: each capacity is heard, neither speaks for the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.clients.store import RunState
from bot.core.turns import Turn
from handlers.fork import open_fork
from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG as GATED
from tests.handlers.runs import Gated, gated, report_of
from tests.handlers.trunk import BOOM, CONFIG, Trunk, trunk

A, B = "tests/core/test_all.py::test_a", "tests/core/test_all.py::test_b"
TWICE = CONFIG.replace("{suite: unit, area: core}", "{suite: unit, area: core, second: {runner: [mi350]}}")
SECOND = "second"
RED = {A: BOOM.format(line=3, what="f16")}


async def both_green(t: Trunk, sha: str) -> None:
    """Trunk passes there, by all of its suites and on both capacities."""
    await t.told(sha, green=[A, B])
    await t.told(sha, green=[A, B], capacity=SECOND)
    await t.told(sha, "side", green=["docs/t.py::d"])


async def green_at(t: Trunk) -> Any:
    fork = await open_fork(t.world.context, t.world.scope)
    return (await fork.note("trunk") or {}).get("green")


async def test_what_the_second_capacity_alone_sees_fail_is_a_breakage_that_only_it_can_close(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=TWICE) as t:
        good = await t.moves("Good", {"lib/code.txt": "1\n"})
        await t.told(good, green=[A, B])
        await t.told(good, "side", green=["docs/t.py::d"])
        assert await green_at(t) is None  # both have to pass
        await t.told(good, green=[A, B], capacity=SECOND)
        assert await green_at(t) == good

        bad = await t.moves("Choose another layout", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        await t.told(bad, green=[A, B])
        await t.told(bad, "side", green=["docs/t.py::d"])
        await t.told(bad, red=RED, green=[B], capacity=SECOND)
        (issue,) = t.issues("open")
        assert issue.title == "Trunk is broken: ValueError: no layout for f16 (unit@second)"
        assert "1 test of `unit@second` (l1) fails on trunk in area `core`" in issue.body
        assert "`unit@second` is `unit` where it is proved a second time." in issue.body
        assert f"last seen passing at `{good[:10]}`" in issue.body
        assert "it changes lib/layout.py, which the failure names" in issue.body
        check = t.fork.check(bad, "graft/l1")
        assert (check.conclusion, check.title) == ("failure", "L1 disagreed")  # that finding stays
        assert await green_at(t) == good

        later = await t.moves("Go on", {"lib/more.py": "x = 1\n"})
        await t.told(later, green=[A, B])
        await t.told(later, "side", green=["docs/t.py::d"])
        assert t.issues()[0].state == "open"  # what never failed there proves nothing of the other
        await t.told(later, green=[A, B], capacity=SECOND)
        assert t.issues()[0].state == "closed"
        assert await green_at(t) == later


async def test_one_cause_on_both_is_one_breakage_and_stays_until_both_are_mended(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=TWICE) as t:
        await both_green(t, await t.moves("Good", {"lib/code.txt": "1\n"}))
        bad = await t.moves("Bad", {"lib/code.txt": "2\n"})
        await t.told(bad, red=RED, green=[B], capacity=SECOND)
        await t.told(bad, red=RED, green=[B])
        (issue,) = t.issues("open")
        assert "1 test of `unit@second`, `unit` (l1) fails on trunk" in issue.body
        half = await t.moves("Mend one", {"lib/code.txt": "3\n"})
        await t.told(half, green=[A, B])
        await t.told(half, red=RED, green=[B], capacity=SECOND)
        (issue,) = t.issues("open")
        assert "1 test passed since" in issue.body
        mended = await t.moves("Mend the other", {"lib/code.txt": "4\n"})
        await t.told(mended, green=[A, B], capacity=SECOND)
        assert [issue.state for issue in t.issues()] == ["closed"]
        await t.told(mended, green=[A, B])
        assert [issue.state for issue in t.issues()] == ["closed"]


async def test_a_search_runs_where_the_failure_was_seen(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=TWICE) as t:
        good = await t.moves("Good", {"lib/code.txt": "1\n"})
        await both_green(t, good)
        middle = await t.moves("Middle", {"lib/code.txt": "2\n"})
        bad = await t.moves("Bad", {"lib/code.txt": "3\n"})
        await t.told(bad, green=[A, B])
        await t.told(bad, red=RED, green=[B], capacity=SECOND)
        (issue,) = t.issues("open")
        assert "The search begins" in await t.world.says("walter", issue.number, "/bisect unit")
        searched = set()
        for _ in range(60):
            # trunk's own run of the commit between is on its way: it serves the search
            runs = await t.world.context.store.runs(FORK, states=(RunState.QUEUED,), capacity=None)
            assert {run.capacity for run in runs if run.turn is Turn.SEARCH} <= {SECOND}
            steps = [run for run in runs if run.capacity]
            if not steps:
                break
            for run in steps:
                searched |= {(run.suite, run.label)} if run.turn is Turn.SEARCH else set()
                red = RED if run.sha != good else {}
                await t.told(run.sha, red=red, green=[B] if red else [A, B], capacity=SECOND)
        assert searched == {("unit", "mi350")}
        assert f"**Culprit:** `{middle[:10]}`" in t.issues()[0].body


# numbers -------------------------------------------------------------------------------------------------------------

SPEED = GATED.replace(
    "{suite: speed, harness: command, run: [speed], area: core,",
    "{suite: speed, harness: command, run: [speed], area: core, second: {runner: [mi350]},",
)


async def measured(fork: Gated, number: int | None, **ms: float) -> None:
    """All runs of the suite that wait for that pull request (None: trunk) end: `first` and `second` in ms."""
    store = fork.world.context.store
    for run in await store.runs(FORK, level="l2", capacity=None):
        if run.number == number and run.state is not RunState.DONE:
            report = report_of(run, measured={"ms": [ms[run.capacity or "first"]]})
            await store.finish_run(
                run.id, outcome="passed", report=report.model_dump(mode="json"), now=fork.world.context.now()
            )
    kind, key = ("triage", "trunk") if number is None else ("results", f"#{number}")
    await fork.world.ask(kind, key, {"number": number})
    await fork.world.settle()


async def test_numbers_of_a_capacity_are_held_against_trunks_of_the_same(tmp_path: Path) -> None:
    config = SPEED.replace("levels: [l1, l3]", "levels: [l1, l2]")
    async with gated(tmp_path, config=config) as fork:
        number = await fork.opens("walter", "small", {"lib/code.txt": "two\n"})
        await fork.ends(number)
        await fork.world.says("maria", number, "/validate l2")
        base = await fork.world.context.store.runs(FORK, level="l2", trunk=True, capacity=None)
        assert {(run.sha, run.capacity) for run in base} == {
            (fork.world.git("rev-parse", "main"), ""),
            (fork.world.git("rev-parse", "main"), "second"),
        }
        await measured(fork, None, first=100.0, second=200.0)
        # held against the first's 100 ms the second's 201 would be twice as slow, against its own 200 it is not
        await measured(fork, number, first=101.0, second=201.0)
        check = fork.check(fork.head(number), "graft/l2")
        assert (check.conclusion, check.title) == ("success", "L2 passed")

        await fork.pushes("walter", "small", {"lib/code.txt": "three\n"})
        await fork.ends(number)
        await fork.world.says("maria", number, "/validate l2")
        await measured(fork, number, first=101.0, second=230.0)
        check = fork.check(fork.head(number), "graft/l2")
        assert (check.conclusion, check.title) == ("failure", "L2 failed")
        comment = "\n".join(fork.world.comments(number))
        assert "#### l2 `speed` once more: 1 metric not within budget" in comment
        assert "#### l2 `speed`: 1 metric" not in comment
        assert "200 became 230, 15.00% worse, the budget is 3.00% (on mi350)" in fork.gate(number)
        assert "100 became" not in fork.gate(number)


async def test_a_new_number_of_trunk_on_the_second_capacity_has_its_gates_looked_at_again(tmp_path: Path) -> None:
    async with gated(tmp_path, config=SPEED.replace("levels: [l1, l3]", "levels: [l1, l2]")) as fork:
        number = await fork.opens("walter", "small", {"lib/code.txt": "two\n"})
        await fork.ends(number)
        await fork.world.says("maria", number, "/validate l2")
        await measured(fork, number, first=101.0, second=201.0)
        told = "no value on trunk to compare with yet"
        assert f"speed#ms ({told}; {told} (on mi350))" in fork.gate(number)
        await measured(fork, None, first=100.0, second=200.0)
        assert "no value on trunk" not in fork.gate(number)
