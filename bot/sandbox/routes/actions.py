"""GitHub Actions as far as others see it: runs, jobs, artifacts, dispatches. Nothing is run here."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from bot.sandbox import events
from bot.sandbox.http import ApiError, Call, Listing, Reply, not_found, route
from bot.sandbox.model import Artifact, WorkflowRun
from bot.sandbox.render import actions as render
from bot.sandbox.workflows import blob_url, started_by_hand

_READ, _WRITE = "actions:read", "actions:write"


def _run(call: Call) -> WorkflowRun:
    found = call.repo.workflow_runs.get(call.params["run_id"])
    if found is None:
        raise not_found()
    return found


def _artifact(call: Call) -> Artifact:
    found = call.repo.artifacts.get(call.params["artifact_id"])
    if found is None:
        raise not_found()
    return found


def _artifacts(call: Call, rows: list[Artifact]) -> Listing:
    name = call.query.get("name")
    rows = [one for one in rows if name in (None, one.name)]
    return Listing(
        rows,
        lambda one: render.artifact(call.world, call.repo, one),
        lambda items, total: {"total_count": total, "artifacts": items},
    )


@route("GET", "/repos/{owner}/{repo}/actions/artifacts", app=_READ)
def list_artifacts(call: Call) -> Any:
    """All artifacts."""
    return _artifacts(call, list(call.repo.artifacts.values()))


@route("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}/artifacts", app=_READ)
def run_artifacts(call: Call) -> Any:
    """The artifacts of a run."""
    run = _run(call)
    return _artifacts(call, [one for one in call.repo.artifacts.values() if one.run_id == run.id])


@route("GET", "/repos/{owner}/{repo}/actions/artifacts/{artifact_id}/{archive_format}", app=_READ)
def download(call: Call) -> Any:
    """Where the archive lies; 410 once it has expired."""
    item = _artifact(call)
    if item.expired:
        raise ApiError(410, "Artifact has expired")
    return Reply(None, 302, {"location": blob_url(call.world, call.repo.id, item)})


@route("GET", "/repos/{owner}/{repo}/actions/runners", app="administration:read", role="admin")
def runners(call: Call) -> Any:
    """Self-hosted runners: none is registered here."""
    return Listing([], lambda item: item, lambda items, total: {"total_count": total, "runners": items})


@route("GET", "/repos/{owner}/{repo}/actions/runs", app=_READ)
def list_runs(call: Call) -> Any:
    """Runs, newest first."""
    query = call.query
    rows = [
        run
        for run in sorted(call.repo.workflow_runs.values(), key=lambda run: -run.id)
        if query.get("head_sha") in (None, run.head_sha)
        and query.get("branch") in (None, run.head_branch)
        and query.get("event") in (None, run.event)
        and query.get("status") in (None, run.status, run.conclusion)
        and _created(run, query.get("created", ""))
    ]
    return Listing(
        rows,
        lambda run: render.run(call.world, call.repo, run),
        lambda items, total: {"total_count": total, "workflow_runs": items},
    )


def _created(run: WorkflowRun, wanted: str) -> bool:
    """Whether the run fits `created`: of GitHub's search syntax `>=moment` is known here, and no filter at all."""
    if not wanted.startswith(">="):
        return not wanted
    return run.created_at >= datetime.fromisoformat(wanted[2:])


@route("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}", app=_READ)
def get_run(call: Call) -> Any:
    """One run."""
    return render.run(call.world, call.repo, _run(call))


@route("GET", "/repos/{owner}/{repo}/actions/runs/{run_id}/jobs", app=_READ)
def run_jobs(call: Call) -> Any:
    """The jobs of a run."""
    run = _run(call)
    return Listing(
        run.jobs,
        lambda job: render.job(call.world, call.repo, run, job),
        lambda items, total: {"total_count": total, "jobs": items},
    )


@route("POST", "/repos/{owner}/{repo}/actions/runs/{run_id}/cancel", app=_WRITE)
def cancel(call: Call) -> Any:
    """Cancel a run; 409 where it has ended."""
    run = _run(call)
    if run.status == "completed":
        raise ApiError(409, "Cannot cancel a workflow run that is completed.")
    run.status, run.conclusion, run.updated_at = "completed", "cancelled", call.world.now()
    tell(call, run, "completed")
    return Reply({}, 202)


@route("POST", "/repos/{owner}/{repo}/actions/runs/{run_id}/rerun", app=_WRITE)
def rerun(call: Call) -> Any:
    """Run it again, as the next attempt."""
    run = _run(call)
    run.status, run.conclusion, run.attempt, run.updated_at = "queued", None, run.attempt + 1, call.world.now()
    tell(call, run, "requested")
    return Reply({}, 201)


@route("POST", "/repos/{owner}/{repo}/actions/workflows/{workflow_id}/dispatches", app=_WRITE)
def dispatch(call: Call) -> Any:
    """Start a workflow on a ref; its run is told only to those who ask (`return_run_details`)."""
    world, repo, body = call.world, call.repo, call.body
    store = world.store(repo)
    ref = body["ref"].removeprefix("refs/heads/")
    sha = store.ref(f"refs/heads/{ref}")
    path = f".github/workflows/{call.params['workflow_id']}"
    if sha is None:
        raise ApiError(422, f"No ref found for: {body['ref']}")
    entries = store.tree(sha, path)
    if not entries:
        raise not_found()
    title, inputs = started_by_hand(store.blob(entries[0].oid), dict(body.get("inputs", {})))
    now = world.now()
    run = WorkflowRun(
        world.new_id(),
        path,
        len(repo.workflow_runs) + 1,
        "workflow_dispatch",
        sha,
        ref,
        "queued",
        None,
        call.login,
        inputs,
        now,
        now,
        title=title,
    )
    repo.workflow_runs[run.id] = run
    tell(call, run, "requested")
    if not body.get("return_run_details"):
        return Reply(None, 204)
    rendered = render.run(world, repo, run)
    return {"workflow_run_id": run.id, "run_url": rendered["url"], "html_url": rendered["html_url"]}


@route("POST", "/repos/{owner}/{repo}/dispatches", app="contents:write")
def repository_dispatch(call: Call) -> Any:
    """An event of one's own."""
    body = {
        "branch": call.repo.default_branch,
        "client_payload": call.body.get("client_payload"),
    }
    events.emit(call.world, call.repo, "repository_dispatch", call.body["event_type"], body, sender=call.login)
    return Reply(None, 204)


def tell(call: Call, run: WorkflowRun, action: str) -> None:
    """A `workflow_run` event."""
    body = {"workflow_run": render.run(call.world, call.repo, run), "workflow": None}
    events.emit(call.world, call.repo, "workflow_run", action, body, sender=call.login)
