"""What repairs lost wake-ups and keeps time: enqueues each schedule entry that is due, once however many look."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bot.clients.store import Scope
from bot.context import Context
from handlers import Cron

EVERYWHERE = Scope(0, "")
EVERYWHERE_KEY = "all"
_PREFIX = "cron:"


def due_crons(
    *, crons: Sequence[Cron], scopes: Sequence[Scope], last: dict[tuple[int, str, str], str], now: datetime
) -> list[tuple[Cron, Scope]]:
    """The entries whose time has come, by when each was last enqueued (ISO times)."""
    due: list[tuple[Cron, Scope]] = []
    for cron in crons:
        for scope in scopes if cron.per_repository else (EVERYWHERE,):
            before = last.get((scope.installation, scope.repository, _PREFIX + cron.kind))
            if before is None or datetime.fromisoformat(before) + cron.every <= now:
                due.append((cron, scope))
    return due


async def enqueue_due(context: Context, crons: Sequence[Cron]) -> int:
    """Enqueue what is due; gives how many. The times are kept in the store, so workers don't double them."""
    now = context.now()
    async with context.store.transaction() as tx:
        last = await tx.notes_everywhere(_PREFIX)
        due = due_crons(crons=crons, scopes=await tx.repositories(), last=last, now=now)
        for cron, scope in due:
            key = "repository" if cron.per_repository else EVERYWHERE_KEY
            await tx.enqueue(
                cron.kind, key, {"cron": True}, installation=scope.installation, repository=scope.repository, now=now
            )
            await tx.put_note(scope.installation, scope.repository, _PREFIX + cron.kind, now.isoformat(), now)
    return len(due)
