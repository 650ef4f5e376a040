"""Validation runs and the runners that lease them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from bot.clients.store.models import Expired, Queued, Run, Runner, RunState
from bot.clients.store.rows import Part, columns, insert_new, upsert
from bot.clients.store.schema import runners, runs
from bot.core.config import ACTIONS
from bot.core.turns import Line, Turn, Waiting

_RUN = [runs.c.run.label("id"), *columns(runs, without=("id", "run", "wanted"))]
_MEMORY = timedelta(hours=6)  # who was served before then counts as served never
_RUNNER = columns(runners)


class Runs(Part):
    """Runs by their id, which the caller makes from what the run stands for."""

    async def create_run(self, run: Run) -> bool:
        """Store a new run; False where the id is there already (nothing is changed then)."""
        async with self._begin() as connection:
            wanted = tuple(run.request.get("suite", {}).get("runner", ()))
            values = {**_values(run), "run": run.id, "wanted": wanted}
            return await insert_new(connection, runs, values, key=("run",))

    async def run(self, run_id: str) -> Run | None:
        """One run."""
        row = await self._one(sa.select(*_RUN).where(runs.c.run == run_id))
        return None if row is None else Run(**row)

    async def runs(
        self,
        repository: str,
        sha: str | None = None,
        level: str | None = None,
        *,
        number: int | None = None,
        suite: str | None = None,
        outcome: str | None = None,
        trunk: bool = False,
        states: Sequence[RunState] | None = None,
        capacity: str | None = "",
        limit: int = 1000,
    ) -> list[Run]:
        """Runs of a repository, newest first, cut to what is given; `trunk`: trunk's own, so neither those of a pull
        request nor the steps of a search for a culprit, which tell of commits long past.

        Those on a second capacity are left out, unless `capacity` names it or is None.
        """
        statement = sa.select(*_RUN).where(runs.c.repository == repository)
        wanted = (runs.c.sha, sha), (runs.c.level, level), (runs.c.number, number), (runs.c.suite, suite)
        for column, value in (*wanted, (runs.c.outcome, outcome), (runs.c.capacity, capacity)):
            if value is not None:
                statement = statement.where(column == value)
        if trunk:
            statement = statement.where(runs.c.number.is_(None), runs.c.turn != Turn.SEARCH)
        if states is not None:
            statement = statement.where(runs.c.state.in_(states))
        rows = await self._all(statement.order_by(runs.c.id.desc()).limit(limit))
        return [Run(**row) for row in rows]

    async def trunk_runs(self, repository: str, *, limit: int = 2000) -> list[Run]:
        """Ended runs of trunk on every capacity, newest first, without their request and report, which are large."""
        light = [column for column in _RUN if column.name not in ("request", "report")]
        statement = sa.select(*light).where(
            runs.c.repository == repository,
            runs.c.number.is_(None),
            runs.c.state == RunState.DONE,
        )
        rows = await self._all(statement.order_by(runs.c.id.desc()).limit(limit))
        return [Run(**row, request={}) for row in rows]

    async def runs_since(
        self, since: datetime, *, repository: str | None = None, limit: int = 50_000
    ) -> list[Run]:  # fmt: skip
        """Runs of one repository or all that ended after `since`, newest first; of the report only `gpu_seconds`."""
        small = [column for column in _RUN if column.name not in ("request", "report")]
        gpu = runs.c.report["gpu_seconds"].as_float().label("gpu")
        statement = sa.select(*small, gpu).where(runs.c.state == RunState.DONE, runs.c.finished_at > since)
        if repository is not None:
            statement = statement.where(runs.c.repository == repository)
        found = []
        for row in await self._all(statement.order_by(runs.c.id.desc()).limit(limit)):
            values = dict(row)
            report = {"gpu_seconds": values.pop("gpu") or 0.0}
            found.append(Run(**values, request={}, report=report))
        return found

    async def queued_runs(self, label: str | None = None) -> list[Run]:
        """Runs that wait for a runner, oldest first, of all repositories."""
        statement = sa.select(*_RUN).where(runs.c.state == RunState.QUEUED)
        if label is not None:
            statement = statement.where(runs.c.label == label)
        return [Run(**row) for row in await self._all(statement.order_by(runs.c.id))]

    async def runs_elsewhere(self, repository: str) -> list[Run]:
        """Unfinished runs of a repository that no runner does, but a workflow of GitHub Actions, oldest first."""
        statement = sa.select(*_RUN).where(
            runs.c.repository == repository,
            runs.c.state != RunState.DONE,
            runs.c.label.startswith(ACTIONS, autoescape=True),
        )
        return [Run(**row) for row in await self._all(statement.order_by(runs.c.id))]

    async def leased_by(self, runner: str) -> list[Run]:
        """The runs that a runner holds."""
        statement = sa.select(*_RUN).where(runs.c.state == RunState.LEASED, runs.c.runner == runner)
        return [Run(**row) for row in await self._all(statement.order_by(runs.c.id))]

    async def waiting_runs(self, now: datetime) -> tuple[list[Queued], dict[Line, datetime]]:
        """All queued runs, oldest first, and when a run of each line last began (see `bot.core.turns`)."""
        light = [runs.c[name] for name in _QUEUED]
        queued = await self._all(sa.select(*light).where(runs.c.state == RunState.QUEUED).order_by(runs.c.id))
        line = (runs.c.repository, runs.c.number, runs.c.turn)
        served = await self._all(
            sa.select(*line, sa.func.max(runs.c.started_at, type_=runs.c.started_at.type).label("at"))
            .where(runs.c.started_at > now - _MEMORY)
            .group_by(*line)
        )
        waiting = [
            Queued(
                Waiting(row["run"], row["repository"], row["number"], row["turn"], row["queued_at"], row["id"]),
                row["installation"],
                row["label"],
                row["wanted"],
                row["attempt"],
            )
            for row in queued
        ]
        return waiting, {Line(row["repository"], row["number"], row["turn"]): row["at"] for row in served}

    async def lease_run(
        self, run_id: str, runner: str, now: datetime, seconds: float, *, queued: bool = False
    ) -> Run | None:
        """Give the run to a runner for `seconds`; None where it is done or leased by another.

        The runner that holds the lease gets it again: asking twice is asking once. With `queued` only a queued run
        is given.
        """
        leased = sa.and_(runs.c.state == RunState.LEASED, sa.or_(runs.c.runner == runner, runs.c.lease_until < now))
        free = runs.c.state == RunState.QUEUED if queued else sa.or_(runs.c.state == RunState.QUEUED, leased)
        return await self._change(
            sa.and_(runs.c.run == run_id, free),
            state=RunState.LEASED,
            runner=runner,
            lease_until=now + timedelta(seconds=seconds),
            started_at=sa.func.coalesce(runs.c.started_at, now_(now)),
        )

    async def hasten_run(self, run_id: str, turn: Turn) -> bool:
        """Make a queued run more urgent; False where it is not queued or is as urgent already."""
        later = sa.and_(runs.c.run == run_id, runs.c.state == RunState.QUEUED, runs.c.turn > turn)
        return await self._change(later, turn=turn) is not None

    async def heartbeat(self, run_id: str, runner: str, now: datetime, seconds: float) -> bool:
        """Hold the lease on; False where the runner does not hold it."""
        held = sa.and_(runs.c.run == run_id, runs.c.runner == runner, runs.c.state == RunState.LEASED)
        return await self._change(held, lease_until=now + timedelta(seconds=seconds)) is not None

    async def finish_run(
        self, run_id: str, *, outcome: str, report: dict[str, Any] | None, now: datetime, runner: str | None = None
    ) -> Run | None:
        """End the run once; None where it is done already or, with `runner`, leased by another."""
        condition = sa.and_(runs.c.run == run_id, runs.c.state != RunState.DONE)
        if runner is not None:
            condition = sa.and_(condition, runs.c.runner == runner)
        return await self._change(
            condition, state=RunState.DONE, outcome=outcome, report=report, lease_until=None, finished_at=now
        )

    async def void_run(self, run_id: str) -> bool:
        """A finished run counts no more: its outcome becomes `cancelled`; False where it is that already."""
        counted = sa.and_(runs.c.run == run_id, runs.c.state == RunState.DONE, runs.c.outcome != "cancelled")
        return await self._change(counted, outcome="cancelled") is not None

    async def requeue_run(self, run_id: str, now: datetime) -> Run | None:
        """Let a leased or finished run start again as its next attempt."""
        return await self._change(runs.c.run == run_id, **_REQUEUED, queued_at=now)

    async def expire(self, now: datetime) -> Expired:
        """Put runs whose runner went silent back into their queue; end those past their deadline as `infra`."""
        late = sa.and_(runs.c.state != RunState.DONE, runs.c.deadline < now)
        silent = sa.and_(runs.c.state == RunState.LEASED, runs.c.lease_until < now, runs.c.deadline >= now)
        async with self._begin() as connection:
            ended = (
                sa.update(runs)
                .where(late)
                .values(state=RunState.DONE, outcome="infra", lease_until=None, finished_at=now)
            )
            overdue = (await connection.execute(ended.returning(*_RUN))).mappings().all()
            again = sa.update(runs).where(silent).values(**_REQUEUED)
            requeued = (await connection.execute(again.returning(*_RUN))).mappings().all()
        return Expired(tuple(Run(**row) for row in requeued), tuple(Run(**row) for row in overdue))

    async def _change(self, condition: sa.ColumnElement[bool], **values: Any) -> Run | None:
        async with self._begin() as connection:
            statement = sa.update(runs).where(condition).values(**values).returning(*_RUN)
            row = (await connection.execute(statement)).mappings().first()
        return None if row is None else Run(**row)


_QUEUED = (
    "id",
    "run",
    "repository",
    "number",
    "turn",
    "queued_at",
    "installation",
    "label",
    "wanted",
    "attempt",
)
_REQUEUED: dict[str, Any] = {
    "state": RunState.QUEUED,
    "attempt": runs.c.attempt + 1,
    "runner": None,
    "lease_until": None,
    "outcome": None,
    "report": None,
    "finished_at": None,
    "started_at": None,
}


class Runners(Part):
    """The machines that may lease runs."""

    async def register_runner(self, runner: Runner) -> None:
        """Store a runner, or replace the one of the same name."""
        async with self._begin() as connection:
            values = {field.name: getattr(runner, field.name) for field in dataclasses.fields(runner)}
            await upsert(connection, runners, values, key=("name",))

    async def runner_by_token(self, token_hash: str) -> Runner | None:
        """The runner whose token has this SHA-256 (hex)."""
        row = await self._one(sa.select(*_RUNNER).where(runners.c.token_hash == token_hash))
        return None if row is None else Runner(**row)

    async def runners(self) -> list[Runner]:
        """All runners by name."""
        return [Runner(**row) for row in await self._all(sa.select(*_RUNNER).order_by(runners.c.name))]

    async def runner_seen(self, name: str, now: datetime, facts: dict[str, Any] | None = None) -> None:
        """Note that a runner was heard of, with what it says of itself."""
        values: dict[str, Any] = {"seen_at": now} if facts is None else {"seen_at": now, "facts": facts}
        async with self._begin() as connection:
            await connection.execute(sa.update(runners).where(runners.c.name == name).values(**values))

    async def remove_runner(self, name: str) -> bool:
        """Forget a runner; False where there is none of that name."""
        async with self._begin() as connection:
            return (await connection.execute(sa.delete(runners).where(runners.c.name == name))).rowcount == 1


def now_(now: datetime) -> sa.BindParameter[datetime]:
    """The instant as a bound value inside an SQL function, which gives it no type of its own."""
    return sa.literal(now, runs.c.started_at.type)


def _values(run: Run) -> dict[str, Any]:
    return {field.name: getattr(run, field.name) for field in dataclasses.fields(run) if field.name != "id"}
