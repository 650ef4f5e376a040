from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.clients.store import Delivery, Job, JobState, Store, StoreUnavailable
from tests.conftest import NOW

SECOND = timedelta(seconds=1)


async def ask(
    store: Store, kind: str = "gate", key: str = "#1", repository: str = "o/r", now: datetime = NOW, **payload: Any
) -> Job:
    return await store.enqueue(kind, key, payload, installation=1, repository=repository, now=now)


def delivery(guid: str, at: datetime = NOW, payload: bytes = b'{"zen": "x"}') -> Delivery:
    return Delivery(guid, "push", "", 1, "o/r", "octocat", payload, at)


async def test_a_waiting_job_of_the_same_kind_and_key_is_the_same_job(store: Store) -> None:
    first = await ask(store, n=1)
    second = await ask(store, n=2)
    assert second.id == first.id
    assert second.payload == {"n": 2}
    others = [await ask(store, "validate"), await ask(store, key="#2"), await ask(store, repository="o/other")]
    assert len({first.id, *(job.id for job in others)}) == 4


async def test_the_earlier_time_stands(store: Store) -> None:
    await store.enqueue("gate", "#1", {}, installation=1, repository="o/r", now=NOW, run_at=NOW + 60 * SECOND)
    assert await store.lease(NOW, 30, "w") is None
    assert await store.next_due_at() == NOW + 60 * SECOND
    assert (await ask(store)).run_at == NOW
    later = await store.enqueue("gate", "#1", {}, installation=1, repository="o/r", now=NOW, run_at=NOW + 90 * SECOND)
    assert later.run_at == NOW


async def test_what_comes_while_a_job_runs_makes_it_run_again(store: Store) -> None:
    await ask(store, n=1)
    leased = await store.lease(NOW, 30, "w")
    assert leased is not None
    assert (leased.payload, leased.attempts, leased.state) == ({"n": 1}, 1, JobState.LEASED)
    asked = await ask(store, n=2)
    assert (asked.id, asked.state, asked.payload) == (leased.id, JobState.LEASED, {"n": 1})
    assert await store.lease(NOW, 30, "w2") is None
    assert await store.complete(leased, NOW)
    again = await store.lease(NOW, 30, "w")
    assert again is not None
    assert (again.id, again.payload, again.attempts) == (leased.id, {"n": 2}, 1)
    assert await store.complete(again, NOW)
    assert await store.lease(NOW, 30, "w") is None
    fresh = await ask(store, n=3)
    assert fresh.id != leased.id


async def test_a_lease_that_ran_out_is_taken_over_and_the_late_worker_changes_nothing(store: Store) -> None:
    await ask(store)
    slow = await store.lease(NOW, 10, "slow")
    assert slow is not None
    assert await store.renew(slow, NOW + 5 * SECOND, 10)
    assert await store.lease(NOW + 14 * SECOND, 10, "fast") is None
    assert await store.stale_leases(NOW + 16 * SECOND)
    fast = await store.lease(NOW + 16 * SECOND, 10, "fast")
    assert fast is not None
    assert (fast.id, fast.attempts, fast.lease_owner) == (slow.id, 2, "fast")
    late = NOW + 17 * SECOND
    assert not await store.renew(slow, late, 10)
    assert not await store.complete(slow, late)
    assert not await store.fail(slow, "late", late, late)
    assert not await store.park(slow, "late", late)
    assert await store.complete(fast, late)


async def test_a_failed_job_waits_keeps_its_count_and_is_parked_and_revived(store: Store) -> None:
    await ask(store)
    job = await store.lease(NOW, 30, "w")
    assert job is not None
    assert await store.fail(job, "boom\x00", NOW + 5 * SECOND, NOW)
    assert await store.lease(NOW + 4 * SECOND, 30, "w") is None
    job = await store.lease(NOW + 5 * SECOND, 30, "w")
    assert job is not None
    assert (job.attempts, job.last_error) == (2, "boom\ufffd")
    assert await store.fail(job, "limit", NOW + 6 * SECOND, NOW, count_attempt=False)
    job = await store.lease(NOW + 6 * SECOND, 30, "w")
    assert job is not None
    assert job.attempts == 2
    assert await store.park(job, "hopeless", NOW)
    assert [one.last_error for one in await store.parked()] == ["hopeless"]
    assert await store.lease(NOW + 99 * SECOND, 30, "w") is None
    revived = await ask(store, n=2)
    assert (revived.id, revived.state, revived.attempts, revived.run_at) == (job.id, JobState.WAITING, 0, NOW)
    assert await store.parked() == []


async def test_unpark(store: Store) -> None:
    await ask(store)
    job = await store.lease(NOW, 30, "w")
    assert job is not None
    assert not await store.unpark(job.id, NOW)
    await store.park(job, "x", NOW)
    assert await store.unpark(job.id, NOW)
    assert await store.due(NOW) == 1
    assert await store.job_counts() == {"waiting": 1}


