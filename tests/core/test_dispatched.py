from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bot.core.config import Suite
from bot.core.dispatched import (
    Unusable,
    artifact_of,
    inputs_of,
    is_run_of,
    report_of,
    wanted,
    workflow_of,
)
from bot.core.types import Level, Outcome
from bot.core.validation import Report, RunRequest, Subject, TestOutcome, TestResult

SHA, OTHER = "a" * 40, "f" * 40
NOW = datetime(2026, 11, 29, tzinfo=UTC)
SUITE = Suite.model_validate({"suite": "unit", "second": {"workflow": "gpu.yml"}}).again()
assert SUITE is not None
REQUEST = RunRequest(
    run_id="abc", attempt=2, repository="o/r", commit=SHA, level=Level.L1, suite=SUITE, git_path="/runner/git/o/r.git"
)
JUNIT = b"""<testsuite name="s" tests="2"><testcase classname="t.test_a" name="test_t"/>
<testcase classname="t.test_a" name="test_u"/></testsuite>"""
RED = JUNIT.replace(b'name="test_u"/>', b'name="test_u"><failure message="no"/></testcase>')


def read(conclusion: str = "success", **files: bytes | str) -> Report:
    named = [
        (name.replace("__", "."), text.encode() if isinstance(text, str) else text) for name, text in files.items()
    ]
    return report_of(
        REQUEST,
        named,
        conclusion=conclusion,
        runner="GitHub Actions",
        started_at=NOW,
        finished_at=NOW + timedelta(minutes=1),
    )


def report(**changes: Any) -> dict[str, Any]:
    made = Report(
        run_id="local-unit-1",
        subject=Subject(repository="local/r", commit=SHA),
        level=Level.L1,
        suite="unit",
        harness="pytest",
        started_at=NOW,
        finished_at=NOW,
        outcome=Outcome.PASSED,
        tests=(TestResult(id="t", outcome=TestOutcome.PASSED),),
    ).model_dump(mode="json")
    return {**made, **changes}


def of(*reports: dict[str, Any]) -> str:
    return json.dumps({"level": "l1", "commit": SHA, "outcome": "passed", "reports": list(reports)})


def test_what_github_is_told_and_asked_for() -> None:
    assert workflow_of(SUITE.runner[-1] if SUITE else "") == "gpu.yml"
    assert workflow_of("h100") is None
    assert inputs_of(REQUEST) == {"graft_run": "abc-2", "commit": SHA, "level": "l1", "suite": "unit"}
    assert artifact_of(REQUEST) == "graft-abc-2"
    assert [name for name in ("out/report.json", "commit", "x/y.xml", "run.sh", "../commit.txt") if wanted(name)] == [
        "out/report.json",
        "commit",
        "x/y.xml",
    ]


@pytest.mark.parametrize(
    ("title", "event", "path", "mine"),
    [
        ("graft abc-2", "workflow_dispatch", ".github/workflows/gpu.yml", True),
        ("graft abc-2", "workflow_dispatch", ".github/workflows/gpu.yml@refs/heads/main", True),
        ("graft abc-21", "workflow_dispatch", ".github/workflows/gpu.yml", False),
        ("graft xabc-2", "workflow_dispatch", ".github/workflows/gpu.yml", False),
        ("graft abc-2", "push", ".github/workflows/gpu.yml", False),
        ("graft abc-2", "workflow_dispatch", ".github/workflows/other.yml", False),
        ("", "workflow_dispatch", ".github/workflows/gpu.yml", False),
    ],
)
def test_a_run_is_known_by_its_correlation_id_alone(title: str, event: str, path: str, mine: bool) -> None:
    assert is_run_of(REQUEST, title=title, event=event, path=path) is mine


def test_what_graft_run_prints_and_a_runners_report_become_this_runs() -> None:
    for said in (of(report(), report(suite="other")), json.dumps(report())):
        made = read(report__json=said)
        assert (made.run_id, made.attempt, made.subject.repository, made.outcome) == ("abc", 2, "o/r", Outcome.PASSED)
    own = {"run_id": "abc", "subject": {"repository": "o/r", "commit": SHA}}
    assert read(report__json=json.dumps(report(**own))).run_id == "abc"


def test_junit_files_with_the_commit_become_a_report() -> None:
    made = read(commit=f"{SHA}\n", junit__xml=JUNIT)
    assert (made.outcome, made.exit_code, [test.id for test in made.tests]) == (
        Outcome.PASSED,
        0,
        ["t/test_a.py::test_t", "t/test_a.py::test_u"],
    )
    red = read("failure", commit=SHA, junit__xml=RED)
    assert (red.outcome, red.exit_code, len(red.failures)) == (Outcome.FAILED, 1, 1)
    assert read("cancelled", commit=SHA, junit__xml=JUNIT).outcome is Outcome.CANCELLED
    assert read("neutral", commit=SHA, junit__xml=JUNIT).outcome is Outcome.INFRA
    assert len(read(commit=SHA, a__xml=JUNIT, b__xml=RED).tests) == 4


def stamped(at: datetime, junit: bytes = JUNIT, zone: str = "Z") -> bytes:
    return junit.replace(b"<testsuite ", f'<testsuite timestamp="{at:%Y-%m-%dT%H:%M:%S}{zone}" '.encode())


def merged(*parts: bytes) -> bytes:
    return b"<testsuites>" + b"".join(parts) + b"</testsuites>"


