"""Queued runs and those who ask for them, on both databases: nothing lost, nothing given twice."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from bot.clients.store import Run, RunState, Store
from bot.clients.store.engine import connect
from bot.core.turns import Line, Turn, in_turn

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_run(
    name: str, number: int | None = 7, turn: Turn = Turn.PULL, *, at: int = 0, labels: tuple[str, ...] = ("gpu",)
) -> Run:
    return Run(
        id=name,
        repository="o/r",
        installation=1,
        number=number,
        sha="abc",
        base="def",
        level="l1",
        suite=name,
        label=labels[-1],
        request={"suite": {"runner": list(labels)}},
        deadline=NOW + timedelta(hours=9),
        queued_at=NOW + timedelta(seconds=at),
        turn=turn,
    )


async def test_what_waits_and_who_was_served(store: Store) -> None:
    await store.create_run(a_run("a"))
    await store.create_run(a_run("b", None, Turn.SEARCH, labels=("gpu", "h100")))
    await store.create_run(a_run("c", 8, Turn.COMMAND))
    waiting, served = await store.waiting_runs(NOW)
    assert [(one.waiting.run, one.waiting.turn, one.wanted) for one in waiting] == [
        ("a", Turn.PULL, ("gpu",)),
        ("b", Turn.SEARCH, ("gpu", "h100")),
        ("c", Turn.COMMAND, ("gpu",)),
    ]
    assert served == {}
    assert await store.lease_run("c", "r", NOW, 60, queued=True)
    assert await store.lease_run("c", "r", NOW, 60, queued=True) is None
    assert [run.id for run in await store.leased_by("r")] == ["c"]
    waiting, served = await store.waiting_runs(NOW + timedelta(hours=1))
    assert [one.waiting.run for one in waiting] == ["a", "b"]
    assert served == {Line("o/r", 8, Turn.COMMAND): NOW}
    assert (await store.waiting_runs(NOW + timedelta(hours=12)))[1] == {}


async def test_a_queued_run_is_hastened_never_slowed(store: Store) -> None:
    await store.create_run(a_run("a", turn=Turn.PULL))
    assert await store.hasten_run("a", Turn.COMMAND)
    assert not await store.hasten_run("a", Turn.TRUNK)
    run = await store.run("a")
    assert run is not None and run.turn is Turn.COMMAND
    await store.lease_run("a", "r", NOW, 60)
    assert not await store.hasten_run("a", Turn.GROUP)


async def test_many_runners_at_once_get_every_run_once(store: Store) -> None:
    chance = random.Random(7)
    names = [f"r{n}" for n in range(60)]
    for n, name in enumerate(names):
        await store.create_run(a_run(name, chance.choice([None, 0, 1, 2, 3]), chance.choice(list(Turn)), at=n))
    taken: list[tuple[str, str]] = []
    trouble = set(chance.sample(names, 12))

    async def runner(name: str) -> None:
        while True:
            waiting, served = await store.waiting_runs(NOW)
            if not waiting:
                return
            for one in in_turn((w.waiting for w in waiting), served=served, now=NOW):
                if await store.lease_run(one.run, name, NOW, 600, queued=True) is not None:
                    if one.run in trouble:  # its machine fails, and the run is queued again
                        trouble.discard(one.run)
                        await store.requeue_run(one.run, NOW)
                    else:
                        taken.append((one.run, name))
                    break

    await asyncio.gather(*(runner(f"m{n}") for n in range(8)))
    assert sorted(run for run, _ in taken) == sorted(names)
    for run, name in taken:
        held = await store.run(run)
        assert held is not None
        assert (held.state, held.runner) == (RunState.LEASED, name)


async def test_a_second_capacity_is_looked_at_only_where_it_is_asked_for(store: Store) -> None:
    await store.create_run(a_run("first", None))
    await store.create_run(replace(a_run("again", None), capacity="second"))
    assert [run.id for run in await store.runs("o/r")] == ["first"]
    assert [run.id for run in await store.runs("o/r", capacity="second")] == ["again"]
    assert [run.id for run in await store.runs("o/r", capacity=None)] == ["again", "first"]
    await store.finish_run("again", outcome="passed", report=None, now=NOW)
    assert [(run.id, run.capacity) for run in await store.trunk_runs("o/r")] == [("again", "second")]


async def test_runs_that_wait_while_the_schema_moves_on_keep_their_labels(store_url: str) -> None:
    database = connect(store_url)

    def first(connection: sa.Connection) -> None:
        config = Config()
        config.set_main_option("script_location", "bot.clients.store:migrations")
        config.attributes["connection"] = connection
        command.downgrade(config, "v0001")
        values = ", ".join(f"'{word}'" for word in ("o/r", "abc", "def", "l1", "unit", "gpu"))
        request = '{"suite": {"runner": ["gpu", "h100"]}}'
        connection.execute(
            sa.text(
                "INSERT INTO runs (installation, run, repository, sha, base, level, suite, label, request, deadline,"
                f" queued_at, state, attempt) VALUES (1, 'old', {values}, :request, 5, 3, 'queued', 1)"
            ),
            {"request": request},
        )

    async with database.begin() as connection:
        await connection.run_sync(first)
    await database.close()
    store = await Store.open(store_url)
    ((old,), _) = await store.waiting_runs(NOW)
    assert (old.waiting.run, old.waiting.turn, old.wanted) == ("old", Turn.PULL, ("gpu", "h100"))
    await store.close()
