"""What the sandbox remembers of repositories: issues, pull requests, checks, runs, deliveries, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

ZERO = "0" * 40


@dataclass(slots=True)
class Label:
    """A label of a repository."""

    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass(slots=True)
class Reaction:
    """One emoji of one user."""

    id: int
    content: str
    user: str
    created_at: datetime


@dataclass(slots=True)
class Comment:
    """A comment of an issue or of a pull request's conversation."""

    id: int
    body: str
    user: str
    created_at: datetime
    updated_at: datetime
    app_id: int | None = None
    reactions: list[Reaction] = field(default_factory=list)
    edits: list[str] = field(default_factory=list)


@dataclass(slots=True)
class IssueEvent:
    """One line of an issue's history."""

    id: int
    event: str
    actor: str
    created_at: datetime
    app_id: int | None = None
    commit_id: str | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Review:
    """A verdict on a pull request at one commit; `state` in GitHub's capitals."""

    id: int
    user: str
    body: str
    state: str
    commit_id: str
    submitted_at: datetime | None
    app_id: int | None = None


@dataclass(slots=True)
class ReviewComment:
    """A comment on a line of a pull request's diff."""

    id: int
    review_id: int | None
    user: str
    body: str
    path: str
    commit_id: str
    line: int | None
    side: str
    created_at: datetime
    updated_at: datetime
    in_reply_to: int | None = None
    subject_type: str = "line"


@dataclass(slots=True)
class Pull:
    """What an issue has more when it is a pull request."""

    head_repo: str | None
    head_owner: str
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str
    draft: bool = False
    maintainer_can_modify: bool = False
    merged_at: datetime | None = None
    merged_by: str | None = None
    merge_commit_sha: str | None = None
    requested_reviewers: list[str] = field(default_factory=list)
    requested_teams: list[str] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    review_comments: list[ReviewComment] = field(default_factory=list)
    trial: Trial | None = None


@dataclass(slots=True)
class Trial:
    """A trial merge of `head` into `base`: the merge commit, or None with the conflicting paths."""

    base: str
    head: str
    merge: str | None
    conflicts: tuple[str, ...] = ()
    announced: bool = True


@dataclass(slots=True)
class Issue:
    """An issue, or with `pull` a pull request; both count in one row of numbers."""

    id: int
    number: int
    title: str
    body: str | None
    user: str
    created_at: datetime
    updated_at: datetime
    app_id: int | None = None
    state: str = "open"
    state_reason: str | None = None
    closed_at: datetime | None = None
    closed_by: str | None = None
    labels: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    locked: bool = False
    lock_reason: str | None = None
    comments: list[Comment] = field(default_factory=list)
    events: list[IssueEvent] = field(default_factory=list)
    pull: Pull | None = None


@dataclass(slots=True)
class CheckSuite:
    """All check runs of one App on one commit."""

    id: int
    head_sha: str
    head_branch: str | None
    app_id: int
    before: str | None
    created_at: datetime
    updated_at: datetime


@dataclass(slots=True)
class CheckRun:
    """One check of an App on a commit."""

    id: int
    suite_id: int
    app_id: int
    name: str
    head_sha: str
    status: str
    conclusion: str | None
    started_at: datetime | None
    completed_at: datetime | None
    details_url: str | None = None
    external_id: str = ""
    title: str | None = None
    summary: str | None = None
    text: str | None = None
    annotations: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Status:
    """A commit status."""

    id: int
    sha: str
    context: str
    state: str
    description: str | None
    target_url: str | None
    user: str
    created_at: datetime


@dataclass(slots=True)
class Protection:
    """What a branch asks of a change before it may land."""

    branch: str
    required_checks: dict[str, int | None] = field(default_factory=dict)  # context -> the App that must report it
    strict: bool = False
    required_reviews: int = 0
    dismiss_stale_reviews: bool = False
    enforce_admins: bool = True
    allow_force_pushes: bool = False
    allow_deletions: bool = False
    merge_queue: bool = False
    pull_requests_only: bool = False


@dataclass(slots=True)
class QueueEntry:
    """A pull request in the merge queue, with the commit on which its group is checked."""

    number: int
    user: str
    branch: str
    base_sha: str
    head_sha: str
    ref: str


@dataclass(slots=True)
class Artifact:
    """A file that a workflow run left."""

    id: int
    name: str
    run_id: int
    content: bytes
    created_at: datetime
    expired: bool = False


@dataclass(slots=True)
class WorkflowRun:
    """A run of GitHub Actions; the sandbox runs nothing, tests and demos say what happened."""

    id: int
    workflow: str
    number: int
    event: str
    head_sha: str
    head_branch: str
    status: str
    conclusion: str | None
    actor: str
    inputs: dict[str, Any]
    created_at: datetime
    updated_at: datetime
    attempt: int = 1
    title: str | None = None
    jobs: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Repository:
    """A repository: git objects at `path`, the rest here."""

    id: int
    owner: str
    name: str
    path: Path
    private: bool
    default_branch: str
    created_at: datetime
    pushed_at: datetime
    description: str | None = None
    parent: str | None = None
    archived: bool = False
    has_issues: bool = True
    delete_branch_on_merge: bool = False
    allow_merge_commit: bool = True
    allow_squash_merge: bool = True
    allow_rebase_merge: bool = True
    next_number: int = 1
    collaborators: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)  # by lower-case name
    issues: dict[int, Issue] = field(default_factory=dict)
    deleted_issues: set[int] = field(default_factory=set)
    protections: list[Protection] = field(default_factory=list)
    check_suites: dict[int, CheckSuite] = field(default_factory=dict)
    check_runs: dict[int, CheckRun] = field(default_factory=dict)
    statuses: list[Status] = field(default_factory=list)
    queue: list[QueueEntry] = field(default_factory=list)
    workflow_runs: dict[int, WorkflowRun] = field(default_factory=dict)
    artifacts: dict[int, Artifact] = field(default_factory=dict)

    @property
    def full_name(self) -> str:
        """`owner/name`."""
        return f"{self.owner}/{self.name}"

    @property
    def pulls(self) -> dict[int, Issue]:
        """The pull requests among the issues, by number."""
        return {number: issue for number, issue in self.issues.items() if issue.pull is not None}


@dataclass(slots=True)
class Delivery:
    """One sending of an event to an App's webhook; a redelivery is a row of its own with the same guid."""

    id: int
    guid: str
    app_id: int
    event: str
    action: str | None
    installation_id: int | None
    repository_id: int | None
    payload: bytes
    created_at: datetime
    redelivery: bool = False
    delivered_at: datetime | None = None
    duration: float = 0.0
    status: str = "PENDING"
    status_code: int = 0
    request_headers: dict[str, str] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)
    response_body: str | None = None
