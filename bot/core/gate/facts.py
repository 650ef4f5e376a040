"""What the gate decides on, as frozen values; None means "not known", which never opens it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from bot.core.owners import People
from bot.core.signoff import SignOff
from bot.core.types import Decision, Level, Outcome
from bot.core.waivers import Failure, JudgedWaiver


class PullKind(StrEnum):
    """Whose pull request it is: a person's, or a batch of Graft's."""

    PERSON = "person"
    BUNDLE = "bundle"
    CHAIN = "chain"
    CONFLICT = "conflict"


class ReviewState(StrEnum):
    """What a review says; `dismissed` and mere comments say nothing."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes_requested"
    OTHER = "other"


class RunState(StrEnum):
    """How far a suite's run is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


@dataclass(frozen=True, slots=True)
class PullFact:
    """The pull request, or the group of a merge queue (`number` of its first, files of all).

    `files` are paths before and after, None where the list is truncated or unreadable; `symbols` are the names that it
    defines, changes or removes, None where they can't be told; `fixes` are the keys of
    trunk breakages that it mends; `risks` the names of the risk rules that the planner found in its commits, None
    where a batch's plan could not be read.
    """

    number: int
    author: str
    head: str
    kind: PullKind = PullKind.PERSON
    draft: bool = False
    files: tuple[str, ...] | None = None
    symbols: tuple[str, ...] | None = ()
    labels: tuple[str, ...] = ()
    risks: tuple[str, ...] | None = ()
    toolchain: bool = False
    fixes: tuple[str, ...] = ()
    conflict_markers: tuple[str, ...] | None = ()
    open_findings: tuple[str, ...] | None = ()


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """One suite's run on one commit. `failures` names all that did not pass; `truncated` where not all are there."""

    level: Level
    suite: str
    head: str
    state: RunState = RunState.DONE
    outcome: Outcome | None = None
    attempt: int = 1
    failures: tuple[Failure, ...] = ()
    truncated: bool = False
    run: str = ""


@dataclass(frozen=True, slots=True)
class Review:
    """The latest review of one person, with the commit that it was about."""

    login: str
    state: ReviewState
    head: str


@dataclass(frozen=True, slots=True)
class OpenBreakage:
    """A trunk breakage that is not mended, with the area that answers for it (None: nobody's)."""

    key: str
    area: str | None
    issue: int | None = None


@dataclass(frozen=True, slots=True)
class GateFacts:
    """All that is known of one pull request at one moment. Sets of facts: order and repetition mean nothing.

    `file_waivers` are those of the fork's `.github/graft-waivers.yml`, `waivers` those of this pull request's
    comments, `forced` the levels that a maintainer let run before the one below had passed.
    """

    pull: PullFact
    results: tuple[SuiteResult, ...] = ()
    sign_offs: tuple[SignOff, ...] = ()
    waivers: tuple[JudgedWaiver, ...] = ()
    file_waivers: tuple[JudgedWaiver, ...] | None = ()
    reviews: tuple[Review, ...] | None = ()
    breakages: tuple[OpenBreakage, ...] | None = ()
    halted: bool | None = False
    halted_by: str = ""
    people: People = field(default_factory=People)
    config_problems: tuple[str, ...] = ()
    forced: tuple[Level, ...] = ()


class ReasonCode(StrEnum):
    """Which kind of leaf it is; stable, so that others may count and link by it."""

    CONFIG = "config"
    HALT = "halt"
    FILES = "files"
    DRAFT = "draft"
    MARKERS = "markers"
    FINDINGS = "findings"
    LEVEL = "level"
    SUITE = "suite"
    NO_SUITE = "no_suite"
    SIGNOFF = "signoff"
    REVIEW = "review"
    TRUNK = "trunk"
    WAIVER = "waiver"
    EXEMPT = "exempt"
    ROOT = "root"


@dataclass(frozen=True, slots=True)
class GateReason:
    """A node of the tree: what holds or is missing, who can provide it and how (the very command).

    A node with children says the worst of theirs.
    """

    code: ReasonCode
    key: str
    decision: Decision
    text: str
    who: tuple[str, ...] = ()
    command: str | None = None
    children: tuple[GateReason, ...] = ()

    @property
    def leaves(self) -> tuple[GateReason, ...]:
        """The leaves below, or this node itself where it is one."""
        if not self.children:
            return (self,)
        return tuple(leaf for child in self.children for leaf in child.leaves)


@dataclass(frozen=True, slots=True)
class GateResult:
    """The decision for one head commit, its tree, and what was required."""

    decision: Decision
    head: str
    tree: GateReason
    levels: tuple[Level, ...] = ()
    areas: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[GateReason, ...]:
        """The leaves that keep the gate shut, blocking ones first."""
        shut = [leaf for leaf in self.tree.leaves if leaf.decision is not Decision.ALLOW]
        return tuple(sorted(shut, key=lambda leaf: leaf.decision is not Decision.BLOCK))

    @property
    def summary(self) -> str:
        """One line for a check's title (at most 200 characters)."""
        if self.decision is Decision.ALLOW:
            return "All that is required is there"
        more = f" (and {len(self.missing) - 1} more)" if len(self.missing) > 1 else ""
        text = self.missing[0].text
        return f"{text[: 200 - len(more)]}{more}"