def of_commit(sha: str) -> bytes:
    return JUNIT.replace(b'"2">', f'"2"><properties><property name="git_sha" value="{sha}"/></properties>'.encode())


def test_a_junit_file_of_this_run_and_commit_counts() -> None:
    for junit in (
        stamped(NOW - timedelta(seconds=30)),
        stamped(NOW + timedelta(hours=1)),
        stamped(NOW - timedelta(hours=8), zone=""),  # the machine's own time, eight hours behind UTC
        stamped(NOW - timedelta(hours=3, minutes=30), zone=""),
        stamped(NOW + timedelta(hours=9), zone=""),
        of_commit(SHA),
        merged(stamped(NOW), stamped(NOW + timedelta(minutes=5))),
    ):
        assert read(commit=SHA, junit__xml=junit).outcome is Outcome.PASSED


def test_a_failure_that_is_shown_counts_whatever_the_rest_lacks() -> None:
    for files in (
        {"junit__xml": RED[: RED.index(b"</testcase>")]},
        {"a__xml": RED, "b__xml": b""},
        {"a__xml": RED, "b__xml": stamped(NOW - timedelta(days=1))},
    ):
        made = read("success", commit=SHA, **files)
        assert [test.id for test in made.failures] == ["t/test_a.py::test_u"] and made.reason
    hidden = read(commit=SHA, junit__xml=JUNIT.replace(b'"2">', b'"2" errors="1">'))
    assert hidden.outcome is Outcome.FAILED and "counts 1 failures and lists none" in hidden.reason


def test_a_module_that_skips_itself_goes_by_its_file() -> None:
    skipped = b"<testcase classname='' name='t.sub.test_b'><skipped message='no such module'/></testcase></testsuite>"
    made = read(commit=SHA, junit__xml=JUNIT.replace(b'tests="2"', b'tests="3"').replace(b"</testsuite>", skipped))
    assert [test.id for test in made.tests][-1] == "t/sub/test_b.py"


def test_subtests_are_counted_by_pytest_and_not_listed() -> None:
    junit = JUNIT.replace(b'"s" tests="2"', b'"pytest" tests="5"')
    assert read(commit=SHA, junit__xml=junit).outcome is Outcome.PASSED
    with pytest.raises(Unusable, match="is not whole"):
        read(commit=SHA, junit__xml=junit[:-14])


UNUSABLE: list[tuple[str, dict[str, bytes | str]]] = [
    ("is about commit ffffffffffff", {"commit": OTHER, "junit__xml": JUNIT}),
    ("names no commit", {"junit__xml": JUNIT}),
    ("names no commit", {"commit": "main", "junit__xml": JUNIT}),
    ("neither report.json nor a JUnit file", {"notes__txt": "fine"}),
    ("neither report.json nor a JUnit file", {}),
    ("is not whole", {"commit": SHA, "junit__xml": JUNIT[:90]}),
    ("is not whole", {"commit": SHA, "junit__xml": b""}),
    ("is not whole", {"commit": SHA, "a__xml": JUNIT, "b__xml": b"<!DOCTYPE x>" + JUNIT}),
    ("left over", {"commit": SHA, "junit__xml": stamped(NOW - timedelta(minutes=2))}),
    ("left over", {"commit": SHA, "junit__xml": stamped(NOW - timedelta(days=1), zone="")}),
    ("left over", {"commit": SHA, "junit__xml": stamped(NOW - timedelta(hours=4, minutes=10), zone="")}),
    ("left over", {"commit": SHA, "junit__xml": merged(stamped(NOW), stamped(NOW - timedelta(days=1)))}),
    ("left over", {"commit": SHA, "junit__xml": stamped(NOW - timedelta(days=1), RED)}),
    ("left over", {"commit": SHA, "a__xml": JUNIT, "b__xml": stamped(NOW - timedelta(days=1))}),
    ("about commit ffffffffffff", {"commit": SHA, "junit__xml": of_commit(OTHER)}),
    ("header says 3 tests, 2 are listed", {"commit": SHA, "junit__xml": JUNIT.replace(b'"2"', b'"3"')}),
    ("left over", {"report__json": of(report(started_at=(NOW - timedelta(hours=1)).isoformat()))}),
    ("was cut", {"report__json": of(report())[:-40]}),
    ("no JSON", {"report__json": b"\x00\xff"}),
    ("is no report", {"report__json": "3"}),
    ("is no report", {"report__json": '{"reports": 3}'}),
    ("is not valid: run_id", {"report__json": "{}"}),
    ("is not valid", {"report__json": of(report(more=1))}),
    ("holds 0 reports", {"report__json": of()}),
    ("holds 0 reports", {"report__json": of(report(suite="other"))}),
    ("holds 0 reports", {"report__json": of(report(level="l2"))}),
    ("holds 2 reports", {"report__json": of(report(), report())}),
    ("is about commit ffffffffffff", {"report__json": of(report(subject={"repository": "local/r", "commit": OTHER}))}),
    ("is about run other", {"report__json": of(report(run_id="other"))}),
    (
        "is about run abc of x/y",
        {"report__json": of(report(run_id="abc", subject={"repository": "x/y", "commit": SHA}))},
    ),
    ("holds 2 files", {"a/report__json": of(report()), "b/report__json": of(report())}),
]


@pytest.mark.parametrize(("reason", "files"), UNUSABLE)
def test_what_proves_nothing_is_refused_with_its_reason(reason: str, files: dict[str, bytes | str]) -> None:
    with pytest.raises(Unusable, match=reason):
        read("success", **files)
