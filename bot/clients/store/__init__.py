"""What only Graft knows, durably: SQLite (WAL) by default, PostgreSQL by URL, one schema with migrations.

`Store` runs each call in a transaction of its own; `async with store.transaction() as tx` has the same calls in one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.clients.store.alone import held_by_file, held_by_session
from bot.clients.store.deliveries import DISPATCH, Deliveries, GroupCommit
from bot.clients.store.engine import Database, StoreUnavailable, connect, file_of
from bot.clients.store.jobs import Jobs
from bot.clients.store.models import (
    AuditRow,
    Batch,
    Breakage,
    CommandRecord,
    Delivery,
    Expired,
    Job,
    JobState,
    Queued,
    Run,
    Runner,
    RunState,
    Scope,
)
from bot.clients.store.records import Audit, Batches, Breakages, Commands, Decisions, Notes, Repositories
from bot.clients.store.runs import Runners, Runs

__all__ = [
    "DISPATCH",
    "AuditRow",
    "Batch",
    "Breakage",
    "CommandRecord",
    "Delivery",
    "Expired",
    "Job",
    "JobState",
    "Queued",
    "Run",
    "RunState",
    "Runner",
    "Scope",
    "Store",
    "StoreUnavailable",
    "Transaction",
]


class _Parts(Jobs, Deliveries, Runs, Runners, Batches, Breakages, Commands, Decisions, Audit, Notes, Repositories):
    pass


class Transaction(_Parts):
    """All calls of the store inside one transaction."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[AsyncConnection]:
        yield self._connection

    def _begin(self, *, write: bool = True) -> AbstractAsyncContextManager[AsyncConnection]:
        return self._open()


class Store(_Parts):
    """The store; every row belongs to an installation and a repository."""

    def __init__(self, database: Database, file: Path | None = None) -> None:
        self._database = database
        self._file = file
        self._intake = GroupCommit(database)

    @classmethod
    async def open(cls, url: str, *, migrate: bool = True) -> Store:
        """Open by URL and bring the schema to its head. Raises ValueError (bad URL) and StoreUnavailable."""
        if (file := file_of(url)) is not None:
            _reach(file)
        database = connect(url)
        if migrate:
            try:
                await database.migrate()
            except BaseException:
                await database.close()
                raise
        return cls(database, file)

    def _begin(self, *, write: bool = True) -> AbstractAsyncContextManager[AsyncConnection]:
        return self._database.begin(write=write)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Several calls in one transaction: all of them happen, or none."""
        async with self._database.begin() as connection:
            yield Transaction(connection)

    def alone(self, name: str) -> AbstractAsyncContextManager[None]:
        """Only one block of this name at a time among all processes that use this store; the others wait.

        The end of its process ends it. Raises StoreUnavailable.
        """
        return held_by_session(self._database.engine, name) if self._file is None else held_by_file(self._file, name)

    async def record_delivery(self, delivery: Delivery) -> bool:
        """Store a delivery with the job that dispatches it; durable when it returns.

        False where this delivery id is known already. Raises StoreUnavailable.
        """
        return await self._intake.record(delivery)

    async def ping(self) -> None:
        """Raises StoreUnavailable where the database does not answer."""
        async with self._database.begin(write=False) as connection:
            await connection.execute(sa.text("SELECT 1"))

    async def close(self) -> None:
        """Finish what is under way and close all connections."""
        await self._intake.close()
        await self._database.close()


def _reach(path: Path) -> None:
    """Make the folder and see that the file can be opened: aiosqlite leaves a thread behind where it can't."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sqlite3.connect(path).close()
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailable(f"the store can't be used: {path}: {error}") from error
