"""Issues (and of pull requests what they share with issues): made, changed, listed, locked, searched."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from bot.sandbox import changes, events
from bot.sandbox.accounts import at_least
from bot.sandbox.auth import may_see, permits, role_of
from bot.sandbox.http import ApiError, Call, Listing, Reply, invalid, route
from bot.sandbox.model import Issue, Repository
from bot.sandbox.render import common
from bot.sandbox.render import issues as render
from bot.sandbox.routes.labels import ensure, label_names, replace

MAX_TITLE = 256
MAX_BODY = 65_536
MAX_ASSIGNEES = 10


def check_text(resource: str, title: str | None, body: str | None) -> None:
    """422 where a title or a body is longer than GitHub takes."""
    if title is not None and not str(title).strip():
        raise invalid(resource, "title", "missing_field")
    if title is not None and len(str(title)) > MAX_TITLE:
        raise invalid(resource, "title", "custom", f"title is too long (maximum is {MAX_TITLE} characters)")
    if body is not None and len(body) > MAX_BODY:
        raise invalid(resource, "body", "custom", f"body is too long (maximum is {MAX_BODY} characters)")


def may_triage(call: Call) -> bool:
    """True where the actor may set labels, assignees and state of others' issues."""
    if call.actor.installation is not None:
        return permits(call.actor, "issues:write|pull_requests:write")
    return at_least(role_of(call.world, call.actor, call.repo), "triage")


@route("GET", "/repos/{owner}/{repo}/issues", app="issues:read|pull_requests:read")
def list_issues(call: Call) -> Any:
    """Issues and pull requests: open ones, newest first, unless asked otherwise."""
    return Listing(_selected(call, call.repo), lambda item: render.issue(call.world, call.repo, item))


@route("GET", "/issues", app="none")
def my_issues(call: Call) -> Any:
    """Issues over all repositories that are assigned to the user."""
    login = call.login
    rows = [
        (repo, item)
        for repo in call.world.repositories.values()
        if may_see(call.world, call.actor, repo)
        for item in _selected(call, repo)
        if login in item.assignees
    ]
    return Listing(rows, lambda row: render.issue(call.world, *row, with_repository=True))


def _selected(call: Call, repo: Repository) -> list[Issue]:
    query = call.query
    state = query.get("state", "open")
    names = [name.strip().lower() for name in query.get("labels", "").split(",") if name.strip()]
    found = []
    for item in repo.issues.values():
        if item.pull is None and not repo.has_issues:
            continue
        held = {name.lower() for name in item.labels}
        if state not in ("all", item.state) or not set(names) <= held:
            continue
        if query.get("creator") not in (None, item.user) or not _assigned(item, query.get("assignee")):
            continue
        if "since" in query and item.updated_at < _time(query["since"]):
            continue
        found.append(item)
    keys = {
        "created": lambda item: (item.created_at, item.number),
        "updated": lambda item: (item.updated_at, item.number),
        "comments": lambda item: (len(item.comments), item.number),
    }
    found.sort(key=keys[query.get("sort", "created")], reverse=query.get("direction", "desc") == "desc")
    return found


def _assigned(item: Issue, wanted: str | None) -> bool:
    if wanted in (None, "*"):
        return wanted is None or bool(item.assignees)
    return not item.assignees if wanted == "none" else wanted in item.assignees


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise ApiError(422, f"since: {text!r} is no time in ISO 8601") from error


@route("POST", "/repos/{owner}/{repo}/issues", app="issues:write", role="read")
def create_issue(call: Call) -> Any:
    """A new issue; labels and assignees only from those who may set them."""
    world, repo, body = call.world, call.repo, call.body
    if not repo.has_issues:
        raise ApiError(410, "Issues are disabled for this repo")
    check_text("Issue", body["title"], body.get("body"))
    now = world.now()
    item = Issue(
        world.new_id(), repo.next_number, str(body["title"]), body.get("body"), call.login, now, now, call.actor.app_id
    )
    repo.next_number += 1
    repo.issues[item.number] = item
    if may_triage(call):
        item.labels = [ensure(world, repo, name).name for name in label_names(body.get("labels", []))]
        wanted = body.get("assignees") or ([body["assignee"]] if body.get("assignee") else [])
        item.assignees = [login for login in map(_login, wanted) if _assignable(call, login)][:MAX_ASSIGNEES]
    events.issue_event(world, repo, item, "opened", call.login)
    for name in item.labels:
        changes.note(world, item, "labeled", call.login, call.actor.app_id, label={"name": name, "color": "ededed"})
        given = common.label(world, repo, repo.labels[name.lower()])
        events.issue_event(world, repo, item, "labeled", call.login, label=given)
    return Reply(render.issue(world, repo, item), 201)


