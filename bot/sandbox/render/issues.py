"""Issues, comments, reactions and an issue's history as JSON."""

from __future__ import annotations

from typing import Any

from bot.sandbox.model import Comment, Issue, IssueEvent, Reaction, Repository
from bot.sandbox.render.common import app, label, moment, node, repository, repository_api, user
from bot.sandbox.world import World

CONTENTS = ("+1", "-1", "laugh", "confused", "heart", "hooray", "rocket", "eyes")


def html_url(world: World, repo: Repository, item: Issue) -> str:
    """Where a person reads it."""
    return f"{world.url}/{repo.full_name}/{'pull' if item.pull else 'issues'}/{item.number}"


def association(world: World, repo: Repository, login: str) -> str:
    """What the author is to the repository."""
    owner = world.known_user(repo.owner)
    if owner.login == login:
        return "OWNER"
    if login in owner.members:
        return "MEMBER"
    if login in repo.collaborators:
        return "COLLABORATOR"
    merged = any(pull.user == login and pull.pull and pull.pull.merged_at for pull in repo.issues.values())
    return "CONTRIBUTOR" if merged else "NONE"


def rollup(url: str, reactions: list[Reaction]) -> dict[str, Any]:
    """A `reaction-rollup`."""
    counts = {content: sum(1 for one in reactions if one.content == content) for content in CONTENTS}
    return {"url": f"{url}/reactions", "total_count": len(reactions), **counts}


def reaction(world: World, item: Reaction) -> dict[str, Any]:
    """A `reaction`."""
    return {
        "id": item.id,
        "node_id": node("REA", item.id),
        "user": user(world, item.user),
        "content": item.content,
        "created_at": moment(item.created_at),
    }


def comment(world: World, repo: Repository, on: Issue, item: Comment) -> dict[str, Any]:
    """An `issue-comment`."""
    url = repository_api(world, repo, "issues/comments", item.id)
    return {
        "id": item.id,
        "node_id": node("IC", item.id),
        "url": url,
        "html_url": f"{html_url(world, repo, on)}#issuecomment-{item.id}",
        "issue_url": repository_api(world, repo, "issues", on.number),
        "user": user(world, item.user),
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
        "body": item.body,
        "author_association": association(world, repo, item.user),
        "reactions": rollup(url, item.reactions),
        "performed_via_github_app": app(world, world.apps[item.app_id]) if item.app_id else None,
    }


def issue(world: World, repo: Repository, item: Issue, *, with_repository: bool = False) -> dict[str, Any]:
    """An `issue`; of a pull request with its `pull_request` links."""
    url = repository_api(world, repo, "issues", item.number)
    html = html_url(world, repo, item)
    body: dict[str, Any] = {
        "id": item.id,
        "node_id": node("PR" if item.pull else "I", item.id),
        "url": url,
        "repository_url": repository_api(world, repo),
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "timeline_url": f"{url}/timeline",
        "html_url": html,
        "number": item.number,
        "title": item.title,
        "user": user(world, item.user),
        "labels": [label(world, repo, repo.labels[name.lower()]) for name in item.labels],
        "state": item.state,
        "state_reason": item.state_reason,
        "locked": item.locked,
        "active_lock_reason": item.lock_reason,
        "assignee": user(world, item.assignees[0] if item.assignees else None),
        "assignees": [user(world, login) for login in item.assignees],
        "milestone": None,
        "comments": len(item.comments),
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
        "closed_at": moment(item.closed_at),
        "closed_by": user(world, item.closed_by),
        "author_association": association(world, repo, item.user),
        "body": item.body,
        "reactions": rollup(url, []),
        "performed_via_github_app": app(world, world.apps[item.app_id]) if item.app_id else None,
    }
    if item.pull is not None:
        body["draft"] = item.pull.draft
        body["pull_request"] = {
            "url": repository_api(world, repo, "pulls", item.number),
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "merged_at": moment(item.pull.merged_at),
        }
    if with_repository:
        body["repository"] = repository(world, repo)
    return body


def event(world: World, repo: Repository, item: IssueEvent) -> dict[str, Any]:
    """One line of an issue's history."""
    commit_url = repository_api(world, repo, "commits", item.commit_id) if item.commit_id else None
    return {
        "id": item.id,
        "node_id": node("EV", item.id),
        "url": repository_api(world, repo, "issues/events", item.id),
        "actor": user(world, item.actor),
        "event": item.event,
        "commit_id": item.commit_id,
        "commit_url": commit_url,
        "created_at": moment(item.created_at),
        "performed_via_github_app": app(world, world.apps[item.app_id]) if item.app_id else None,
        **item.detail,
    }


def timeline(world: World, repo: Repository, item: Issue) -> list[dict[str, Any]]:
    """History, comments and reviews in order of time."""
    entries = [(one.created_at, one.id, event(world, repo, one)) for one in item.events]
    for one in item.comments:
        body = {**comment(world, repo, item, one), "event": "commented", "actor": user(world, one.user)}
        entries.append((one.created_at, one.id, body))
    return [body for _, _, body in sorted(entries, key=lambda entry: entry[:2])]
