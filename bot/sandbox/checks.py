"""What the checks of a commit say, and whether a required one is there and good."""

from __future__ import annotations

from dataclasses import dataclass

from bot.sandbox.model import CheckRun, CheckSuite, Issue, Protection, Repository, Status

GOOD = frozenset({"success", "neutral", "skipped"})  # GitHub lets a skipped check count as passed
_ORDER = ("action_required", "timed_out", "cancelled", "failure", "stale", "neutral", "skipped", "success")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One required check on one commit; `state` is missing, pending, failed or passed."""

    context: str
    state: str


def pulls_of(repo: Repository, sha: str) -> list[Issue]:
    """The open pull requests from this repository whose head is this commit."""
    return [
        item
        for item in repo.issues.values()
        if item.pull is not None
        and item.state == "open"
        and item.pull.head_sha == sha
        and item.pull.head_repo == repo.full_name
    ]


def latest_runs(repo: Repository, sha: str) -> list[CheckRun]:
    """The newest run of each App and name on a commit."""
    newest: dict[tuple[int, str], CheckRun] = {}
    for run in repo.check_runs.values():
        if run.head_sha == sha:
            newest[run.app_id, run.name] = run
    return list(newest.values())


def latest_statuses(repo: Repository, sha: str) -> list[Status]:
    """The newest status of each context on a commit."""
    newest = {status.context: status for status in repo.statuses if status.sha == sha}
    return list(newest.values())


def requirements(repo: Repository, rule: Protection, sha: str) -> list[Requirement]:
    """Each required check of a protection with what it is on a commit."""
    return [Requirement(name, _state(repo, sha, name, app_id)) for name, app_id in rule.required_checks.items()]


def _state(repo: Repository, sha: str, context: str, app_id: int | None) -> str:
    runs = [run for run in latest_runs(repo, sha) if run.name == context and app_id in (None, run.app_id)]
    words = [
        "passed" if run.conclusion in GOOD else "failed" if run.status == "completed" else "pending" for run in runs
    ]
    if app_id is None:
        words += [
            {"success": "passed", "pending": "pending"}.get(status.state, "failed")
            for status in latest_statuses(repo, sha)
            if status.context == context
        ]
    return next((word for word in ("failed", "pending", "passed") if word in words), "missing")


def suite_runs(repo: Repository, suite: CheckSuite) -> list[CheckRun]:
    """The newest runs of a suite."""
    return [run for run in latest_runs(repo, suite.head_sha) if run.suite_id == suite.id]


def suite_status(repo: Repository, suite: CheckSuite) -> str:
    """Queued, in_progress or completed."""
    runs = suite_runs(repo, suite)
    if not runs:
        return "queued"
    return "completed" if all(run.status == "completed" for run in runs) else "in_progress"


def suite_conclusion(repo: Repository, suite: CheckSuite) -> str | None:
    """The worst conclusion of its runs, once all are done."""
    if suite_status(repo, suite) != "completed":
        return None
    conclusions = {run.conclusion for run in suite_runs(repo, suite)}
    return next((word for word in _ORDER if word in conclusions), "success")
