"""The tables. One schema for SQLite and PostgreSQL: integer keys, instants as integer microseconds, JSON as JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import JSON, TypeDecorator

from bot.clients.store.models import JobState, RunState
from bot.core.turns import Turn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """An aware datetime, stored as microseconds since the epoch: the same order and precision in every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """To microseconds; a naive datetime raises TypeError."""
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """To an aware datetime in UTC."""
        return None if value is None else _EPOCH + int(value) * _MICROSECOND


class Word(TypeDecorator[StrEnum]):
    """A word of an enum, stored as its text."""

    impl = String
    cache_ok = True

    def __init__(self, words: type[StrEnum]) -> None:
        super().__init__()
        self.words = words

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> str | None:
        """To text."""
        return None if value is None else str(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> StrEnum | None:
        """To the word."""
        return None if value is None else self.words(value)


class Rank(TypeDecorator[Turn]):
    """What a run is for, stored as its number."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> int | None:
        """To its number."""
        return None if value is None else int(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Turn | None:
        """To the word."""
        return None if value is None else Turn(value)


class Texts(TypeDecorator[tuple[str, ...]]):
    """A tuple of texts, stored as a JSON list."""

    impl = JSON
    cache_ok = True

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> Any:
        """To a list."""
        return None if value is None else list(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> tuple[str, ...] | None:
        """To a tuple."""
        return None if value is None else tuple(value)


metadata = MetaData(naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"})
_Key = BigInteger().with_variant(Integer, "sqlite")  # only INTEGER is an alias of SQLite's rowid


def _table(name: str, *columns: Any) -> Table:
    return Table(
        name,
        metadata,
        Column("id", _Key, primary_key=True, autoincrement=True),
        Column("installation", BigInteger, nullable=False),
        Column("repository", String, nullable=False),
        *columns,
    )


repositories = _table(
    "repositories",
    Column("active", Boolean, nullable=False),
    Column("seen_at", Instant, nullable=False),
    Index("uq_repositories", "installation", "repository", unique=True),
)

deliveries = _table(
    "deliveries",
    Column("guid", String, nullable=False, unique=True),
    Column("event", String, nullable=False),
    Column("action", String, nullable=False),
    Column("sender", String, nullable=False),
    Column("payload", LargeBinary, nullable=True),
    Column("received_at", Instant, nullable=False, index=True),
)

jobs = _table(
    "jobs",
    Column("kind", String, nullable=False),
    Column("key", String, nullable=False),
    Column("lock", String, nullable=False),
    Column("payload", JSON, nullable=False),
    Column("state", Word(JobState), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("run_at", Instant, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("lease_owner", String),
    Column("lease_until", Instant),
    Column("last_error", Text),
    Column("again", Boolean, nullable=False),
    Column("again_payload", JSON(none_as_null=True)),
)
# literal conditions: an index can't hold bound parameters
Index(
    "uq_jobs_live",
    jobs.c.installation,
    jobs.c.repository,
    jobs.c.kind,
    jobs.c.key,
    unique=True,
    sqlite_where=sa.text("state != 'done'"),
    postgresql_where=sa.text("state != 'done'"),
)
# two jobs of one lock never run at once: held by the database itself
Index(
    "uq_jobs_leased",
    jobs.c.installation,
    jobs.c.repository,
    jobs.c.lock,
    unique=True,
    sqlite_where=sa.text("state = 'leased'"),
    postgresql_where=sa.text("state = 'leased'"),
)
Index("ix_jobs_due", jobs.c.state, jobs.c.run_at)

batches = _table(
    "batches",
    Column("key", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("number", Integer),
    Column("branch", String, nullable=False),
    Column("head", String, nullable=False),
    Column("base", String, nullable=False),
    Column("state", String, nullable=False),
    Column("position", Integer, nullable=False),
    Column("commits", Texts, nullable=False),
    Column("plan", JSON, nullable=False),
    Column("updated_at", Instant),
    Index("uq_batches", "repository", "key", unique=True),
    Index("ix_batches_number", "repository", "number"),
)

runs = _table(
    "runs",
    Column("run", String, nullable=False, unique=True),
    Column("number", Integer),
    Column("sha", String, nullable=False),
    Column("base", String, nullable=False),
    Column("level", String, nullable=False),
    Column("suite", String, nullable=False),
    Column("label", String, nullable=False),
    Column("request", JSON, nullable=False),
    Column("deadline", Instant, nullable=False),
    Column("queued_at", Instant, nullable=False),
    Column("state", Word(RunState), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("outcome", String),
    Column("report", JSON(none_as_null=True)),
    Column("runner", String),
    Column("lease_until", Instant),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    Column("turn", Rank, nullable=False, server_default="2"),
    Column("capacity", String, nullable=False, server_default=""),
    Column("wanted", Texts, nullable=False, server_default="[]"),
    Index("ix_runs_sha", "repository", "sha"),
    Index("ix_runs_state", "state", "lease_until"),
    Index("ix_runs_started_at", "started_at"),
)

runners = _table(
    "runners",
    Column("name", String, nullable=False, unique=True),
    Column("token_hash", String, nullable=False, index=True),
    Column("labels", Texts, nullable=False),
    Column("facts", JSON, nullable=False),
    Column("seen_at", Instant),
)

breakages = _table(
    "breakages",
    Column("key", String, nullable=False),
    Column("state", String, nullable=False),
    Column("title", Text, nullable=False),
    Column("number", Integer),
    Column("first_seen", Instant),
    Column("last_seen", Instant),
    Column("data", JSON, nullable=False),
    Index("uq_breakages", "repository", "key", unique=True),
)

commands = _table(
    "commands",
    Column("comment_id", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("body_hash", String, nullable=False),
    Column("number", Integer, nullable=False),
    Column("sha", String, nullable=False),
    Column("actor", String, nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("answer", Text),
    Column("answered_at", Instant),
    Index("uq_commands", "repository", "comment_id", "position", "body_hash", unique=True),
)

decisions = _table(
    "decisions",
    Column("sha", String, nullable=False),
    Column("disposition", String, nullable=False),
    Column("subject", Text, nullable=False),
    Column("by", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("owner", String),
    Column("decided_at", Instant, nullable=False),
    Index("uq_decisions", "repository", "sha", unique=True),
)

audit = _table(
    "audit",
    Column("sequence", BigInteger, nullable=False),
    Column("kind", String, nullable=False),
    Column("body", JSON, nullable=False),
    Column("previous", String, nullable=False),
    Column("hash", String, nullable=False),
    Column("at", Instant, nullable=False),
    Index("uq_audit", "repository", "sequence", unique=True),
)

notes = _table(
    "notes",
    Column("key", String, nullable=False),
    Column("value", JSON, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Index("uq_notes", "installation", "repository", "key", unique=True),
)
