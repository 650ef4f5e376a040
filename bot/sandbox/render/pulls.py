"""Pull requests, reviews and review comments as JSON."""

from __future__ import annotations

from typing import Any

from bot.sandbox import merging
from bot.sandbox.model import Issue, Repository, Review, ReviewComment
from bot.sandbox.render.common import label, moment, node, repository, repository_api, team, user
from bot.sandbox.render.issues import association, html_url
from bot.sandbox.world import World


def simple(world: World, repo: Repository, item: Issue) -> dict[str, Any]:
    """A `pull-request-simple`."""
    pull = item.pull
    assert pull is not None
    own = repository_api(world, repo, "pulls", item.number)
    issue_url = repository_api(world, repo, "issues", item.number)
    html = html_url(world, repo, item)
    head = world.repository(pull.head_repo) if pull.head_repo else None
    statuses = repository_api(world, repo, "statuses", pull.head_sha)
    links = {
        "self": own,
        "html": html,
        "issue": issue_url,
        "comments": f"{issue_url}/comments",
        "review_comments": f"{own}/comments",
        "review_comment": repository_api(world, repo, "pulls/comments{/number}"),
        "commits": f"{own}/commits",
        "statuses": statuses,
    }
    return {
        "url": own,
        "id": item.id,
        "node_id": node("PR", item.id),
        "html_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "issue_url": issue_url,
        "number": item.number,
        "state": item.state,
        "locked": item.locked,
        "active_lock_reason": item.lock_reason,
        "title": item.title,
        "user": user(world, item.user),
        "body": item.body,
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
        "closed_at": moment(item.closed_at),
        "merged_at": moment(pull.merged_at),
        "merge_commit_sha": merging.merge_commit(pull),
        "assignee": user(world, item.assignees[0] if item.assignees else None),
        "assignees": [user(world, login) for login in item.assignees],
        "requested_reviewers": [user(world, login) for login in pull.requested_reviewers],
        "requested_teams": [team(world, world.teams[repo.owner, slug]) for slug in pull.requested_teams],
        # the description of this field wants a text where labels themselves may have none
        "labels": [
            {
                **label(world, repo, repo.labels[name.lower()]),
                "description": repo.labels[name.lower()].description or "",
            }
            for name in item.labels
        ],
        "milestone": None,
        "draft": pull.draft,
        "commits_url": f"{own}/commits",
        "review_comments_url": f"{own}/comments",
        "review_comment_url": repository_api(world, repo, "pulls/comments{/number}"),
        "comments_url": f"{issue_url}/comments",
        "statuses_url": statuses,
        "head": {
            "label": f"{pull.head_owner}:{pull.head_ref}",
            "ref": pull.head_ref,
            "sha": pull.head_sha,
            "user": user(world, world.user(pull.head_owner)),
            "repo": repository(world, head) if head else None,
        },
        "base": {
            "label": f"{repo.owner}:{pull.base_ref}",
            "ref": pull.base_ref,
            "sha": pull.base_sha,
            "user": user(world, repo.owner),
            "repo": repository(world, repo),
        },
        "_links": {name: {"href": url} for name, url in links.items()},
        "author_association": association(world, repo, item.user),
        "auto_merge": None,
    }


def full(world: World, repo: Repository, item: Issue, *, asked: bool = False) -> dict[str, Any]:
    """A `pull-request`, with its mergeability."""
    pull = item.pull
    assert pull is not None
    mergeable, state = merging.mergeability(world, repo, item, asked=asked)
    changes = merging.changes(world, repo, pull)
    files = changes.files
    return {
        **simple(world, repo, item),
        "merged": pull.merged_at is not None,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": state,
        "merged_by": user(world, pull.merged_by),
        "comments": len(item.comments),
        "review_comments": len(pull.review_comments),
        "maintainer_can_modify": pull.maintainer_can_modify,
        "commits": len(changes.commits),
        "additions": sum(one.additions for one in files),
        "deletions": sum(one.deletions for one in files),
        "changed_files": len(files),
    }


def minimal(world: World, repo: Repository, item: Issue) -> dict[str, Any]:
    """A `pull-request-minimal`, as check runs carry it."""
    pull = item.pull
    assert pull is not None

    def side(ref: str, sha: str, of: Repository) -> dict[str, Any]:
        return {"ref": ref, "sha": sha, "repo": {"id": of.id, "url": repository_api(world, of), "name": of.name}}

    head = (world.repository(pull.head_repo) if pull.head_repo else None) or repo
    return {
        "url": repository_api(world, repo, "pulls", item.number),
        "id": item.id,
        "number": item.number,
        "head": side(pull.head_ref, pull.head_sha, head),
        "base": side(pull.base_ref, pull.base_sha, repo),
    }


def review(world: World, repo: Repository, on: Issue, item: Review) -> dict[str, Any]:
    """A `pull-request-review`."""
    pull_url = repository_api(world, repo, "pulls", on.number)
    html = f"{html_url(world, repo, on)}#pullrequestreview-{item.id}"
    body = {
        "id": item.id,
        "node_id": node("PRR", item.id),
        "user": user(world, item.user),
        "body": item.body,
        "state": item.state,
        "html_url": html,
        "pull_request_url": pull_url,
        "commit_id": item.commit_id,
        "author_association": association(world, repo, item.user),
        "_links": {"html": {"href": html}, "pull_request": {"href": pull_url}},
    }
    if item.submitted_at is not None:
        body["submitted_at"] = moment(item.submitted_at)
    return body


def review_comment(world: World, repo: Repository, on: Issue, item: ReviewComment) -> dict[str, Any]:
    """A `pull-request-review-comment`."""
    own = repository_api(world, repo, "pulls/comments", item.id)
    pull_url = repository_api(world, repo, "pulls", on.number)
    html = f"{html_url(world, repo, on)}#discussion_r{item.id}"
    body = {
        "id": item.id,
        "node_id": node("PRRC", item.id),
        "pull_request_review_id": item.review_id,
        "url": own,
        "html_url": html,
        "pull_request_url": pull_url,
        "diff_hunk": "",
        "path": item.path,
        "commit_id": item.commit_id,
        "original_commit_id": item.commit_id,
        "user": user(world, item.user),
        "body": item.body,
        "side": item.side,
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
        "subject_type": item.subject_type,
        "author_association": association(world, repo, item.user),
        "_links": {"self": {"href": own}, "html": {"href": html}, "pull_request": {"href": pull_url}},
    }
    if item.line is not None:
        body |= {"line": item.line, "original_line": item.line}
    if item.in_reply_to is not None:
        body["in_reply_to_id"] = item.in_reply_to
    return body
