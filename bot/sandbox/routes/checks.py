"""Check runs, check suites and statuses."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.sandbox import changes, checks, events, queue
from bot.sandbox.http import ApiError, Call, Listing, Reply, not_found, route
from bot.sandbox.model import CheckRun, Status
from bot.sandbox.render import checks as render
from bot.sandbox.routes.commits import commit_named

MAX_TEXT = 65_535
MAX_ANNOTATIONS = 50
MAX_STATUSES = 1000
MAX_STATUS_TEXT = 140
_READ, _WRITE = "checks:read", "checks:write"


def _run(call: Call) -> CheckRun:
    found = call.repo.check_runs.get(call.params["check_run_id"])
    if found is None:
        raise not_found()
    return found


def _only_apps(call: Call) -> int:
    if call.actor.app is None:
        raise ApiError(403, "You must authenticate via a GitHub App.")
    return call.actor.app.id


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise ApiError(422, f"{text!r} is no time in ISO 8601") from error


def _apply(call: Call, run: CheckRun) -> None:
    body = call.body
    output = body.get("output") or {}
    for name in ("summary", "text"):
        if len(output.get(name) or "") > MAX_TEXT:
            message = f"{name} exceeds a maximum bytesize of {MAX_TEXT}"
            raise ApiError(
                422, "Invalid request.\n\n" + message, [{"resource": "CheckRun", "code": "invalid", "field": name}]
            )
    annotations = output.get("annotations") or []
    if len(annotations) > MAX_ANNOTATIONS:
        raise ApiError(
            422,
            f"Invalid request.\n\nNo more than {MAX_ANNOTATIONS} items are allowed; {len(annotations)} were supplied.",
        )
    if body.get("status") == "completed" and not body.get("conclusion"):
        raise ApiError(422, 'Invalid request.\n\nMissing required key "conclusion".')
    run.name = body.get("name", run.name)
    run.details_url = body.get("details_url", run.details_url)
    run.external_id = body.get("external_id", run.external_id)
    run.status = body.get("status", run.status)
    run.actions = body.get("actions", run.actions)
    run.started_at = _time(body.get("started_at")) or run.started_at
    if body.get("conclusion"):
        run.status, run.conclusion = "completed", body["conclusion"]
        run.completed_at = _time(body.get("completed_at")) or call.world.now()
    elif run.status != "completed":
        run.conclusion = run.completed_at = None
    for name in ("title", "summary", "text"):
        if name in output:
            setattr(run, name, output[name])
    run.annotations.extend(annotations)  # each request adds to them


def _tell(call: Call, run: CheckRun, action: str) -> None:
    body = {"check_run": render.check_run(call.world, call.repo, run)}
    events.emit(call.world, call.repo, "check_run", action, body, sender=call.login)
    suite = call.repo.check_suites[run.suite_id]
    suite.updated_at = call.world.now()
    if run.status == "completed" and checks.suite_status(call.repo, suite) == "completed":
        whole = {"check_suite": render.check_suite(call.world, call.repo, suite)}
        events.emit(call.world, call.repo, "check_suite", "completed", whole, sender=call.login)
    queue.look(call.world, call.repo, run.head_sha)


@route("POST", "/repos/{owner}/{repo}/check-runs", app=_WRITE)
def create_run(call: Call) -> Any:
    """A new check run of the App on a commit."""
    world, repo, body = call.world, call.repo, call.body
    app_id = _only_apps(call)
    if world.store(repo).kind(body["head_sha"]) != "commit":
        raise ApiError(422, f"No commit found for SHA: {body['head_sha']}")
    suite = changes.suite_for(world, repo, body["head_sha"], app_id, None, None)
    run = CheckRun(world.new_id(), suite.id, app_id, body["name"], body["head_sha"], "queued", None, world.now(), None)
    _apply(call, run)
    repo.check_runs[run.id] = run
    _tell(call, run, "completed" if run.status == "completed" else "created")
    return Reply(render.check_run(world, repo, run), 201)


@route("GET", "/repos/{owner}/{repo}/check-runs/{check_run_id}", app=_READ)
def get_run(call: Call) -> Any:
    """One check run."""
    return render.check_run(call.world, call.repo, _run(call))


@route("PATCH", "/repos/{owner}/{repo}/check-runs/{check_run_id}", app=_WRITE)
def update_run(call: Call) -> Any:
    """Go on with a check run; only the App that made it may."""
    run = _run(call)
    if run.app_id != _only_apps(call):
        raise ApiError(
            403, f"Invalid app_id `{run.app_id}` - check run can only be modified by the GitHub App that created it."
        )
    before = (run.status, run.conclusion)
    _apply(call, run)
    if (run.status, run.conclusion) != before:
        _tell(call, run, "completed" if run.status == "completed" else "created")
    return render.check_run(call.world, call.repo, run)


@route("GET", "/repos/{owner}/{repo}/check-runs/{check_run_id}/annotations", app=_READ)
def list_annotations(call: Call) -> Any:
    """What it says of lines."""
    run = _run(call)
    return Listing(run.annotations, lambda one: render.annotation(call.world, call.repo, run, one))


@route("POST", "/repos/{owner}/{repo}/check-runs/{check_run_id}/rerequest", app=_WRITE)
def rerequest_run(call: Call) -> Any:
    """Ask the App to run it again."""
    run = _run(call)
    body = {"check_run": render.check_run(call.world, call.repo, run)}
    events.emit(
        call.world, call.repo, "check_run", "rerequested", body, sender=call.login, only=call.world.apps[run.app_id]
    )
    return Reply({}, 201)


@route("POST", "/repos/{owner}/{repo}/check-suites/{check_suite_id}/rerequest", app=_WRITE)
def rerequest_suite(call: Call) -> Any:
    """Ask the App to run all of it again."""
    suite = call.repo.check_suites.get(call.params["check_suite_id"])
    if suite is None:
        raise not_found()
    body = {"check_suite": render.check_suite(call.world, call.repo, suite)}
    app = call.world.apps[suite.app_id]
    events.emit(call.world, call.repo, "check_suite", "rerequested", body, sender=call.login, only=app)
    return Reply({}, 201)


@route("GET", "/repos/{owner}/{repo}/commits/{ref}/check-runs", app=_READ)
def runs_of_commit(call: Call) -> Any:
    """The newest run of each name on a commit; all with `filter=all`."""
    data = commit_named(call, call.params["ref"])
    query = call.query
    everything = query.get("filter") == "all"
    rows = (
        [run for run in call.repo.check_runs.values() if run.head_sha == data.sha]
        if everything
        else checks.latest_runs(call.repo, data.sha)
    )
    rows = [
        run
        for run in rows
        if query.get("check_name") in (None, run.name)
        and query.get("status") in (None, run.status)
        and query.get("app_id") in (None, str(run.app_id))
    ]
    return Listing(
        rows,
        lambda run: render.check_run(call.world, call.repo, run),
        lambda items, total: {"total_count": total, "check_runs": items},
    )


@route("GET", "/repos/{owner}/{repo}/commits/{ref}/check-suites", app=_READ)
def suites_of_commit(call: Call) -> Any:
    """The suites on a commit."""
    data = commit_named(call, call.params["ref"])
    wanted = call.query.get("app_id")
    rows = [
        suite
        for suite in call.repo.check_suites.values()
        if suite.head_sha == data.sha and wanted in (None, str(suite.app_id))
    ]
    return Listing(
        rows,
        lambda suite: render.check_suite(call.world, call.repo, suite),
        lambda items, total: {"total_count": total, "check_suites": items},
    )


@route("POST", "/repos/{owner}/{repo}/check-suites", app=_WRITE)
def create_suite(call: Call) -> Any:
    """The App's suite on a commit: 201 if made, 200 if there."""
    sha = call.body["head_sha"]
    if call.world.store(call.repo).kind(sha) != "commit":
        raise ApiError(422, f"No commit found for SHA: {sha}")
    known = set(call.repo.check_suites)
    suite = changes.suite_for(call.world, call.repo, sha, _only_apps(call), None, None)
    return Reply(render.check_suite(call.world, call.repo, suite), 200 if suite.id in known else 201)


