"""The few GraphQL mutations for which GitHub has no REST operation. Not a GraphQL server: it knows these by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bot.sandbox import changes, events, queue
from bot.sandbox.accounts import at_least
from bot.sandbox.auth import may_see, permits, role_of
from bot.sandbox.http import ApiError, Call, route
from bot.sandbox.model import Issue, Repository
from bot.sandbox.render.common import node, node_number


class _Refused(Exception):
    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def _find(call: Call, node_id: str) -> tuple[Repository, Issue]:
    try:
        number = node_number(node_id)
    except ValueError:
        number = -1
    for repo in call.world.repositories.values():
        for item in repo.pulls.values():
            if item.id == number and may_see(call.world, call.actor, repo):
                return repo, item
    raise _Refused("NOT_FOUND", f"Could not resolve to a node with the global id of '{node_id}'.")


def _may(call: Call, repo: Repository, item: Issue) -> None:
    if repo.archived:
        raise _Refused("FORBIDDEN", "Repository was archived so is read-only.")
    if call.actor.installation is not None:
        allowed = permits(call.actor, "pull_requests:write")
    else:
        allowed = item.user == call.login or at_least(role_of(call.world, call.actor, repo), "write")
    if not allowed:
        raise _Refused("FORBIDDEN", "Resource not accessible by integration")


def _draft(call: Call, given: dict[str, Any], draft: bool) -> dict[str, Any]:
    repo, item = _find(call, given["pullRequestId"])
    _may(call, repo, item)
    assert item.pull is not None
    if item.pull.draft != draft:
        item.pull.draft = draft
        word = "convert_to_draft" if draft else "ready_for_review"
        changes.note(call.world, item, word, call.login, call.actor.app_id)
        events.issue_event(call.world, repo, item, "converted_to_draft" if draft else "ready_for_review", call.login)
    return {"pullRequest": {"id": given["pullRequestId"], "isDraft": draft, "number": item.number}}


def _enqueue(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    repo, item = _find(call, given["pullRequestId"])
    _may(call, repo, item)
    try:
        entry = queue.enqueue(call.world, repo, item, call.login)
    except queue.NotQueueable as error:
        raise _Refused("UNPROCESSABLE", str(error)) from error
    return {
        "mergeQueueEntry": {
            "id": node("MQE", item.id),
            "headCommit": {"oid": entry.head_sha},
            "state": "AWAITING_CHECKS",
        }
    }


def _dequeue(call: Call, given: dict[str, Any]) -> dict[str, Any]:
    repo, item = _find(call, given["id"])
    _may(call, repo, item)
    queue.dequeue(call.world, repo, item.number)
    return {"mergeQueueEntry": None}


MUTATIONS: dict[str, Callable[[Call, dict[str, Any]], dict[str, Any]]] = {
    "markPullRequestReadyForReview": lambda call, given: _draft(call, given, False),
    "convertPullRequestToDraft": lambda call, given: _draft(call, given, True),
    "enqueuePullRequest": _enqueue,
    "dequeuePullRequest": _dequeue,
}


@route("POST", "/graphql", app="none")
def graphql(call: Call) -> Any:
    """One mutation, its input inline or in variables."""
    if call.actor.token is None:
        raise ApiError(401, "This endpoint requires you to be authenticated.")
    query = call.body.get("query", "")
    variables = call.body.get("variables") or {}
    name = next((word for word in MUTATIONS if re.search(rf"\b{word}\b", query)), None)
    if name is None:
        return {"errors": [{"message": f"This sandbox knows only {', '.join(MUTATIONS)}"}]}
    given = dict(re.findall(r'(\w+)\s*:\s*"([^"]*)"', query))
    given |= {
        key: str(variables[variable])
        for key, variable in re.findall(r"(\w+)\s*:\s*\$(\w+)", query)
        if variable in variables
    }
    if isinstance(variables.get("input"), dict):
        given |= variables["input"]
    try:
        return {"data": {name: MUTATIONS[name](call, given)}}
    except KeyError as error:
        return {"errors": [{"message": f"{name} needs {error.args[0]}"}]}
    except _Refused as error:
        return {"data": {name: None}, "errors": [{"type": error.kind, "message": str(error), "path": [name]}]}
