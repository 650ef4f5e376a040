from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.exc import IntegrityError

from bot.clients.store import (
    AuditRow,
    Batch,
    Breakage,
    CommandRecord,
    Run,
    Runner,
    RunState,
    Scope,
    Store,
)
from bot.clients.store.engine import connect
from bot.clients.store.schema import metadata
from bot.core.types import Disposition, LedgerEntry
from tests.conftest import NOW, execute
from tests.servers import Postgres

MINUTE = timedelta(minutes=1)


def a_run(run_id: str = "r1", **changes: Any) -> Run:
    run = Run(
        id=run_id,
        repository="o/r",
        installation=1,
        number=7,
        sha="abc",
        base="def",
        level="l1",
        suite="unit",
        label="gpu",
        request={"x": [1]},
        deadline=NOW + 60 * MINUTE,
        queued_at=NOW,
    )
    return replace(run, **changes)


async def test_the_migrations_give_the_schema(store_url: str) -> None:
    database = connect(store_url)

    def differences(connection: sa.Connection) -> list[Any]:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))

    async with database.begin() as connection:
        assert await connection.run_sync(differences) == []
    await database.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes_that_start_at_once_migrate_once(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path / 'new' / 'graft.db'}"
    if kind == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        asyncio.run(execute(server.url("postgres"), "CREATE DATABASE fresh"))
        url = server.url("fresh")

    async def open_three() -> None:
        for store in await asyncio.gather(*(Store.open(url) for _ in range(3))):
            await store.put_note(0, "", "k", 1, NOW)
            await store.close()

    asyncio.run(open_three())


async def test_rows_outlive_the_process(store_url: str) -> None:
    store = await Store.open(store_url)
    await store.put_note(1, "o/r", "k", {"a": [1, "ü"]}, NOW)
    await store.close()
    store = await Store.open(store_url)
    assert await store.note(1, "o/r", "k") == {"a": [1, "ü"]}
    await store.close()


async def test_a_run_is_leased_by_one_and_finished_once(store: Store) -> None:
    assert await store.create_run(a_run())
    assert not await store.create_run(a_run(suite="other"))
    assert await store.run("r1") == a_run()
    leased = await store.lease_run("r1", "h100", NOW, 90)
    assert leased is not None
    assert (leased.state, leased.runner, leased.started_at) == (RunState.LEASED, "h100", NOW)
    assert await store.lease_run("r1", "b200", NOW, 90) is None
    assert await store.lease_run("r1", "h100", NOW + MINUTE, 90) is not None
    assert await store.heartbeat("r1", "h100", NOW + MINUTE, 90)
    assert not await store.heartbeat("r1", "b200", NOW + MINUTE, 90)
    assert await store.finish_run("r1", outcome="passed", report={}, now=NOW, runner="b200") is None
    done = await store.finish_run("r1", outcome="passed", report={"n": 1}, now=NOW + 2 * MINUTE, runner="h100")
    assert done is not None
    assert (done.state, done.outcome, done.report, done.finished_at) == (
        RunState.DONE,
        "passed",
        {"n": 1},
        NOW + 2 * MINUTE,
    )
    assert await store.finish_run("r1", outcome="failed", report={}, now=NOW) is None
    assert await store.lease_run("r1", "h100", NOW, 90) is None
    assert await store.run("nothing") is None


async def test_runs_are_found(store: Store) -> None:
    for run in (
        a_run("r1"),
        a_run("r2", level="l2"),
        a_run("r3", sha="zzz", number=None),
        a_run("r4", repository="o/x"),
    ):
        await store.create_run(run)
    assert [run.id for run in await store.runs("o/r")] == ["r3", "r2", "r1"]
    assert [run.id for run in await store.runs("o/r", "abc")] == ["r2", "r1"]
    assert [run.id for run in await store.runs("o/r", "abc", "l1")] == ["r1"]
    assert [run.id for run in await store.runs("o/r", number=7)] == ["r2", "r1"]
    await store.lease_run("r1", "h100", NOW, 90)
    assert [run.id for run in await store.runs("o/r", states=[RunState.LEASED])] == ["r1"]
    assert [run.id for run in await store.queued_runs("gpu")] == ["r2", "r3", "r4"]
    assert await store.queued_runs("cpu") == []


