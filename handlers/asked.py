"""What a command asks, by whom and for which commit; and the record of which head was seen when."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from bot.context import Context, Pull, Scope
from bot.core.command import Command
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


async def see_head(ctx: Context, scope: Scope, number: int, sha: str, at: datetime) -> None:
    """Keep that this head of a pull request was seen at that moment; the last twenty are enough."""
    key = f"heads:{number}"
    seen = await ctx.store.note(scope.installation, scope.repository, key) or []
    if not seen or seen[-1][0] != sha:
        kept = [*seen, [sha, at.isoformat()]][-20:]
        await ctx.store.put_note(scope.installation, scope.repository, key, kept, ctx.now())
