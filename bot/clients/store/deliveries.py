"""Deliveries: a webhook is stored together with the job that dispatches it, many of them in one commit."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.clients.store.engine import Database
from bot.clients.store.models import Delivery, JobState
from bot.clients.store.rows import Part, insert
from bot.clients.store.schema import deliveries, jobs

DISPATCH = "dispatch"
_PLAIN = ("guid", "event", "action", "installation", "repository", "sender", "received_at")
_GROUP = 200  # rows in one commit; SQLite allows 32766 bound values in a statement


class GroupCommit:
    """Joins concurrent deliveries: those that come while a commit is under way go into the next one together."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[tuple[Delivery, asyncio.Future[bool]]] = []
        self._flusher: asyncio.Task[None] | None = None

    async def record(self, delivery: Delivery) -> bool:
        """True once the delivery is durable, False where it was there already. Raises StoreUnavailable."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((delivery, future))
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        return await future

    async def close(self) -> None:
        """Wait for what is under way."""
        if self._flusher is not None:
            await self._flusher

    async def _flush(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:_GROUP], self._waiting[_GROUP:]
            try:
                new = await self._write([delivery for delivery, _ in group])
            except Exception as error:  # each that waits must hear of it; one bad row must not fail the others
                if len(group) > 1 and not isinstance(error, OSError):
                    await self._one_by_one(group)
                else:
                    _fail(group, error)
                continue
            for delivery, future in group:
                if not future.done():
                    future.set_result(delivery.guid in new)
                new.discard(delivery.guid)

    async def _one_by_one(self, group: Sequence[tuple[Delivery, asyncio.Future[bool]]]) -> None:
        for entry in group:
            try:
                new = await self._write([entry[0]])
            except Exception as error:  # as above: told to the one that waits
                _fail([entry], error)
            else:
                if not entry[1].done():
                    entry[1].set_result(bool(new))

    async def _write(self, group: Sequence[Delivery]) -> set[str]:
        unique = {delivery.guid: delivery for delivery in reversed(group)}
        # compressing lets go of the interpreter's lock: the web side goes on meanwhile
        rows = await asyncio.to_thread(lambda: [_row(delivery) for delivery in unique.values()])
        async with self._database.begin() as connection:
            return await _insert(connection, unique, rows)


def _fail(group: Sequence[tuple[Delivery, asyncio.Future[bool]]], error: Exception) -> None:
    for _, future in group:
        if not future.done():
            future.set_exception(error)


async def _insert(
    connection: AsyncConnection, unique: Mapping[str, Delivery], rows: Sequence[Mapping[str, object]]
) -> set[str]:
    # rows as parameters, not as values: the statement is compiled once, whatever the number of rows
    statement = insert(connection, deliveries).on_conflict_do_nothing(index_elements=["guid"])
    new = set((await connection.execute(statement.returning(deliveries.c.guid), rows)).scalars())
    if new:
        work = insert(connection, jobs).on_conflict_do_nothing()
        await connection.execute(work, [_dispatch(unique[guid]) for guid in unique if guid in new])
    return new


def _row(delivery: Delivery) -> dict[str, object]:
    return {
        "guid": delivery.guid,
        "event": delivery.event,
        "action": delivery.action,
        "installation": delivery.installation,
        "repository": delivery.repository,
        "sender": delivery.sender,
        "payload": zlib.compress(delivery.payload, 1),
        "received_at": delivery.received_at,
    }


def _dispatch(delivery: Delivery) -> dict[str, object]:
    at = delivery.received_at
    return {
        "installation": delivery.installation,
        "repository": delivery.repository,
        "kind": DISPATCH,
        "key": delivery.guid,
        "lock": delivery.guid,
        "payload": {"delivery": delivery.guid},
        "state": JobState.WAITING,
        "attempts": 0,
        "run_at": at,
        "created_at": at,
        "updated_at": at,
        "again": False,
    }


class Deliveries(Part):
    """Webhook deliveries that were stored."""

    async def delivery(self, guid: str) -> Delivery | None:
        """One delivery; its payload is empty once pruned."""
        return (await self.deliveries([guid])).get(guid)

    async def deliveries(self, guids: Sequence[str]) -> dict[str, Delivery]:
        """Several deliveries by their ids; those that are not there are left out."""
        rows = await self._all(sa.select(deliveries).where(deliveries.c.guid.in_(list(guids))))
        return {row["guid"]: _delivery(row) for row in rows}

    async def known_deliveries(self, guids: Sequence[str]) -> set[str]:
        """Which of these delivery ids are stored."""
        rows = await self._all(sa.select(deliveries.c.guid).where(deliveries.c.guid.in_(list(guids))))
        return {row["guid"] for row in rows}

    async def last_delivery_at(self) -> datetime | None:
        """When the newest delivery came in."""
        row = await self._one(sa.select(sa.func.max(deliveries.c.received_at).label("at")))
        return row["at"] if row else None

    async def delivery_count(self) -> int:
        """How many deliveries are stored."""
        row = await self._one(sa.select(sa.func.count().label("n")).select_from(deliveries))
        return int(row["n"]) if row else 0

    async def prune(self, *, payloads_before: datetime, rows_before: datetime) -> tuple[int, int, int]:
        """Keep the tables bounded: drop payloads, then deliveries and done jobs that are old enough.

        A delivery that still waits to be dispatched is kept whole. Gives (payloads, deliveries, jobs) dropped.
        """
        live = sa.exists().where(
            jobs.c.kind == DISPATCH, jobs.c.key == deliveries.c.guid, jobs.c.state != JobState.DONE
        )
        async with self._begin() as connection:
            emptied = await connection.execute(
                sa.update(deliveries)
                .where(deliveries.c.received_at < payloads_before, deliveries.c.payload.is_not(None), ~live)
                .values(payload=None)
            )
            dropped = await connection.execute(
                sa.delete(deliveries).where(deliveries.c.received_at < rows_before, ~live)
            )
            done = await connection.execute(
                sa.delete(jobs).where(jobs.c.state == JobState.DONE, jobs.c.updated_at < payloads_before)
            )
        return emptied.rowcount, dropped.rowcount, done.rowcount


def _delivery(row: sa.RowMapping) -> Delivery:
    values = {name: row[name] for name in _PLAIN}
    return Delivery(**values, payload=b"" if row["payload"] is None else zlib.decompress(row["payload"]))
