"""The few fields of GitHub's answers that Graft uses, as frozen values; nulls and unknown words hurt nobody."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
Flag = Annotated[bool, BeforeValidator(bool)]
Count = Annotated[int, BeforeValidator(lambda value: value or 0)]
Items = BeforeValidator(lambda value: value or ())


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class User(_Model):
    """A person, a bot or an organisation."""

    login: Text = ""
    id: Count = 0
    type: Text = "User"

    @property
    def bot(self) -> bool:
        """True for Apps and machine accounts that say so."""
        return self.type == "Bot" or self.login.endswith("[bot]")


Author = Annotated[User, BeforeValidator(lambda value: value or {"login": "ghost"})]


class AppRef(_Model):
    """The App that wrote something."""

    id: Count = 0
    slug: Text = ""


class Label(_Model):
    """A label by name."""

    name: Text = ""
    color: Text = ""
    description: Text = ""


class IssueEvent(_Model):
    """One line of the history of an issue or a pull request."""

    event: Text = ""
    created_at: datetime | None = None


class RepositoryInfo(_Model):
    """A repository."""

    full_name: str
    default_branch: Text = "main"
    private: Flag = False
    archived: Flag = False
    fork: Flag = False
    has_issues: Flag = True


class RepositoryRef(_Model):
    """A repository as another object names it; `pushed_at` is when anything was last pushed to it."""

    full_name: Text = ""
    pushed_at: datetime | None = None


class BranchRef(_Model):
    """One end of a pull request; `repo` is None where the fork that it came from was removed."""

    ref: Text = ""
    sha: Text = ""
    repo: RepositoryRef | None = None


class Pull(_Model):
    """A pull request. `mergeable` is None while GitHub computes it."""

    number: int
    title: Text = ""
    body: Text = ""
    state: Text = "open"
    draft: Flag = False
    merged: Flag = False
    merged_at: datetime | None = None
    merge_commit_sha: str | None = None
    mergeable: bool | None = None
    user: Author = User()
    head: BranchRef = BranchRef()
    base: BranchRef = BranchRef()
    labels: Annotated[tuple[Label, ...], Items] = ()
    assignees: Annotated[tuple[User, ...], Items] = ()
    requested_reviewers: Annotated[tuple[User, ...], Items] = ()
    html_url: Text = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    closed_at: datetime | None = None
    changed_files: Count = 0
    commits: Count = 0

    @property
    def landed(self) -> bool:
        """True once merged; lists of pull requests give `merged_at` only."""
        return self.merged or self.merged_at is not None


class PullFile(_Model):
    """One file of a pull request."""

    filename: str
    status: Text = ""
    previous_filename: str | None = None
    additions: Count = 0
    deletions: Count = 0
    patch: Text = ""


class GitPerson(_Model):
    """Author or committer in git's sense."""

    name: Text = ""
    email: Text = ""
    date: datetime | None = None


class GitCommit(_Model):
    """A commit in git's sense."""

    message: Text = ""
    author: GitPerson | None = None
    committer: GitPerson | None = None


class PullCommit(_Model):
    """One commit of a pull request or of a branch."""

    sha: str
    commit: GitCommit = GitCommit()
    author: User | None = None
    committer: User | None = None

    @property
    def message(self) -> str:
        """The whole message."""
        return self.commit.message


class Review(_Model):
    """A review: `state` is APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED or PENDING."""

    id: int
    user: Author = User()
    state: Text = ""
    body: Text = ""
    commit_id: Text = ""
    submitted_at: datetime | None = None


class Comment(_Model):
    """A comment on an issue or pull request."""

    id: int
    body: Text = ""
    user: Author = User()
    html_url: Text = ""
    issue_url: Text = ""
    author_association: Text = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    performed_via_github_app: AppRef | None = None


class Reaction(_Model):
    """A reaction to a comment."""

    id: int
    content: Text = ""
    user: Author = User()


