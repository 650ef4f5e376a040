"""Look for webhooks that GitHub sent and that never came: what a lost delivery would have asked for is asked for."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from bot.context import Context, Delivery, GitHubError, HookDelivery, Job
from bot.core.events import parse

_LOOK_BACK = timedelta(hours=6)
_OVERLAP = timedelta(minutes=10)
_NOTE = "redeliver:since"


def lost(*, listed: list[HookDelivery], known: set[str], settled_before: float) -> list[HookDelivery]:
    """Of GitHub's list, one entry for each delivery that is not stored and old enough; the newest attempt counts."""
    found: dict[str, HookDelivery] = {}
    for one in sorted(listed, key=lambda entry: entry.id, reverse=True):
        sent = one.delivered_at.timestamp() if one.delivered_at else 0.0
        if one.guid and one.event != "ping" and one.guid not in known and sent <= settled_before:
            found.setdefault(one.guid, one)
    return sorted(found.values(), key=lambda entry: entry.id)


async def redeliver(context: Context, job: Job) -> None:
    """Job `redeliver`: read the App's deliveries since the last look, and store those that are missing, oldest first.

    The payload is read from GitHub and stored under the same delivery id: if the webhook does come later, it is known.
    """
    now = context.now()
    noted = await context.store.note(0, "", _NOTE)
    since = now - _LOOK_BACK if noted is None else datetime.fromisoformat(noted) - _OVERLAP
    settle = timedelta(seconds=context.settings.redeliver_after_seconds)  # one sent just now may be under way
    listed = await context.github.deliveries(since)
    known = await context.store.known_deliveries([one.guid for one in listed])
    missing = lost(listed=listed, known=known, settled_before=(now - settle).timestamp())
    failed = 0
    for one in missing:
        try:
            await _fetch(context, one)
        except GitHubError as error:
            failed += 1
            context.log.warning("a lost webhook could not be read", guid=one.guid, error=str(error))
    if missing:
        context.log.info("lost webhooks were read", missing=len(missing), failed=failed)
        await context.queue.wake()
    if not failed:
        await context.store.put_note(0, "", _NOTE, now.isoformat(), now)


async def _fetch(context: Context, one: HookDelivery) -> None:
    payload = await context.github.delivery_payload(one.id)
    facts = parse(one.event, payload)
    await context.store.record_delivery(
        Delivery(
            guid=one.guid,
            event=one.event,
            action=facts.action,
            installation=facts.installation or one.installation_id,
            repository=facts.repository,
            sender=facts.sender.login,
            payload=json.dumps(payload).encode(),
            received_at=context.now(),
        )
    )