async def test_a_silent_runner_and_a_passed_deadline(store: Store) -> None:
    for run in (a_run("silent"), a_run("alive"), a_run("late", deadline=NOW + MINUTE), a_run("waits")):
        await store.create_run(run)
    await store.lease_run("silent", "h100", NOW, 60)
    await store.lease_run("alive", "b200", NOW, 600)
    expired = await store.expire(NOW + 2 * MINUTE)
    assert [(run.id, run.attempt, run.state, run.runner) for run in expired.requeued] == [
        ("silent", 2, RunState.QUEUED, None)
    ]
    assert [(run.id, run.outcome, run.state) for run in expired.overdue] == [("late", "infra", RunState.DONE)]
    assert (await store.expire(NOW + 2 * MINUTE)).requeued == ()
    again = await store.requeue_run("late", NOW + 3 * MINUTE)
    assert again is not None
    assert (again.attempt, again.outcome, again.queued_at) == (2, None, NOW + 3 * MINUTE)


async def test_runners(store: Store) -> None:
    runner = Runner("h100-1", "hash", ("gpu", "h100"))
    await store.register_runner(runner)
    await store.register_runner(replace(runner, labels=("gpu",)))
    assert await store.runner_by_token("hash") == replace(runner, labels=("gpu",))
    assert await store.runner_by_token("other") is None
    await store.runner_seen("h100-1", NOW, {"gpu": "H100"})
    (seen,) = await store.runners()
    assert (seen.seen_at, seen.facts) == (NOW, {"gpu": "H100"})
    assert await store.remove_runner("h100-1")
    assert not await store.remove_runner("h100-1")


async def test_batches(store: Store) -> None:
    batch = Batch("k1", "chain", "o/r", 1, branch="graft/chain/k1/2", commits=("a", "b"), position=2, plan={"x": 1})
    await store.save_batch(batch)
    await store.save_batch(replace(batch, number=12, state="open", updated_at=NOW))
    kept = replace(batch, number=12, state="open", updated_at=NOW)
    assert await store.batch("o/r", "k1") == kept
    assert await store.batch("o/other", "k1") is None
    assert await store.batch_of("o/r", 12) == kept
    assert await store.batches("o/r", ["open"]) == [kept]
    assert await store.batches("o/r", ["merged"]) == []


async def test_breakages(store: Store) -> None:
    breakage = Breakage("b1", "o/r", 1, "open", "test_x fails", first_seen=NOW, data={"tests": ["x"]})
    await store.save_breakage(breakage)
    await store.save_breakage(replace(breakage, state="fixed", number=4))
    assert await store.breakage("o/r", "b1") == replace(breakage, state="fixed", number=4)
    assert await store.breakages("o/r", ["open"]) == []
    assert len(await store.breakages("o/r")) == 1


async def test_a_command_is_recorded_once_and_answered(store: Store) -> None:
    command = CommandRecord("o/r", 1, 99, 0, "hash", 7, "abc", "octocat", NOW)
    assert await store.record_command(command)
    assert not await store.record_command(replace(command, sha="moved"))
    assert await store.record_command(replace(command, position=1))
    assert [one.position for one in await store.unanswered_commands(NOW + MINUTE)] == [0, 1]
    assert await store.unanswered_commands(NOW) == []
    await store.answer_command("o/r", 99, 0, "done", NOW + MINUTE)
    assert [one.position for one in await store.unanswered_commands(NOW + MINUTE)] == [1]
    assert (await store.commands("o/r", 7))[0] == replace(command, answer="done", answered_at=NOW + MINUTE)
    assert await store.commands("o/r", 8) == []


