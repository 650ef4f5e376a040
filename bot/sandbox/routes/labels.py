"""Labels: of a repository, and on issues and pull requests."""

from __future__ import annotations

from typing import Any

from bot.sandbox import changes, events
from bot.sandbox.http import ApiError, Call, Listing, Reply, invalid, not_found, route
from bot.sandbox.model import Issue, Label, Repository
from bot.sandbox.render import common
from bot.sandbox.world import World

MAX_NAME = 50
MAX_DESCRIPTION = 100
MAX_LABELS = 100


def ensure(world: World, repo: Repository, name: str) -> Label:
    """The label of that name; made where there is none, as GitHub does when one is added to an issue."""
    if not name or len(name) > MAX_NAME:
        raise invalid("Label", "name", "custom", f"name is too long (maximum is {MAX_NAME} characters)")
    if name.lower() not in repo.labels:
        repo.labels[name.lower()] = Label(world.new_id(), name)
    return repo.labels[name.lower()]


def label_names(given: list[Any]) -> list[str]:
    """The names in a list of names or of objects."""
    return list(dict.fromkeys(str(item["name"] if isinstance(item, dict) else item) for item in given))


def replace(call: Call, item: Issue, names: list[str]) -> None:
    """Give an issue exactly these labels, with an event for each one that comes or goes."""
    wanted = [ensure(call.world, call.repo, name).name for name in names]
    if len(wanted) > MAX_LABELS:
        raise invalid("Issue", "labels", "custom", f"labels is too long (maximum is {MAX_LABELS})")
    for name in [one for one in item.labels if one not in wanted]:
        item.labels.remove(name)
        _tell(call, item, "unlabeled", name)
    for name in [one for one in wanted if one not in item.labels]:
        item.labels.append(name)
        _tell(call, item, "labeled", name)


def _tell(call: Call, item: Issue, word: str, name: str) -> None:
    label = call.repo.labels[name.lower()]
    changes.note(
        call.world, item, word, call.login, call.actor.app_id, label={"name": label.name, "color": label.color}
    )
    given = common.label(call.world, call.repo, label)
    events.issue_event(call.world, call.repo, item, word, call.login, label=given)


def _listed(call: Call, item: Issue) -> list[dict[str, Any]]:
    return [common.label(call.world, call.repo, call.repo.labels[name.lower()]) for name in item.labels]


_ON_ISSUE = "issues:write|pull:pull_requests:write"


@route("GET", "/repos/{owner}/{repo}/labels", app="issues:read|pull_requests:read")
def list_labels(call: Call) -> Any:
    """The repository's labels."""
    return Listing(list(call.repo.labels.values()), lambda item: common.label(call.world, call.repo, item))


@route("POST", "/repos/{owner}/{repo}/labels", app="issues:write|pull_requests:write")
def create_label(call: Call) -> Any:
    """A new label; 422 already_exists where it is there, whatever the letters' case."""
    name, color = call.body["name"], call.body.get("color", "ededed")
    if name.lower() in call.repo.labels:
        raise invalid("Label", "name", "already_exists")
    if len(color) != 6 or any(letter not in "0123456789abcdefABCDEF" for letter in color):
        raise invalid("Label", "color", "invalid")
    description = call.body.get("description")
    if description is not None and len(description) > MAX_DESCRIPTION:
        raise invalid(
            "Label", "description", "custom", f"description is too long (maximum is {MAX_DESCRIPTION} characters)"
        )
    label = ensure(call.world, call.repo, name)
    label.color, label.description = color.lower(), description
    given = common.label(call.world, call.repo, label)
    events.emit(call.world, call.repo, "label", "created", {"label": given}, sender=call.login)
    return Reply(given, 201)


@route("GET", "/repos/{owner}/{repo}/labels/{name}", app="issues:read|pull_requests:read")
def get_label(call: Call) -> Any:
    """One label."""
    label = call.repo.labels.get(call.params["name"].lower())
    if label is None:
        raise not_found()
    return common.label(call.world, call.repo, label)


@route("GET", "/repos/{owner}/{repo}/issues/{issue_number}/labels", app="issues:read|pull:pull_requests:read")
def issue_labels(call: Call) -> Any:
    """An issue's labels."""
    return Listing(_listed(call, call.issue()), lambda item: item)


@route("POST", "/repos/{owner}/{repo}/issues/{issue_number}/labels", app=_ON_ISSUE, role="triage")
def add_labels(call: Call) -> Any:
    """Add labels."""
    item = call.issue()
    given = call.body if isinstance(call.body, list) else call.body.get("labels", [])
    if isinstance(call.body, str):
        given = [call.body]
    replace(call, item, label_names([*item.labels, *given]))
    return _listed(call, item)


@route("PUT", "/repos/{owner}/{repo}/issues/{issue_number}/labels", app=_ON_ISSUE, role="triage")
def set_labels(call: Call) -> Any:
    """Set exactly these labels."""
    item = call.issue()
    given = call.body if isinstance(call.body, list) else call.body.get("labels", [])
    replace(call, item, label_names(given))
    return _listed(call, item)


@route("DELETE", "/repos/{owner}/{repo}/issues/{issue_number}/labels/{name}", app=_ON_ISSUE, role="triage")
def remove_label(call: Call) -> Any:
    """Take one label away; 404 where it is not on the issue."""
    item = call.issue()
    name = call.params["name"].lower()
    if name not in {one.lower() for one in item.labels}:
        raise ApiError(404, "Label does not exist")
    replace(call, item, [one for one in item.labels if one.lower() != name])
    return _listed(call, item)
