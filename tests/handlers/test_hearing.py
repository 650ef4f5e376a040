"""What a runner says of a run counts as what it shows: never as another run's, never as better than its tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.context import Run, Runner
from bot.core.config import Suite
from bot.core.types import Level, Outcome
from bot.core.validation import ManifestCheck, Report, RunRequest, TestOutcome, TestResult, level_outcome
from handlers.hearing import judge_report, judged, no_report

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
RUNNER = Runner(name="one", token_hash="x", labels=("gpu",))
SHA = "1" * 40
SUITE = Suite.model_validate({"suite": "unit", "harness": "pytest", "run": ["pytest"]})
REQUEST = RunRequest(
    run_id="r1", repository="a/b", commit=SHA, level=Level.L1, suite=SUITE, git_path="/x", expected=("a", "b")
)


def run(**more: Any) -> Run:
    return Run(
        id="r1", repository="a/b", installation=1, number=1, sha=SHA, base=SHA, level="l1", suite="unit", label="gpu",
        request=REQUEST.model_dump(mode="json"), deadline=NOW + timedelta(hours=1), queued_at=NOW, attempt=2, **more,
    )  # fmt: skip


def said(outcome: Outcome = Outcome.PASSED, canary: bool | None = True, **more: Any) -> Report:
    tests = more.pop("tests", {"a": "passed", "b": "passed"})
    results = tuple(
        TestResult(id=name, outcome=TestOutcome(word.partition(":")[0]), message=word.partition(":")[2])
        for name, word in tests.items()
    )
    return REQUEST.report(
        started_at=NOW, finished_at=NOW, outcome=outcome, tests=results, manifest=ManifestCheck(canary=canary), **more
    )


@pytest.mark.parametrize(
    ("report", "outcome", "why"),
    [
        (said(), "passed", ""),
        (said(canary=None), "infra", "the canary, which must fail, was not reported"),
        (said(canary=False), "infra", "the canary, which must fail, was not reported"),
        (said(tests={"a": "passed"}), "omitted", "1 of 2 expected tests did not report, first b"),
        (said(tests={"a": "passed", "b": "skipped"}), "omitted", "first b"),
        (said(tests={"a": "passed", "b": "failed:assert 1 == 2"}), "failed", "1 of 2 tests failed, first b"),
        (said(Outcome.TIMED_OUT), "timed_out", ""),
        # the machine's, not the fork's
        (said(tests={"a": "passed", "b": "failed:No space left on device"}), "infra", "failures are the machine's"),
        (
            said(tests={"a": "failed:assert 0", "b": "failed:No space left on device"}),
            "failed",
            "2 of 2 tests failed",
        ),
        (said(Outcome.FAILED, log_tail="x\nfatal: unable to access 'https://h/'\n"), "infra", "unable to access"),
    ],
)
def test_a_report_counts_as_what_it_shows(report: Report, outcome: str, why: str) -> None:
    found = judge_report(run(), REQUEST, report.model_dump_json().encode(), runner=RUNNER)
    assert (found.outcome.value, found.attempt) == (outcome, 2)
    assert why in found.reason


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("run_id", "r2"), ("level", "l2"), ("suite", "other"),
        ("subject", {"repository": "a/b", "commit": "2" * 40}), ("subject", {"repository": "a/c", "commit": SHA}),
    ],
)  # fmt: skip
def test_what_is_said_of_another_run_says_nothing(key: str, value: object) -> None:
    document = Report.model_validate({**said().model_dump(mode="json"), key: value})
    found = judge_report(run(), REQUEST, document.model_dump_json().encode(), runner=RUNNER)
    assert (found.outcome, found.tests, found.subject.commit) == (Outcome.INFRA, (), SHA)
    assert "about something else" in found.reason


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"\xff", b'{"run_id": "r1", "tests": 3}'])
def test_what_is_no_report_is_infra_and_says_where(body: bytes) -> None:
    found = judge_report(run(), REQUEST, body, runner=RUNNER)
    assert (found.outcome, found.environment.runner) == (Outcome.INFRA, "one")
    assert found.reason.startswith("the report is not valid: ")


def test_a_run_that_said_nothing_has_a_report_all_the_same() -> None:
    found = no_report(run(started_at=NOW + timedelta(minutes=1)), "lost", runner=RUNNER)
    assert (found.outcome, found.reason, found.attempt, found.started_at) == (
        Outcome.INFRA, "lost", 2, NOW + timedelta(minutes=1)
    )  # fmt: skip


def test_how_to_repeat_names_the_second_proof_once() -> None:
    report = said(repeat="graft run l1 --suite unit")
    assert judged(run(), REQUEST, report, canary=True).repeat == "graft run l1 --suite unit"
    again = judged(run(capacity="second"), REQUEST, report, canary=True)
    assert again.repeat == "graft run l1 --suite unit --second"
    assert judged(run(capacity="second"), REQUEST, again, canary=True).repeat == again.repeat


@given(
    st.sampled_from(list(Outcome)),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from([word.value for word in TestOutcome])),
    st.sampled_from([True, False, None]),
)
def test_no_report_counts_for_more_than_it_claims(claim: Outcome, tests: dict[str, str], canary: bool | None) -> None:
    found = judged(run(), REQUEST, said(claim, canary, tests=tests), canary=True).outcome
    # trouble with the machine may be found behind what calls itself a failure, and is no better for it
    assert level_outcome((found, claim)) is found or (claim, found) == (Outcome.FAILED, Outcome.INFRA)
    if found is Outcome.PASSED:
        assert canary is True and all(tests.get(name) in ("passed", "xfailed") for name in "ab")
