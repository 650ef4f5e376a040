"""Commits, files, refs as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from bot.sandbox.bare import Bare, CommitData, FileDiff, Signature
from bot.sandbox.model import Repository
from bot.sandbox.render.common import node, repository_api, user
from bot.sandbox.world import World

UNVERIFIED = {"verified": False, "reason": "unsigned", "signature": None, "payload": None, "verified_at": None}


def person(signature: Signature) -> dict[str, str]:
    """Who and when, as commits and tags carry it."""
    return {"name": signature.name, "email": signature.email, "date": _utc(signature.date)}


def _utc(date: str) -> str:
    """The API tells a commit's times in UTC; git's own words for that differ by version (+00:00, Z)."""
    return f"{datetime.fromisoformat(date).astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def commit(world: World, repo: Repository, data: CommitData, files: list[FileDiff] | None = None) -> dict[str, Any]:
    """A `commit`; with `files` the whole of it."""
    own = repository_api(world, repo, "commits", data.sha)
    html = f"{world.url}/{repo.full_name}/commit"
    body: dict[str, Any] = {
        "sha": data.sha,
        "node_id": f"C_{data.sha}",
        "url": own,
        "html_url": f"{html}/{data.sha}",
        "comments_url": f"{own}/comments",
        "commit": {
            "author": person(data.author),
            "committer": person(data.committer),
            "message": data.message,
            "tree": {"sha": data.tree, "url": repository_api(world, repo, "git/trees", data.tree)},
            "url": repository_api(world, repo, "git/commits", data.sha),
            "comment_count": 0,
            "verification": dict(UNVERIFIED),
        },
        "author": user(world, world.user_of_email(data.author.email)),
        "committer": user(world, world.user_of_email(data.committer.email)),
        "parents": [
            {"sha": sha, "url": repository_api(world, repo, "commits", sha), "html_url": f"{html}/{sha}"}
            for sha in data.parents
        ],
    }
    if files is not None:
        additions, deletions = sum(one.additions for one in files), sum(one.deletions for one in files)
        body["stats"] = {"additions": additions, "deletions": deletions, "total": additions + deletions}
        body["files"] = [file(world, repo, data.sha, one) for one in files]
    return body


def file(world: World, repo: Repository, sha: str, item: FileDiff) -> dict[str, Any]:
    """A `diff-entry`."""
    path = quote(item.path)
    html = f"{world.url}/{repo.full_name}"
    body: dict[str, Any] = {
        "sha": item.blob,
        "filename": item.path,
        "status": item.status,
        "additions": item.additions,
        "deletions": item.deletions,
        "changes": item.additions + item.deletions,
        "blob_url": f"{html}/blob/{sha}/{path}",
        "raw_url": f"{html}/raw/{sha}/{path}",
        "contents_url": repository_api(world, repo, f"contents/{path}?ref={sha}"),
    }
    if item.patch is not None and len(item.patch) < 1_000_000:
        body["patch"] = item.patch
    if item.old_path is not None:
        body["previous_filename"] = item.old_path
    return body


def git_commit(world: World, repo: Repository, data: CommitData) -> dict[str, Any]:
    """A `git-commit`."""
    html = f"{world.url}/{repo.full_name}/commit"
    return {
        "sha": data.sha,
        "node_id": f"C_{data.sha}",
        "url": repository_api(world, repo, "git/commits", data.sha),
        "html_url": f"{html}/{data.sha}",
        "author": person(data.author),
        "committer": person(data.committer),
        "tree": {"sha": data.tree, "url": repository_api(world, repo, "git/trees", data.tree)},
        "message": data.message,
        "parents": [
            {"sha": sha, "url": repository_api(world, repo, "git/commits", sha), "html_url": f"{html}/{sha}"}
            for sha in data.parents
        ],
        "verification": dict(UNVERIFIED),
    }


def simple_commit(data: CommitData) -> dict[str, Any]:
    """A `simple-commit`, as check suites carry it."""
    return {
        "id": data.sha,
        "tree_id": data.tree,
        "message": data.message,
        "timestamp": _utc(data.committer.date),
        "author": {"name": data.author.name, "email": data.author.email},
        "committer": {"name": data.committer.name, "email": data.committer.email},
    }


def push_commits(world: World, repo: Repository, store: Bare, commits: Sequence[CommitData]) -> list[dict[str, Any]]:
    """Commits as the push event lists them."""
    changed = store.changed_by([data.sha for data in commits]) if commits else {}

    def person(signature: Signature) -> dict[str, Any]:
        account = world.user_of_email(signature.email)
        return {"name": signature.name, "email": signature.email, "username": account.login if account else None}

    return [
        {
            **simple_commit(data),
            "distinct": True,
            "url": f"{world.url}/{repo.full_name}/commit/{data.sha}",
            "author": person(data.author),
            "committer": person(data.committer),
            "added": [path for letter, path in changed[data.sha] if letter == "A"],
            "removed": [path for letter, path in changed[data.sha] if letter == "D"],
            "modified": [path for letter, path in changed[data.sha] if letter not in "AD"],
        }
        for data in commits
    ]


def ref(world: World, repo: Repository, store: Bare, name: str, oid: str) -> dict[str, Any]:
    """A `git-ref`."""
    kind = store.kind(oid) or "commit"
    return {
        "ref": name,
        "node_id": node("REF", int(oid[:12], 16)),
        "url": repository_api(world, repo, "git", name),
        "object": {"sha": oid, "type": kind, "url": repository_api(world, repo, f"git/{kind}s", oid)},
    }
