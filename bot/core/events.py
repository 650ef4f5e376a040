"""Webhooks as the few fields that Graft looks at. Nothing else of a payload can hurt: nulls, new words, odd types.

A webhook only says "look again": what is here names the thing to look at, and pins what was known when it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WrapValidator
from pydantic_core.core_schema import ValidatorFunctionWrapHandler


def _or(default: Any) -> WrapValidator:
    """What does not validate is as good as not there."""

    def validate(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        if value is None:
            return default
        try:
            return handler(value)
        except ValidationError:
            return default

    return WrapValidator(validate)


Text = Annotated[str, _or("")]
Number = Annotated[int, _or(0)]
Flag = Annotated[bool, _or(False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Actor(_Part):
    """Who did it: `type` is User, Bot, Organization or a word of tomorrow's."""

    login: Text = ""
    id: Number = 0
    type: Text = ""


class Tip(_Part):
    """One end of a pull request."""

    ref: Text = ""
    sha: Text = ""


class PullFacts(_Part):
    """A pull request as the webhook had it."""

    number: Number = 0
    state: Text = ""
    draft: Flag = False
    merged: Flag = False
    merge_commit_sha: Text = ""
    title: Text = ""
    updated_at: Text = ""
    user: Annotated[Actor, _or(Actor())] = Actor()
    head: Annotated[Tip, _or(Tip())] = Tip()
    base: Annotated[Tip, _or(Tip())] = Tip()


class IssueFacts(_Part):
    """An issue as the webhook had it; `pull_request` is there where it is a pull request's."""

    number: Number = 0
    state: Text = ""
    title: Text = ""
    user: Annotated[Actor, _or(Actor())] = Actor()
    pull_request: Annotated[dict[str, Any] | None, _or(None)] = None


class AppFacts(_Part):
    """The App behind a check or comment."""

    id: Number = 0
    slug: Text = ""


class CommentFacts(_Part):
    """A comment with its text as it was when the webhook was sent."""

    id: Number = 0
    body: Text = ""
    user: Annotated[Actor, _or(Actor())] = Actor()
    commit_id: Text = ""
    updated_at: Text = ""
    performed_via_github_app: Annotated[AppFacts | None, _or(None)] = None


class ReviewFacts(_Part):
    """A review; `state` in the webhook's small letters (approved, changes_requested, commented, dismissed)."""

    id: Number = 0
    body: Text = ""
    state: Text = ""
    commit_id: Text = ""
    user: Annotated[Actor, _or(Actor())] = Actor()


class _PullNumber(_Part):
    number: Number = 0


class CheckFacts(_Part):
    """A check run or check suite."""

    id: Number = 0
    name: Text = ""
    head_sha: Text = ""
    status: Text = ""
    conclusion: Text = ""
    external_id: Text = ""
    app: Annotated[AppFacts, _or(AppFacts())] = AppFacts()
    pull_requests: Annotated[tuple[_PullNumber, ...], _or(())] = ()


class MergeGroupFacts(_Part):
    """A group of the merge queue."""

    head_sha: Text = ""
    head_ref: Text = ""
    base_sha: Text = ""
    base_ref: Text = ""


class _Named(_Part):
    name: Text = ""
    full_name: Text = ""


class RepositoryFacts(_Named):
    """The repository that the event is about."""

    default_branch: Text = ""
    fork: Flag = False
    archived: Flag = False


class _Installation(_Part):
    id: Number = 0
    account: Annotated[Actor, _or(Actor())] = Actor()


class _Changes(_Part):
    title: Annotated[dict[str, Any] | None, _or(None)] = None
    body: Annotated[dict[str, Any] | None, _or(None)] = None
    base: Annotated[dict[str, Any] | None, _or(None)] = None


class _Payload(_Part):
    action: Text = ""
    number: Number = 0
    installation: Annotated[_Installation, _or(_Installation())] = _Installation()
    repository: Annotated[RepositoryFacts, _or(RepositoryFacts())] = RepositoryFacts()
    sender: Annotated[Actor, _or(Actor())] = Actor()
    pull_request: Annotated[PullFacts | None, _or(None)] = None
    issue: Annotated[IssueFacts | None, _or(None)] = None
    comment: Annotated[CommentFacts | None, _or(None)] = None
    review: Annotated[ReviewFacts | None, _or(None)] = None
    label: Annotated[_Named | None, _or(None)] = None
    check_run: Annotated[CheckFacts | None, _or(None)] = None
    check_suite: Annotated[CheckFacts | None, _or(None)] = None
    workflow_run: Annotated[CheckFacts | None, _or(None)] = None
    merge_group: Annotated[MergeGroupFacts | None, _or(None)] = None
    requested_action: Annotated[dict[str, Any] | None, _or(None)] = None
    changes: Annotated[_Changes, _or(_Changes())] = _Changes()
    ref: Text = ""
    ref_type: Text = ""
    sha: Text = ""
    before: Text = ""
    after: Text = ""
    created: Flag = False
    deleted: Flag = False
    forced: Flag = False
    repositories: Annotated[tuple[_Named, ...], _or(())] = ()
    repositories_added: Annotated[tuple[_Named, ...], _or(())] = ()
    repositories_removed: Annotated[tuple[_Named, ...], _or(())] = ()


