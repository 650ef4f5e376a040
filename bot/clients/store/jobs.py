"""Jobs: the row is the job. Enqueue coalesces, a lease is fenced by its attempt, nothing is lost by a kill -9."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.clients.store.engine import LEASE_LOCK
from bot.clients.store.models import Job, JobState
from bot.clients.store.rows import Part, columns, insert
from bot.clients.store.schema import jobs

_JOB = [jobs.c.id, *columns(jobs, without=("id", "lock", "again_payload"))]


class Jobs(Part):
    """The queue of work in the database."""

    async def enqueue(
        self,
        kind: str,
        key: str,
        payload: dict[str, Any],
        *,
        installation: int,
        repository: str,
        now: datetime,
        run_at: datetime | None = None,
    ) -> Job:
        """Ask for work. One live row per (installation, repository, kind, key): a waiting one takes the new payload
        and the earlier time, a leased one runs again after, a parked one is revived. What stands before a "!" in the
        key is its lock: jobs of one lock run one at a time, so "owner/name#12!7" is a job of its own about #12.
        """
        async with self._begin() as connection:
            return await _enqueue(
                connection, kind, key, payload, installation=installation, repository=repository, now=now, run_at=run_at
            )

    async def lease(
        self,
        now: datetime,
        seconds: float,
        worker: str,
        kinds: Collection[str] | None = None,
        *,
        per_repository: int | None = None,
    ) -> Job | None:
        """Take the next due job for `seconds`; one whose lease ran out is due again.

        Fair: the repository with the fewest running jobs first, at most `per_repository` of each. Never two jobs of
        one lock of a repository at once, of whatever kind.
        """
        async with self._begin() as connection:
            if connection.dialect.name == "postgresql":
                await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({LEASE_LOCK})"))
            chosen = await _next_due(connection, now, kinds, per_repository)
            if chosen is None:
                return None
            taken = sa.update(jobs).where(jobs.c.id == chosen).values(**_lease(now, seconds, worker)).returning(*_JOB)
            return _job((await connection.execute(taken)).mappings().one())

    async def lease_all(self, kind: str, now: datetime, seconds: float, worker: str, *, limit: int) -> list[Job]:
        """Take up to `limit` due jobs of one kind at once, oldest first; for kinds whose jobs each have their own lock.

        Looks before it takes, so that an idle worker writes nothing.
        """
        due = sa.select(jobs.c.id).where(jobs.c.kind == kind, _is_due(now)).order_by(jobs.c.run_at, jobs.c.id)
        if await self._one(due.limit(1)) is None:
            return []
        async with self._begin() as connection:
            if connection.dialect.name == "postgresql":
                await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({LEASE_LOCK})"))
            chosen = (await connection.execute(due.limit(limit))).scalars().all()
            taken = sa.update(jobs).where(jobs.c.id.in_(chosen)).values(**_lease(now, seconds, worker)).returning(*_JOB)
            rows = (await connection.execute(taken)).mappings().all()
        return sorted((_job(row) for row in rows), key=lambda job: job.id)

    async def complete_all(self, leased: Sequence[Job], now: datetime) -> int:
        """Several jobs, leased by one worker and not asked for again, are done; gives how many were still held."""
        if not leased:
            return 0
        held = sa.and_(jobs.c.state == JobState.LEASED, jobs.c.lease_owner == leased[0].lease_owner)
        statement = (
            sa.update(jobs)
            .where(jobs.c.id.in_([job.id for job in leased]), held)
            .values(state=JobState.DONE, lease_owner=None, lease_until=None, updated_at=now)
        )
        async with self._begin() as connection:
            return (await connection.execute(statement)).rowcount

    async def renew(self, job: Job, now: datetime, seconds: float) -> bool:
        """Hold the lease on; False where it was lost to another worker."""
        return await self._settle(job, now, lease_until=now + timedelta(seconds=seconds)) is not None

    async def complete(self, job: Job, now: datetime) -> bool:
        """The work is done; where it was asked for again meanwhile, it waits anew. False where the lease was lost."""
        return await self._finish(job, now, state=JobState.DONE, lease_owner=None, lease_until=None)

    async def fail(
        self, job: Job, error: str, retry_at: datetime, now: datetime, *, count_attempt: bool = True
    ) -> bool:
        """The work failed and is tried again at `retry_at`; a wait on a limit need not count as an attempt."""
        return await self._finish(
            job,
            now,
            state=JobState.WAITING,
            run_at=retry_at,
            last_error=_clean(error),
            lease_owner=None,
            lease_until=None,
            attempts=job.attempts if count_attempt else max(0, job.attempts - 1),
        )

    async def park(self, job: Job, error: str, now: datetime) -> bool:
        """Give up until someone asks again; `graft doctor` shows it."""
        return await self._finish(
            job, now, state=JobState.PARKED, last_error=_clean(error), lease_owner=None, lease_until=None
        )

    async def unpark(self, job_id: int, now: datetime) -> bool:
        """Let a parked job run again; False where it is not parked."""
        async with self._begin() as connection:
            statement = (
                sa.update(jobs)
                .where(jobs.c.id == job_id, jobs.c.state == JobState.PARKED)
                .values(state=JobState.WAITING, attempts=0, run_at=now, updated_at=now)
            )
            return (await connection.execute(statement)).rowcount == 1

    async def job(self, job_id: int) -> Job | None:
        """One job."""
        row = await self._one(sa.select(*_JOB).where(jobs.c.id == job_id))
        return None if row is None else _job(row)

    async def due(self, now: datetime) -> int:
        """How many jobs wait whose time has come, or were leased by a worker that is gone."""
        row = await self._one(sa.select(sa.func.count().label("n")).select_from(jobs).where(_is_due(now)))
        return int(row["n"]) if row else 0

    async def next_due_at(self) -> datetime | None:
        """When the next waiting job's time comes."""
        waiting = sa.select(sa.func.min(jobs.c.run_at).label("at")).where(jobs.c.state == JobState.WAITING)
        row = await self._one(waiting)
        return row["at"] if row else None

    async def parked(self) -> list[Job]:
        """The jobs that were given up, oldest first."""
        return await self.jobs_in((JobState.PARKED,))

    async def jobs_in(self, states: Sequence[JobState], limit: int = 1000) -> list[Job]:
        """Jobs by state, oldest first."""
        statement = sa.select(*_JOB).where(jobs.c.state.in_(states)).order_by(jobs.c.id).limit(limit)
        return [_job(row) for row in await self._all(statement)]

    async def job_counts(self) -> dict[str, int]:
        """How many jobs are in each state."""
        rows = await self._all(sa.select(jobs.c.state, sa.func.count().label("n")).group_by(jobs.c.state))
        return {str(row["state"]): int(row["n"]) for row in rows}

    async def stale_leases(self, now: datetime) -> list[Job]:
        """Jobs whose lease ran out and that nobody has taken over yet."""
        statement = sa.select(*_JOB).where(jobs.c.state == JobState.LEASED, jobs.c.lease_until < now)
        return [_job(row) for row in await self._all(statement)]

    async def _finish(self, job: Job, now: datetime, **values: Any) -> bool:
        async with self._begin() as connection:
            row = await self._settle_in(connection, job, now, values)
            if row is None:
                return False
            if row["again"]:
                await connection.execute(
                    sa.update(jobs)
                    .where(jobs.c.id == job.id)
                    .values(
                        state=JobState.WAITING,
                        payload=sa.func.coalesce(jobs.c.again_payload, jobs.c.payload),
                        again=False,
                        again_payload=sa.null(),
                        run_at=values.get("run_at", now),
                        attempts=values["attempts"] if values["state"] == JobState.WAITING else 0,
                    )
                )
            return True

    async def _settle(self, job: Job, now: datetime, **values: Any) -> sa.RowMapping | None:
        async with self._begin() as connection:
            return await self._settle_in(connection, job, now, values)

    @staticmethod
    async def _settle_in(
        connection: AsyncConnection, job: Job, now: datetime, values: dict[str, Any]
    ) -> sa.RowMapping | None:
        statement = (
            sa.update(jobs)
            .where(
                jobs.c.id == job.id,
                jobs.c.state == JobState.LEASED,
                jobs.c.lease_owner == job.lease_owner,
                jobs.c.attempts == job.attempts,
            )
            .values(updated_at=now, **values)
            .returning(jobs.c.id, jobs.c.again)
        )
        return (await connection.execute(statement)).mappings().first()


