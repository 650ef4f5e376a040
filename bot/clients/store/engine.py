"""The engine below the store: opens SQLite or PostgreSQL, begins transactions, brings the schema to its head."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

_BUSY_MS = 15_000
_WRITE = "graft_write"
MIGRATION_LOCK = 0x67726166
LEASE_LOCK = 0x67726167


class StoreUnavailable(Exception):
    """The database can't be reached, is full, or is busy for too long; what was asked for did not happen."""


class Database:
    """An engine with the settings that durability needs, and one lock for this process's writers on SQLite."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine
        self.sqlite = engine.dialect.name == "sqlite"
        self._writer: AbstractAsyncContextManager[Any] = asyncio.Lock() if self.sqlite else nullcontext()

    @asynccontextmanager
    async def begin(self, *, write: bool = True) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end, rolled back on an error. Raises StoreUnavailable."""
        try:
            if not write:
                async with self.engine.begin() as connection:
                    yield connection
                return
            async with self._writer, self.engine.connect() as connection:
                writing = await connection.execution_options(**{_WRITE: True})
                async with writing.begin():
                    yield writing
        except (exc.IntegrityError, exc.ProgrammingError, exc.DataError):
            raise  # a fault of the caller's, or a row that is there already
        except (exc.DBAPIError, exc.TimeoutError, OSError) as error:
            raise StoreUnavailable(f"the store can't be used: {error}") from error

    async def migrate(self) -> None:
        """Bring the schema to its head; of several processes that start at once one does it, the others wait."""
        async with self.begin() as connection:
            if not self.sqlite:
                await connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
            await connection.run_sync(_upgrade)

    async def close(self) -> None:
        """Close all connections."""
        await self.engine.dispose()


def connect(url: str) -> Database:
    """A database by URL: sqlite:///path or postgresql://user@host/name, with or without a driver's name.

    Raises ValueError for any other address.
    """
    parsed = _parsed(url)
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        if parsed.database in (None, "", ":memory:"):
            raise ValueError(
                f"{url!r} names no file: web and worker share the store, so write sqlite:////path/graft.db"
            )
        engine = create_async_engine(parsed.set(drivername="sqlite+aiosqlite"), pool_size=8, max_overflow=8)
        _tune_sqlite(engine)
    elif backend in ("postgresql", "postgres"):
        engine = create_async_engine(
            parsed.set(drivername="postgresql+asyncpg"), pool_size=8, max_overflow=8, pool_pre_ping=True
        )
    else:
        raise ValueError(f"{parsed!r} is neither a SQLite nor a PostgreSQL address")  # its password is starred out
    return Database(engine)


def _parsed(url: str) -> sa.URL:
    try:
        return sa.make_url(url)
    except exc.ArgumentError:  # not repeated: what can't be read may hold a password
        raise ValueError(
            "the store's address is no URL: write sqlite:////path/graft.db or postgresql://user@host/name"
        ) from None


def file_of(url: str) -> Path | None:
    """The file of a SQLite address, None for any other. Raises ValueError for what is no URL."""
    parsed = _parsed(url)
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None


def _tune_sqlite(engine: AsyncEngine) -> None:
    @event.listens_for(engine.sync_engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver begins nothing by itself; _begun does
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")  # NORMAL may lose the last commits of a WAL on power loss
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def _begun(connection: sa.Connection) -> None:
        # a deferred BEGIN that writes later fails at once where another process has written in between
        write = connection.get_execution_options().get(_WRITE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _upgrade(connection: sa.Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "bot.clients.store:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
