"""Gather what the dashboard's digest of trunk says."""

from __future__ import annotations

from datetime import datetime

from bot.core.render.digest import DigestRow, SpoiltNote, digest_section
from handlers.fork import Fork
from handlers.other_ci import DENIED


async def trunk_digest(fork: Fork) -> str:
    """The digest's section of the dashboard; empty where there is nothing to say."""
    rows = []
    for row in await fork.ctx.store.breakages(fork.name):
        if "merged" in row.data:
            continue
        opened = row.data.get("opened_at")
        rows.append(
            DigestRow(
                number=row.number,
                state=row.state,
                areas=row.data.get("areas") or [],
                opened_at=datetime.fromisoformat(opened) if opened else row.first_seen,
                changed_at=row.last_seen,
                masks=len(row.data.get("masks", [])),
            )
        )
    infra, unknown = [
        [SpoiltNote(note["suite"], note["why"], note["judged"]) for note in await fork.note(key) or []]
        for key in ("trunk:infra", "trunk:unknown")
    ]
    denied = await fork.note(DENIED) or ""
    waiting = int((await fork.note("trunk:opened") or {}).get("waiting", 0))
    return digest_section(rows=rows, infra=infra, now=fork.now, waiting=waiting, unknown=unknown, denied=denied)
