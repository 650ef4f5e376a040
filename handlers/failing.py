"""What did not pass at a commit: tests, what is missing, and metrics over budget against trunk's last good run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.context import Run
from bot.context import RunState as Row
from bot.core.gate import RunState, SuiteResult
from bot.core.measured import metric_failures, trunk_values
from bot.core.saturation import Half, together
from bot.core.types import Level, Outcome
from bot.core.validation import Report
from bot.core.waivers import Failure
from handlers.fork import Fork
from handlers.validate import SECOND, latest

TRUNK_RUNS = 5
_STATES = {Row.QUEUED: RunState.QUEUED, Row.LEASED: RunState.RUNNING, Row.DONE: RunState.DONE}


async def suite_results(fork: Fork, runs: Sequence[Run]) -> tuple[SuiteResult, ...]:
    """What each suite's newest run says; `runs` are those of one commit, newest first."""
    results = []
    for (level, name), run in latest(list(runs)).items():
        result = await _result(fork, level, run, runs)
        suite = next((one for one in fork.config.validation.of(level) if one.suite == name), None)
        results.append(result if suite is None or suite.second is None else await _twice(fork, result, run))
    return tuple(results)


async def _twice(fork: Fork, first: SuiteResult, run: Run) -> SuiteResult:
    """What a suite that is proved twice says: done once both are, passed where both passed and they agree."""
    runs = await fork.ctx.store.runs(fork.name, run.sha, run.level, suite=run.suite, capacity=SECOND)
    second = next((one for one in runs if one.number == run.number), None)
    if second is None:
        return replace(first, state=RunState.QUEUED, outcome=None)
    other = await _result(fork, first.level, second, [one for one in runs if one.number == run.number])
    told = tuple(replace(f, why=f"{f.why} (on {second.label})") if f.metric else f for f in other.failures)
    other = replace(other, failures=told)
    if RunState.QUEUED in (first.state, other.state) or RunState.RUNNING in (first.state, other.state):
        waiting = first if first.state is not RunState.DONE else other
        return replace(waiting, attempt=first.attempt, run=first.run, failures=())
    said = together(first=_half(first, run), second=_half(other, second))
    argued = tuple(
        Failure(
            first.level,
            first.suite,
            Outcome.DISAGREED,
            test=one.test,
            why=f"{one.first} on {run.label}, {one.second} on {second.label}",
        )
        for one in said.disagreements
    )
    named = {failure.test for failure in argued}
    rest = tuple(f for f in _joined(first, other) if f.test not in named or f.metric is not None)
    if said.outcome is Outcome.DISAGREED:  # a suite as a whole is no failure beside what they disagree about
        rest = tuple(f for f in rest if f.test is not None or f.metric is not None)
    return replace(first, outcome=said.outcome, failures=tuple(dict.fromkeys((*argued, *rest))))


def _joined(first: SuiteResult, second: SuiteResult) -> list[Failure]:
    """Each failure once; of a metric it is told what it came to on each."""
    found: dict[Failure, Failure] = {}
    for one in (*first.failures, *second.failures):
        if (before := found.get(one)) is not None:
            told = "; ".join(dict.fromkeys(why for why in (before.why, one.why) if why))
            found[one] = replace(before, why=told, unsure=before.unsure and one.unsure)
        else:
            found[one] = one
    return list(found.values())


def _half(result: SuiteResult, run: Run) -> Half:
    return Half(result.outcome, Report.model_validate(run.report) if run.report else None)


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


async def trunk_reports(fork: Fork, level: Level, suite: str, *, capacity: str = "") -> list[Report]:
    """The reports of trunk's last good runs of a suite on one capacity, newest first."""
    good = await fork.ctx.store.runs(
        fork.name, level=level.value, suite=suite, outcome=Outcome.PASSED.value, trunk=True, states=(Row.DONE,),
        capacity=capacity, limit=TRUNK_RUNS,
    )  # fmt: skip
    return [Report.model_validate(run.report) for run in good if run.report]


async def _result(fork: Fork, level: Level, run: Run, runs: Sequence[Run] = ()) -> SuiteResult:
    outcome = Outcome(run.outcome) if run.outcome else None
    report = Report.model_validate(run.report) if run.report else None
    failures = (*failures_of(level, run.suite, report, outcome), *await over_budget(fork, level, run, runs))
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


_TOLD_BY_TESTS = (Outcome.OMITTED, Outcome.DISAGREED, Outcome.WAIVED)
_MEASURED = (Outcome.PASSED, Outcome.FAILED, Outcome.OMITTED)


async def over_budget(fork: Fork, level: Level, run: Run, runs: Sequence[Run]) -> tuple[Failure, ...]:
    """The metrics of a run that break their budget, or may; `runs` are all at its commit, whose samples count too.

    Numbers of one capacity are compared with each other alone, here and on trunk.
    """
    suite = next((s for s in fork.config.validation.of(level) if s.suite == run.suite), None)
    suite = suite.again() if suite is not None and run.capacity else suite
    if suite is None or suite.manual or run.report is None or run.outcome not in _MEASURED:
        return ()
    report = Report.model_validate(run.report)
    if not report.measurements and not suite.metrics:
        return ()
    place = (run.level, run.suite, run.sha, run.capacity)
    same = [one for one in runs if (one.level, one.suite, one.sha, one.capacity) == place]
    earlier = [one for one in same if one.id != run.id and one.report and one.outcome in _MEASURED]
    return metric_failures(
        level=level,
        suite=suite,
        report=report,
        trunk=await trunk_reports(fork, level, suite.suite, capacity=run.capacity),
        earlier=[Report.model_validate(one.report) for one in earlier],
    )


def failures_of(level: Level, suite: str, report: Report | None, outcome: Outcome | None) -> tuple[Failure, ...]:
    """All of a suite that did not pass: its failed and missing tests, and the suite as a whole where these do not say
    why (a blind harness, an exit status, a time limit): whoever waives them has not waived that.
    """
    if outcome in (None, Outcome.PASSED):
        return ()
    tests = [Failure(level, suite, Outcome.FAILED, test=t.id) for t in report.failures] if report else []
    missing = [Failure(level, suite, Outcome.OMITTED, test=t) for t in report.manifest.missing] if report else []
    told = bool(tests) or (bool(missing) and outcome in _TOLD_BY_TESTS)
    whole = [] if told else [Failure(level, suite, outcome or Outcome.NOT_RUN)]
    return (*tests, *missing, *whole)
