"""The words of Graft as values: what an upstream commit is, what can become of it, what a level can say."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

_BETWEEN = re.compile(r"[\s,;]+")


class Disposition(StrEnum):
    """What was decided of an upstream commit."""

    PENDING = "pending"
    PICKED = "picked"
    EMPTY = "empty"
    DEFERRED = "deferred"
    SKIPPED = "skipped"
    WONT_PORT = "wont_port"
    REVERTED = "reverted"

    @property
    def final(self) -> bool:
        """True where the contiguous pin may pass."""
        return self in _FINAL


_FINAL = frozenset({Disposition.PICKED, Disposition.EMPTY, Disposition.SKIPPED, Disposition.WONT_PORT})


class Verdict(StrEnum):
    """What the planner says of an upstream commit."""

    SAFE = "safe"
    WATCH = "watch"
    RISKY = "risky"
    CONFLICT = "conflict"
    EMPTY = "empty"
    SKIPPED = "skipped"


class Grade(StrEnum):
    """How near a bundle comes to what the fork has changed."""

    SAFE = "safe"
    WATCH = "watch"


class BatchKind(StrEnum):
    """What one pull request of Graft's carries."""

    BUNDLE = "bundle"
    CHAIN = "chain"
    CONFLICT = "conflict"


class Level(StrEnum):
    """L1: every change, minutes. L2: periodic and on demand, metrics. L3: heavy, signed off by area owners."""

    L1 = "l1"
    L2 = "l2"
    L3 = "l3"


class Outcome(StrEnum):
    """What became of a test, a suite or a level."""

    PASSED = "passed"
    FAILED = "failed"
    OMITTED = "omitted"
    NOT_RUN = "not_run"
    INFRA = "infra"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    WAIVED = "waived"
    DISAGREED = "disagreed"


class Mode(StrEnum):
    """How far Graft may go: plan only, open drafts, or act."""

    OBSERVE = "observe"
    PROPOSE = "propose"
    ACT = "act"


class Decision(StrEnum):
    """What the gate says."""

    ALLOW = "allow"
    PENDING = "pending"
    BLOCK = "block"


class ReasonKind(StrEnum):
    """Why the planner says what it says; every verdict but `safe` carries at least one."""

    CONFLICT = "conflict"
    CHANGES_FORKED_SYMBOL = "changes_forked_symbol"
    CHANGES_USED_SYMBOL = "changes_used_symbol"
    REFERS_FORKED_SYMBOL = "refers_forked_symbol"
    LEANS_ON_UNLANDED = "leans_on_unlanded"
    TOOLCHAIN = "toolchain"
    RULE = "rule"
    REVERT = "revert"
    FORKED_TEST = "forked_test"
    TESTED_BEHAVIOUR = "tested_behaviour"
    EXTENT = "extent"
    TOO_LARGE = "too_large"
    UNPARSABLE = "unparsable"
    CORRELATED = "correlated"
    FORKED_FILE = "forked_file"
    ORDER_DIFFERS = "order_differs"
    NO_EFFECT = "no_effect"
    ALREADY_THERE = "already_there"
    SKIP_RULE = "skip_rule"
    INDEPENDENT = "independent"


@dataclass(frozen=True, slots=True)
class Reason:
    """One typed reason with its evidence (file paths, symbols, commits), and how much it weighs (0 to 1)."""

    kind: ReasonKind
    text: str
    evidence: tuple[str, ...] = ()
    weight: float = 0.0

    def brief(self, most: int) -> tuple[tuple[str, ...], int]:
        """At most so many pieces of evidence that the text does not name already, and how many more there are."""
        told = [piece for piece in self.evidence if not self._names(piece)]
        return tuple(told[:most]), max(len(told) - most, 0)

    def _names(self, piece: str) -> bool:
        """Whether the text holds this path or commit as a word of its own; the name of a symbol may be any word."""
        words = _BETWEEN.split(self.text)
        return piece in words if "/" in piece or "." in piece else len(piece) == 40 and piece[:12] in words


@dataclass(frozen=True, slots=True)
class Commit:
    """One git commit as read from a repository; times in seconds since the epoch."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author_name: str
    author_email: str
    author_time: int
    author_tz: str
    committer_time: int
    message: str

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]

    @property
    def body(self) -> str:
        """All after the first line, without the empty line between."""
        return self.message.split("\n", 1)[1].lstrip("\n") if "\n" in self.message else ""


@dataclass(frozen=True, slots=True)
class PlannedCommit:
    """An upstream commit in the plan: its verdict, why, and the unlanded upstream commits that it waits for."""

    sha: str
    subject: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    pr: int | None = None
    waits_for: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bundle:
    """Upstream commits in upstream order that land in one pull request; `key` is a hash of what it stands for."""

    key: str
    grade: Grade
    commits: tuple[PlannedCommit, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Ordered upstream commits that belong together; a lane is the chain of a toolchain bump.

    `key` is a hash of the first link, so that it stays the chain's name while links are added at its end.
    """

    key: str
    lane: bool
    commits: tuple[PlannedCommit, ...]
    levels: tuple[Level, ...] = ()
    areas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hole:
    """An upstream commit at or before the frontier without a final disposition."""

    sha: str
    subject: str
    age_days: float
    reason: str
    owner: str | None


@dataclass(frozen=True, slots=True)
class Metrics:
    """Days Behind Upstream and Backlog Commits; `stale_since` (seconds since the epoch) when upstream can't be read."""

    days_behind: float
    backlog: int
    stale_since: int | None = None


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The disposition of one upstream commit with where it was read from (a fork commit, a pull request, a command).

    `time`: when it was decided, in seconds since the epoch; None where that is not known.
    """

    sha: str
    disposition: Disposition
    subject: str = ""
    by: str = ""
    reason: str = ""
    owner: str | None = None
    time: int | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The dispositions of the upstream commits in upstream order (oldest first), with the two pins."""

    entries: tuple[LedgerEntry, ...]
    pin: str | None
    frontier: str | None
    metrics: Metrics
    holes: tuple[Hole, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of each undecided upstream commit: a partition into bundles, chains, held and settled."""

    upstream_tip: str
    fork_tip: str
    merge_base: str
    bundles: tuple[Bundle, ...]
    chains: tuple[Chain, ...]
    held: tuple[PlannedCommit, ...]
    settled: tuple[PlannedCommit, ...]
    ledger: Ledger
    timings: dict[str, float] = field(default_factory=dict, compare=False)
