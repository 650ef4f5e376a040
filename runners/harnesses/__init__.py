"""One small interface to every way of running tests: what to start, and what its result files say."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from bot.core.config import Suite
from bot.core.reports import ParsedReport, ParsedTest, key
from bot.core.types import Outcome
from bot.core.validation import Environment, Measurement, TestOutcome, TestResult
from runners.process import Ended, Killed
from runners.spotting import Called, Tool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a suite runs: its source tree, an empty folder for result files, and what it has to run.

    `commit` is that of the tree, `began` when the suite was started; None where results need not say so.
    """

    suite: Suite
    source: Path
    results: Path
    expected: tuple[str, ...] = ()
    commit: str | None = None
    began: datetime | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """What to start: an argument list and variables beside the usual ones.

    `canary` is a stand-in that must fail, where the suite itself can't be given a failing test: it is started after the
    suite in the same way, writes its results where `canary_place` says, and is read by the same `collect`. `hidden`
    makes one where the command does not show which program it calls.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    canary: Start | None = None
    hidden: Hidden | None = None


@dataclass(frozen=True, slots=True)
class Hidden:
    """A program that the suite's command calls out of sight.

    `tool` knows it among the suite's processes. `stand_in` calls it on a failing test: as it was seen called, or (None)
    by what the suite has left; None, or OSError, where it is not known. A stand-in that can't be started shows nothing,
    nor does one by another program: `same` says so once it has run.
    """

    tool: Tool
    stand_in: Callable[[Called | None], Start | None]
    same: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class Collected:
    """What the result files say. `outcome` is the harness's own claim, judged again by `conclude`.

    `canary` is the id of the test among them that must fail; `canary_seen` what became of a stand-in, if there is one.
    """

    outcome: Outcome
    reason: str = ""
    tests: tuple[TestResult, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    canary: str | None = None
    canary_seen: bool | None = None
    elsewhere: Elsewhere | None = None


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What the report of another machine says beside its tests; `canary` as in the manifest check."""

    environment: Environment = field(default_factory=Environment)
    gpu_seconds: float = 0.0
    exit_code: int | None = None
    log_tail: str = ""
    canary: bool | None = None


CANARY_FOLDER = "canary"
# a file may leave out fractions of a second
_SECOND = timedelta(seconds=1)


def canary_place(place: Place) -> Place:
    """Where a stand-in writes its results, and what is asked of it: nothing but to be seen."""
    suite = place.suite.model_copy(update={"metrics": (), "canary": None})
    return Place(suite, place.source, place.results / CANARY_FOLDER)


def found_in(source: Path, name: str) -> list[Path]:
    """The files of this name (with the end of a folder's path, if need be) near the top of a tree, where builds are."""
    return sorted(path for depth in range(4) for path in source.glob("*/" * depth + name) if path.is_file())


def seen_failing(collected: Collected, ended: Ended) -> bool:
    """Whether a stand-in was reported as what it is: by its exit status, and by each of its tests."""
    failed = bool(collected.tests) and all(test.outcome.bad for test in collected.tests)
    return failed and ended.started and ended.killed is None and ended.exit_code != 0


class Harness(Protocol):
    """A way of running tests."""

    @property
    def reads(self) -> Sequence[str]:
        """The files that it reads in the folder for results, as patterns."""

    def start(self, place: Place) -> Start:
        """What to run; raises HarnessError where the suite's definition can't work."""

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Read the results after the process has ended; never raises for what the tests did."""


class HarnessError(Exception):
    """The suite as defined can't be run by this harness; the text says what to change."""


# Those that a suite's `harness` may name; each module has a `HARNESS`.
HARNESSES: dict[str, str] = {
    "pytest": "runners.harnesses.pytest",
    "lit": "runners.harnesses.lit",
    "gtest": "runners.harnesses.gtest",
    "ctest": "runners.harnesses.ctest",
    "kernels": "runners.harnesses.kernels",
    "command": "runners.harnesses.command",
    "bench": "runners.harnesses.command",
    "torchrun": "runners.harnesses.torchrun",
    "http": "runners.harnesses.http",
}


def harness_of(name: str) -> Harness:
    """The harness of this name; raises HarnessError where this runner has none."""
    module = HARNESSES.get(name)
    if module is None:
        raise HarnessError(f"this runner has no harness {name!r}; it has {', '.join(sorted(HARNESSES))}")
    harness: Harness = importlib.import_module(module).HARNESS
    return harness


