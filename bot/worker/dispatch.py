"""From a stored delivery to jobs: what the trigger table says of its event, with the facts known when it came."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bot.clients.store import Job, Scope
from bot.context import Context
from bot.core.events import Event, parse
from bot.worker.sweep import EVERYWHERE, EVERYWHERE_KEY
from handlers import Cron, Trigger

# writes of our own come back as these; what they ask for was done when they were written
_OWN = frozenset({"issue_comment", "issues", "label", "pull_request_review", "pull_request_review_comment", "push"})
_OWN_PULL_ACTIONS = frozenset({"assigned", "edited", "labeled", "review_requested", "unassigned", "unlabeled"})


def matching(*, event: Event, own: bool, triggers: Sequence[Trigger]) -> tuple[Trigger, ...]:
    """The triggers that an event sets off; none where it only echoes a write of the App's own."""
    if own and echo(event):
        return ()
    return tuple(
        trigger
        for trigger in triggers
        if trigger.event == event.event and (not trigger.actions or event.action in trigger.actions)
    )


def echo(event: Event) -> bool:
    """True where an event of the App's own asks for nothing: all but its pushes to the default branch, for a start;
    its checks that are done are no other CI's.
    """
    if event.event == "push":
        return event.branch != event.default_branch
    if event.event in ("check_run", "check_suite"):
        return event.action == "completed"
    return event.event in _OWN or (event.event == "pull_request" and event.action in _OWN_PULL_ACTIONS)


def key_of(*, trigger: Trigger, event: Event, guid: str) -> str:
    """The job's key: the same for all that may become one job; what stands before "!" runs one at a time."""
    if trigger.per == "repository":
        return "repository"
    subject = event.subject if event.repository else "repository"
    return f"{subject}!{guid}" if trigger.per == "event" else subject


def payload_of(*, event: Event, guid: str, received_at: datetime) -> dict[str, Any]:
    """What is pinned for the handler; it names the thing to look at, and says nothing of how it stands."""
    facts: dict[str, Any] = {
        "event": event.event,
        "action": event.action,
        "installation": event.installation,
        "sender": event.sender.login,
        "sender_type": event.sender.type,
        "number": event.number,
        "sha": event.head_sha,
        "at": event.pull.updated_at if event.pull else "",
        "ref": event.merge_group.head_ref if event.merge_group else event.ref,
        "before": event.before,
        "comment": event.comment.id if event.comment else 0,
        "review": event.review.id if event.review else 0,
        "label": event.label,
        "check": event.check.name if event.check else "",
        "check_id": event.check.id if event.check else 0,
        "external_id": event.check.external_id if event.check else "",
    }
    known = {name: value for name, value in facts.items() if value}
    return known | {"delivery": guid, "received_at": received_at.isoformat()}


def scopes_of(*, trigger: Trigger, event: Event, known: Sequence[Scope], crons: Sequence[Cron]) -> tuple[Scope, ...]:
    """Whom the job is for: the event's repository; an event of none concerns all of its installation's, except where
    the schedule has the kind run once for everything.
    """
    if event.repository:
        return (Scope(event.installation, event.repository),)
    if any(cron.kind == trigger.kind and not cron.per_repository for cron in crons):
        return (EVERYWHERE,)
    return tuple(scope for scope in known if scope.installation == event.installation)


async def dispatch(context: Context, jobs: Sequence[Job], triggers: Sequence[Trigger], crons: Sequence[Cron]) -> int:
    """Enqueue what the deliveries ask for and complete the dispatching jobs, all in one transaction; gives how many.

    Deliveries that ask for the same job become one right here, the newest with its facts.
    """
    found = await context.store.deliveries([str(job.payload["delivery"]) for job in jobs])
    known = await context.store.repositories()
    wanted: dict[tuple[str, str, Scope], dict[str, Any]] = {}
    for job in jobs:
        delivery = found.get(str(job.payload["delivery"]))
        if delivery is None or not delivery.payload:
            context.log.warning("a delivery is gone before it was dispatched", guid=job.payload["delivery"])
            continue
        event = parse(delivery.event, json.loads(delivery.payload))
        for trigger in await _triggered(context, event, triggers):
            for scope in scopes_of(trigger=trigger, event=event, known=known, crons=crons):
                key = key_of(trigger=trigger, event=event, guid=delivery.guid) if scope.repository else EVERYWHERE_KEY
                payload = payload_of(event=event, guid=delivery.guid, received_at=delivery.received_at)
                wanted[trigger.kind, key, scope] = payload
    now = context.now()
    async with context.store.transaction() as tx:
        for (kind, key, scope), payload in wanted.items():
            await tx.enqueue(kind, key, payload, installation=scope.installation, repository=scope.repository, now=now)
        await tx.complete_all(jobs, now)
    context.log.debug("dispatched", deliveries=len(jobs), jobs=len(wanted))
    return len(wanted)


async def _triggered(context: Context, event: Event, triggers: Sequence[Trigger]) -> tuple[Trigger, ...]:
    wanted = matching(event=event, own=False, triggers=triggers)
    own = bool(wanted) and echo(event) and event.sender.login == (await context.github.info()).login
    return () if own else wanted
