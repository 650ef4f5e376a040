"""Gather what the dashboard's digest of trunk says."""

from __future__ import annotations

from datetime import datetime

from bot.core.render.digest import DigestRow, InfraNote, digest_section
from handlers.fork import Fork


async def trunk_digest(fork: Fork) -> str:
    """The digest's section of the dashboard; empty where there is nothing to say."""
    rows = []
    for row in await fork.ctx.store.breakages(fork.name):
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
    told = await fork.note("trunk:infra") or []
    infra = [InfraNote(note["suite"], note["why"], note["judged"]) for note in told]
    waiting = int((await fork.note("trunk:opened") or {}).get("waiting", 0))
    return digest_section(rows=rows, infra=infra, now=fork.now, waiting=waiting)
