"""Check suites, check runs, statuses and branch protection as JSON."""

from __future__ import annotations

from typing import Any

from bot.sandbox.checks import pulls_of, suite_conclusion, suite_runs, suite_status
from bot.sandbox.model import CheckRun, CheckSuite, Protection, Repository, Status
from bot.sandbox.render.common import app, moment, node, repository, repository_api, user
from bot.sandbox.render.git import simple_commit
from bot.sandbox.render.pulls import minimal
from bot.sandbox.world import World


def check_run(world: World, repo: Repository, item: CheckRun) -> dict[str, Any]:
    """A `check-run`."""
    own = repository_api(world, repo, "check-runs", item.id)
    html = f"{world.url}/{repo.full_name}/runs/{item.id}"
    return {
        "id": item.id,
        "node_id": node("CR", item.id),
        "head_sha": item.head_sha,
        "external_id": item.external_id,
        "url": own,
        "html_url": html,
        "details_url": item.details_url or html,
        "status": item.status,
        "conclusion": item.conclusion,
        "started_at": moment(item.started_at),
        "completed_at": moment(item.completed_at),
        "output": {
            "title": item.title,
            "summary": item.summary,
            "text": item.text,
            "annotations_count": len(item.annotations),
            "annotations_url": f"{own}/annotations",
        },
        "name": item.name,
        "check_suite": {"id": item.suite_id},
        "app": app(world, world.apps[item.app_id]),
        "pull_requests": [minimal(world, repo, pull) for pull in pulls_of(repo, item.head_sha)],
    }


def check_suite(world: World, repo: Repository, item: CheckSuite) -> dict[str, Any]:
    """A `check-suite`."""
    own = repository_api(world, repo, "check-suites", item.id)
    return {
        "id": item.id,
        "node_id": node("CS", item.id),
        "head_branch": item.head_branch,
        "head_sha": item.head_sha,
        "status": suite_status(repo, item),
        "conclusion": suite_conclusion(repo, item),
        "url": own,
        "before": item.before,
        "after": item.head_sha,
        "pull_requests": [minimal(world, repo, pull) for pull in pulls_of(repo, item.head_sha)],
        "app": app(world, world.apps[item.app_id]),
        "created_at": moment(item.created_at),
        "updated_at": moment(item.updated_at),
        "rerequestable": True,
        "runs_rerequestable": True,
        "latest_check_runs_count": len(suite_runs(repo, item)),
        "check_runs_url": f"{own}/check-runs",
        "head_commit": simple_commit(world.store(repo).commit(item.head_sha)),
        "repository": repository(world, repo),
    }


def annotation(world: World, repo: Repository, run: CheckRun, item: dict[str, Any]) -> dict[str, Any]:
    """A `check-annotation`."""
    return {
        "path": item["path"],
        "blob_href": f"{world.url}/{repo.full_name}/blob/{run.head_sha}/{item['path']}",
        "start_line": item["start_line"],
        "end_line": item["end_line"],
        "start_column": item.get("start_column"),
        "end_column": item.get("end_column"),
        "annotation_level": item["annotation_level"],
        "title": item.get("title"),
        "message": item["message"],
        "raw_details": item.get("raw_details"),
    }


def status(world: World, repo: Repository, item: Status) -> dict[str, Any]:
    """A `status`."""
    return {
        "id": item.id,
        "node_id": node("SC", item.id),
        "url": repository_api(world, repo, "statuses", item.sha),
        "avatar_url": f"{world.url}/avatars/{item.user}",
        "state": item.state,
        "description": item.description,
        "target_url": item.target_url,
        "context": item.context,
        "created_at": moment(item.created_at),
        "updated_at": moment(item.created_at),
        "creator": user(world, item.user),
    }


def protection(world: World, repo: Repository, rule: Protection) -> dict[str, Any]:
    """A `branch-protection`."""
    own = repository_api(world, repo, "branches", rule.branch, "protection")
    body: dict[str, Any] = {
        "url": own,
        "enforce_admins": {"url": f"{own}/enforce_admins", "enabled": rule.enforce_admins},
        "required_linear_history": {"enabled": False},
        "allow_force_pushes": {"enabled": rule.allow_force_pushes},
        "allow_deletions": {"enabled": rule.allow_deletions},
        "block_creations": {"enabled": False},
        "required_conversation_resolution": {"enabled": False},
        "lock_branch": {"enabled": False},
        "allow_fork_syncing": {"enabled": False},
    }
    if rule.required_checks:
        checks = f"{own}/required_status_checks"
        body["required_status_checks"] = {
            "url": checks,
            "strict": rule.strict,
            "contexts": list(rule.required_checks),
            "contexts_url": f"{checks}/contexts",
            "checks": [{"context": name, "app_id": app_id} for name, app_id in rule.required_checks.items()],
        }
    if rule.required_reviews:
        body["required_pull_request_reviews"] = {
            "url": f"{own}/required_pull_request_reviews",
            "dismiss_stale_reviews": rule.dismiss_stale_reviews,
            "require_code_owner_reviews": False,
            "required_approving_review_count": rule.required_reviews,
            "require_last_push_approval": False,
        }
    return body