async def test_the_newest_decision_of_a_commit_stands(store: Store) -> None:
    first = LedgerEntry("a" * 40, Disposition.DEFERRED, "subject", "octocat", "needs LLVM", "@hubot")
    await store.save_decision(1, "o/r", first, NOW)
    second = replace(first, disposition=Disposition.WONT_PORT, owner=None)
    await store.save_decision(1, "o/r", second, NOW + MINUTE)
    assert await store.decisions("o/r") == [replace(second, time=int((NOW + MINUTE).timestamp()))]
    assert await store.decisions("o/x") == []
    assert await store.remove_decision("o/r", first.sha)
    assert not await store.remove_decision("o/r", first.sha)


async def test_two_can_not_append_the_same_audit_entry(store: Store) -> None:
    def row(sequence: int, at: datetime = NOW) -> AuditRow:
        return AuditRow("o/r", 1, sequence, "sync", {"n": sequence}, f"h{sequence - 1}", f"h{sequence}", at)

    assert await store.audit_head("o/r") is None
    for sequence in (1, 2, 3):
        await store.append_audit(row(sequence))
    with pytest.raises(IntegrityError):
        await store.append_audit(row(3))
    assert await store.audit_head("o/r") == row(3)
    assert [entry.sequence for entry in await store.audit_entries("o/r", since=1, limit=1)] == [2]


async def test_notes(store: Store) -> None:
    await store.put_note(1, "o/r", "cron:a", 1, NOW)
    await store.put_note(1, "o/r", "cron:a", [2], NOW)
    await store.put_note(1, "o/r", "cron_b", 3, NOW)
    await store.put_note(2, "o/x", "cron:a", None, NOW)
    assert await store.notes(1, "o/r", "cron:") == {"cron:a": [2]}
    assert await store.notes(1, "o/r", "cron_") == {"cron_b": 3}
    assert await store.notes_everywhere("cron:") == {(1, "o/r", "cron:a"): [2], (2, "o/x", "cron:a"): None}
    await store.remove_note(1, "o/r", "cron:a")
    assert await store.note(1, "o/r", "cron:a") is None


async def test_known_repositories(store: Store) -> None:
    await store.save_repositories(1, ["o/a", "o/b"], NOW)
    await store.save_repositories(1, ["o/a"], NOW)
    await store.save_repositories(2, ["x/c"], NOW)
    assert await store.repositories() == [Scope(1, "o/a"), Scope(1, "o/b"), Scope(2, "x/c")]
    await store.drop_repositories(1, ["o/b"], NOW)
    await store.drop_repositories(2, None, NOW)
    assert await store.repositories() == [Scope(1, "o/a")]


async def test_a_value_that_many_change_loses_nobodys_change(store: Store, store_url: str) -> None:
    other = await Store.open(store_url, migrate=False)

    async def add(to: Store, word: str) -> Any:
        return await to.change_note(1, "o/r", "words", lambda known: sorted([*(known or []), word]), NOW)

    words = [f"{n:02}" for n in range(20)]
    seen = await asyncio.gather(*(add(to, word) for word, to in zip(words, [store, other] * 10, strict=True)))
    assert await store.note(1, "o/r", "words") == words
    assert sorted(len(one) for one in seen) == list(range(1, 21))  # each saw all before it
    assert await store.note(1, "o/other", "words") is None
    await other.close()


async def test_a_change_that_fails_or_changes_nothing_writes_nothing(store: Store) -> None:
    assert await store.change_note(1, "o/r", "k", lambda known: known, NOW) is None
    assert await store.notes(1, "o/r") == {}
    await store.put_note(1, "o/r", "k", {"a": 1}, NOW)
    with pytest.raises(KeyError):
        await store.change_note(1, "o/r", "k", lambda known: known["b"], NOW)
    assert await store.note(1, "o/r", "k") == {"a": 1}
