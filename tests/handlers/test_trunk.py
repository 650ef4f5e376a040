"""Trunk as triage reads it: what a run said is kept for the store that holds it, and only for that one."""

from __future__ import annotations

import pkgutil
from collections.abc import MutableMapping, MutableSequence, MutableSet
from importlib import import_module
from pathlib import Path
from weakref import WeakKeyDictionary

import sqlalchemy as sa

import handlers
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


def test_no_handler_keeps_anything_of_its_own_between_jobs() -> None:
    """What a process keeps for one bot, another in it would read: it is kept by store, or not at all."""
    kept = []
    for module in pkgutil.iter_modules(handlers.__path__, "handlers."):
        for name, value in vars(import_module(module.name)).items():
            mutable = isinstance(value, (MutableMapping, MutableSequence, MutableSet))
            made_here = type(value).__module__ == module.name and not name.isupper()
            if (
                not name.startswith("__")
                and not name.lstrip("_").isupper()
                and (mutable or made_here)
                and not isinstance(value, WeakKeyDictionary)
            ):
                kept.append(f"{module.name}.{name}")
    assert kept == []
