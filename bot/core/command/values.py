"""What a comment can ask for, as frozen values: one class a command."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from bot.core.types import Level


@dataclass(frozen=True, slots=True)
class Validate:
    """Run a level; `words` are what followed it (suites, or mere politeness: `choose_suites` tells them apart)."""

    level: Level
    words: tuple[str, ...] = ()
    force: bool = False


@dataclass(frozen=True, slots=True)
class MetricText:
    """One `name=value` of a sign-off; `value` in its own unit, or a fraction against the baseline if `relative`."""

    name: str
    value: float
    relative: bool
    text: str


@dataclass(frozen=True, slots=True)
class Signoff:
    """An area owner's approval of L3 numbers."""

    level: Level
    area: str
    metrics: tuple[MetricText, ...] = ()
    run: str | None = None
    evidence: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class HandReport:
    """An L3 suite was run by hand; its report stands in the same comment."""

    suite: str


@dataclass(frozen=True, slots=True)
class Unsign:
    """Takes a sign-off back; without an area all that the writer gave."""

    level: Level
    area: str | None = None


@dataclass(frozen=True, slots=True)
class Waive:
    """Leave to land in spite of one failure, until the end of the UTC day `until`."""

    scope: str
    until: date
    owner: str
    reason: str
    plan: str


@dataclass(frozen=True, slots=True)
class Defer:
    """Take an upstream commit later."""

    commit: str
    reason: str
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class WontPort:
    """Never take an upstream commit."""

    commit: str
    reason: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Record that an upstream commit has no effect on the fork."""

    commit: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Pick:
    """Take an upstream commit now."""

    commit: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Do again what failed here."""


@dataclass(frozen=True, slots=True)
class Rebase:
    """Build this batch anew on the fork's tip."""


@dataclass(frozen=True, slots=True)
class Rollback:
    """Open the revert of this batch, or of one upstream commit of it; on a breakage, of the one that is its culprit."""

    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Explain:
    """Say why a commit stands where it stands; without a commit the whole batch."""

    commit: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Take these upstream commits out of the batch; without any, halve it."""

    commits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bisect:
    """Find the commit that broke a suite or a test on trunk; `stop` ends a search (`target` None: the one here)."""

    target: str | None
    stop: bool = False


@dataclass(frozen=True, slots=True)
class OkToTest:
    """Let the code of this pull request, at the commit known when the comment came, run on the runners."""


@dataclass(frozen=True, slots=True)
class GpuBudget:
    """Tell this month's GPU hours, of one area or all; `add` raises (or lowers) what an area may use this month."""

    area: str | None = None
    add: float | None = None


@dataclass(frozen=True, slots=True)
class Help:
    """Tell the commands, or one."""

    topic: str | None = None


Arguments = (
    Validate | Signoff | Unsign | Waive | Defer | WontPort | Skip | Pick | Retry | Rebase | Rollback | Explain | Split
    | Bisect | OkToTest | GpuBudget | HandReport | Help
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Command:
    """One accepted line: `index` counts commands within the comment from 0, `line` the comment's lines from 1."""

    name: str
    index: int
    line: int
    text: str
    args: Arguments


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that names a command and can't be read: `problem` says what is wrong, `usage` how it is written."""

    name: str
    index: int
    line: int
    text: str
    problem: str
    usage: str
