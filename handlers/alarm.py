"""One alarm, as an issue of its own, while nothing was taken in for too long; closed by itself once all is well."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.core.render.dashboard import ALARM, alarm_body, alarm_title
from bot.core.render.text import marker
from handlers.fork import Fork

LABEL = "graft:alarm"


async def watch(fork: Fork) -> bool:
    """Raise the alarm where the last good look is older than the file allows, or take it back; True while it stands.

    It is the sweep that asks, so that an ingest which never gets to its end can't keep it quiet.
    """
    state = await fork.note("ingest") or {}
    since = state.get("good_at") or await _first_seen(fork)
    standing = await fork.note("alarm")
    if fork.now.timestamp() - since <= fork.config.ingest.stale_after.total_seconds():
        if standing:
            await fork.github.update_issue(standing, state="closed", state_reason="completed")
            await fork.put_note("alarm", None)
        return False
    if not standing:
        await fork.github.ensure_label(LABEL, "b60205", "Graft takes nothing in any more")
        body = alarm_body(
            since=datetime.fromtimestamp(since, UTC) if state.get("good_at") else None,
            allowed=fork.config.ingest.stale_after,
            error=state.get("error") or "",
        )
        issue = await fork.github.upsert_issue(marker(ALARM), alarm_title(), body, labels=(LABEL,))
        await fork.put_note("alarm", issue.number)
        fork.ctx.log.error("nothing was taken in for too long", repository=fork.name, issue=issue.number)
    return True


async def _first_seen(fork: Fork) -> float:
    seen = await fork.note("first_seen")
    if seen is None:
        seen = int(fork.now.timestamp())
        await fork.put_note("first_seen", seen)
    return float(seen)
