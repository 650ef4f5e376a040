"""Webhook events: which Apps hear of what, and with which payload."""

from __future__ import annotations

import json
import uuid
from typing import Any

from bot.sandbox.accounts import App, Installation
from bot.sandbox.model import Delivery, Issue, Repository
from bot.sandbox.render import common, issues, pulls
from bot.sandbox.world import World

ALWAYS = frozenset({"installation", "installation_repositories", "ping", "github_app_authorization"})


def emit(
    world: World,
    repo: Repository,
    event: str,
    action: str | None,
    body: dict[str, Any],
    *,
    sender: str,
    only: App | None = None,
) -> list[Delivery]:
    """Send an event of a repository to the Apps that are installed there and subscribe to it."""
    sent = []
    for app, installation in world.installations_of(repo):
        if only is not None and app.id != only.id:
            continue
        if event in installation.events or event in ALWAYS:
            sent.append(deliver(world, app, installation, event, action, body, sender=sender, repo=repo))
    return [delivery for delivery in sent if delivery is not None]


def deliver(
    world: World,
    app: App,
    installation: Installation | None,
    event: str,
    action: str | None,
    body: dict[str, Any],
    *,
    sender: str,
    repo: Repository | None = None,
) -> Delivery | None:
    """Put one delivery into the outbox of an App that has a webhook."""
    if app.webhook_url is None:
        return None
    payload: dict[str, Any] = {"action": action, **body} if action is not None else dict(body)
    if repo is not None:
        payload["repository"] = common.repository(world, repo)
        owner = world.known_user(repo.owner)
        if owner.type == "Organization":
            payload["organization"] = common.organization(world, owner)
    if installation is not None and "installation" not in payload:
        payload["installation"] = {"id": installation.id, "node_id": common.node("IN", installation.id)}
    payload["sender"] = common.user(world, sender)
    delivery = Delivery(
        world.new_id(),
        str(uuid.uuid4()),
        app.id,
        event,
        action,
        installation.id if installation else None,
        repo.id if repo else None,
        json.dumps(payload).encode(),
        world.now(),
    )
    world.deliveries[delivery.id] = delivery
    world.outbox(delivery)
    return delivery


def redeliver(world: World, old: Delivery) -> Delivery:
    """Send a delivery again under its guid, as a row of its own."""
    again = Delivery(
        world.new_id(),
        old.guid,
        old.app_id,
        old.event,
        old.action,
        old.installation_id,
        old.repository_id,
        old.payload,
        world.now(),
        redelivery=True,
    )
    world.deliveries[again.id] = again
    world.outbox(again)
    return again


def issue_event(world: World, repo: Repository, item: Issue, action: str, sender: str, **more: Any) -> None:
    """An `issues` event, or of a pull request a `pull_request` event."""
    if item.pull is not None:
        body = {"number": item.number, "pull_request": pulls.full(world, repo, item), **more}
        emit(world, repo, "pull_request", action, body, sender=sender)
    else:
        emit(world, repo, "issues", action, {"issue": issues.issue(world, repo, item), **more}, sender=sender)