@route("GET", "/repos/{owner}/{repo}/issues/{issue_number}", app="issues:read|pull:pull_requests:read")
def get_issue(call: Call) -> Any:
    """One issue or pull request."""
    return render.issue(call.world, call.repo, call.issue())


@route("PATCH", "/repos/{owner}/{repo}/issues/{issue_number}", app="issues:write|pull:pull_requests:write", role="read")
def update_issue(call: Call) -> Any:
    """Change title, body, state, labels or assignees."""
    world, repo, body, item = call.world, call.repo, call.body, call.issue()
    if item.user != call.login and not may_triage(call):
        raise ApiError(403, "Must have admin rights to Repository.")
    check_text("Issue", body.get("title"), body.get("body"))
    apply_text(call, item)
    if "labels" in body and may_triage(call):
        replace(call, item, label_names(body["labels"]))
    if "assignees" in body and may_triage(call):
        _assign(call, item, [_login(one) for one in body["assignees"]])
    apply_state(call, item)
    return render.issue(world, repo, item)


def apply_text(call: Call, item: Issue) -> None:
    """Take title and body of a request's body over, and tell of it."""
    before: dict[str, Any] = {}
    for name in ("title", "body"):
        if name in call.body and call.body[name] != getattr(item, name):
            before[name] = {"from": getattr(item, name)}
            setattr(item, name, call.body[name] if call.body[name] is None else str(call.body[name]))
    if "title" in before:
        renamed = {"from": before["title"]["from"], "to": item.title}
        changes.note(call.world, item, "renamed", call.login, call.actor.app_id, rename=renamed)
    if before:
        item.updated_at = call.world.now()
        events.issue_event(call.world, call.repo, item, "edited", call.login, changes=before)


def apply_state(call: Call, item: Issue) -> None:
    """Close or reopen as a request's body says."""
    state = call.body.get("state")
    if state == "closed" and item.state == "open":
        changes.close(
            call.world, call.repo, item, call.login, reason=call.body.get("state_reason"), app_id=call.actor.app_id
        )
    elif state == "open" and item.state == "closed":
        changes.reopen(call.world, call.repo, item, call.login, call.actor.app_id)
    elif call.body.get("state_reason") and item.state == "closed" and item.pull is None:
        item.state_reason = call.body["state_reason"]


def _login(item: Any) -> str:
    return str(item["login"] if isinstance(item, dict) else item)


def _assignable(call: Call, login: str) -> bool:
    user = call.world.user(login)
    return user is not None and (
        call.world.explicit_role(user.login, call.repo) != "none"
        or user.login in call.world.known_user(call.repo.owner).members
    )


def _assign(call: Call, item: Issue, logins: list[str]) -> None:
    wanted = [login for login in dict.fromkeys(logins) if _assignable(call, login)][:MAX_ASSIGNEES]
    for login in [one for one in item.assignees if one not in wanted]:
        item.assignees.remove(login)
        _assignment(call, item, "unassigned", login)
    for login in [one for one in wanted if one not in item.assignees]:
        item.assignees.append(login)
        _assignment(call, item, "assigned", login)


def _assignment(call: Call, item: Issue, word: str, login: str) -> None:
    user = common.user(call.world, login)
    sender = common.user(call.world, call.login)
    changes.note(call.world, item, word, call.login, call.actor.app_id, assignee=user, assigner=sender)
    events.issue_event(call.world, call.repo, item, word, call.login, assignee=user)