@route("POST", "/repos/{owner}/{repo}/statuses/{sha}", app="statuses:write")
def create_status(call: Call) -> Any:
    """A status of a context on a commit."""
    world, repo, body = call.world, call.repo, call.body
    data = commit_named(call, call.params["sha"])
    context = body.get("context", "default")
    if len(body.get("description") or "") > MAX_STATUS_TEXT:
        raise ApiError(
            422,
            "Validation Failed",
            [
                {
                    "resource": "Status",
                    "code": "custom",
                    "field": "description",
                    "message": f"description is too long (maximum is {MAX_STATUS_TEXT} characters)",
                }
            ],
        )
    if sum(1 for one in repo.statuses if (one.sha, one.context) == (data.sha, context)) >= MAX_STATUSES:
        raise ApiError(422, "This SHA and context has reached the maximum number of statuses.")
    status = Status(
        world.new_id(),
        data.sha,
        context,
        body["state"],
        body.get("description"),
        body.get("target_url"),
        call.login,
        world.now(),
    )
    repo.statuses.append(status)
    event = {
        "id": status.id,
        "sha": data.sha,
        "name": repo.full_name,
        "context": context,
        "state": status.state,
        "description": status.description,
        "target_url": status.target_url,
        "branches": [],
    }
    events.emit(world, repo, "status", None, event, sender=call.login)
    queue.look(world, repo, data.sha)
    return Reply(render.status(world, repo, status), 201)


@route("GET", "/repos/{owner}/{repo}/commits/{ref}/status", app="statuses:read")
def combined_status(call: Call) -> Any:
    """All statuses of a commit in one."""
    data = commit_named(call, call.params["ref"])
    rows = checks.latest_statuses(call.repo, data.sha)
    states = {one.state for one in rows}
    state = "failure" if states & {"failure", "error"} else "pending" if "pending" in states or not rows else "success"
    return {
        "state": state,
        "sha": data.sha,
        "total_count": len(rows),
        "statuses": [render.status(call.world, call.repo, one) for one in rows],
    }