async def _enqueue(
    connection: AsyncConnection,
    kind: str,
    key: str,
    payload: dict[str, Any],
    *,
    installation: int,
    repository: str,
    now: datetime,
    run_at: datetime | None = None,
) -> Job:
    due = run_at or now
    new = insert(connection, jobs).values(
        installation=installation,
        repository=repository,
        kind=kind,
        key=key,
        lock=key.split("!", 1)[0],
        payload=payload,
        state=JobState.WAITING,
        attempts=0,
        run_at=due,
        created_at=now,
        updated_at=now,
        again=False,
    )
    leased = jobs.c.state == JobState.LEASED
    parked = jobs.c.state == JobState.PARKED
    earlier = sa.case((sa.or_(parked, jobs.c.run_at > due), new.excluded.run_at), else_=jobs.c.run_at)
    statement = new.on_conflict_do_update(
        index_elements=["installation", "repository", "kind", "key"],
        index_where=sa.text("state != 'done'"),
        set_={
            "again": leased,
            "again_payload": sa.case((leased, new.excluded.payload), else_=sa.null()),
            "payload": sa.case((leased, jobs.c.payload), else_=new.excluded.payload),
            "state": sa.case((leased, jobs.c.state), else_=new.excluded.state),
            "attempts": sa.case((parked, 0), else_=jobs.c.attempts),
            "run_at": sa.case((leased, jobs.c.run_at), else_=earlier),
            "updated_at": now,
        },
    ).returning(*_JOB)
    return _job((await connection.execute(statement)).mappings().one())


