from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

from bot.clients.github import AppInfo, Gone, RateLimited
from bot.clients.store import Delivery, Job, JobState, Scope, Store
from bot.context import Context
from bot.core.events import parse
from bot.settings import Settings
from bot.worker import Worker
from bot.worker.backoff import retry_delay
from bot.worker.dispatch import dispatch, echo, key_of, matching, scopes_of
from bot.worker.sweep import due_crons, enqueue_due
from handlers import Cron, Trigger
from tests.conftest import NOW


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    at: datetime = NOW

    def __call__(self) -> datetime:
        return self.at


class App:
    """The App's own name, as the dispatcher asks for it."""

    async def info(self) -> AppInfo:
        return AppInfo(id=1, slug="graft")


@dataclass
class Desk:
    """A worker over a real store with handlers of the test's own."""

    store: Store
    path: Path
    clock: Clock = field(default_factory=Clock)
    handlers: dict[str, Callable[[Context, Job], Awaitable[None]]] = field(default_factory=dict)
    triggers: tuple[Trigger, ...] = ()
    crons: tuple[Cron, ...] = ()

    def context(self, **settings: Any) -> Context:
        given = Settings(data=self.path, **{"job_attempts": 3, **settings})
        nothing = cast(Any, None)
        return Context(cast(Any, App()), self.store, nothing, given, self.clock, nothing, structlog.get_logger())

    def worker(self, **settings: Any) -> Worker:
        return Worker(self.context(**settings), jobs=self.handlers, triggers=self.triggers, crons=self.crons)

    async def ask(self, kind: str, key: str = "#1", repository: str = "o/r", **payload: Any) -> Job:
        return await self.store.enqueue(kind, key, payload, installation=1, repository=repository, now=self.clock())

    async def deliver(self, event: str, payload: dict[str, Any], guid: str = "g1") -> None:
        facts = parse(event, payload)
        body = json.dumps(payload).encode()
        await self.store.record_delivery(
            Delivery(guid, event, facts.action, facts.installation, facts.repository, "x", body, self.clock())
        )


@pytest.fixture
def desk(sqlite_store: Store, tmp_path: Path) -> Desk:
    return Desk(sqlite_store, tmp_path)


async def test_a_failing_handler_stops_nobody_and_is_parked_in_the_end(desk: Desk) -> None:
    done: list[str] = []

    async def fine(_: Context, job: Job) -> None:
        done.append(job.key)

    async def bad(_: Context, job: Job) -> None:
        raise ValueError("no such branch")

    desk.handlers = {"fine": fine, "bad": bad}
    await desk.ask("bad", "#1")
    for n in range(2, 6):
        await desk.ask("fine", f"#{n}")
    worker = desk.worker()
    assert await worker.work_off() == 5
    assert sorted(done) == ["#2", "#3", "#4", "#5"]
    for _ in range(2):
        assert await worker.work_off() == 0
        desk.clock.at += timedelta(minutes=1)
        assert await worker.work_off() == 1
    (parked,) = await desk.store.parked()
    assert parked.attempts == 3
    assert parked.last_error is not None
    assert parked.last_error.startswith("ValueError: no such branch\n")
    assert "test_worker.py" in parked.last_error


async def test_waiting_for_a_limit_is_no_failure(desk: Desk) -> None:
    tries = 0

    async def limited(_: Context, __: Job) -> None:
        nonlocal tries
        tries += 1
        if tries < 6:
            raise RateLimited("limit", retry_at=desk.clock() + timedelta(minutes=1), secondary=True)

    desk.handlers = {"limited": limited}
    await desk.ask("limited")
    worker = desk.worker()
    for _ in range(6):
        assert await worker.work_off() == 1
        desk.clock.at += timedelta(minutes=1)
    assert await desk.store.job_counts() == {"done": 1}


