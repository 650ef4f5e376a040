"""One alarm, as an issue of its own, while nothing was taken in for too long; closed by itself once all is well."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.context import Gone, NotFound
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
            try:
                await fork.github.update_issue(standing, state="closed", state_reason="completed")
            except (NotFound, Gone) as error:  # somebody deleted it
                fork.ctx.log.info("the alarm's issue is gone", issue=standing, error=str(error))
            await fork.put_note("alarm", None)
        return False
    if not standing:
        await fork.github.ensure_label(LABEL, "b60205", "Graft takes nothing in any more")
        body = alarm_body(
            since=datetime.fromtimestamp(since, UTC) if state.get("good_at") else None,
            allowed=fork.config.ingest.stale_after,
            error=state.get("error") or "",
        )
        number: int | None = None
        try:
            number = (await fork.github.upsert_issue(marker(ALARM), alarm_title(), body, labels=(LABEL,))).number
            await fork.put_note("alarm", number)
        except Gone as error:  # issues are switched off: the log is the only place
            if error.archived:
                raise
            fork.ctx.log.warning("the alarm could not be raised as an issue", error=str(error))
        fork.ctx.log.error("nothing was taken in for too long", repository=fork.name, issue=number)
    return True


async def _first_seen(fork: Fork) -> float:
    seen = await fork.note("first_seen")
    if seen is None:
        seen = int(fork.now.timestamp())
        await fork.put_note("first_seen", seen)
    return float(seen)
