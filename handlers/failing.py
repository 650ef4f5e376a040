"""What did not pass at a commit: tests, what is missing, and metrics over budget against trunk's last good run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.context import Run
from bot.context import RunState as Row
from bot.core.config import Suite
from bot.core.gate import RunState, SuiteResult
from bot.core.measured import metric_failures, trunk_values
from bot.core.types import Level, Outcome
from bot.core.validation import Report
from bot.core.waivers import Failure
from handlers.fork import Fork
from handlers.validate import latest

TRUNK_RUNS = 5
_STATES = {Row.QUEUED: RunState.QUEUED, Row.LEASED: RunState.RUNNING, Row.DONE: RunState.DONE}


async def suite_results(fork: Fork, runs: Sequence[Run]) -> tuple[SuiteResult, ...]:
    """What each suite's newest run says; `runs` are those of one commit, newest first."""
    return tuple([await _result(fork, key[0], run) for key, run in latest(list(runs)).items()])


@dataclass(frozen=True, slots=True)
class Heard:
    """What the newest runs at a commit reported: by suite, what did not pass, what passed (named as failures are)."""

    results: tuple[SuiteResult, ...] = ()
    failures: tuple[Failure, ...] = ()
    passed: tuple[Failure, ...] = ()


async def heard(fork: Fork, runs: Sequence[Run]) -> Heard:
    """What is known of a commit by its runs, newest first, and of L3 by hand: those metrics nobody has measured yet."""
    results = await suite_results(fork, runs)
    by_hand = [
        Failure(Level.L3, suite.suite, Outcome.OMITTED, metric=metric)
        for suite in fork.config.validation.l3
        if suite.manual
        for metric in suite.metrics
    ]
    passed = [
        Failure(level, run.suite, Outcome.PASSED, test=test.id)
        for (level, _), run in latest(list(runs)).items()
        for test in (Report.model_validate(run.report).tests if run.report else ())
        if test.outcome.proves
    ]
    return Heard(results, (*(f for result in results for f in result.failures), *by_hand), tuple(passed))


async def baselines(fork: Fork) -> dict[str, float]:
    """The newest value on trunk of each metric that an L3 suite asks for."""
    found: dict[str, float] = {}
    for suite in fork.config.validation.l3:
        if suite.metrics and not suite.manual:
            found |= trunk_values(await trunk_reports(fork, Level.L3, suite.suite))
    return found


async def trunk_reports(fork: Fork, level: Level, suite: str) -> list[Report]:
    """The reports of trunk's last good runs of a suite, newest first."""
    runs = await fork.ctx.store.runs(fork.name, level=level.value, states=(Row.DONE,))
    good = [run for run in runs if run.number is None and run.suite == suite and run.outcome == Outcome.PASSED]
    return [Report.model_validate(run.report) for run in good[:TRUNK_RUNS] if run.report]


async def _result(fork: Fork, level: Level, run: Run) -> SuiteResult:
    outcome = Outcome(run.outcome) if run.outcome else None
    report = Report.model_validate(run.report) if run.report else None
    failures = failures_of(level, run.suite, report, outcome)
    suite = next((s for s in fork.config.validation.of(level) if s.suite == run.suite), None)
    if suite is not None and report is not None and outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.OMITTED):
        failures = (*failures, *await _metrics(fork, level, suite, report))
    return SuiteResult(
        level=level,
        suite=run.suite,
        head=run.sha,
        state=_STATES[run.state],
        outcome=outcome,
        attempt=run.attempt,
        failures=failures,
        run=run.id,
    )


async def _metrics(fork: Fork, level: Level, suite: Suite, report: Report) -> tuple[Failure, ...]:
    if not report.measurements and not suite.metrics:
        return ()
    trunk = await trunk_reports(fork, level, suite.suite)
    return metric_failures(level=level, suite=suite, report=report, trunk=trunk)


def failures_of(level: Level, suite: str, report: Report | None, outcome: Outcome | None) -> tuple[Failure, ...]:
    """All of a suite that did not pass: its failed and missing tests, else the suite as a whole."""
    if outcome in (None, Outcome.PASSED):
        return ()
    tests = [Failure(level, suite, Outcome.FAILED, test=t.id) for t in report.failures] if report else []
    missing = [Failure(level, suite, Outcome.OMITTED, test=t) for t in report.manifest.missing] if report else []
    return tuple(tests + missing) or (Failure(level, suite, outcome or Outcome.NOT_RUN),)
