"""Fixtures over real servers: the store on SQLite and PostgreSQL, Valkey."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

from bot.clients.store import Store
from bot.clients.store.schema import metadata
from tests.servers import Postgres, postgres_binaries

# a busy machine is slow, and that is nobody's fault
settings.register_profile("graft", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("graft")

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL's server is not installed (Debian: apt-get install postgresql)")
    server = Postgres(binaries)
    yield server
    server.close()


async def execute(url: str, statement: str) -> None:
    """Run one statement on a PostgreSQL database."""
    import asyncpg  # type: ignore[import-untyped]

    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


async def _migrate(url: str) -> None:
    await (await Store.open(url)).close()


@pytest.fixture(scope="session")
def postgres_url(postgres: Postgres) -> str:
    """The address of a database with the schema, emptied for each test that takes it by `store_url`."""
    url = postgres.url("graft")
    asyncio.run(execute(postgres.url("postgres"), "CREATE DATABASE graft"))
    asyncio.run(_migrate(url))
    return url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the schema, to be copied."""
    path = tmp_path_factory.mktemp("template") / "graft.db"
    asyncio.run(_migrate(f"sqlite:///{path}"))
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store of its own, once on each database."""
    if request.param == "sqlite":
        path = tmp_path / "graft.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue("postgres_url")
    asyncio.run(execute(url, f"TRUNCATE {', '.join(metadata.tables)}"))
    return url


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An empty store, once on each database."""
    opened = await Store.open(store_url, migrate=False)
    yield opened
    await opened.close()


@pytest.fixture
async def sqlite_store(sqlite_template: Path, tmp_path: Path) -> AsyncIterator[Store]:
    """An empty store on SQLite."""
    path = tmp_path / "graft.db"
    shutil.copy(sqlite_template, path)
    opened = await Store.open(f"sqlite:///{path}", migrate=False)
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command called in this process sets logging up on the stderr of its test, which is closed after it."""
    handlers = list(logging.root.handlers)
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
