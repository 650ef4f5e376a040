"""Users, members, teams, collaborators, limits."""

from __future__ import annotations

from typing import Any

from bot.sandbox.accounts import ROLES, Team, User
from bot.sandbox.http import Call, Listing, Reply, not_found, route
from bot.sandbox.render import common
from bot.sandbox.world import World


def _public(world: World, user: User) -> dict[str, Any]:
    when = common.moment(user.created_at or world.now())
    repositories = sum(1 for repo in world.repositories.values() if repo.owner == user.login and not repo.private)
    return {
        **(common.user(world, user) or {}),
        "name": user.name,
        "company": None,
        "blog": "",
        "location": None,
        "email": user.email,
        "hireable": None,
        "bio": None,
        "public_repos": repositories,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": when,
        "updated_at": when,
    }


@route("GET", "/users/{username}", app="none")
def get_user(call: Call) -> Any:
    """An account."""
    user = call.world.user(call.params["username"])
    if user is None:
        raise not_found()
    return _public(call.world, user)


@route("GET", "/user", app="none")
def get_self(call: Call) -> Any:
    """The account of the token."""
    return _public(call.world, call.world.known_user(call.login))


@route("GET", "/orgs/{org}/members/{username}", app="members:read", role="none")
def get_member(call: Call) -> Any:
    """204 for a member, 404 for anybody else."""
    org = call.world.user(call.params["org"])
    if org is None or call.params["username"] not in org.members:
        raise not_found()
    return None


def _team(call: Call) -> Team:
    org = call.world.user(call.params["org"])
    found = call.world.teams.get((org.login, call.params["team_slug"])) if org else None
    if found is None:
        raise not_found()
    return found


@route("GET", "/orgs/{org}/teams/{team_slug}/members", app="members:read", role="none")
def team_members(call: Call) -> Any:
    """Who is in a team."""
    team, role = _team(call), call.query.get("role", "all")
    found = [login for login, is_role in team.members.items() if role in ("all", is_role)]
    return Listing(found, lambda login: common.user(call.world, login))


@route("GET", "/orgs/{org}/teams/{team_slug}/memberships/{username}", app="members:read", role="none")
def team_membership(call: Call) -> Any:
    """What a user is in a team."""
    team, login = _team(call), call.params["username"]
    if login not in team.members:
        raise not_found()
    url = common.api(call.world, "orgs", team.org, "teams", team.slug, "memberships", login)
    return {"url": url, "role": team.members[login], "state": "active"}


@route("GET", "/repos/{owner}/{repo}/collaborators", app="metadata:read", role="write")
def collaborators(call: Call) -> Any:
    """Who has a role of their own here."""
    world, repo = call.world, call.repo
    rows = [(user, world.explicit_role(user.login, repo)) for user in world.users.values() if user.type == "User"]
    wanted = {"pull": "read", "push": "write"}.get(
        call.query.get("permission", ""), call.query.get("permission", "read")
    )
    rows = [(user, role) for user, role in rows if role != "none" and ROLES.index(role) >= ROLES.index(wanted)]
    return Listing(
        rows,
        lambda row: {
            **(common.user(world, row[0]) or {}),
            "permissions": common.permissions(row[1]),
            "role_name": row[1],
        },
    )


@route("GET", "/repos/{owner}/{repo}/collaborators/{username}/permission", app="metadata:read")
def permission(call: Call) -> Any:
    """A user's role: `permission` in the old words (admin, write, read, none), `role_name` in the new."""
    user = call.world.user(call.params["username"])
    if user is None:
        raise not_found()
    role = call.world.role(user.login, call.repo)
    old = {"triage": "read", "maintain": "write"}.get(role, role)
    body = {**(common.user(call.world, user) or {}), "permissions": common.permissions(role), "role_name": role}
    return {"permission": old, "role_name": role, "user": body}


@route("PUT", "/repos/{owner}/{repo}/collaborators/{username}", app="administration:write", role="admin")
def add_collaborator(call: Call) -> Any:
    """Give a user a role."""
    user = call.world.user(call.params["username"])
    if user is None:
        raise not_found()
    asked = call.body.get("permission", "push")
    call.repo.collaborators[user.login] = {"pull": "read", "push": "write"}.get(asked, asked)
    return Reply(None, 204)


@route("GET", "/rate_limit", app="none")
def rate_limit(call: Call) -> Any:
    """What is left of the primary limit."""
    token = call.actor.token
    limit = call.world.rate_limit
    if token is not None:
        token.used -= 1  # asking costs nothing
    used = token.used if token else 0
    reset = int((token.window_ends if token and token.window_ends else call.world.now()).timestamp())
    core = {"limit": limit, "used": used, "remaining": max(0, limit - used), "reset": reset}
    search = {"limit": 30, "used": 0, "remaining": 30, "reset": reset}
    return {"resources": {"core": core, "search": search}, "rate": core}


@route("GET", "/meta", app="none")
def meta(call: Call) -> Any:
    """Addresses of the site."""
    return {
        "verifiable_password_authentication": False,
        "hooks": ["127.0.0.1/32"],
        "api": ["127.0.0.1/32"],
        "git": ["127.0.0.1/32"],
    }
