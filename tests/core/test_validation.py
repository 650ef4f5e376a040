"""Outcomes of suites and levels: never better than what was proved."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.core.config import Suite
from bot.core.types import Level, Outcome
from bot.core.validation import (
    MESSAGE_LIMIT,
    ManifestCheck,
    Measurement,
    Report,
    RunRequest,
    Subject,
    TestOutcome,
    TestResult,
    check_manifest,
    conclude,
    level_outcome,
)

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def results_of(**outcomes: str) -> tuple[TestResult, ...]:
    return tuple(TestResult(id=name, outcome=TestOutcome(word)) for name, word in outcomes.items())


@pytest.mark.parametrize(
    ("suites", "level"),
    [
        ([], "omitted"),
        (["passed"], "passed"),
        (["passed", "waived"], "waived"),
        (["passed", "cancelled"], "cancelled"),
        (["not_run", "infra"], "infra"),
        (["infra", "omitted"], "omitted"),
        (["omitted", "failed", "passed"], "failed"),
        (["passed", "timed_out"], "timed_out"),
    ],
)
def test_a_level_is_as_good_as_its_worst_suite(suites: list[str], level: str) -> None:
    assert level_outcome(Outcome(one) for one in suites) is Outcome(level)


@pytest.mark.parametrize(
    ("outcomes", "expected", "before", "outcome"),
    [
        ({"a": "passed", "b": "passed"}, "ab", "", "passed"),
        ({"a": "passed", "b": "xfailed"}, "ab", "", "passed"),
        ({"a": "passed"}, "ab", "", "omitted"),
        ({"a": "passed", "b": "failed"}, "ab", "", "failed"),
        ({"b": "error"}, "ab", "", "failed"),
        ({"a": "passed", "b": "skipped"}, "ab", "", "omitted"),
        ({"a": "passed", "b": "skipped"}, "ab", "b", "passed"),
        ({"a": "skipped", "b": "skipped"}, "ab", "ab", "passed"),
        ({"a": "skipped", "b": "skipped"}, "", "", "omitted"),
        ({"a": "not_checkable"}, "", "", "omitted"),
        ({"a": "passed", "b": "not_run"}, "ab", "b", "omitted"),
        ({}, "", "", "omitted"),
        ({"a": "passed"}, "", "", "passed"),
    ],
)
def test_a_suite_is_judged_by_what_it_proved(
    outcomes: dict[str, str], expected: str, before: str, outcome: str
) -> None:
    tests = results_of(**outcomes)
    manifest = check_manifest(expected=expected, skipped_before=before, tests=tests)
    found, why = conclude(claimed=Outcome.PASSED, tests=tests, measurements=0, manifest=manifest, exit_code=0)
    assert found is Outcome(outcome)
    assert bool(why) is (found is not Outcome.PASSED)


def test_the_canary_is_seen_and_is_no_test_of_the_fork_s() -> None:
    tests = (*results_of(a="passed"), TestResult(id="x.py::canary", outcome=TestOutcome.FAILED))
    seen = check_manifest(expected=("a",), skipped_before=(), tests=tests, canary="canary")
    assert (seen.canary, seen.missing, seen.unexpected, seen.reported) == (True, (), (), 1)
    blind = check_manifest(expected=("a",), skipped_before=(), tests=results_of(a="passed"), canary="canary")
    outcome, why = conclude(
        claimed=Outcome.PASSED, tests=results_of(a="passed"), measurements=0, manifest=blind, exit_code=0
    )
    assert outcome is Outcome.INFRA
    assert "blind" in why


def test_an_exit_status_without_a_reason_is_a_failure_unless_the_canary_made_it() -> None:
    for canary, outcome in ((None, Outcome.FAILED), (True, Outcome.PASSED)):
        manifest = ManifestCheck(canary=canary)
        found, _ = conclude(
            claimed=Outcome.PASSED, tests=results_of(a="passed"), measurements=0, manifest=manifest, exit_code=1
        )
        assert found is outcome


@given(st.sampled_from(list(Outcome)), st.lists(st.sampled_from(list(TestOutcome)), max_size=4))
def test_the_conclusion_is_never_better_than_the_claim_or_the_tests(claimed: Outcome, words: list[TestOutcome]) -> None:
    tests = tuple(TestResult(id=str(n), outcome=word) for n, word in enumerate(words))
    manifest = check_manifest(expected=[test.id for test in tests], skipped_before=(), tests=tests)
    outcome, _ = conclude(claimed=claimed, tests=tests, measurements=0, manifest=manifest, exit_code=0)
    assert level_outcome((outcome, claimed)) is outcome
    if any(word.bad for word in words):
        assert outcome is Outcome.FAILED
    if outcome is Outcome.PASSED:
        assert tests
        assert all(word.proves for word in words)


def test_what_is_not_finite_is_no_measurement() -> None:
    for sample in (float("nan"), float("inf")):
        with pytest.raises(ValidationError, match="missing, not zero"):
            Measurement(metric="qps", samples=(1.0, sample))
    assert TestResult(id="a", outcome=TestOutcome.PASSED, duration=float("nan")).duration == 0


def test_a_long_message_is_cut_in_its_middle() -> None:
    test = TestResult(id="a", outcome=TestOutcome.FAILED, message="first " + "x" * 100_000 + " last")
    assert len(test.message) <= MESSAGE_LIMIT
    assert test.message.startswith("first")
    assert test.message.endswith("last")


def test_a_report_and_a_request_come_back_from_json_as_they_were() -> None:
    suite = Suite.model_validate({"suite": "s", "timeout": "1h", "budget": {"default": {"regression": "3%"}}})
    request = RunRequest(run_id="r", repository="a/b", commit="1" * 40, level=Level.L1, suite=suite, git_path="/x")
    assert RunRequest.model_validate_json(request.model_dump_json()) == request
    report = Report(
        run_id="r",
        subject=Subject(repository="a/b", commit="1" * 40),
        level=Level.L1,
        suite="s",
        harness="pytest",
        started_at=NOW,
        finished_at=NOW,
        outcome=Outcome.PASSED,
        tests=results_of(a="passed"),
    )
    assert Report.model_validate_json(report.model_dump_json()) == report
    with pytest.raises(ValidationError):
        Report.model_validate({**report.model_dump(), "protocol": 2})
    with pytest.raises(ValidationError):
        Report.model_validate({**report.model_dump(), "unheard_of": 1})
