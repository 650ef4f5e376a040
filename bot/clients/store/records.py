"""Batches, breakages, commands, decisions, notes, known repositories: what was decided and answered."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from bot.clients.store.models import AuditRow, Batch, Breakage, CommandRecord, Scope
from bot.clients.store.rows import Part, columns, insert_new, upsert
from bot.clients.store.schema import audit, batches, breakages, commands, decisions, notes, repositories
from bot.core.types import Disposition, LedgerEntry


class Batches(Part):
    """Graft's own pull requests."""

    async def save_batch(self, batch: Batch) -> None:
        """Store a batch, or overwrite the one with the same key in the repository."""
        async with self._begin() as connection:
            await upsert(connection, batches, _values(batch), key=("repository", "key"))

    async def batch(self, repository: str, key: str) -> Batch | None:
        """The batch with this key."""
        row = await self._one(_batches(repository).where(batches.c.key == key))
        return None if row is None else Batch(**row)

    async def batch_of(self, repository: str, number: int) -> Batch | None:
        """The batch whose pull request has this number."""
        row = await self._one(_batches(repository).where(batches.c.number == number))
        return None if row is None else Batch(**row)

    async def batches(self, repository: str, states: Sequence[str] | None = None) -> list[Batch]:
        """The repository's batches in the order in which they came up."""
        statement = _batches(repository).order_by(batches.c.id)
        if states is not None:
            statement = statement.where(batches.c.state.in_(list(states)))
        return [Batch(**row) for row in await self._all(statement)]


class Breakages(Part):
    """Trunk's breakages."""

    async def save_breakage(self, breakage: Breakage) -> None:
        """Store a breakage, or overwrite the one with the same key in the repository."""
        async with self._begin() as connection:
            await upsert(connection, breakages, _values(breakage), key=("repository", "key"))

    async def breakage(self, repository: str, key: str) -> Breakage | None:
        """The breakage with this key."""
        statement = sa.select(*columns(breakages)).where(breakages.c.repository == repository, breakages.c.key == key)
        row = await self._one(statement)
        return None if row is None else Breakage(**row)

    async def breakages(self, repository: str, states: Sequence[str] | None = None) -> list[Breakage]:
        """The repository's breakages in the order in which they came up."""
        statement = sa.select(*columns(breakages)).where(breakages.c.repository == repository)
        if states is not None:
            statement = statement.where(breakages.c.state.in_(list(states)))
        return [Breakage(**row) for row in await self._all(statement.order_by(breakages.c.id))]


class Commands(Part):
    """Commands as they came, each with its answer."""

    async def record_command(self, command: CommandRecord) -> bool:
        """Store a command; False where this one (comment, position, text) came before."""
        async with self._begin() as connection:
            key = ("repository", "comment_id", "position", "body_hash")
            return await insert_new(connection, commands, _values(command), key=key)

    async def answer_command(
        self,
        repository: str,
        comment_id: int,
        position: int,
        answer: str,
        now: datetime,
        *,
        body_hash: str | None = None,
    ) -> None:
        """Note that the command was answered, and how; without `body_hash` all that ever stood at that position."""
        statement = sa.update(commands).where(
            commands.c.repository == repository, commands.c.comment_id == comment_id, commands.c.position == position
        )
        if body_hash is not None:
            statement = statement.where(commands.c.body_hash == body_hash)
        async with self._begin() as connection:
            await connection.execute(statement.values(answer=answer, answered_at=now))

    async def commands(self, repository: str, number: int | None = None) -> list[CommandRecord]:
        """The repository's commands in the order in which they came."""
        statement = sa.select(*columns(commands)).where(commands.c.repository == repository)
        if number is not None:
            statement = statement.where(commands.c.number == number)
        return [CommandRecord(**row) for row in await self._all(statement.order_by(commands.c.id))]

    async def unanswered_commands(self, before: datetime) -> list[CommandRecord]:
        """Commands of all repositories that came before that instant and have no answer yet."""
        statement = sa.select(*columns(commands)).where(commands.c.answer.is_(None), commands.c.received_at < before)
        return [CommandRecord(**row) for row in await self._all(statement.order_by(commands.c.id))]


class Decisions(Part):
    """What people decided of upstream commits by command."""

    async def save_decision(self, installation: int, repository: str, entry: LedgerEntry, now: datetime) -> None:
        """Store the decision; the newest of a commit stands. `now` is when it was made, if the entry does not say."""
        values = {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry)}
        at = values.pop("time")
        decided = now if at is None else datetime.fromtimestamp(at, UTC)
        values |= {"installation": installation, "repository": repository, "decided_at": decided}
        async with self._begin() as connection:
            await upsert(connection, decisions, values, key=("repository", "sha"))

    async def remove_decision(self, repository: str, sha: str) -> bool:
        """Take a decision back; False where there was none."""
        statement = sa.delete(decisions).where(decisions.c.repository == repository, decisions.c.sha == sha)
        async with self._begin() as connection:
            return (await connection.execute(statement)).rowcount > 0

    async def decisions(self, repository: str) -> list[LedgerEntry]:
        """The repository's decisions, oldest first."""
        c = decisions.c
        told = (c.sha, c.disposition, c.subject, c.by, c.reason, c.owner, c.decided_at)
        rows = await self._all(sa.select(*told).where(c.repository == repository).order_by(c.decided_at, c.id))
        return [
            LedgerEntry(
                row["sha"],
                Disposition(row["disposition"]),
                row["subject"],
                row["by"],
                row["reason"],
                row["owner"],
                int(row["decided_at"].timestamp()),
            )
            for row in rows
        ]


