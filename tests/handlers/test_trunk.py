"""Trunk as triage reads it: what a run said is kept for the store that holds it, and only for that one."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from bot.clients.store.schema import breakages, runs
from handlers.fork import open_fork
from handlers.trunk import read_trunk
from tests.handlers.pair import FORK
from tests.handlers.runs import Gated, gated

OLD = "tests/test_all.py::test_old"


async def failing(fork: Gated) -> set[str]:
    """The tests that trunk is known to fail."""
    world = fork.world
    opened = await open_fork(world.context, world.scope)
    trunk = await read_trunk(opened, await world.context.store.trunk_runs(FORK))
    return {failure.test for one in trunk.digests for failure in one.failures}


async def test_one_bots_runs_are_not_taken_for_anothers_of_the_same_name(tmp_path: Path) -> None:
    """The ids of runs are made of what they stand for: two bots, or one before and after its store was lost, have the
    same ids with other reports.
    """
    async with gated(tmp_path / "one") as fork:
        await fork.ends(None, "unit", passed=[OLD])
        ids = {run.id for run in await fork.world.context.store.trunk_runs(FORK)}
        assert await failing(fork) == set()
    async with gated(tmp_path / "other") as fork:
        store = fork.world.context.store
        await fork.ends(None, "unit", failed=[OLD])
        assert {run.id for run in await store.trunk_runs(FORK)} == ids
        assert await failing(fork) == {OLD}
        assert len(await store.breakages(FORK)) == 1

        async with store._begin() as connection:
            for table in (runs, breakages):
                await connection.execute(sa.delete(table))
        await fork.world.ask("validate_trunk", "trunk")
        await fork.world.settle()
        await fork.ends(None, "unit", passed=[OLD])
        assert {run.id for run in await store.trunk_runs(FORK)} == ids
        assert await failing(fork) == set()
