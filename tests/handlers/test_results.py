"""What a pull request is told of its runs: whose each failure is, and which label has no runner."""

from __future__ import annotations

from pathlib import Path

from bot.clients.store.models import Runner
from bot.core.render.text import read_block
from bot.core.types import Outcome
from tests.handlers.runs import Gated, gated


def told(fork: Gated, number: int) -> str:
    """The one comment on results."""
    (body,) = [body for body in fork.world.comments(number) if "graft:results" in body]
    return body


def causes(body: str) -> set[str]:
    """The classes of the first suite that has any."""
    block = read_block("report", body)
    assert block is not None
    return {kind for suite in block["suites"] for kind in suite["causes"].values()}


async def test_each_failure_is_held_against_the_base(tmp_path: Path) -> None:
    old, new = "tests/test_all.py::test_old", "tests/test_all.py::test_new"
    async with gated(tmp_path) as fork:
        # trunk's runs are not done yet: nothing can be told
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        await fork.ends(number, "unit", failed=[new], passed=[old])
        assert causes(told(fork, number)) == {"cannot classify"}
        assert "there is no run of trunk at its base" in told(fork, number)

        # trunk fails one of them by the same cause, and passes the other
        await fork.sweep()
        await fork.ends(None, "unit", failed=[old], passed=[new])
        await fork.world.says("walter", number, "/retry")
        await fork.ends(number, "unit", failed=[old, new])
        body = told(fork, number)
        assert causes(body) == {"pre-existing", "new"}
        at = body.index(f"#### {old.replace('_', chr(92) + '_')}")
        assert "**pre-existing**: trunk has had it before this change: #" in body[at : at + 300]

        # the same commit passes it in the next run and fails it again: it says nothing of the change
        await fork.world.says("walter", number, "/retry")
        await fork.ends(number, "unit", failed=[old], passed=[new])
        await fork.world.says("walter", number, "/retry")
        await fork.ends(number, "unit", failed=[old, new])
        assert causes(told(fork, number)) == {"pre-existing", "flaky"}
        assert fork.gate(number).startswith("block: ")  # no class opens the gate
        assert not await fork.world.failures()


async def test_c38_a_label_without_a_runner_is_said_at_once_and_at_the_deadline(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        store, clock = fork.world.context.store, fork.world.clock
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        assert "no runner with label default is there" in told(fork, number)

        here = Runner(name="one", token_hash="h", labels=("default",), seen_at=fork.world.context.now())
        await store.register_runner(here)
        await fork.sweep()
        assert "no runner" not in told(fork, number)
        clock.forward(minutes=30)  # it was there, and is heard of no more
        await fork.sweep()
        assert "no runner with label default is there" in told(fork, number)

        clock.forward(hours=6)
        await fork.world.ask("expire_runs")
        await fork.world.settle()
        for run in await store.runs(fork.world.scope.repository, fork.head(number)):
            assert run.outcome == Outcome.INFRA
        assert "no report by its deadline" in told(fork, number)
        assert "no runner with label default is there" in told(fork, number)
        assert "says nothing: infra" in fork.gate(number)
        check = fork.check(fork.head(number), "graft/l1")
        assert (check.status, check.conclusion) == ("completed", "failure")
        assert "no runner with label default" in check.summary


async def test_metrics_are_judged_in_the_levels_check_and_comment_as_in_the_gate(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world = fork.world
        number = await fork.opens("olga", "core", {"lib/code.txt": "two\n"})
        await fork.ends(number)
        await world.says("maria", number, "/validate l2")
        await fork.ends(None, level="l2", measured={"ms": [100.0, 101.0, 102.0, 100.0, 101.0]})
        await fork.ends(number, level="l2", measured={"ms": [110.0, 111.0, 112.0, 110.0, 111.0]})
        check = fork.check(fork.head(number), "graft/l2")
        assert (check.conclusion, check.title) == ("failure", "L2 failed")
        assert "9.90% worse, at least " in check.text
        assert "❌ `speed#ms`: 101 became 111" in told(fork, number)
        assert "**L2** ❌ failed" in told(fork, number)

        # a push; one sample of five was disturbed: it can't be told, and measuring again, on both sides, settles it
        await fork.pushes("olga", "core", {"lib/code.txt": "three\n"})
        await fork.ends(number)
        await world.says("maria", number, "/validate l2")
        await fork.ends(number, level="l2", measured={"ms": [100.0, 101.0, 102.0, 100.0, 250.0]})
        assert fork.check(fork.head(number), "graft/l2").title == "L2 omitted"
        assert "❔ `speed#ms`: can't be told: 101 became 101" in told(fork, number)
        assert "L2 has not passed" in await world.says("maria", number, "/validate l3")
        assert "Queued again: `speed`" in await world.says("maria", number, "/retry")
        assert await fork.ends(None, level="l2", measured={"ms": [100.0, 101.0, 102.0] * 3}) == ["speed"]
        assert await fork.ends(number, level="l2", measured={"ms": [100.0, 101.0, 102.0] * 3}) == ["speed"]
        check = fork.check(fork.head(number), "graft/l2")
        assert (check.conclusion, check.title) == ("success", "L2 passed")
        assert "speed#ms" not in told(fork, number)
        assert fork.gate(number).startswith("block: core: not signed off")
        assert not await world.failures()
