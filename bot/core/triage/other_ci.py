"""What other CI says of a commit, as a report like those of Graft's own runs.

Fail closed: a test passed only where a result file says so. A run that failed without a result that failed is "failed,
its cause not known"; a green one whose results can't be read proves nothing of any test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from bot.core.config import Config, OtherCi
from bot.core.reports import ParsedReport, ParsedTest
from bot.core.types import Level, Outcome
from bot.core.validation import Environment, Report, Subject, TestOutcome, TestResult

OTHER_CI = "other CI"  # in place of the harness
MOST_TESTS = 100_000  # of one run
_MESSAGE = 6_000  # characters; of all failures together 16 million
_MESSAGES = 16_000_000
_OF_CONCLUSION = {
    "success": Outcome.PASSED,
    "failure": Outcome.FAILED,
    "startup_failure": Outcome.FAILED,
    "timed_out": Outcome.TIMED_OUT,
}
_PULL_REQUESTS = frozenset({"pull_request", "pull_request_target", "pull_request_review", "issue_comment"})


@dataclass(frozen=True, slots=True)
class Source:
    """One finished run of other CI at a commit: `by` says whose (GitHub Actions, an App), `repeat` what repeats it."""

    run: str
    repository: str
    commit: str
    level: Level
    suite: str
    by: str
    conclusion: str
    started_at: datetime
    finished_at: datetime
    repeat: str = ""


@dataclass(frozen=True, slots=True)
class Left:
    """One artifact: the result files in it, each read; `problem` says why they are not all there."""

    name: str
    files: tuple[ParsedReport, ...] = ()
    problem: str = ""


def of_workflow(config: Config, path: str, event: str) -> tuple[OtherCi, ...]:
    """The entries of the fork's file that a workflow's run belongs to.

    What runs for a pull request tests the merge of it, not the commit that it is told of: none.
    """
    if event in _PULL_REQUESTS:
        return ()
    name = path.partition("@")[0]
    return tuple(
        one for one in config.triage.other_ci if one.workflow is not None and name in (one.workflow, _under(one))
    )


def of_check(config: Config, name: str, app: str) -> OtherCi | None:
    """The entry that a check run of an App belongs to: the first that names it."""
    for one in config.triage.other_ci:
        if one.app in (None, app) and any(fnmatchcase(name, pattern) for pattern in one.checks):
            return one
    return None


def wants(entry: OtherCi, artifact: str) -> bool:
    """Whether an artifact of that name holds results."""
    return any(fnmatchcase(artifact, pattern) for pattern in entry.artifacts)


def workflow_report(source: Source, artifacts: Sequence[Left]) -> Report:
    """The report of a workflow's run by its artifacts; of those that the fork's file asks for in vain, `problem`."""
    problems = [f"artifact {one.name}: {one.problem}" for one in artifacts if one.problem]
    problems += [f"artifact {one.name}: {said}" for one in artifacts for file in one.files for said in _wrong(file)]
    found = [test for one in artifacts for file in one.files for test in file.tests]
    if len(found) > MOST_TESTS:
        problems.append(f"{len(found)} results, of which only the failed and then {MOST_TESTS} in all were read")
        found = sorted(found, key=lambda test: not test.outcome.bad)[:MOST_TESTS]
    if sum(min(len(test.message), _MESSAGE) for test in found if test.outcome.bad) > _MESSAGES:
        problems.append("more failures than can be kept, of which the first were read")
        found = _first(found)
    if not found and not problems:
        problems.append("no test is in its results")
    return _report(source, [_result(test) for test in found], problems)


def check_report(source: Source, *, name: str, text: str) -> Report:
    """The report of a check run: the check is the one test, its text the failure's; without a text no cause is told."""
    outcome = _OF_CONCLUSION.get(source.conclusion)
    if outcome is Outcome.PASSED:
        return _report(source, [TestResult(id=name, outcome=TestOutcome.PASSED)], [])
    if outcome is None or not text.strip():
        return _report(source, [], ["the check says nothing"])
    return _report(source, [TestResult(id=name, outcome=TestOutcome.FAILED, message=text)], [])


def _first(found: Iterable[ParsedTest]) -> list[ParsedTest]:
    kept, room = [], _MESSAGES
    for test in found:
        room -= min(len(test.message), _MESSAGE) if test.outcome.bad else 0
        if room > 0 or not test.outcome.bad:
            kept.append(test)
    return kept


def _under(entry: OtherCi) -> str:
    return f".github/workflows/{entry.workflow}"


def _wrong(file: ParsedReport) -> Iterable[str]:
    if not file.complete:
        yield from file.problems or ("a result file is not whole",)


def _result(test: ParsedTest) -> TestResult:
    return TestResult(
        id=test.id[:4096] or "(without a name)",
        outcome=test.outcome,
        duration=test.duration,
        message=test.message[:_MESSAGE] if test.outcome.bad else "",
        file=test.file,
        line=test.line,
    )


def _report(source: Source, tests: list[TestResult], problems: list[str]) -> Report:
    outcome = _OF_CONCLUSION.get(source.conclusion, Outcome.CANCELLED)  # skipped, neutral, stale: it says nothing
    if outcome is Outcome.PASSED and any(test.outcome.bad for test in tests):
        outcome = Outcome.FAILED  # a step that may fail: its tests count, not its colour
    elif outcome is Outcome.PASSED and problems:
        outcome = Outcome.OMITTED
    return Report(
        run_id=source.run,
        subject=Subject(repository=source.repository, commit=source.commit),
        level=source.level,
        suite=source.suite,
        harness=OTHER_CI,
        environment=Environment(runner=source.by),
        started_at=source.started_at,
        finished_at=source.finished_at,
        outcome=outcome,
        reason="; ".join(problems)[:1000],
        tests=tuple(tests),
        repeat=source.repeat,
    )
