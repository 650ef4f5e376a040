"""What the store gives back: frozen rows, times as aware datetimes, states as words."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from bot.core.turns import Turn, Waiting


class JobState(StrEnum):
    """The life of a job: waiting, leased by a worker, done, or parked after too many failures."""

    WAITING = "waiting"
    LEASED = "leased"
    DONE = "done"
    PARKED = "parked"


class RunState(StrEnum):
    """The life of a validation run."""

    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class Scope:
    """A repository ("owner/name") with the installation that gives access to it."""

    installation: int
    repository: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """One webhook delivery as it came in; `guid` is GitHub's delivery id, `payload` the raw JSON."""

    guid: str
    event: str
    action: str
    installation: int
    repository: str
    sender: str
    payload: bytes
    received_at: datetime


@dataclass(frozen=True, slots=True)
class Job:
    """One row of work. `attempts` counts leases, so that a job that kills its worker is parked in the end too."""

    id: int
    installation: int
    repository: str
    kind: str
    key: str
    payload: dict[str, Any]
    state: JobState
    attempts: int
    run_at: datetime
    created_at: datetime
    updated_at: datetime
    lease_owner: str | None = None
    lease_until: datetime | None = None
    last_error: str | None = None
    again: bool = False

    @property
    def scope(self) -> Scope:
        """Whom the job belongs to."""
        return Scope(self.installation, self.repository)


@dataclass(frozen=True, slots=True)
class Batch:
    """One pull request of Graft's: a bundle, a chain link or a conflict, by its key (`position`: place in a chain)."""

    key: str
    kind: str
    repository: str
    installation: int
    number: int | None = None
    branch: str = ""
    head: str = ""
    base: str = ""
    state: str = "planned"
    position: int = 0
    commits: tuple[str, ...] = ()
    plan: dict[str, Any] = field(default_factory=dict)
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One validation run of one suite at one commit; `request` and `report` are JSON of the validation models.

    `capacity` is "" for the suite itself, "second" where the fork's file lets it be proved once more elsewhere.
    """

    id: str
    repository: str
    installation: int
    number: int | None
    sha: str
    base: str
    level: str
    suite: str
    label: str
    request: dict[str, Any]
    deadline: datetime
    queued_at: datetime
    state: RunState = RunState.QUEUED
    attempt: int = 1
    outcome: str | None = None
    report: dict[str, Any] | None = None
    runner: str | None = None
    lease_until: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    turn: Turn = Turn.PULL
    capacity: str = ""


@dataclass(frozen=True, slots=True)
class Queued:
    """A queued run as far as the order of leasing asks: a runner needs all labels of `wanted`."""

    waiting: Waiting
    installation: int
    label: str
    wanted: tuple[str, ...]
    attempt: int


@dataclass(frozen=True, slots=True)
class Expired:
    """What `expire` did: runs put back into their queue (attempt + 1), and runs past their deadline, now `infra`."""

    requeued: tuple[Run, ...] = ()
    overdue: tuple[Run, ...] = ()


@dataclass(frozen=True, slots=True)
class Runner:
    """A GPU machine that may lease runs: the SHA-256 of its token, its labels, when it was last heard of.

    `installation` 0 and `repository` "" stand for a runner that serves every repository.
    """

    name: str
    token_hash: str
    labels: tuple[str, ...]
    installation: int = 0
    repository: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Breakage:
    """One failing identity on trunk with its lifecycle; `number` is its issue's, `data` the rest as JSON."""

    key: str
    repository: str
    installation: int
    state: str
    title: str = ""
    number: int | None = None
    first_seen: datetime | None = None
    last_seen: datetime | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """One command of one comment, bound to the head that was known when it came, with its answer once there is one."""

    repository: str
    installation: int
    comment_id: int
    position: int
    body_hash: str
    number: int
    sha: str
    actor: str
    received_at: datetime
    answer: str | None = None
    answered_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One entry of the audit: `sequence` counts from 1 in a repository, `hash` chains over `previous` and `body`."""

    repository: str
    installation: int
    sequence: int
    kind: str
    body: dict[str, Any]
    previous: str
    hash: str
    at: datetime
