"""Accounts, repositories, teams, Apps as JSON."""

from __future__ import annotations

import base64
import re
from datetime import datetime
from typing import Any

from bot.sandbox.accounts import App, Installation, Team, User, at_least
from bot.sandbox.model import Label, Repository
from bot.sandbox.world import World

_USER_URLS = {
    "followers_url": "followers",
    "following_url": "following{/other_user}",
    "gists_url": "gists{/gist_id}",
    "starred_url": "starred{/owner}{/repo}",
    "subscriptions_url": "subscriptions",
    "organizations_url": "orgs",
    "repos_url": "repos",
    "events_url": "events{/privacy}",
    "received_events_url": "received_events",
}
_REPOSITORY_URLS = {
    "archive_url": "{archive_format}{/ref}",
    "assignees_url": "assignees{/user}",
    "blobs_url": "git/blobs{/sha}",
    "branches_url": "branches{/branch}",
    "collaborators_url": "collaborators{/collaborator}",
    "comments_url": "comments{/number}",
    "commits_url": "commits{/sha}",
    "compare_url": "compare/{base}...{head}",
    "contents_url": "contents/{+path}",
    "contributors_url": "contributors",
    "deployments_url": "deployments",
    "downloads_url": "downloads",
    "events_url": "events",
    "forks_url": "forks",
    "git_commits_url": "git/commits{/sha}",
    "git_refs_url": "git/refs{/sha}",
    "git_tags_url": "git/tags{/sha}",
    "hooks_url": "hooks",
    "issue_comment_url": "issues/comments{/number}",
    "issue_events_url": "issues/events{/number}",
    "issues_url": "issues{/number}",
    "keys_url": "keys{/key_id}",
    "labels_url": "labels{/name}",
    "languages_url": "languages",
    "merges_url": "merges",
    "milestones_url": "milestones{/number}",
    "notifications_url": "notifications{?since,all,participating}",
    "pulls_url": "pulls{/number}",
    "releases_url": "releases{/id}",
    "stargazers_url": "stargazers",
    "statuses_url": "statuses/{sha}",
    "subscribers_url": "subscribers",
    "subscription_url": "subscription",
    "tags_url": "tags",
    "teams_url": "teams",
    "trees_url": "git/trees{/sha}",
}


def moment(value: datetime | None) -> str | None:
    """A time as GitHub writes it."""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if value is not None else None


def node(kind: str, number: int) -> str:
    """A node id: opaque, stable, and readable here."""
    return f"{kind}_{base64.urlsafe_b64encode(str(number).encode()).decode().rstrip('=')}"


def node_number(text: str) -> int:
    """The number inside a node id; ValueError where it is none."""
    encoded = text.rpartition("_")[2]
    return int(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))


def api(world: World, *parts: object) -> str:
    """An address below the API."""
    return "/".join([f"{world.url}/api", *map(str, parts)])


def repository_api(world: World, repository: Repository, *parts: object) -> str:
    """An address below a repository's API."""
    return api(world, "repos", repository.full_name, *parts)


def user(world: World, account: User | str | None) -> dict[str, Any] | None:
    """A `simple-user`, or None."""
    if account is None:
        return None
    if isinstance(account, str):
        account = world.known_user(account)
    own = api(world, "users", account.login)
    path = f"apps/{account.login.removesuffix('[bot]')}" if account.type == "Bot" else account.login
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node("U", account.id),
        "avatar_url": f"{world.url}/avatars/{account.login}",
        "gravatar_id": "",
        "url": own,
        "html_url": f"{world.url}/{path}",
        **{name: f"{own}/{tail}" for name, tail in _USER_URLS.items()},
        "type": account.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def organization(world: World, account: User) -> dict[str, Any]:
    """The organization of a webhook's payload."""
    own = api(world, "orgs", account.login)
    return {
        "login": account.login,
        "id": account.id,
        "node_id": node("O", account.id),
        "url": own,
        "repos_url": f"{own}/repos",
        "events_url": f"{own}/events",
        "hooks_url": f"{own}/hooks",
        "issues_url": f"{own}/issues",
        "members_url": f"{own}/members{{/member}}",
        "public_members_url": f"{own}/public_members{{/member}}",
        "avatar_url": f"{world.url}/avatars/{account.login}",
        "description": None,
    }


def permissions(role: str) -> dict[str, bool]:
    """What a role allows, in the API's words."""
    return {
        "admin": at_least(role, "admin"),
        "maintain": at_least(role, "maintain"),
        "push": at_least(role, "write"),
        "triage": at_least(role, "triage"),
        "pull": at_least(role, "read"),
    }


