"""What is asked of a runner and what it answers, as versioned values; and what the answers say together.

A report is data to be judged, never an instruction: `conclude` derives the outcome again from its tests, so that a
report which calls itself passed while something is missing counts as what it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from bot.core.canary import is_canary
from bot.core.config import Suite
from bot.core.types import Level, Outcome

PROTOCOL = 1
MESSAGE_LIMIT = 20_000


class Value(BaseModel):
    """A frozen part of a request or report; unknown keys are errors (another protocol version)."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class TestOutcome(StrEnum):
    """What one test says. `not_checkable`: it ran where no answer can be trusted, so it proves nothing."""

    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    NOT_RUN = "not_run"
    NOT_CHECKABLE = "not_checkable"

    @property
    def bad(self) -> bool:
        """True for a failure and for an error outside the test's own call."""
        return self in {TestOutcome.FAILED, TestOutcome.ERROR}

    @property
    def proves(self) -> bool:
        """True where the test ran and said yes (an expected failure that failed says yes)."""
        return self in {TestOutcome.PASSED, TestOutcome.XFAILED}


class TestResult(Value):
    """One test; `duration` in seconds. `signature` is the key of the normalised error, filled by the bot."""

    __test__: ClassVar[bool] = False

    id: str = Field(min_length=1, max_length=4096)
    outcome: TestOutcome
    duration: float = 0.0
    message: str = ""
    signature: str | None = None
    file: str | None = None
    line: int | None = None

    @field_validator("message")
    @classmethod
    def _short(cls, value: str) -> str:
        if len(value) <= MESSAGE_LIMIT:
            return value
        half = MESSAGE_LIMIT // 2 - 30
        return f"{value[:half]}\n[… {len(value) - 2 * half} characters left out …]\n{value[-half:]}"

    @field_validator("duration")
    @classmethod
    def _finite(cls, value: float) -> float:
        return value if math.isfinite(value) and value >= 0 else 0.0


class Measurement(Value):
    """One measured metric: its samples in `unit`, how they were taken, and the commit they are compared with.

    A sample that is NaN or infinite makes the measurement unusable: refused here, so that it counts as missing.
    """

    metric: str = Field(min_length=1, max_length=200)
    unit: str = ""
    samples: tuple[float, ...] = Field(min_length=1)
    kernel: str | None = None
    shape: str | None = None
    dtype: str | None = None
    target: str | None = None
    warmup: int = Field(default=0, ge=0)
    iterations: int = Field(default=1, ge=1)
    higher_is_better: bool | None = None
    baseline: str | None = None

    @field_validator("samples")
    @classmethod
    def _finite(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not all(math.isfinite(sample) for sample in value):
            raise ValueError("a sample is NaN or infinite: the measurement is missing, not zero")
        return value


class Gpu(Value):
    """One GPU as its driver describes it; memory in MiB, clocks in MHz."""

    index: int
    model: str
    uuid: str = ""
    driver: str = ""
    cuda: str = ""
    memory_mib: int | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None


class Environment(Value):
    """Where the suite ran: machine, interpreter and the versions that decide what is compiled."""

    runner: str = ""
    labels: tuple[str, ...] = ()
    host: str = ""
    platform: str = ""
    python: str = ""
    torch: str | None = None
    triton: str | None = None
    gpus: tuple[Gpu, ...] = ()
    cpus: int | None = None
    healthy_before: bool | None = None
    healthy_after: bool | None = None
    health: str = ""


class Subject(Value):
    """What was tested: the commit, what it is compared with, and the merge result where one was tested instead."""

    repository: str
    commit: str
    base: str | None = None
    merge_result: str | None = None


class ManifestCheck(Value):
    """What had to run against what reported; `canary`: None where there is none, else whether its failure was seen
    (or another, so that none had to be staged).
    """

    expected: int = 0
    reported: int = 0
    missing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    skipped_new: tuple[str, ...] = ()
    canary: bool | None = None


class Artifact(Value):
    """A file that the run left; size in bytes."""

    name: str
    size: int
    sha256: str
    url: str | None = None


class RunRequest(Value):
    """One run as the bot hands it to the runner that leased it; times in seconds.

    `canary_before` is the bot's own to know, and not sent: trunk's last good run of the suite, as it is set up now,
    showed a canary that nothing here makes sure of.
    """

    protocol: Literal[1] = 1
    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    attempt: int = Field(default=1, ge=1)
    repository: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_.-]+$")
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    base: str | None = Field(default=None, pattern=r"^[0-9a-f]{40}$")
    level: Level
    suite: Suite
    git_path: str = Field(pattern=r"^/[A-Za-z0-9_./-]+$", description="path of the source on the bot's own address")
    expected: tuple[str, ...] = ()
    skipped_before: tuple[str, ...] = ()
    canary_before: bool = False
    lease_seconds: float = Field(default=60, gt=0)
    heartbeat_seconds: float = Field(default=15, gt=0)

    def report(self, *, started_at: datetime, finished_at: datetime, outcome: Outcome, **said: Any) -> Report:
        """The report of this attempt: what it is about is the request's, all else is said, by the names in `Report`.

        Raises pydantic.ValidationError.
        """
        return Report(
            run_id=self.run_id,
            attempt=self.attempt,
            subject=Subject(repository=self.repository, commit=self.commit, base=self.base),
            level=self.level,
            suite=self.suite.suite,
            harness=self.suite.harness,
            started_at=started_at,
            finished_at=finished_at,
            outcome=outcome,
            **said,
        )


