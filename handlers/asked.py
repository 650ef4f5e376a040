"""What a command asks, by whom and for which commit; and the record of which head was seen when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.context import Context, Pull, Scope
from bot.core.command import Command
from bot.core.heads import Seen, with_seen
from bot.core.owners import People
from bot.core.render.answers import Said
from handlers.fork import Fork


@dataclass(frozen=True, slots=True)
class Asked:
    """One command with who asked, where, and for which commit."""

    fork: Fork
    command: Command
    author: str
    who: People
    number: int
    pull: Pull | None
    head: str | None
    at: datetime
    comment_id: int

    def done(self, text: str) -> Said:
        """It was done."""
        return Said(self.command.text, True, text)

    def refused(self, text: str) -> Said:
        """It was not done, for this reason."""
        return Said(self.command.text, False, text)


Executor = Callable[[Asked], Awaitable[Said]]


async def see_head(ctx: Context, scope: Scope, number: int, head: Seen) -> None:
    """Keep when a pull request got this head, so that a comment can be told to be about it."""
    key = f"heads:{number}"

    def seen(rows: Any) -> list[list[str]]:
        return [[one.sha, one.at.isoformat(), one.before] for one in with_seen(_heads(rows), head)]

    await ctx.store.change_note(scope.installation, scope.repository, key, seen, ctx.now())


async def seen_heads(ctx: Context, scope: Scope, number: int) -> tuple[Seen, ...]:
    """The heads that a pull request is known to have had, oldest first."""
    return _heads(await ctx.store.note(scope.installation, scope.repository, f"heads:{number}"))


def _heads(rows: Any) -> tuple[Seen, ...]:
    return tuple(Seen(str(row[0]), datetime.fromisoformat(row[1]), *map(str, row[2:3])) for row in rows or [])
