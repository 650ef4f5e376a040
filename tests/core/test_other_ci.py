"""Other CI as runs like Graft's own: nothing passed that no result file says passed, no cause that none tells."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.core.config import Config, ConfigError, load
from bot.core.reports import parse_xml
from bot.core.triage import Digest, Known, Trunk, Word, digest, find
from bot.core.triage.other_ci import Left, Source, check_report, of_check, of_workflow, wants, workflow_report
from bot.core.triage.signals import Test
from bot.core.types import Level, Outcome
from bot.core.validation import Report

FILE = """
upstream: {repository: up/pkg}
areas: {core: {paths: [lib/**], owners: [olga]}}
validation: {l1: [{suite: unit, area: core}]}
triage:
  other_ci:
    - {suite: nightly, workflow: tests.yml, artifacts: [junit-*], area: core, level: l2}
    - {suite: bots, checks: [buildbot/*], app: buildbot}
"""
NOW = datetime(2026, 11, 29, tzinfo=UTC)
GOOD = '<testcase classname="tests.test_a" name="test_good"/>'
BAD = (
    '<testcase classname="tests.test_a" name="test_bad">'
    "<failure message=\"KeyError: 'num_warps'\">x</failure></testcase>"
)


def source(conclusion: str) -> Source:
    return Source("r1", "o/n", "c" * 40, Level.L2, "nightly", "GitHub Actions", conclusion, NOW, NOW)


def left(*cases: str, name: str = "junit-1", cut: bool = False) -> Left:
    text = f"<testsuite>{''.join(cases)}" + ("" if cut else "</testsuite>")
    return Left(name, (parse_xml(text.encode()),))


def digested(report: Report) -> Digest:
    return digest(run="r1", sha="c" * 40, level=Level.L2, suite="nightly", outcome=report.outcome, report=report)


A_GOOD, A_BAD = "tests/test_a.py::test_good", "tests/test_a.py::test_bad"
EXPIRED = Left("junit-2", problem="it has expired")


@pytest.mark.parametrize(
    ("conclusion", "artifacts", "outcome", "failed", "passed", "unknown"),
    [
        ("success", [left(GOOD)], Outcome.PASSED, set(), {A_GOOD}, ""),
        ("failure", [left(GOOD, BAD)], Outcome.FAILED, {A_BAD}, {A_GOOD}, ""),
        ("success", [left(GOOD, BAD)], Outcome.FAILED, {A_BAD}, {A_GOOD}, ""),  # a step that may fail
        ("timed_out", [left(GOOD)], Outcome.TIMED_OUT, set(), {A_GOOD}, "no test of it did"),
        ("failure", [left(GOOD)], Outcome.FAILED, set(), {A_GOOD}, "no test of it did"),
        ("failure", [EXPIRED], Outcome.FAILED, set(), set(), "artifact junit-2: it has expired"),
        ("failure", [left(GOOD), EXPIRED], Outcome.FAILED, set(), {A_GOOD}, "expired"),
        ("failure", [left(BAD), EXPIRED], Outcome.FAILED, {A_BAD}, set(), "expired"),
        ("startup_failure", [Left("junit-*", problem="the run left none")], Outcome.FAILED, set(), set(), "left none"),
        ("success", [EXPIRED], Outcome.OMITTED, set(), set(), "expired"),
        ("success", [left(GOOD), EXPIRED], Outcome.OMITTED, set(), {A_GOOD}, "expired"),
        ("success", [left(GOOD, cut=True)], Outcome.OMITTED, set(), {A_GOOD}, "not well-formed"),
        ("success", [left()], Outcome.OMITTED, set(), set(), "no test is in its results"),
        ("success", [Left("j", (parse_xml(b"<!DOCTYPE x><testsuite/>"),))], Outcome.OMITTED, set(), set(), "refused"),
        ("cancelled", [left(BAD)], Outcome.CANCELLED, set(), set(), ""),
        ("skipped", [], Outcome.CANCELLED, set(), set(), ""),
        ("a word of tomorrow", [left(GOOD)], Outcome.CANCELLED, set(), set(), ""),
    ],
)
def test_a_workflow_says_no_more_than_its_results(
    conclusion: str, artifacts: list[Left], outcome: Outcome, failed: set[str], passed: set[str], unknown: str
) -> None:
    report = workflow_report(source(conclusion), artifacts)
    told = digested(report)
    assert report.outcome is outcome
    assert {one.test for one in told.failures} == failed
    assert told.passed == passed
    assert unknown in told.unknown and bool(unknown) == bool(told.unknown)
    assert told.judged == bool(failed | passed)
    assert not told.whole


def test_a_burst_is_read_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.core.triage.other_ci.MOST_TESTS", 30)
    monkeypatch.setattr("bot.core.triage.other_ci._MESSAGES", 10 * len("KeyError: 'num_warps'\nx"))
    cases = [BAD.replace("test_bad", f"test_bad{n}") for n in range(20)]
    report = workflow_report(source("failure"), [left(*[GOOD.replace("good", f"good{n}") for n in range(20)], *cases)])
    assert 0 < len(report.failures) < 20 and len(report.tests) < 30
    assert "only the failed" in report.reason and "more failures than can be kept" in report.reason


@pytest.mark.parametrize(
    ("conclusion", "text", "outcome", "failed", "unknown"),
    [
        ("success", "", Outcome.PASSED, 0, False),
        ("failure", "lib/a.cpp:3:4: error: use of undeclared identifier 'foo'", Outcome.FAILED, 1, False),
        ("failure", "  ", Outcome.FAILED, 0, True),
        ("neutral", "nothing to do", Outcome.CANCELLED, 0, False),
    ],
)
def test_a_check_is_one_test_with_its_text(
    conclusion: str, text: str, outcome: Outcome, failed: int, unknown: bool
) -> None:
    told = digested(check_report(source(conclusion), name="buildbot/linux", text=text))
    assert (len(told.failures), bool(told.unknown)) == (failed, unknown)
    assert check_report(source(conclusion), name="buildbot/linux", text=text).outcome is outcome
    assert told.passed == ({"buildbot/linux"} if outcome is Outcome.PASSED else set())


def test_a_run_that_tells_no_cause_neither_opens_nor_closes() -> None:
    order = [f"{n:040x}" for n in range(5)]
    words = [
        ("success", [left(GOOD, GOOD.replace("good", "bad"))]),
        ("failure", [left(GOOD, BAD)]),
        ("failure", [EXPIRED]),
        ("success", [EXPIRED]),
        ("success", [left(GOOD), EXPIRED]),
    ]
    digests = [
        digest(run=f"r{n}", sha=sha, level=Level.L2, suite="nightly", outcome=report.outcome, report=report)
        for n, (sha, (conclusion, artifacts)) in enumerate(zip(order, words, strict=True))
        for report in [workflow_report(source(conclusion), artifacts)]
    ]
    trunk = Trunk(order, digests)
    (cause,) = trunk.signatures
    finding = find(trunk, cause, Known(cause))
    assert finding.open and finding.first_red == order[1] and finding.last_green == order[0]
    assert finding.unseen == (Test("nightly", A_BAD),)
    assert [trunk.look(Test("nightly", A_BAD), at).word for at in (2, 3, 4)] == [Word.UNKNOWN] * 3
    # a test that is not among what half a run told may have been there all the same: it was not born after it
    assert trunk.last_without(Test("nightly", "tests/test_a.py::test_late"), 5) == 1


def test_which_runs_count() -> None:
    config = load(FILE)
    tests = ".github/workflows/tests.yml"
    assert [one.suite for one in of_workflow(config, tests, "push")] == ["nightly"]
    assert [one.suite for one in of_workflow(config, f"{tests}@refs/heads/main", "schedule")] == ["nightly"]
    assert of_workflow(config, ".github/workflows/other.yml", "push") == ()
    assert of_workflow(config, tests, "pull_request") == ()  # it ran for the merge, not for this commit
    assert wants(config.triage.other_ci[0], "junit-linux") and not wants(config.triage.other_ci[0], "logs")
    named = of_check(config, "buildbot/linux", "buildbot")
    assert named is not None and named.suite == "bots"
    assert of_check(config, "buildbot/linux", "someone") is None and of_check(config, "build", "buildbot") is None


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("suite: nightly", "suite: unit", "is one that Graft runs itself"),
        (", artifacts: [junit-*]", "", "no artifact of tests.yml is read"),
        ("workflow: tests.yml, ", "", "needs a workflow or checks"),
        ("checks: [buildbot/*]", "checks: [buildbot/*], workflow: a.yml", "not both"),
        ("app: buildbot", "app: buildbot, artifacts: [a]", "leave no artifacts"),
        ("artifacts: [junit-*]", "artifacts: [junit-*], app: x", "is GitHub Actions"),
        ("area: core, level: l2", "area: cor", "there is no area 'cor'"),
        ("workflow: tests.yml", "workflows: tests.yml", "did you mean workflow?"),
    ],
)
def test_the_file_is_held_to_it(old: str, new: str, word: str) -> None:
    assert isinstance(load(FILE), Config)
    with pytest.raises(ConfigError, match=word):
        load(FILE.replace(old, new, 1))