def _lease(now: datetime, seconds: float, worker: str) -> dict[str, Any]:
    return {
        "state": JobState.LEASED,
        "attempts": jobs.c.attempts + 1,
        "lease_owner": worker,
        "lease_until": now + timedelta(seconds=seconds),
        "updated_at": now,
    }


def _is_due(now: datetime) -> sa.ColumnElement[bool]:
    waiting = sa.and_(jobs.c.state == JobState.WAITING, jobs.c.run_at <= now)
    return sa.or_(waiting, sa.and_(jobs.c.state == JobState.LEASED, jobs.c.lease_until < now))


async def _next_due(
    connection: AsyncConnection, now: datetime, kinds: Collection[str] | None, per_repository: int | None
) -> int | None:
    """The job to take next. Few jobs run at a time, so these are read whole; what waits is only looked up."""
    scope = (jobs.c.installation, jobs.c.repository)
    running: Counter[tuple[int, str]] = Counter()
    locks: dict[tuple[int, str], list[str]] = {}
    leased = sa.select(*scope, jobs.c.lock, jobs.c.lease_until).where(jobs.c.state == JobState.LEASED)
    for installation, repository, lock, until in await connection.execute(leased):
        locks.setdefault((installation, repository), []).append(lock)
        running[installation, repository] += until >= now
    wanted = _is_due(now) if kinds is None else sa.and_(_is_due(now), jobs.c.kind.in_(list(kinds)))
    first = sa.func.min(jobs.c.run_at)
    scopes = (await connection.execute(sa.select(*scope, first).where(wanted).group_by(*scope))).all()
    for installation, repository, _ in sorted(scopes, key=lambda row: (running[row[0], row[1]], row[2])):
        if per_repository is not None and running[installation, repository] >= per_repository:
            continue
        taken = jobs.c.lock.in_(locks.get((installation, repository), []))
        here = sa.and_(wanted, jobs.c.installation == installation, jobs.c.repository == repository)
        # a lease that ran out holds its own lock
        free = sa.and_(here, sa.or_(jobs.c.state == JobState.LEASED, ~taken))
        statement = sa.select(jobs.c.id).where(free).order_by(jobs.c.run_at, jobs.c.id).limit(1)
        if (chosen := (await connection.execute(statement)).scalar()) is not None:
            return int(chosen)
    return None


def _job(row: sa.RowMapping) -> Job:
    return Job(**row)


def _clean(error: str) -> str:
    return error.replace("\x00", "\ufffd")[:8000]
