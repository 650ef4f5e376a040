"""Reviews of pull requests, their dismissal, and comments on lines."""

from __future__ import annotations

from typing import Any

from bot.sandbox import changes, events
from bot.sandbox.http import ApiError, Call, Listing, Reply, not_found, route
from bot.sandbox.model import Issue, Review, ReviewComment
from bot.sandbox.render import pulls as render

_READ, _WRITE = "pull_requests:read", "pull_requests:write"
_STATES = {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED"}


def _review(call: Call) -> tuple[Issue, Review]:
    item = call.pull()
    assert item.pull is not None
    found = next((one for one in item.pull.reviews if one.id == call.params["review_id"]), None)
    if found is None:
        raise not_found()
    return item, found


def _tell(call: Call, item: Issue, review: Review, action: str) -> None:
    body = {
        "review": {**render.review(call.world, call.repo, item, review), "state": review.state.lower()},
        "pull_request": render.simple(call.world, call.repo, item),
    }
    events.emit(call.world, call.repo, "pull_request_review", action, body, sender=call.login)


def _submit(call: Call, item: Issue, review: Review, event: str) -> None:
    if event in ("APPROVE", "REQUEST_CHANGES") and item.user == review.user:
        word = "approve" if event == "APPROVE" else "request changes on"
        raise ApiError(422, f"Can not {word} your own pull request")
    if event in ("REQUEST_CHANGES", "COMMENT") and not review.body and not call.body.get("comments"):
        raise ApiError(422, "Body cannot be blank")
    review.state, review.submitted_at = _STATES[event], call.world.now()
    pull = item.pull
    assert pull is not None
    if review.user in pull.requested_reviewers:
        pull.requested_reviewers.remove(review.user)


@route("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/reviews", app=_READ)
def list_reviews(call: Call) -> Any:
    """Reviews in order of time."""
    item = call.pull()
    assert item.pull is not None
    rows = [one for one in item.pull.reviews if one.state != "PENDING" or one.user == call.actor.login]
    return Listing(rows, lambda one: render.review(call.world, call.repo, item, one))


@route("POST", "/repos/{owner}/{repo}/pulls/{pull_number}/reviews", app=_WRITE, role="read")
def create_review(call: Call) -> Any:
    """A review; without `event` it stays pending."""
    world, item, body = call.world, call.pull(), call.body
    pull = item.pull
    assert pull is not None
    review = Review(
        world.new_id(),
        call.login,
        body.get("body", ""),
        "PENDING",
        body.get("commit_id") or pull.head_sha,
        None,
        call.actor.app_id,
    )
    event = body.get("event")
    if event:
        _submit(call, item, review, event)
    pull.reviews.append(review)
    for given in body.get("comments", []):
        pull.review_comments.append(_comment(call, given, review.commit_id, review.id))
    if event:
        _tell(call, item, review, "submitted")
    return render.review(world, call.repo, item, review)


@route("POST", "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/events", app=_WRITE, role="read")
def submit_review(call: Call) -> Any:
    """Submit a pending review."""
    item, review = _review(call)
    if review.user != call.login or review.state != "PENDING":
        raise ApiError(422, "The review is not pending")
    review.body = call.body.get("body", review.body)
    _submit(call, item, review, call.body["event"])
    _tell(call, item, review, "submitted")
    return render.review(call.world, call.repo, item, review)


@route("PUT", "/repos/{owner}/{repo}/pulls/{pull_number}/reviews/{review_id}/dismissals", app=_WRITE)
def dismiss_review(call: Call) -> Any:
    """Dismiss an approval or a request for changes."""
    item, review = _review(call)
    if review.state not in ("APPROVED", "CHANGES_REQUESTED"):
        raise ApiError(422, f"Can not dismiss a {review.state.lower()} pull request review")
    detail = {"state": review.state.lower(), "review_id": review.id, "dismissal_message": call.body["message"]}
    review.state = "DISMISSED"
    changes.note(call.world, item, "review_dismissed", call.login, call.actor.app_id, dismissed_review=detail)
    _tell(call, item, review, "dismissed")
    return render.review(call.world, call.repo, item, review)


def _comment(call: Call, given: dict[str, Any], commit_id: str, review_id: int | None) -> ReviewComment:
    now = call.world.now()
    return ReviewComment(
        call.world.new_id(),
        review_id,
        call.login,
        given["body"],
        given["path"],
        commit_id,
        given.get("line"),
        given.get("side", "RIGHT"),
        now,
        now,
        given.get("in_reply_to"),
        given.get("subject_type", "line"),
    )


@route("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/comments", app=_READ)
def list_review_comments(call: Call) -> Any:
    """Comments on lines."""
    item = call.pull()
    assert item.pull is not None
    return Listing(item.pull.review_comments, lambda one: render.review_comment(call.world, call.repo, item, one))


@route("POST", "/repos/{owner}/{repo}/pulls/{pull_number}/comments", app=_WRITE, role="read")
def create_review_comment(call: Call) -> Any:
    """A comment on a line."""
    world, repo, item = call.world, call.repo, call.pull()
    assert item.pull is not None
    if world.store(repo).kind(call.body["commit_id"]) != "commit":
        raise ApiError(422, "commit_id is not part of the pull request")
    comment = _comment(call, call.body, call.body["commit_id"], None)
    item.pull.review_comments.append(comment)
    body = {
        "comment": render.review_comment(world, repo, item, comment),
        "pull_request": render.simple(world, repo, item),
    }
    events.emit(world, repo, "pull_request_review_comment", "created", body, sender=call.login)
    return Reply(render.review_comment(world, repo, item, comment), 201)