class Audit(Part):
    """The audit's rows; the chain itself is computed by bot.core."""

    async def append_audit(self, row: AuditRow) -> None:
        """Append an entry; IntegrityError where its sequence number is taken: the caller read an old head."""
        async with self._begin() as connection:
            await connection.execute(sa.insert(audit).values(**_values(row)))

    async def audit_head(self, repository: str) -> AuditRow | None:
        """The newest entry."""
        statement = sa.select(*columns(audit)).where(audit.c.repository == repository)
        row = await self._one(statement.order_by(audit.c.sequence.desc()).limit(1))
        return None if row is None else AuditRow(**row)

    async def audit_entries(self, repository: str, *, since: int = 0, limit: int | None = None) -> list[AuditRow]:
        """Entries after sequence number `since`, in order."""
        statement = sa.select(*columns(audit)).where(audit.c.repository == repository, audit.c.sequence > since)
        return [AuditRow(**row) for row in await self._all(statement.order_by(audit.c.sequence).limit(limit))]


class Notes(Part):
    """Small JSON values by (repository, key); installation 0 and repository "" hold the deployment's own."""

    async def put_note(self, installation: int, repository: str, key: str, value: Any, now: datetime) -> None:
        """Store a value, or overwrite it."""
        values = {"installation": installation, "repository": repository, "key": key, "value": value, "updated_at": now}
        async with self._begin() as connection:
            await upsert(connection, notes, values, key=("installation", "repository", "key"))

    async def note(self, installation: int, repository: str, key: str) -> Any:
        """The value, or None."""
        statement = sa.select(notes.c.value).where(*_scoped(notes, installation, repository), notes.c.key == key)
        row = await self._one(statement)
        return None if row is None else row["value"]

    async def change_note(
        self, installation: int, repository: str, key: str, change: Callable[[Any], Any], now: datetime
    ) -> Any:
        """Store what `change` makes of the value (None where there is none) and give it; nothing comes in between.

        For every value that jobs of different locks change: one that is read, changed and written loses what another
        wrote meanwhile. `change` gives a new value and leaves the old one as it is.
        """
        values = {"installation": installation, "repository": repository, "key": key, "updated_at": now}
        statement = sa.select(notes.c.value).where(*_scoped(notes, installation, repository), notes.c.key == key)
        async with self._begin() as connection:
            if connection.dialect.name == "postgresql":  # the row may not be there to be locked
                name = f"{installation} {repository} {key}"
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtextextended(name, 0))))
            row = (await connection.execute(statement)).mappings().first()
            old = None if row is None else row["value"]
            new = change(old)
            if new != old:
                await upsert(connection, notes, {**values, "value": new}, key=("installation", "repository", "key"))
            return new

    async def remove_note(self, installation: int, repository: str, key: str) -> None:
        """Forget a value."""
        statement = sa.delete(notes).where(*_scoped(notes, installation, repository), notes.c.key == key)
        async with self._begin() as connection:
            await connection.execute(statement)

    async def notes(self, installation: int, repository: str, prefix: str = "") -> dict[str, Any]:
        """All values whose key begins with `prefix`."""
        statement = sa.select(notes.c.key, notes.c.value).where(
            *_scoped(notes, installation, repository), notes.c.key.startswith(prefix, autoescape=True)
        )
        return {row["key"]: row["value"] for row in await self._all(statement.order_by(notes.c.key))}

    async def notes_everywhere(self, prefix: str) -> dict[tuple[int, str, str], Any]:
        """All values whose key begins with `prefix`, of all repositories, by (installation, repository, key)."""
        c = notes.c
        statement = sa.select(c.installation, c.repository, c.key, c.value).where(
            c.key.startswith(prefix, autoescape=True)
        )
        return {
            (row["installation"], row["repository"], row["key"]): row["value"] for row in await self._all(statement)
        }


class Repositories(Part):
    """The repositories that installations gave access to."""

    async def save_repositories(self, installation: int, names: Sequence[str], now: datetime) -> None:
        """Note that these are accessible."""
        async with self._begin() as connection:
            for name in names:
                values = {"installation": installation, "repository": name, "active": True, "seen_at": now}
                await upsert(connection, repositories, values, key=("installation", "repository"))

    async def drop_repositories(self, installation: int, names: Sequence[str] | None, now: datetime) -> None:
        """Note that these are no longer accessible; None stands for all of the installation."""
        statement = sa.update(repositories).where(repositories.c.installation == installation)
        if names is not None:
            statement = statement.where(repositories.c.repository.in_(list(names)))
        async with self._begin() as connection:
            await connection.execute(statement.values(active=False, seen_at=now))

    async def repositories(self) -> list[Scope]:
        """The accessible ones by name."""
        c = repositories.c
        statement = sa.select(c.installation, c.repository).where(c.active.is_(True)).order_by(c.repository)
        return [Scope(**row) for row in await self._all(statement)]


def _batches(repository: str) -> sa.Select[Any]:
    return sa.select(*columns(batches)).where(batches.c.repository == repository)


def _scoped(table: sa.Table, installation: int, repository: str) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.installation == installation, table.c.repository == repository


def _values(
    row: Batch | Breakage | CommandRecord | AuditRow,
) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}
