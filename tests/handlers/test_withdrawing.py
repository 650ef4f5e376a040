"""A search ends: what it has waiting or running is withdrawn, as far as no other search waits for it."""

from __future__ import annotations

from pathlib import Path

from bot.clients.store.models import Run, RunState
from bot.core.turns import Turn
from bot.core.types import Level
from handlers.fork import open_fork
from handlers.validate import Target, start_level
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.test_bisecting import FAST
from tests.handlers.test_stories_of_trunk import BAD, FILE, A, B, C, broken, source
from tests.handlers.trunk import CONFIG, Trunk, trunk

KEY = "KeyError: 'num_warps'"


async def asked(t: Trunk) -> list[Run]:
    """What searches have waiting or running."""
    return [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH]


async def test_a_search_that_is_stopped_leaves_nothing_waiting_nor_running(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        store = t.world.context.store
        await broken(t, A)
        trunks = {run.id for run in await t.fork.waiting(None)}
        (issue,) = t.issues("open")
        await t.world.says("maria", issue.number, "/bisect unit")
        runs = await asked(t)
        assert len(runs) == 2
        await store.lease_run(runs[0].id, "r", t.world.context.now(), 600)
        said = await t.world.says("maria", issue.number, "/bisect stop")
        assert "The search ends; what it has waiting or running is withdrawn." in said
        assert await asked(t) == []
        for run in runs:
            ended = await store.run(run.id)
            assert ended is not None and (ended.state, ended.outcome) == (RunState.DONE, "cancelled")
        assert {run.id for run in await t.fork.waiting(None)} == trunks, "trunk's own goes on"
        assert "stopped by maria" in issue.body

        # begun again, it asks anew
        await t.world.says("maria", issue.number, "/bisect unit")
        assert len(await asked(t)) == 2
        assert not {run.id for run in await asked(t)} & {run.id for run in runs}
        assert await t.world.failures() == []


async def test_what_another_search_waits_for_goes_on(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {FILE: source("a", "b", "c")})
        await t.told(good, green=[A, B, C])
        bad = await t.moves("Two at once", {"lib/layout.py": "x = 1\n"})
        await t.told(bad, red={A: BAD, B: KEY}, green=[C])
        one, two = t.issues("open")
        for issue in (one, two):
            await t.world.says("maria", issue.number, "/bisect unit")
        shared = {run.id for run in await asked(t)}
        assert len(shared) == 2
        await t.world.says("maria", one.number, "/bisect stop")
        assert {run.id for run in await asked(t)} == shared
        await t.world.says("maria", two.number, "/bisect stop")
        assert await asked(t) == []
        assert await t.world.failures() == []


async def test_a_search_that_ends_by_its_bounds_or_by_a_person_withdraws_too(tmp_path: Path) -> None:
    config = CONFIG.replace("bisect: manual", "bisect: manual, runner_time_per_search: 90m")
    async with trunk(tmp_path, config=config) as t:
        store = t.world.context.store
        _, bad = await broken(t, A)
        (issue,) = t.issues("open")
        await t.world.says("walter", issue.number, "/bisect unit")
        first = next(run for run in await asked(t) if run.sha == bad)
        await store.lease_run(first.id, "r", t.world.context.now(), 7200)
        t.world.clock.forward(hours=2)
        await t.told(bad, red={A: BAD}, green=[B, C])
        assert "more runner time" in issue.body
        assert await asked(t) == []

        await t.world.says("walter", issue.number, "/bisect unit")
        assert await asked(t) != []
        closing = {"state": "closed", "state_reason": "not_planned"}
        await t.world.sandbox.as_user("maria").request("PATCH", f"/repos/{FORK}/issues/{issue.number}", closing)
        await t.world.settle()
        assert await asked(t) == []
        assert await t.world.failures() == []


async def test_a_metrics_search_that_is_stopped_withdraws_too(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=FAST) as t:
        world = t.world
        shas = [world.fork_commits(f"Own {n}", {f"lib/own{n}.txt": f"{n}\n"}, login="maria") for n in range(4)]
        await world.settle()
        fork = await open_fork(world.context, world.scope)
        for sha, value in ((shas[0], 100.0), (shas[3], 106.0)):
            (run,) = await start_level(fork, Target(sha, sha), Level.L2)
            report = report_of(run, measured={"ms": [value]})
            await world.context.store.finish_run(
                run.id, outcome="passed", report=report.model_dump(mode="json"), now=world.context.now()
            )
        board = world.dashboard().number
        await world.says("walter", board, "/bisect speed#ms")
        assert await asked(t) != []
        await t.fork.sweep()
        assert await asked(t) != [], "a running one keeps what it asked for"
        said = await world.says("walter", board, "/bisect stop speed#ms")
        assert "is withdrawn" in said
        assert await asked(t) == []
        assert await world.failures() == []