def result(test: ParsedTest) -> TestResult:
    """A parsed result as the report carries it."""
    return TestResult(
        id=test.id[:4096],
        outcome=test.outcome,
        duration=test.duration,
        message=test.message,
        file=test.file,
        line=test.line,
    )


def merge(tests: Sequence[ParsedTest]) -> tuple[TestResult, ...]:
    """One result for each id: where one is reported twice, a failure stands whatever the other says."""
    rank = [TestOutcome.FAILED, TestOutcome.ERROR, TestOutcome.PASSED, TestOutcome.XFAILED]
    merged: dict[str, ParsedTest] = {}
    for test in tests:
        old = merged.get(key(test.id))
        if old is None or _rank(test, rank) < _rank(old, rank):
            merged[key(test.id)] = test
    return tuple(result(test) for test in merged.values())


def _rank(test: ParsedTest, order: list[TestOutcome]) -> int:
    return order.index(test.outcome) if test.outcome in order else len(order)


def fill(tests: Sequence[TestResult], known: Sequence[str], reason: str) -> tuple[TestResult, ...]:
    """The results, and `not_run` with the reason for each known test that has none."""
    seen = {key(test.id) for test in tests}
    absent = [
        TestResult(id=test, outcome=TestOutcome.NOT_RUN, message=reason) for test in known if key(test) not in seen
    ]
    return (*tests, *absent)


def of_another(place: Place, report: ParsedReport) -> str:
    """Why a result file is not about this run, by the commit and the time that it names; "" where it may be."""
    if report.commit is not None and place.commit is not None and not place.commit.startswith(report.commit):
        return f"it is about commit {report.commit[:12]}, not {place.commit[:12]}"
    if report.at is not None and report.zoned and place.began is not None and report.at < place.began - _SECOND:
        return f"it is of {report.at:%Y-%m-%d %H:%M:%S}, the suite began at {place.began:%Y-%m-%d %H:%M:%S} (UTC)"
    return ""


def by_report(
    place: Place, ended: Ended, report: ParsedReport | None, *, name: str, harmless: Sequence[int] = (0, 1)
) -> Collected:
    """The usual reading: results of one file, a crash or limit making the rest `not_run`, no file no pass."""
    foreign = of_another(place, report) if report is not None else ""
    report = None if foreign else report
    tests = merge(report.tests) if report is not None else ()
    stopped = interruption(ended)
    if stopped is not None:
        outcome, reason = stopped
        return Collected(outcome, reason, fill(tests, place.expected, reason))
    if not ended.started:
        return Collected(Outcome.INFRA, ended.tail.strip())
    if report is None:
        missing = f"exit status {ended.exit_code} and no {name}"
        return Collected(_silent(ended), f"{name}: {foreign}" if foreign else missing, tests)
    if not report.readable:
        return Collected(_silent(ended), f"{name}: {'; '.join(report.problems)}", tests)
    if (report.declared_bad or 0) > 0 and not any(test.outcome.bad for test in tests):
        return Collected(Outcome.FAILED, f"{name} counts {report.declared_bad} failures and lists none", tests)
    if not report.complete:
        return Collected(_silent(ended), f"{name}: {'; '.join(report.problems)}", tests)
    if ended.exit_code not in harmless:
        return Collected(Outcome.FAILED, f"exit status {ended.exit_code}", tests)
    return Collected(Outcome.PASSED, "", tests)


def interruption(ended: Ended) -> tuple[Outcome, str] | None:
    """Why the process did not come to its own end; None where it did."""
    match ended.killed:
        case Killed.TIMEOUT:
            return Outcome.TIMED_OUT, f"stopped at the time limit, after {ended.seconds:.0f} s"
        case Killed.CANCELLED:
            return Outcome.CANCELLED, "cancelled"
        case Killed.MEMORY:
            return Outcome.FAILED, "stopped at the memory limit"
        case Killed.DISK:
            return Outcome.INFRA, "stopped: the machine's disk is all but full"
    if ended.crashed:
        return Outcome.FAILED, f"crashed with {ended.signal_name}"
    if ended.exit_code in (-9, 137, -15, 143):
        return Outcome.INFRA, f"killed from outside with {ended.signal_name}"
    return None


def _silent(ended: Ended) -> Outcome:
    """A file that says nothing: under a good exit status an omission, else a failure."""
    if ended.exit_code in (126, 127):
        return Outcome.INFRA
    return Outcome.OMITTED if ended.exit_code == 0 else Outcome.FAILED
