"""What a bisection is asked, what it asks back and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MOST_RUNS = 1000  # of more the chances are smaller than a float can be


class Seen(StrEnum):
    """What one run at one position showed."""

    PASS = "pass"  # noqa: S105 - an outcome
    FAIL = "fail"
    SKIP = "skip"  # does not build, or the run could not have shown anything: the position is not asked again
    ABSENT = "absent"  # the test is not there yet
    VALUE = "value"


@dataclass(frozen=True, slots=True)
class Run:
    """A run at a position (0 the last known good, n the known bad); `value` and `host` in metric mode."""

    position: int
    seen: Seen
    value: float = 0.0
    host: str = ""


@dataclass(frozen=True, slots=True)
class Rates:
    """How often a run lies: `false_fail` = P(fail | good), `false_pass` = P(pass | bad), both in 0..1."""

    false_fail: float
    false_pass: float


@dataclass(frozen=True, slots=True)
class Record:
    """How often the test failed and passed before the range, where it had to pass: what it is known to lie."""

    fails: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """A range to search: the culprit is one of 1..n, or none of them.

    `trust` is how far the hint is believed to begin with (0..1), runs overrule a wrong one; None: much where it tells
    of noise both ways, half where of one way, little where it claims that runs hardly lie, since believing that wrongly
    accuses the innocent. `suspects` are weights for 1..n, `never` positions that can't be culprits (documentation
    only), `absent_is_good` that a test that is not there yet counts as passing: then the commit that adds a test that
    fails from birth is found. `confidence` is the share of belief that an answer needs (None: 0.99 of pass/fail, 0.995
    of a metric). `end_tries` is how often an end may show nothing (it does not build, another failure stands in the
    way) before the search is given up: more than once where it is known to have run before. `record` tells of the
    rate of false fails, and saves runs.
    """

    n: int
    hint: Rates | None = None
    trust: float | None = None
    suspects: Sequence[float] | None = None
    never: frozenset[int] = frozenset()
    absent_is_good: bool = True
    max_runs: int = 200
    parallel: int = 1
    confidence: float | None = None
    end_tries: int = 1
    record: Record = Record()

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"a range holds at least one commit, not {self.n}")
        if self.max_runs > MOST_RUNS:
            raise ValueError(f"a search takes at most {MOST_RUNS} runs, not {self.max_runs}")
        if self.suspects is not None and len(self.suspects) != self.n:
            raise ValueError(f"{len(self.suspects)} suspect weights for {self.n} commits; give one for each")
        if self.confidence is not None and not 0.5 < self.confidence < 1:
            raise ValueError(f"confidence must lie between 0.5 and 1, not {self.confidence}")


@dataclass(frozen=True, slots=True)
class Step:
    """A metric's step to be found: relative size (0.03 = 3 %, negative where the value falls) and noise of runs.

    `good` and `bad` are runs at 0 and n that are there already; `noise` the relative standard deviation of runs on one
    host; `hosts` those that may be asked.
    """

    claimed: float
    noise: float
    good: Sequence[Run] = ()
    bad: Sequence[Run] = ()
    hosts: Sequence[str] = ()


class Missing(StrEnum):
    """Why a search ends without an answer: what would have to be there."""

    GOOD_END = "the good end fails too: the culprit is older, or it is not the code"
    GOOD_END_BUILDS = "the good end does not build"
    BAD_END_BUILDS = "the bad end does not build"
    RUNS = "more runs: the budget ended before the belief was strong enough"
    TIME = "more time: the search was given up before the belief was strong enough"
    SIGNAL = "a clearer signal: the step is too small for the noise"


@dataclass(frozen=True, slots=True)
class Ask:
    """Run these positions (one round, in parallel), on `host` where it matters."""

    positions: tuple[int, ...]
    why: str
    host: str = ""


@dataclass(frozen=True, slots=True)
class Culprit:
    """The culprit is among `positions`: one, or several that no build can tell apart. `confidence` in 0..1."""

    positions: tuple[int, ...]
    confidence: float
    rates: Rates | None = None


@dataclass(frozen=True, slots=True)
class NoCulprit:
    """Nothing in the range did it: the bad end is as good as the good one."""

    confidence: float


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """No answer that could be stood by; `best` are the positions believed in most, with `confidence`."""

    missing: Missing
    best: tuple[int, ...] = ()
    confidence: float = 0.0
    rates: Rates | None = None


Next = Ask | Culprit | NoCulprit | Inconclusive
