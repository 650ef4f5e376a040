"""Sets a sandbox up from one JSON value, for those who start it as a process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.sandbox.driver import Sandbox

KEYS = ("users", "orgs", "teams", "repositories", "apps", "permissions", "protect")


def set_up(sandbox: Sandbox, wanted: dict[str, Any]) -> dict[str, Any]:
    """Make accounts, repositories and Apps; gives the secrets of the Apps and the tokens of the users.

    Form: `users: [login]`, `orgs: {login: {owners, members}}`, `teams: {"org/slug": [login]}`,
    `repositories: {"owner/name": {from_git, private}}`, `permissions: {"owner/name": {who: role}}`,
    `apps: {slug: {permissions, events, webhook_url, webhook_secret, install: ["owner/name"]}}`,
    `protect: {"owner/name": {branch: {required_checks, ...}}}`. ValueError names a key that is not known.
    """
    unknown = sorted(set(wanted) - set(KEYS))
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r} in the world; known are {', '.join(KEYS)}")
    for login in wanted.get("users", []):
        sandbox.create_user(login)
    for login, given in wanted.get("orgs", {}).items():
        sandbox.create_org(login, **given)
    for name, members in wanted.get("teams", {}).items():
        org, _, slug = name.partition("/")
        sandbox.create_team(org, slug, members)
    for full_name, given in wanted.get("repositories", {}).items():
        owner, _, name = full_name.partition("/")
        source = given.get("from_git")
        sandbox.create_repository(
            owner, name, from_git=Path(source) if source else None, private=bool(given.get("private"))
        )
    for full_name, roles in wanted.get("permissions", {}).items():
        for who, role in roles.items():
            sandbox.set_permission(full_name, who, role)
    apps = {}
    for slug, given in wanted.get("apps", {}).items():
        secret = given.get("webhook_secret", f"secret-{slug}")
        app = sandbox.create_app(slug, given["permissions"], given.get("events", []), given.get("webhook_url"), secret)
        installation = sandbox.install(app, given["install"]) if given.get("install") else None
        apps[slug] = {
            "id": app.id,
            "client_id": app.client_id,
            "private_key": app.private_key,
            "webhook_secret": secret,
            "installation": installation,
        }
    for full_name, branches in wanted.get("protect", {}).items():
        for branch, given in branches.items():
            sandbox.protect(full_name, branch, **given)
    world = sandbox.state
    people = [user.login for user in world.users.values() if user.type == "User"]
    return {"apps": apps, "tokens": {login: world.user_token(login).value for login in people}}