class Event(_Part):
    """One webhook. `number` is the pull request's or issue's (0: none), `head_sha` the commit it speaks of ("": none).

    `check` is the check run, suite or workflow run; `changed` the fields that an edit changed.
    """

    event: str
    action: str = ""
    installation: int = 0
    account: str = ""
    repository: str = ""
    default_branch: str = ""
    sender: Actor = Actor()
    number: int = 0
    numbers: tuple[int, ...] = ()
    on_pull: bool = False
    head_sha: str = ""
    pull: PullFacts | None = None
    issue: IssueFacts | None = None
    comment: CommentFacts | None = None
    review: ReviewFacts | None = None
    check: CheckFacts | None = None
    merge_group: MergeGroupFacts | None = None
    label: str = ""
    requested_action: str = ""
    changed: tuple[str, ...] = ()
    ref: str = ""
    before: str = ""
    after: str = ""
    created: bool = False
    deleted: bool = False
    forced: bool = False
    repositories_added: tuple[str, ...] = Field(default=())
    repositories_removed: tuple[str, ...] = Field(default=())

    @property
    def branch(self) -> str:
        """The branch of a push, "" for tags and other events."""
        prefix = "refs/heads/"
        return self.ref[len(prefix) :] if self.ref.startswith(prefix) else ""

    @property
    def subject(self) -> str:
        """What the event is about inside its repository: #number, @commit or "repository"."""
        if self.number:
            return f"#{self.number}"
        if self.head_sha and self.event != "push":
            return f"@{self.head_sha}"
        return "repository"


def parse(event: str, payload: Any) -> Event:
    """The event's facts; whatever the payload is, this gives an Event and raises nothing."""
    raw = _Payload.model_validate(payload) if isinstance(payload, Mapping) else _Payload()
    check = raw.check_run or raw.check_suite or raw.workflow_run
    numbers = tuple(one.number for one in check.pull_requests if one.number) if check else ()
    added, removed = _repositories(event, raw)
    return Event(
        event=event,
        action=raw.action,
        installation=raw.installation.id,
        account=raw.installation.account.login,
        repository=raw.repository.full_name,
        default_branch=raw.repository.default_branch,
        sender=raw.sender,
        number=_number(raw) or (numbers[0] if len(numbers) == 1 else 0),
        numbers=numbers,
        on_pull=raw.pull_request is not None or bool(raw.issue and raw.issue.pull_request),
        head_sha=_head(raw, check),
        pull=raw.pull_request,
        issue=raw.issue,
        comment=raw.comment,
        review=raw.review,
        check=check,
        merge_group=raw.merge_group,
        label=raw.label.name if raw.label else "",
        requested_action=str((raw.requested_action or {}).get("identifier") or ""),
        changed=tuple(name for name in ("title", "body", "base") if getattr(raw.changes, name) is not None),
        ref=raw.ref,
        before=raw.before,
        after=raw.after,
        created=raw.created,
        deleted=raw.deleted,
        forced=raw.forced,
        repositories_added=added,
        repositories_removed=removed,
    )


def _number(raw: _Payload) -> int:
    return raw.number or (raw.pull_request.number if raw.pull_request else raw.issue.number if raw.issue else 0)


def _head(raw: _Payload, check: CheckFacts | None) -> str:
    if raw.pull_request:
        return raw.pull_request.head.sha
    if check:
        return check.head_sha
    if raw.merge_group:
        return raw.merge_group.head_sha
    return raw.sha or raw.after


def _repositories(event: str, raw: _Payload) -> tuple[tuple[str, ...], tuple[str, ...]]:
    named = tuple(one.full_name for one in raw.repositories if one.full_name)
    if event == "installation" and raw.action in ("deleted", "suspend"):
        return (), named
    added = named + tuple(one.full_name for one in raw.repositories_added if one.full_name)
    return added, tuple(one.full_name for one in raw.repositories_removed if one.full_name)
