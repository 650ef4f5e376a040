"""Comments of issues and pull requests, and reactions to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.sandbox import events
from bot.sandbox.accounts import at_least
from bot.sandbox.auth import role_of
from bot.sandbox.http import ApiError, Call, Listing, Reply, invalid, not_found, route
from bot.sandbox.model import Comment, Issue, Reaction
from bot.sandbox.render import issues as render

MAX_BODY = 65_536
_READ, _WRITE = "issues:read|pull:pull_requests:read", "issues:write|pull:pull_requests:write"


def _check(body: str) -> None:
    if not body.strip():
        raise invalid("IssueComment", "body", "missing_field")
    if len(body) > MAX_BODY:
        raise invalid("IssueComment", "body", "custom", f"body is too long (maximum is {MAX_BODY} characters)")


def _found(call: Call) -> tuple[Issue, Comment]:
    found = call.world.comment(call.repo, call.params["comment_id"])
    if found is None:
        raise not_found()
    return found


def _own(call: Call, comment: Comment) -> None:
    if comment.user == call.login:
        return
    if call.actor.installation is not None or not at_least(role_of(call.world, call.actor, call.repo), "write"):
        raise ApiError(403, "Must have admin rights to Repository.")


def _tell(call: Call, issue: Issue, comment: Comment, action: str, **more: Any) -> None:
    body = {
        "issue": render.issue(call.world, call.repo, issue),
        "comment": render.comment(call.world, call.repo, issue, comment),
        **more,
    }
    events.emit(call.world, call.repo, "issue_comment", action, body, sender=call.login)


@route("GET", "/repos/{owner}/{repo}/issues/{issue_number}/comments", app=_READ)
def list_comments(call: Call) -> Any:
    """An issue's comments, oldest first."""
    item = call.issue()
    since = call.query.get("since")
    rows = item.comments
    if since is not None:
        try:
            moment = datetime.fromisoformat(since.replace("Z", "+00:00"))
        except ValueError as error:
            raise ApiError(422, f"since: {since!r} is no time in ISO 8601") from error
        rows = [one for one in rows if one.updated_at >= moment]
    return Listing(rows, lambda one: render.comment(call.world, call.repo, item, one))


@route("GET", "/repos/{owner}/{repo}/issues/comments", app="issues:read|pull_requests:read")
def all_comments(call: Call) -> Any:
    """All comments of the repository."""
    rows = [(issue, one) for issue in call.repo.issues.values() for one in issue.comments]
    rows.sort(key=lambda row: (row[1].created_at, row[1].id), reverse=call.query.get("direction") == "desc")
    return Listing(rows, lambda row: render.comment(call.world, call.repo, *row))


@route("POST", "/repos/{owner}/{repo}/issues/{issue_number}/comments", app=_WRITE, role="read")
def create_comment(call: Call) -> Any:
    """A new comment; on a locked issue only from those who may write."""
    issue, text = call.issue(), call.body["body"]
    _check(text)
    if issue.locked and not at_least(role_of(call.world, call.actor, call.repo), "write"):
        raise ApiError(403, "Unable to create comment because issue is locked.")
    now = call.world.now()
    comment = Comment(call.world.new_id(), text, call.login, now, now, call.actor.app_id)
    issue.comments.append(comment)
    issue.updated_at = now
    _tell(call, issue, comment, "created")
    return Reply(render.comment(call.world, call.repo, issue, comment), 201)


@route("GET", "/repos/{owner}/{repo}/issues/comments/{comment_id}", app=_READ)
def get_comment(call: Call) -> Any:
    """One comment."""
    return render.comment(call.world, call.repo, *_found(call))


@route("PATCH", "/repos/{owner}/{repo}/issues/comments/{comment_id}", app=_WRITE, role="read")
def update_comment(call: Call) -> Any:
    """Another text for a comment."""
    issue, comment = _found(call)
    _own(call, comment)
    _check(call.body["body"])
    before = comment.body
    comment.edits.append(before)
    comment.body, comment.updated_at = call.body["body"], call.world.now()
    _tell(call, issue, comment, "edited", changes={"body": {"from": before}})
    return render.comment(call.world, call.repo, issue, comment)


@route("DELETE", "/repos/{owner}/{repo}/issues/comments/{comment_id}", app=_WRITE, role="read")
def delete_comment(call: Call) -> Any:
    """Delete a comment."""
    issue, comment = _found(call)
    _own(call, comment)
    issue.comments.remove(comment)
    _tell(call, issue, comment, "deleted")
    return Reply(None, 204)


@route("GET", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", app=_READ)
def list_reactions(call: Call) -> Any:
    """Reactions to a comment."""
    wanted = call.query.get("content")
    rows = [one for one in _found(call)[1].reactions if wanted in (None, one.content)]
    return Listing(rows, lambda one: render.reaction(call.world, one))


@route("POST", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions", app=_WRITE, role="read")
def create_reaction(call: Call) -> Any:
    """React to a comment: 201, or 200 where the same reaction is there."""
    comment = _found(call)[1]
    content = call.body["content"]
    for one in comment.reactions:
        if (one.user, one.content) == (call.login, content):
            return Reply(render.reaction(call.world, one), 200)
    reaction = Reaction(call.world.new_id(), content, call.login, call.world.now())
    comment.reactions.append(reaction)
    return Reply(render.reaction(call.world, reaction), 201)


@route("DELETE", "/repos/{owner}/{repo}/issues/comments/{comment_id}/reactions/{reaction_id}", app=_WRITE, role="read")
def delete_reaction(call: Call) -> Any:
    """Take a reaction back."""
    comment = _found(call)[1]
    found = next((one for one in comment.reactions if one.id == call.params["reaction_id"]), None)
    if found is None or found.user != call.login:
        raise not_found()
    comment.reactions.remove(found)
    return Reply(None, 204)