@pytest.mark.parametrize("kind", ["gone", "unknown"])
async def test_what_no_retry_helps_is_parked_at_once(desk: Desk, kind: str) -> None:
    async def gone(_: Context, __: Job) -> None:
        raise Gone("Repository was archived so is read-only.")

    desk.handlers = {"gone": gone}
    await desk.ask(kind)
    await desk.worker().work_off()
    (parked,) = await desk.store.parked()
    assert "archived" in str(parked.last_error) or "no handler is known" in str(parked.last_error)


async def test_a_job_that_kills_its_worker_is_parked_in_the_end(desk: Desk) -> None:
    async def never(_: Context, __: Job) -> None:
        raise AssertionError("it must not run again")

    desk.handlers = {"deadly": never}
    await desk.ask("deadly")
    for _ in range(3):
        assert await desk.store.lease(desk.clock(), 1, "killed") is not None
        desk.clock.at += timedelta(seconds=2)
    await desk.worker().work_off()
    (parked,) = await desk.store.parked()
    assert parked.last_error == "its worker died 3 times"


async def test_one_key_one_at_a_time_and_no_repository_takes_all(desk: Desk) -> None:
    running: dict[tuple[str, str], int] = {}
    most: dict[str, int] = {}

    async def slow(_: Context, job: Job) -> None:
        here = (job.repository, job.key.split("!")[0])
        running[here] = running.get(here, 0) + 1
        assert running[here] == 1
        at_once = sum(count for (repository, _), count in running.items() if repository == job.repository)
        most[job.repository] = max(most.get(job.repository, 0), at_once)
        await asyncio.sleep(0.01)
        running[here] -= 1

    desk.handlers = {"slow": slow, "other": slow}
    for n in range(6):
        for kind in ("slow", "other"):
            await desk.ask(kind, f"#{n % 3}!{n}", "o/busy")
    await desk.ask("slow", "#1", "o/quiet")
    assert await desk.worker(workers=4, workers_per_repository=2).work_off() == 13
    assert most["o/busy"] <= 2


async def test_the_lease_is_renewed_while_the_handler_runs(desk: Desk) -> None:
    leases: set[datetime | None] = set()

    async def slow(context: Context, job: Job) -> None:
        while len(leases) < 3:
            desk.clock.at += timedelta(milliseconds=50)
            now = await context.store.job(job.id)
            assert now is not None
            leases.add(now.lease_until)
            await asyncio.sleep(0.01)

    desk.handlers = {"slow": slow}
    await desk.ask("slow")
    await desk.worker(job_lease_seconds=0.15).work_off()
    assert await desk.store.job_counts() == {"done": 1}


async def test_a_handler_whose_lease_was_lost_is_stopped(desk: Desk) -> None:
    stopped = asyncio.Event()

    async def slow(context: Context, job: Job) -> None:
        assert await context.store.lease(desk.clock() + timedelta(hours=1), 3600, "another") is not None
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    desk.handlers = {"slow": slow}
    job = await desk.ask("slow")
    await desk.worker(job_lease_seconds=0.1).work_off()
    assert stopped.is_set()
    kept = await desk.store.job(job.id)
    assert kept is not None
    assert (kept.state, kept.lease_owner) == (JobState.LEASED, "another")


