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
