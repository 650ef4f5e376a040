"""Workflow runs, jobs and artifacts as JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bot.sandbox.checks import pulls_of
from bot.sandbox.model import Artifact, Repository, WorkflowRun
from bot.sandbox.render.common import moment, node, repository, repository_api, user
from bot.sandbox.render.git import simple_commit
from bot.sandbox.render.pulls import minimal
from bot.sandbox.world import World

RETENTION = timedelta(days=90)


def run(world: World, repo: Repository, item: WorkflowRun) -> dict[str, Any]:
    """A `workflow-run`."""
    own = repository_api(world, repo, "actions/runs", item.id)
    workflow = repository_api(world, repo, "actions/workflows", repo.id)
    return {
        "id": item.id,
        "name": item.workflow.rsplit("/", 1)[-1],
        "node_id": node("WFR", item.id),
        "head_branch": item.head_branch,
        "head_sha": item.head_sha,
        "path": item.workflow,
        "run_number": item.number,
        "run_attempt": item.attempt,
        "event": item.event,
        "display_title": item.title or item.workflow.rsplit("/", 1)[-1],
        "status": item.status,
        "conclusion": item.conclusion,
        "workflow_id": repo.id,
        "workflow_url": workflow,
        "url": own,
        "html_url": f"{world.url}/{repo.full_name}/actions/runs/{item.id}",
        "pull_requests": [minimal(world, repo, pull) for pull in pulls_of(repo, item.head_sha)],
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
        "run_started_at": moment(item.created_at),
        "actor": user(world, item.actor),
        "triggering_actor": user(world, item.actor),
        "jobs_url": f"{own}/jobs",
        "logs_url": f"{own}/logs",
        "check_suite_url": repository_api(world, repo, "check-suites", item.id),
        "artifacts_url": f"{own}/artifacts",
        "cancel_url": f"{own}/cancel",
        "rerun_url": f"{own}/rerun",
        "previous_attempt_url": None,
        "head_commit": simple_commit(world.store(repo).commit(item.head_sha)),
        "repository": repository(world, repo),
        "head_repository": repository(world, repo),
    }


def job(world: World, repo: Repository, of: WorkflowRun, item: dict[str, Any]) -> dict[str, Any]:
    """A `job`; the record says at least id and name."""
    own = repository_api(world, repo, "actions/jobs", item["id"])
    return {
        "run_id": of.id,
        "run_url": repository_api(world, repo, "actions/runs", of.id),
        "run_attempt": of.attempt,
        "node_id": node("J", item["id"]),
        "head_sha": of.head_sha,
        "head_branch": of.head_branch,
        "url": own,
        "html_url": f"{world.url}/{repo.full_name}/actions/runs/{of.id}/job/{item['id']}",
        "status": of.status,
        "conclusion": of.conclusion,
        "created_at": moment(of.created_at),
        "started_at": moment(of.created_at),
        "completed_at": moment(of.updated_at) if of.status == "completed" else None,
        "check_run_url": own,
        "labels": [],
        "runner_id": None,
        "runner_name": None,
        "runner_group_id": None,
        "runner_group_name": None,
        "workflow_name": of.workflow,
        "steps": [],
        **item,
    }


def artifact(world: World, repo: Repository, item: Artifact) -> dict[str, Any]:
    """An `artifact`."""
    own = repository_api(world, repo, "actions/artifacts", item.id)
    run_of = repo.workflow_runs.get(item.run_id)
    body = {
        "id": item.id,
        "node_id": node("MDg", item.id),
        "name": item.name,
        "size_in_bytes": len(item.content),
        "url": own,
        "archive_download_url": f"{own}/zip",
        "expired": item.expired,
        "created_at": moment(item.created_at),
        "updated_at": moment(item.created_at),
        "expires_at": moment(item.created_at + RETENTION),
    }
    if run_of is not None:
        body["workflow_run"] = {
            "id": run_of.id,
            "repository_id": repo.id,
            "head_repository_id": repo.id,
            "head_branch": run_of.head_branch,
            "head_sha": run_of.head_sha,
        }
    return body