def repository(world: World, item: Repository, *, role: str | None = None, full: bool = False) -> dict[str, Any]:
    """A `repository`, which is a `minimal-repository` too; with `full` a `full-repository`."""
    own = repository_api(world, item)
    html = f"{world.url}/{item.full_name}"
    issues = sum(1 for issue in item.issues.values() if issue.state == "open")
    body: dict[str, Any] = {
        "id": item.id,
        "node_id": node("R", item.id),
        "name": item.name,
        "full_name": item.full_name,
        "private": item.private,
        "owner": user(world, item.owner),
        "html_url": html,
        "description": item.description,
        "fork": item.parent is not None,
        "url": own,
        **{name: f"{own}/{tail}" for name, tail in _REPOSITORY_URLS.items()},
        "git_url": f"{html}.git",
        "ssh_url": f"{html}.git",
        "clone_url": f"{html}.git",
        "svn_url": html,
        "mirror_url": None,
        "homepage": None,
        "language": "Python",
        "license": None,
        "size": 0,
        "topics": [],
        "stargazers_count": 0,
        "watchers_count": 0,
        "watchers": 0,
        "forks_count": 0,
        "forks": 0,
        "open_issues_count": issues,
        "open_issues": issues,
        "default_branch": item.default_branch,
        "has_issues": item.has_issues,
        "has_projects": False,
        "has_wiki": False,
        "has_pages": False,
        "has_downloads": False,
        "has_discussions": False,
        "archived": item.archived,
        "disabled": False,
        "is_template": False,
        "allow_forking": True,
        "web_commit_signoff_required": False,
        "visibility": "private" if item.private else "public",
        "pushed_at": moment(item.pushed_at),
        "created_at": moment(item.created_at),
        "updated_at": moment(item.pushed_at),
    }
    if role is not None:
        body["permissions"] = permissions(role)
    if full:
        body |= {
            "subscribers_count": 0,
            "network_count": 0,
            "allow_merge_commit": item.allow_merge_commit,
            "allow_squash_merge": item.allow_squash_merge,
            "allow_rebase_merge": item.allow_rebase_merge,
            "allow_auto_merge": False,
            "delete_branch_on_merge": item.delete_branch_on_merge,
        }
        parent = world.repository(item.parent) if item.parent else None
        if parent is not None:
            body["parent"] = body["source"] = repository(world, parent)
    return body


def label(world: World, repo: Repository, item: Label) -> dict[str, Any]:
    """A `label`."""
    return {
        "id": item.id,
        "node_id": node("LA", item.id),
        "url": repository_api(world, repo, "labels", item.name),
        "name": item.name,
        "description": item.description,
        "color": item.color,
        "default": False,
    }


def team(world: World, item: Team) -> dict[str, Any]:
    """A `team`."""
    own = api(world, "organizations", world.known_user(item.org).id, "team", item.id)
    return {
        "id": item.id,
        "node_id": node("T", item.id),
        "name": item.name,
        "slug": item.slug,
        "description": None,
        "privacy": "closed",
        "notification_setting": "notifications_enabled",
        "permission": "pull",
        "url": own,
        "html_url": f"{world.url}/orgs/{item.org}/teams/{item.slug}",
        "members_url": f"{own}/members{{/member}}",
        "repositories_url": f"{own}/repos",
        "type": "organization",
        "parent": None,
        "organization_id": world.known_user(item.org).id,
    }


def app(world: World, item: App) -> dict[str, Any]:
    """An `integration`."""
    return {
        "id": item.id,
        "client_id": item.client_id,
        "slug": item.slug,
        "node_id": node("A", item.id),
        "owner": user(world, item.owner),
        "name": item.name,
        "description": None,
        "external_url": world.url,
        "html_url": f"{world.url}/apps/{item.slug}",
        "created_at": moment(item.created_at),
        "updated_at": moment(item.created_at),
        "permissions": dict(item.permissions),
        "events": list(item.events),
        "installations_count": sum(1 for one in world.installations.values() if one.app_id == item.id),
    }


def installation(world: World, item: Installation) -> dict[str, Any]:
    """An `installation`."""
    account = world.known_user(item.account)
    own = api(world, "app", "installations", item.id)
    return {
        "id": item.id,
        "account": user(world, account),
        "access_tokens_url": f"{own}/access_tokens",
        "repositories_url": api(world, "installation", "repositories"),
        "html_url": f"{world.url}/settings/installations/{item.id}",
        "app_id": item.app_id,
        "app_slug": world.apps[item.app_id].slug,
        "client_id": world.apps[item.app_id].client_id,
        "target_id": account.id,
        "target_type": account.type,
        "permissions": dict(item.permissions),
        "events": list(item.events),
        "repository_selection": "all" if item.repositories is None else "selected",
        "single_file_name": None,
        "created_at": moment(item.created_at),
        "updated_at": moment(item.created_at),
        "suspended_at": moment(item.suspended_at),
        "suspended_by": None,
    }


_CLOSING = re.compile(
    r"(?<![\w-])(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:(?P<repo>[\w.-]+/[\w.-]+))?#(?P<number>\d+)\b",
    re.IGNORECASE,
)


def closing(text: str, full_name: str) -> list[int]:
    """The issues of this repository that a text closes by a keyword."""
    return [
        int(found["number"])
        for found in _CLOSING.finditer(text)
        if found["repo"] is None or found["repo"].lower() == full_name.lower()
    ]