@route(
    "POST",
    "/repos/{owner}/{repo}/issues/{issue_number}/assignees",
    app="issues:write|pull:pull_requests:write",
    role="triage",
)
def add_assignees(call: Call) -> Any:
    """Add assignees; whoever has no role here is silently left out, as at GitHub."""
    item = call.issue()
    _assign(call, item, item.assignees + [_login(one) for one in call.body.get("assignees", [])])
    return Reply(render.issue(call.world, call.repo, item), 201)


@route(
    "DELETE",
    "/repos/{owner}/{repo}/issues/{issue_number}/assignees",
    app="issues:write|pull:pull_requests:write",
    role="triage",
)
def remove_assignees(call: Call) -> Any:
    """Take assignees away."""
    item = call.issue()
    gone = {_login(one) for one in call.body.get("assignees", [])}
    _assign(call, item, [login for login in item.assignees if login not in gone])
    return render.issue(call.world, call.repo, item)


@route("PUT", "/repos/{owner}/{repo}/issues/{issue_number}/lock", app="issues:write|pull:pull_requests:write")
def lock(call: Call) -> Any:
    """Let only those who may write comment."""
    item = call.issue()
    item.locked, item.lock_reason = True, (call.body or {}).get("lock_reason")
    changes.note(call.world, item, "locked", call.login, call.actor.app_id, lock_reason=item.lock_reason)
    events.issue_event(call.world, call.repo, item, "locked", call.login)
    return Reply(None, 204)


@route("DELETE", "/repos/{owner}/{repo}/issues/{issue_number}/lock", app="issues:write|pull:pull_requests:write")
def unlock(call: Call) -> Any:
    """Let everyone comment again."""
    item = call.issue()
    item.locked, item.lock_reason = False, None
    changes.note(call.world, item, "unlocked", call.login, call.actor.app_id, lock_reason=None)
    events.issue_event(call.world, call.repo, item, "unlocked", call.login)
    return Reply(None, 204)


@route("GET", "/repos/{owner}/{repo}/issues/{issue_number}/events", app="issues:read|pull:pull_requests:read")
def list_events(call: Call) -> Any:
    """The history."""
    return Listing(call.issue().events, lambda item: render.event(call.world, call.repo, item))


@route("GET", "/repos/{owner}/{repo}/issues/{issue_number}/timeline", app="issues:read|pull:pull_requests:read")
def timeline(call: Call) -> Any:
    """The history with the comments."""
    return Listing(render.timeline(call.world, call.repo, call.issue()), lambda item: item)


_TERM = re.compile(r'(\w+):("[^"]*"|\S+)|(\S+)')


@route("GET", "/search/issues", app="metadata:read", role="none")
def search(call: Call) -> Any:
    """The search index: behind the truth by `world.search_lag`, as at GitHub; 422 while the index is off (None)."""
    world = call.world
    if world.search_lag is None:
        raise ApiError(503, "Service unavailable: the search index of this sandbox is switched off (never rely on it)")
    known = world.now() - world.search_lag
    terms = [(key.lower(), value.strip('"'), word) for key, value, word in _TERM.findall(call.query["q"])]
    rows = []
    for repo in world.repositories.values():
        if may_see(world, call.actor, repo):
            rows += [
                (repo, item) for item in repo.issues.values() if item.created_at <= known and _hit(repo, item, terms)
            ]
    return Listing(
        rows,
        lambda row: {**render.issue(world, *row), "score": 1.0},
        lambda items, total: {
            "total_count": total,
            "incomplete_results": False,
            "items": items,
            "search_type": "lexical",
        },
    )


def _hit(repo: Repository, item: Issue, terms: list[tuple[str, str, str]]) -> bool:
    for key, value, word in terms:
        if key == "repo" and value.lower() != repo.full_name.lower():
            return False
        if key in ("is", "type", "state") and value not in (item.state, "pr" if item.pull else "issue"):
            return False
        if key == "label" and value.lower() not in {name.lower() for name in item.labels}:
            return False
        if key == "author" and value not in (item.user, f"app/{item.user}"):
            return False
        if not key and word.strip('"').lower() not in f"{item.title} {item.body or ''}".lower():
            return False
    return True
