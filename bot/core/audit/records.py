"""What a sync leaves in the audit: from where to where, the fork's own patches, results, approvals, the way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from bot.core.types import Decision, Level, Outcome


class PatchFate(StrEnum):
    """What became of one of the fork's own patches in a sync."""

    KEPT = "kept"
    CHANGED = "changed"
    DROPPED = "dropped"
    UPSTREAMED = "upstreamed"


@dataclass(frozen=True, slots=True)
class PatchRecord:
    """A commit of the fork's own, and why it fared so."""

    commit: str
    subject: str
    fate: PatchFate
    why: str = ""


@dataclass(frozen=True, slots=True)
class LevelRecord:
    """What one level said of the head commit, suite by suite."""

    level: Level
    outcomes: Mapping[str, Outcome]
    runs: tuple[str, ...] = ()
    failed_at: str | None = None
    may_go_on: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """Who let it through: a sign-off or review with its numbers and the comment that holds it."""

    by: str
    area: str
    metrics: Mapping[str, str] = field(default_factory=dict)
    comment: int | None = None


@dataclass(frozen=True, slots=True)
class ExceptionRecord:
    """What was let through in spite of a failure, and on whose word."""

    scope: str
    by: tuple[str, ...]
    until: str
    reason: str


@dataclass(frozen=True, slots=True)
class SyncRecord:
    """One batch that landed, or was kept from landing; all commits are full hashes, `rollback_to` the one before it."""

    pull: int
    batch: str
    head: str
    upstream_base: str
    upstream_target: str
    rollback_to: str
    decision: Decision
    patches: tuple[PatchRecord, ...] = ()
    levels: tuple[LevelRecord, ...] = ()
    approvals: tuple[ApprovalRecord, ...] = ()
    exceptions: tuple[ExceptionRecord, ...] = ()

    def body(self) -> dict[str, Any]:
        """The record as the body of an audit entry."""
        return asdict(self)