async def test_one_lock_runs_one_job_at_a_time_whatever_the_kind(store: Store) -> None:
    await ask(store, "command", "#1!a", now=NOW)
    await ask(store, "command", "#1!b", now=NOW + SECOND)
    await ask(store, "gate", "#1", now=NOW + 2 * SECOND)
    await ask(store, "gate", "#2", now=NOW + 3 * SECOND)
    at = NOW + 9 * SECOND
    first = await store.lease(at, 30, "w")
    second = await store.lease(at, 30, "w")
    assert first is not None
    assert second is not None
    assert (first.key, second.key) == ("#1!a", "#2")
    assert await store.lease(at, 30, "w") is None
    await store.complete(first, at)
    third = await store.lease(at, 30, "w")
    assert third is not None
    assert third.key == "#1!b"


async def test_no_repository_starves_another(store: Store) -> None:
    for number in range(5):
        await ask(store, key=f"#{number}", repository="o/busy")
    await ask(store, key="#9", repository="o/quiet", now=NOW + SECOND)
    at = NOW + 9 * SECOND
    leased = [await store.lease(at, 30, "w", per_repository=2) for _ in range(4)]
    assert [job.repository if job else None for job in leased] == ["o/busy", "o/quiet", "o/busy", None]


async def test_kinds_can_be_chosen(store: Store) -> None:
    await ask(store, "gate")
    assert await store.lease(NOW, 30, "w", kinds=["plan"]) is None
    assert await store.lease(NOW, 30, "w", kinds=["plan", "gate"]) is not None


async def test_many_workers_never_share_a_job(store: Store) -> None:
    for number in range(20):
        await ask(store, key=f"#{number}")

    async def work(name: str) -> list[int]:
        mine = []
        while (job := await store.lease(NOW, 30, name)) is not None:
            mine.append(job.id)
        return mine

    taken = [job for part in await asyncio.gather(*(work(f"w{n}") for n in range(4))) for job in part]
    assert len(taken) == len(set(taken)) == 20


async def test_a_delivery_and_its_dispatch_are_one(store: Store) -> None:
    assert await store.record_delivery(delivery("g1", payload=b'{"a": 1}'))
    assert not await store.record_delivery(delivery("g1", payload=b'{"b": 2}'))
    kept = await store.delivery("g1")
    assert kept == delivery("g1", payload=b'{"a": 1}')
    job = await store.lease(NOW, 30, "w")
    assert job is not None
    assert (job.kind, job.payload) == ("dispatch", {"delivery": "g1"})
    await store.complete(job, NOW)
    assert not await store.record_delivery(delivery("g1"))
    assert await store.lease(NOW, 30, "w") is None
    assert await store.known_deliveries(["g1", "g2"]) == {"g1"}
    assert await store.last_delivery_at() == NOW


async def test_concurrent_deliveries_are_grouped_and_each_is_answered(store: Store) -> None:
    guids = [f"g{n % 40}" for n in range(120)]
    new = await asyncio.gather(*(store.record_delivery(delivery(guid)) for guid in guids))
    assert sum(new) == 40
    assert await store.delivery_count() == 40
    assert (await store.job_counts())["waiting"] == 40


async def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    with pytest.raises(RuntimeError, match="stop"):
        async with store.transaction() as tx:
            await tx.enqueue("gate", "#1", {}, installation=1, repository="o/r", now=NOW)
            await tx.put_note(1, "o/r", "k", 1, NOW)
            raise RuntimeError("stop")
    assert await store.due(NOW) == 0
    assert await store.note(1, "o/r", "k") is None
    async with store.transaction() as tx:
        await tx.enqueue("gate", "#1", {}, installation=1, repository="o/r", now=NOW)
        assert await tx.due(NOW) == 1
    assert await store.due(NOW) == 1


async def test_pruning_keeps_what_still_waits(store: Store) -> None:
    for n, at in enumerate([NOW - timedelta(days=99), NOW - timedelta(days=20), NOW]):
        await store.record_delivery(delivery(f"g{n}", at))
    oldest = await store.lease(NOW, 30, "w")
    assert oldest is not None
    week, quarter = NOW - timedelta(days=7), NOW - timedelta(days=90)
    assert await store.prune(payloads_before=week, rows_before=quarter) == (0, 0, 0)
    await store.complete(oldest, NOW - timedelta(days=98))
    assert await store.prune(payloads_before=week, rows_before=quarter) == (1, 1, 1)
    kept = await store.delivery("g1")
    assert kept is not None
    assert kept.payload  # it was never dispatched


async def test_the_store_says_when_it_is_away(store_url: str, tmp_path: Path) -> None:
    if "sqlite" in store_url:
        folder = tmp_path / "folder"
        folder.mkdir()
        with pytest.raises(StoreUnavailable):
            await Store.open(f"sqlite:///{folder}")
        opened = await Store.open(f"sqlite:///{tmp_path / 'text'}", migrate=False)
        (tmp_path / "text").write_text("no database at all, but some text that is long enough " * 99)
    else:
        away = store_url.removesuffix("graft") + "missing"
        with pytest.raises(StoreUnavailable):
            await Store.open(away)
        opened = await Store.open(away, migrate=False)
    with pytest.raises(StoreUnavailable):
        await opened.ping()
    with pytest.raises(StoreUnavailable):
        await opened.record_delivery(delivery("g"))
    await opened.close()


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://x:s3cret@y/z", "s3cret", "", "postgresql//x:s3cret@y/z"]
)
async def test_addresses_that_can_not_serve_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"(?i)sqlite") as refused:
        await Store.open(url)
    assert "s3cret" not in str(refused.value)
