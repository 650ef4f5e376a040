"""What all parts of the store share: the base of the parts, and the upsert that both databases understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

Row = TypeVar("Row")


class Part:
    """A part of the store by noun. The same methods serve the store (own transaction) and a transaction (its own)."""

    def _begin(self, *, write: bool = True) -> AbstractAsyncContextManager[AsyncConnection]:
        raise NotImplementedError

    async def _all(self, statement: sa.Select[Any]) -> Sequence[sa.RowMapping]:
        async with self._begin(write=False) as connection:
            rows: Sequence[sa.RowMapping] = (await connection.execute(statement)).mappings().all()
        return rows

    async def _one(self, statement: sa.Select[Any]) -> sa.RowMapping | None:
        async with self._begin(write=False) as connection:
            row: sa.RowMapping | None = (await connection.execute(statement)).mappings().first()
        return row


def columns(table: sa.Table, *, without: Sequence[str] = ("id",)) -> list[sa.Column[Any]]:
    """The table's columns without those named."""
    return [column for column in table.c if column.name not in without]


def insert(connection: AsyncConnection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT that knows ON CONFLICT, in the connection's dialect."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


async def upsert(
    connection: AsyncConnection, table: sa.Table, values: Mapping[str, Any], *, key: Sequence[str]
) -> None:
    """Insert the row, or overwrite the one with the same key."""
    statement = insert(connection, table).values(**values)
    fresh = {name: statement.excluded[name] for name in values if name not in key}
    await connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=fresh))


async def insert_new(
    connection: AsyncConnection, table: sa.Table, values: Mapping[str, Any], *, key: Sequence[str]
) -> bool:
    """Insert the row; False where one with the same key is there already."""
    statement = insert(connection, table).values(**values).on_conflict_do_nothing(index_elements=list(key))
    return (await connection.execute(statement.returning(table.c.id))).first() is not None