class Report(Value):
    """What a runner says about one attempt at one run; see `conclude` for what it counts as."""

    protocol: Literal[1] = 1
    run_id: str
    attempt: int = Field(default=1, ge=1)
    subject: Subject
    level: Level
    suite: str
    harness: str
    environment: Environment = Environment()
    started_at: datetime
    finished_at: datetime
    outcome: Outcome
    reason: str = ""
    exit_code: int | None = None
    tests: tuple[TestResult, ...] = Field(default=(), max_length=200_000)
    manifest: ManifestCheck = ManifestCheck()
    measurements: tuple[Measurement, ...] = Field(default=(), max_length=100_000)
    artifacts: tuple[Artifact, ...] = ()
    repeat: str = ""
    log_tail: str = ""
    gpu_seconds: float = Field(default=0.0, ge=0)

    @property
    def seconds(self) -> float:
        """How long the suite took."""
        return max(0.0, (self.finished_at - self.started_at).total_seconds())

    @property
    def failures(self) -> tuple[TestResult, ...]:
        """The tests that failed or errored, in the order of the report."""
        return tuple(test for test in self.tests if test.outcome.bad)

    def count(self, outcome: TestOutcome) -> int:
        """How many tests have this outcome."""
        return sum(test.outcome is outcome for test in self.tests)


# what decides first; WAIVED and PASSED are last since both let a level through
_ORDER = (
    Outcome.FAILED,
    Outcome.DISAGREED,
    Outcome.OMITTED,
    Outcome.TIMED_OUT,
    Outcome.INFRA,
    Outcome.NOT_RUN,
    Outcome.CANCELLED,
    Outcome.WAIVED,
    Outcome.PASSED,
)


def level_outcome(suites: Iterable[Outcome]) -> Outcome:
    """What the suites of one level say together: the worst of them; no suite at all is `omitted`, never passed."""
    return min(suites, key=_ORDER.index, default=Outcome.OMITTED)


def check_manifest(
    *,
    expected: Iterable[str],
    skipped_before: Iterable[str],
    tests: Iterable[TestResult],
    canary: str | None = None,
) -> ManifestCheck:
    """Hold what reported against what had to run; a test skipped now that ran before is missing too.

    An expected function (or file) without a result of its own is there where any of its parametrisations (tests) is; a
    skip known of a function is known of all its parametrisations.
    """
    wanted = dict.fromkeys(expected)
    before = frozenset(skipped_before)
    seen: dict[str, bool] = {}
    inside: dict[str, bool] = {}
    skipped: set[str] = set()
    canary_seen = None if canary is None else False
    for test in tests:
        if canary is not None and is_canary(test.id, canary):
            canary_seen = bool(canary_seen) or test.outcome.bad
            continue
        counts = test.outcome.bad or test.outcome.proves
        if test.outcome in {TestOutcome.SKIPPED, TestOutcome.NOT_CHECKABLE}:
            counts = test.id in before or test.id.partition("[")[0] in before
            if not counts:
                skipped.add(test.id)
        seen[test.id] = seen.get(test.id, False) or counts
    for test_id, counts in list(seen.items()):
        for whole in _wholes(test_id):
            if whole in wanted and whole not in seen:
                inside[whole] = inside.get(whole, False) or counts
    return ManifestCheck(
        expected=len(wanted),
        reported=len(seen),
        missing=tuple(test for test in wanted if not seen.get(test, inside.get(test, False))),
        unexpected=tuple(t for t in seen if t not in wanted and inside.keys().isdisjoint(_wholes(t))) if wanted else (),
        skipped_new=tuple(sorted(skipped)) if wanted else (),
        canary=canary_seen,
    )


def _wholes(test: str) -> tuple[str, ...]:
    """The function and the file of a test, where it names them."""
    function = test.partition("[")[0]
    file = function.partition("::")[0]
    return tuple(whole for whole in dict.fromkeys((function, file)) if whole != test)


def exit_test(suite: str) -> str:
    """The id under which the exit status of a plain command stands among its tests."""
    return f"{suite}::command"


def conclude(
    *,
    claimed: Outcome,
    tests: Iterable[TestResult],
    measurements: int,
    manifest: ManifestCheck,
    exit_code: int | None,
) -> tuple[Outcome, str]:
    """The outcome of a suite from what it reported, never better than what it claims, with one line that says why.

    `tests` are without the canary; one that did not fail makes the harness blind: whatever else it says is `infra`.
    """
    counted = list(tests)
    bad = [test for test in counted if test.outcome.bad]
    derived, why = Outcome.PASSED, ""
    if bad:
        derived, why = Outcome.FAILED, f"{len(bad)} of {len(counted)} tests failed, first {bad[0].id}"
    elif claimed not in {Outcome.PASSED, Outcome.OMITTED, Outcome.WAIVED}:
        derived = claimed
    elif manifest.canary is False:
        derived, why = Outcome.INFRA, "the canary, which must fail, was not reported as failed: the harness is blind"
    elif exit_code not in (0, None) and manifest.canary is None and claimed is not Outcome.OMITTED:
        derived, why = Outcome.FAILED, f"exit status {exit_code} though every reported test passed"
    elif manifest.missing:
        derived = Outcome.OMITTED
        why = (
            f"{len(manifest.missing)} of {manifest.expected} expected tests did not report, first {manifest.missing[0]}"
        )
    elif (
        not any(test.outcome.proves for test in counted)
        and not measurements
        and not _all_known_skips(counted, manifest)
    ):
        derived = Outcome.OMITTED
        why = (
            "every test was skipped or could not be checked"
            if counted
            else "no test reported: nothing proves that anything ran"
        )
    worst = level_outcome((derived, claimed))
    return worst, why if worst is derived else ""


def _all_known_skips(tests: list[TestResult], manifest: ManifestCheck) -> bool:
    return bool(tests) and manifest.expected > 0 and not manifest.missing and not manifest.skipped_new
