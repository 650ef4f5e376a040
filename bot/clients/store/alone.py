"""One holder of a name among all processes on a store: given up by leaving the block, or by the holder's death."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

import sqlalchemy as sa
from filelock import AsyncFileLock
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import AsyncEngine

from bot.clients.store.engine import StoreUnavailable

_LOOK_SECONDS = 0.02


@asynccontextmanager
async def held_by_file(path: Path, name: str) -> AsyncIterator[None]:
    """Beside a SQLite file: those who share the file share the machine, and the kernel frees what a dead one held."""
    lock = AsyncFileLock(
        path.with_name(f"{path.name}.{_digest(name).hex()[:12]}.lock"),
        run_in_executor=False,
        poll_interval=_LOOK_SECONDS,
    )
    try:
        await lock.acquire()
    except OSError as error:
        raise StoreUnavailable(f"the store can't be used: {lock.lock_file}: {error}") from error
    try:
        yield
    finally:
        await lock.release()


@asynccontextmanager
async def held_by_session(engine: AsyncEngine, name: str) -> AsyncIterator[None]:
    """On PostgreSQL: an advisory lock of a session of its own, which ends with the session."""
    key = int.from_bytes(_digest(name)[:8], "big", signed=True)
    try:
        connection = await engine.connect()
    except (exc.DBAPIError, exc.TimeoutError, OSError) as error:
        raise StoreUnavailable(f"the store can't be used: {error}") from error
    clean = False
    try:
        try:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.execute(sa.text("SELECT pg_advisory_lock(:key)"), {"key": key})
        except (exc.DBAPIError, OSError) as error:
            raise StoreUnavailable(f"the store can't be used: {error}") from error
        try:
            yield
        finally:
            with suppress(exc.DBAPIError, OSError):  # a session that is gone holds nothing
                await connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), {"key": key})
                clean = True
    finally:
        if not clean:
            await connection.invalidate()  # one that went back to the pool might hold the lock for ever
        await connection.close()


def _digest(name: str) -> bytes:
    return sha256(name.encode()).digest()