class Issue(_Model):
    """An issue; `pull_request` is set where it is a pull request's."""

    number: int
    title: Text = ""
    body: Text = ""
    state: Text = "open"
    state_reason: str | None = None
    user: Author = User()
    labels: Annotated[
        tuple[Label, ...],
        BeforeValidator(lambda value: [{"name": item} if isinstance(item, str) else item for item in value or ()]),
    ] = ()
    assignees: Annotated[tuple[User, ...], Items] = ()
    html_url: Text = ""
    locked: Flag = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    closed_at: datetime | None = None
    pull_request: dict[str, Any] | None = None
    performed_via_github_app: AppRef | None = None


class CheckOutput(_Model):
    """What a check run says."""

    title: Text = ""
    summary: Text = ""
    text: Text = ""
    annotations_count: Count = 0


class CheckRun(_Model):
    """A check run: `status` queued, in_progress or completed; `conclusion` only when completed."""

    id: int
    name: Text = ""
    head_sha: Text = ""
    status: Text = ""
    conclusion: str | None = None
    external_id: Text = ""
    details_url: Text = ""
    html_url: Text = ""
    output: CheckOutput = CheckOutput()
    app: AppRef | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None


class Annotation(_Model):
    """One annotation of a check run: `level` is notice, warning or failure."""

    path: str
    start_line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    level: str = "failure"
    message: str
    title: str = ""

    def to_json(self) -> dict[str, Any]:
        """In the API's words."""
        out: dict[str, Any] = {
            "path": self.path,
            "start_line": self.start_line,
            "end_line": self.end_line,
            "annotation_level": self.level,
            "message": self.message,
        }
        return out | {"title": self.title} if self.title else out


class Branch(_Model):
    """A branch with the commit that it points to."""

    name: Text = ""
    sha: Text = ""
    protected: Flag = False


class Protection(_Model):
    """What protects a branch: the required checks by name, and how many approvals. `known` False: it can't be read."""

    required_checks: tuple[str, ...] = ()
    strict: bool = False
    required_approvals: int = 0
    enforce_admins: bool = False
    known: bool = True


class WorkflowRun(_Model):
    """A run of GitHub Actions: `status` ends as completed, with a `conclusion` then. `path` is the workflow's file,
    `display_title` what its `run-name` says.
    """

    id: int
    name: Text = ""
    path: Text = ""
    display_title: Text = ""
    event: Text = ""
    head_sha: Text = ""
    head_branch: Text = ""
    status: Text = ""
    conclusion: str | None = None
    run_attempt: Count = 1
    html_url: Text = ""
    created_at: datetime | None = None
    run_started_at: datetime | None = None
    updated_at: datetime | None = None


class WorkflowJob(_Model):
    """One job of a run; `runner_name` and `labels` say on what machine."""

    id: int
    name: Text = ""
    status: Text = ""
    conclusion: str | None = None
    html_url: Text = ""
    labels: Annotated[tuple[str, ...], Items] = ()
    runner_name: Text = ""
    started_at: datetime | None = None
    completed_at: datetime | None = None


class WorkflowArtifact(_Model):
    """A file that a run left, as a zip of `size_in_bytes`."""

    id: int
    name: Text = ""
    size_in_bytes: Count = 0
    expired: Flag = False
    created_at: datetime | None = None


class Installation(_Model):
    """An installation of the App."""

    id: int
    account: Author = User()
    suspended_at: datetime | None = None
    permissions: Annotated[dict[str, str], BeforeValidator(lambda value: value or {})] = Field(default_factory=dict)


class HookDelivery(_Model):
    """A delivery in GitHub's own list: `id` is GitHub's, `guid` the one in the header."""

    id: int
    guid: Text = ""
    delivered_at: datetime | None = None
    redelivery: Flag = False
    status: Text = ""
    status_code: Count = 0
    event: Text = ""
    action: Text = ""
    installation_id: Count = 0


class AppInfo(_Model):
    """The App itself."""

    id: int
    slug: Text = ""
    name: Text = ""
    permissions: Annotated[dict[str, str], BeforeValidator(lambda value: value or {})] = Field(default_factory=dict)
    events: Annotated[tuple[str, ...], Items] = ()

    @property
    def login(self) -> str:
        """The login under which the App writes."""
        return f"{self.slug}[bot]"
