"""Apps: themselves, their installations, tokens and webhook deliveries."""

from __future__ import annotations

import json
from typing import Any

from bot.sandbox import events
from bot.sandbox.accounts import LEVELS, App, Installation
from bot.sandbox.http import ApiError, Call, Listing, Reply, not_found, route
from bot.sandbox.model import Delivery
from bot.sandbox.render import common


def _app(call: Call) -> App:
    assert call.actor.app is not None
    return call.actor.app


def _installation(call: Call) -> Installation:
    found = call.world.installations.get(call.params["installation_id"])
    if found is None or found.app_id != _app(call).id:
        raise not_found()
    return found


@route("GET", "/app", app="jwt")
def get_app(call: Call) -> Any:
    """The App of the JWT."""
    return common.app(call.world, _app(call))


@route("POST", "/app-manifests/{code}/conversions", app="none")
def convert(call: Call) -> Any:
    """The App that was made from a manifest, with its secrets; each code works once."""
    app_id = call.world.manifest_codes.pop(call.params["code"], None)
    if app_id is None:
        raise not_found()
    app = call.world.apps[app_id]
    secrets = {"client_secret": f"secret-{app.id}", "webhook_secret": app.webhook_secret, "pem": app.private_key}
    return Reply({**common.app(call.world, app), **secrets}, 201)


@route("GET", "/app/installations", app="jwt")
def list_installations(call: Call) -> Any:
    """Where the App is installed."""
    found = [item for item in call.world.installations.values() if item.app_id == _app(call).id]
    return Listing(found, lambda item: common.installation(call.world, item))


@route("GET", "/app/installations/{installation_id}", app="jwt")
def get_installation(call: Call) -> Any:
    """One installation."""
    return common.installation(call.world, _installation(call))


@route("GET", "/repos/{owner}/{repo}/installation", app="jwt")
def repository_installation(call: Call) -> Any:
    """The App's installation on a repository."""
    for item in call.world.installations.values():
        if item.app_id == _app(call).id and call.world.covers(item, call.repo):
            return common.installation(call.world, item)
    raise not_found()


@route("POST", "/app/installations/{installation_id}/access_tokens", app="jwt")
def create_token(call: Call) -> Any:
    """A token for one hour, narrowed to what the body asks for."""
    world = call.world
    installation = _installation(call)
    if installation.suspended_at is not None:
        raise ApiError(403, "This installation has been suspended")
    asked: dict[str, str] = call.body.get("permissions") or dict(installation.permissions)
    for name, level in asked.items():
        if LEVELS.index(level) > LEVELS.index(installation.permissions.get(name, "none")):
            raise ApiError(422, "The permissions requested are not granted to this installation.")
    names = None
    if call.body.get("repositories") or call.body.get("repository_ids"):
        wanted = {f"{installation.account}/{name}" for name in call.body.get("repositories", [])}
        ids = set(call.body.get("repository_ids", []))
        found = [repo for repo in world.repositories.values() if repo.full_name in wanted or repo.id in ids]
        if len(found) < len(wanted) + len(ids) or not all(world.covers(installation, repo) for repo in found):
            raise ApiError(
                422,
                "There is at least one repository that does not exist or is not accessible to the parent installation.",
            )
        names = [repo.full_name for repo in found]
    token = world.mint(_app(call).bot, installation)
    token.permissions, token.repositories = dict(asked), names
    body: dict[str, Any] = {
        "token": token.value,
        "expires_at": common.moment(token.expires_at),
        "permissions": dict(asked),
        "repository_selection": "selected" if names or installation.repositories is not None else "all",
    }
    if names is not None:
        body["repositories"] = [common.repository(world, world.known_repository(name)) for name in names]
    return Reply(body, 201)


@route("GET", "/installation/repositories", app="installation")
def installation_repositories(call: Call) -> Any:
    """What the token reaches."""
    installation, token = call.actor.installation, call.actor.token
    assert installation is not None
    assert token is not None
    found = [
        repo
        for repo in call.world.repositories.values()
        if call.world.covers(installation, repo)
        and (token.repositories is None or repo.full_name in token.repositories)
    ]
    selection = "all" if installation.repositories is None else "selected"
    return Listing(
        found,
        lambda repo: common.repository(call.world, repo),
        lambda rows, total: {"total_count": total, "repository_selection": selection, "repositories": rows},
    )


def _delivery(call: Call) -> Delivery:
    found = call.world.deliveries.get(call.params["delivery_id"])
    if found is None or found.app_id != _app(call).id:
        raise not_found()
    return found


def _item(item: Delivery) -> dict[str, Any]:
    return {
        "id": item.id,
        "guid": item.guid,
        "delivered_at": common.moment(item.delivered_at or item.created_at),
        "redelivery": item.redelivery,
        "duration": item.duration,
        "status": item.status,
        "status_code": item.status_code,
        "event": item.event,
        "action": item.action,
        "installation_id": item.installation_id,
        "repository_id": item.repository_id,
        "throttled_at": None,
    }


@route("GET", "/app/hook/deliveries", app="jwt")
def list_deliveries(call: Call) -> Any:
    """Deliveries, newest first; `cursor` goes on below an id."""
    rows = sorted(
        (item for item in call.world.deliveries.values() if item.app_id == _app(call).id and item.status != "PENDING"),
        key=lambda item: -item.id,
    )
    status = call.query.get("status")
    if status is not None:
        rows = [item for item in rows if (200 <= item.status_code < 400) == (status == "success")]
    cursor = call.query.get("cursor", "")
    if cursor:
        if not cursor.startswith("v1_") or not cursor[3:].isdigit():
            raise ApiError(400, "Bad cursor")
        rows = [item for item in rows if item.id < int(cursor[3:])]
    _, size = call.page()
    headers = {}
    if len(rows) > size:
        query = f"per_page={size}&cursor=v1_{rows[size - 1].id}"
        headers["link"] = f'<{call.world.url}/api/app/hook/deliveries?{query}>; rel="next"'
    return Reply([_item(item) for item in rows[:size]], headers=headers)


@route("GET", "/app/hook/deliveries/{delivery_id}", app="jwt")
def get_delivery(call: Call) -> Any:
    """One delivery with what was sent and answered."""
    item = _delivery(call)
    return {
        **_item(item),
        "url": call.world.apps[item.app_id].webhook_url or "",
        "request": {"headers": item.request_headers, "payload": json.loads(item.payload)},
        "response": {"headers": item.response_headers, "payload": item.response_body},
    }


@route("POST", "/app/hook/deliveries/{delivery_id}/attempts", app="jwt")
def redeliver(call: Call) -> Any:
    """Send it again."""
    events.redeliver(call.world, _delivery(call))
    return Reply({}, 202)