async def test_a_stopped_worker_gives_back_what_it_holds(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.worker._GRACE_SECONDS", 0.01)
    begun = asyncio.Event()

    async def endless(_: Context, __: Job) -> None:
        begun.set()
        await asyncio.sleep(60)

    desk.handlers = {"endless": endless}
    job = await desk.ask("endless")
    worker = desk.worker(redis_url="redis://127.0.0.1:1")
    running = asyncio.create_task(worker.run())
    await begun.wait()
    worker.stop()
    await running
    kept = await desk.store.job(job.id)
    assert kept is not None
    assert (kept.state, kept.attempts) == (JobState.WAITING, 0)


async def test_a_delivery_becomes_jobs_with_what_was_known_when_it_came(desk: Desk) -> None:
    desk.triggers = (
        Trigger("issue_comment", ("created", "edited"), "comment", "event"),
        Trigger("issue_comment", (), "gate"),
        Trigger("push", (), "pushed"),
    )
    seen: list[Job] = []

    async def keep(_: Context, job: Job) -> None:
        seen.append(job)

    desk.handlers = {"comment": keep, "gate": keep}
    await desk.deliver(
        "issue_comment",
        {
            "action": "created",
            "installation": {"id": 1},
            "repository": {"full_name": "o/r"},
            "sender": {"login": "octocat", "type": "User"},
            "issue": {"number": 12, "pull_request": {}},
            "comment": {"id": 99, "body": "/validate l2"},
        },
    )
    assert await desk.worker().work_off() == 3
    comment, gate = sorted(seen, key=lambda job: job.kind)
    assert (comment.key, gate.key, comment.scope) == ("#12!g1", "#12", Scope(1, "o/r"))
    assert comment.payload == {
        "event": "issue_comment", "action": "created", "installation": 1, "sender": "octocat", "sender_type": "User",
        "number": 12, "comment": 99, "delivery": "g1", "received_at": NOW.isoformat(),
    }  # fmt: skip


async def test_what_the_app_does_itself_asks_for_nothing(desk: Desk) -> None:
    desk.triggers = (Trigger("issue_comment", (), "comment"), Trigger("check_run", ("rerequested",), "rerun"))
    base = {"repository": {"full_name": "o/r"}, "installation": {"id": 1}, "sender": {"login": "graft[bot]"}}
    await desk.deliver("issue_comment", {**base, "action": "created", "issue": {"number": 1}}, "g1")
    await desk.deliver("check_run", {**base, "action": "rerequested", "check_run": {"head_sha": "abc"}}, "g2")
    context = desk.context()
    jobs = await desk.store.jobs_in([JobState.WAITING])
    assert [await dispatch(context, [job], desk.triggers, desk.crons) for job in jobs] == [0, 1]


@pytest.mark.parametrize(
    ("event", "payload", "echoes"),
    [
        ("issue_comment", {}, True),
        ("pull_request_review", {}, True),
        ("pull_request", {"action": "labeled"}, True),
        ("pull_request", {"action": "opened"}, False),
        ("pull_request", {"action": "synchronize"}, False),
        ("pull_request", {"action": "closed"}, False),
        ("push", {"ref": "refs/heads/graft/bundle/k", "repository": {"default_branch": "main"}}, True),
        ("push", {"ref": "refs/heads/main", "repository": {"default_branch": "main"}}, False),
        ("check_run", {"action": "rerequested"}, False),
        ("check_run", {"action": "completed"}, True),
        ("check_suite", {"action": "completed"}, True),
        ("workflow_run", {"action": "completed"}, False),
        ("merge_group", {}, False),
    ],
)
def test_echo(event: str, payload: dict[str, Any], echoes: bool) -> None:
    facts = parse(event, payload)
    assert echo(facts) is echoes
    found = matching(event=facts, own=True, triggers=[Trigger(event, (), "x")])
    assert bool(found) is not echoes


def test_keys_and_scopes() -> None:
    about = parse("pull_request", {"repository": {"full_name": "o/r"}, "installation": {"id": 1}, "number": 7})
    assert key_of(trigger=Trigger("pull_request", (), "x"), event=about, guid="g") == "#7"
    assert key_of(trigger=Trigger("pull_request", (), "x", "event"), event=about, guid="g") == "#7!g"
    assert key_of(trigger=Trigger("pull_request", (), "x", "repository"), event=about, guid="g") == "repository"
    known = [Scope(1, "o/a"), Scope(1, "o/b"), Scope(2, "x/c")]
    once = [Cron("register", timedelta(hours=1), per_repository=False)]
    nowhere = parse("membership", {"installation": {"id": 1}})
    everywhere = scopes_of(trigger=Trigger("membership", (), "gate_all"), event=nowhere, known=known, crons=once)
    assert everywhere == (Scope(1, "o/a"), Scope(1, "o/b"))
    assert scopes_of(trigger=Trigger("x", (), "register"), event=nowhere, known=known, crons=once) == (Scope(0, ""),)
    assert scopes_of(trigger=Trigger("x", (), "gate"), event=about, known=known, crons=once) == (Scope(1, "o/r"),)


def test_due_crons() -> None:
    crons = [Cron("sweep", timedelta(minutes=5)), Cron("prune", timedelta(hours=12), per_repository=False)]
    scopes = [Scope(1, "o/a"), Scope(1, "o/b")]
    last = {(1, "o/a", "cron:sweep"): (NOW - timedelta(minutes=4)).isoformat()}
    due = due_crons(crons=crons, scopes=scopes, last=last, now=NOW)
    assert [(cron.kind, scope) for cron, scope in due] == [("sweep", Scope(1, "o/b")), ("prune", Scope(0, ""))]


async def test_the_schedule_is_kept_in_the_store(desk: Desk) -> None:
    crons = [Cron("sweep", timedelta(minutes=5)), Cron("prune", timedelta(hours=12), per_repository=False)]
    await desk.store.save_repositories(1, ["o/a", "o/b"], NOW)
    context = desk.context()
    assert await enqueue_due(context, crons) == 3
    assert await enqueue_due(context, crons) == 0
    desk.clock.at += timedelta(minutes=5)
    assert await enqueue_due(context, crons) == 2
    waiting = await desk.store.jobs_in([JobState.WAITING])
    assert sorted((job.kind, job.repository, job.key) for job in waiting) == [
        ("prune", "", "all"), ("sweep", "o/a", "repository"), ("sweep", "o/b", "repository"),
    ]  # fmt: skip


def test_the_backoff_grows_and_is_the_same_each_time() -> None:
    delays = [retry_delay(job_id=7, attempt=n).total_seconds() for n in range(1, 40)]
    assert delays == [retry_delay(job_id=7, attempt=n).total_seconds() for n in range(1, 40)]
    for n, delay in enumerate(delays):
        base = min(2.0 * 2**n, 900)
        assert 0.75 * base <= delay <= 1.25 * base
    assert len({retry_delay(job_id=n, attempt=3) for n in range(20)}) == 20


async def test_one_bad_delivery_does_not_hold_up_the_others(desk: Desk) -> None:
    desk.triggers = (Trigger("push", (), "pushed", "event"),)
    seen: list[str] = []

    async def keep(_: Context, job: Job) -> None:
        seen.append(job.payload["delivery"])

    desk.handlers = {"pushed": keep}
    base = {"repository": {"full_name": "o/r"}, "installation": {"id": 1}}
    for n in range(4):
        await desk.deliver("push", base, f"g{n}")
    await desk.store.record_delivery(Delivery("bad", "push", "", 1, "o/r", "x", b"{", desk.clock()))
    await desk.worker().work_off()
    assert sorted(seen) == ["g0", "g1", "g2", "g3"]
    waiting = await desk.store.jobs_in([JobState.WAITING])
    assert [(job.key, job.attempts) for job in waiting] == [("bad", 1)]


async def test_deliveries_that_ask_for_the_same_become_one_job(desk: Desk) -> None:
    desk.triggers = (Trigger("pull_request", (), "gate"),)
    payloads: list[dict[str, Any]] = []

    async def keep(_: Context, job: Job) -> None:
        payloads.append(job.payload)

    desk.handlers = {"gate": keep}
    base = {"repository": {"full_name": "o/r"}, "installation": {"id": 1}, "number": 7}
    for n in range(150):
        await desk.deliver("pull_request", {**base, "action": f"a{n}"}, f"g{n}")
    await desk.worker().work_off()
    assert len(payloads) <= 2
    assert payloads[-1]["action"] == "a149"
    assert await desk.store.job_counts() == {"done": 150 + 1}
