"""What the reports of a job say: what is in a file, files that are broken, and whose report it is."""

from __future__ import annotations

from xml.sax.saxutils import escape

import pytest

from bot.core.jobreports import FindingKind
from bot.core.types import Outcome
from tests.core.jobs import (
    ALL,
    CORE,
    FAIL,
    SHA,
    TESTS,
    case,
    junit,
    passing,
    run,
    says,
)


def test_all_pass() -> None:
    says(run(junit(passing())), "passed")


@pytest.mark.parametrize("body", [FAIL, "<error message='setup'>E  boom</error>", FAIL + "<error message='teardown'/>"])
def test_a_failure_under_a_green_job_is_a_failure(body: str) -> None:
    says(run(junit([case(TESTS[0], body), *passing(TESTS[1:])])), "failed")


@pytest.mark.parametrize("element", ["<error message='session fixture'/>", "<failure>E   boom</failure>"])
def test_a_failure_of_a_whole_suite_is_a_failure(element: str) -> None:
    says(run(junit(passing(), extra=element)), "failed")
    says(run(junit(passing(), tests=9, extra=element)), "failed")
    # an error page is no report
    says(run(f"<error>{element}</error>".encode()), "omitted", ALL)


def test_a_failed_status_without_an_element_is_a_failure() -> None:
    says(run(junit([case(TESTS[0], status="fail"), *passing(TESTS[1:])])), "failed")


def test_an_expected_failure_is_a_result_and_a_strict_surprise_a_failure() -> None:
    xfail = "<skipped type='pytest.xfail' message='known'/>"
    says(run(junit([case(TESTS[0], xfail), *passing(TESTS[1:])])), "passed")
    surprise = "<failure message='[XPASS(strict)] known'>[XPASS(strict)] known</failure>"
    says(run(junit([case(TESTS[0], surprise), *passing(TESTS[1:])])), "failed")


def test_noise_in_captured_output_is_no_failure() -> None:
    noise = "<system-out><![CDATA[FAILED <failure> 3 failed]]></system-out><system-err>&lt;failure&gt;</system-err>"
    says(run(junit([case(TESTS[0], noise), *passing(TESTS[1:])])), "passed")


@pytest.mark.parametrize(
    ("first", "second", "verdict"), [("", FAIL, "failed"), (FAIL, "", "failed"), ("", "", "passed")]
)
def test_the_same_id_twice_takes_the_worse(first: str, second: str, verdict: str) -> None:
    judgement = run(junit([case(TESTS[0], first), case(TESTS[0], second), *passing(TESTS[1:])]))
    says(judgement, verdict)
    assert FindingKind.DUPLICATE in {finding.kind for finding in judgement.findings}


def test_a_rerun_that_passed_in_the_end_passes() -> None:
    flaky = "<flakyFailure message='first try'>E</flakyFailure>"
    says(run(junit([case(TESTS[0], flaky), *passing(TESTS[1:])])), "passed")
    says(run(junit([case(TESTS[0], "<failure/><rerunFailure/>"), *passing(TESTS[1:])])), "failed")


def test_a_test_nobody_expected_may_fail_the_job() -> None:
    says(run(junit([*passing(), case(f"{CORE}::test_new", FAIL)])), "failed")
    says(run(junit([*passing(), case(f"{CORE}::test_new")])), "passed")


def test_nested_suites_and_several_suites_are_read() -> None:
    inner = "".join(passing(TESTS[:3]))
    nested = f"<testsuites><testsuite name='a'><testsuite name='b'>{inner}</testsuite></testsuite>"
    report = f"{nested}<testsuite name='c'>{''.join(passing(TESTS[3:]))}</testsuite></testsuites>"
    says(run(report.encode()), "passed")


def test_a_bare_testsuite_as_root_is_read() -> None:
    says(run(f"<testsuite name='pytest' tests='{len(TESTS)}'>{''.join(passing())}</testsuite>".encode()), "passed")


def test_a_header_that_counts_more_than_it_lists() -> None:
    says(run(junit(passing(TESTS[:-1]), tests=len(TESTS))), "omitted", [TESTS[-1]])
    says(run(junit(passing(), failures=2)), "failed")


def test_escapes_are_read_back() -> None:
    odd = f"{CORE}::test_op[a<b & 'c'-\"d\"]"
    assert escape(odd) != odd
    says(run(junit(passing([odd])), tests=(odd,)), "passed")


# --- JUnit: broken files


@pytest.mark.parametrize(
    "report",
    [b"", b"   \n", b"\x00\x00\x00", b"<html>504 Gateway Time-out", b"<?xml version='1.0'?>", b"not xml at all"],
)
def test_a_file_that_says_nothing_under_a_green_step_is_an_omission(report: bytes) -> None:
    says(run(report), "omitted", ALL)


def test_no_file_and_a_green_step() -> None:
    says(run(None), "omitted", ALL)


@pytest.mark.parametrize("cut", [40, 400, 700])
def test_a_cut_file_proves_what_stands_before_the_cut(cut: int) -> None:
    whole = junit(passing())
    shown = whole[:cut].count(b"</testcase>")
    says(run(whole[:cut]), "omitted", TESTS[shown:])


def test_a_failure_that_had_begun_before_the_cut_is_a_failure() -> None:
    whole = junit([*passing(TESTS[:3]), case(TESTS[3], FAIL)])
    assert run(whole[: whole.index(b"Mismatched") + 4]).verdict is Outcome.FAILED


@pytest.mark.parametrize("bad", ["\x00", "\x1b[31m", "\x0b", "&#0;", "&#x1b;", "\ufffe"])
def test_control_bytes_do_not_hide_results(bad: str) -> None:
    body = f"<failure message='got {bad} bytes'>E {bad}</failure>"
    says(run(junit([case(TESTS[0], body), *passing(TESTS[1:])])), "failed")
    says(run(junit([case(TESTS[0], f"<system-out>{bad}</system-out>"), *passing(TESTS[1:])])), "passed")


@pytest.mark.parametrize("message", ["a < b", "x & y", "&nosuch;", "<unclosed>"])
def test_unescaped_text_loses_no_result_after_it(message: str) -> None:
    report = junit([case(TESTS[0], f"<failure message='m'>{message}</failure>"), *passing(TESTS[1:])])
    says(run(report), "failed")
    says(run(junit([case(TESTS[0], f"<system-out>{message}</system-out>"), *passing(TESTS[1:])])), "passed")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
def test_any_encoding_is_read(encoding: str) -> None:
    text = junit([case(TESTS[0], "<failure message='é'/>"), *passing(TESTS[1:])], head="").decode()
    declared = {"latin-1": "iso-8859-1", "utf-8-sig": "utf-8"}.get(encoding, "utf-16")
    text = f"<?xml version='1.0' encoding='{declared}'?>{text}"
    says(run(text.encode(encoding)), "failed")


def test_bad_utf8_is_read() -> None:
    says(run(junit(passing()).replace(b"pytest tests", b"pytest \xff\xfe tests")), "passed")


def test_entities_are_never_expanded() -> None:
    bomb = "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]>"
    says(run(junit(passing(), head=bomb)), "omitted", ALL)
    outside = "<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>"
    says(run(junit([case(TESTS[0], "&a;"), *passing(TESTS[1:])], head=outside)), "omitted", ALL)


def test_two_documents_in_one_file_are_both_read() -> None:
    says(run(junit(passing(TESTS[:4])) + junit(passing(TESTS[4:]))), "passed")


# --- whose report it is


def test_a_report_from_before_the_job_is_not_its_own() -> None:
    says(run(junit(passing(), at="2026-11-27T01:00:00+00:00")), "omitted", ALL)
    says(run(junit(passing(), at="2026-11-29T02:09:55+00:00")), "passed")  # clocks differ by seconds
    says(run(junit(passing(), at="2026-11-29T04:11:00+02:00")), "passed")
    says(run(junit(passing(), at="2026-11-29T02:30:00+02:00")), "omitted", ALL)


def test_a_report_of_another_commit_is_not_its_own() -> None:
    def stamped(sha: str) -> bytes:
        return junit(passing(), extra=f"<properties><property name='git.sha' value='{sha}'/></properties>")

    says(run(stamped("0" * 40)), "omitted", ALL)
    says(run(stamped(SHA)), "passed")


@pytest.mark.parametrize("name", ["commit", "sha", "git_sha", "GITHUB_SHA", "revision", "commit-id", "head.commit"])
def test_a_commit_may_be_shortened_and_stand_in_the_suite(name: str) -> None:
    for sha, verdict in ((SHA[:8], "passed"), ("deadbeef", "omitted"), ("none", "passed"), ("123", "passed")):
        missing = ALL if verdict == "omitted" else ()
        prop = f"<properties><property name='{name}' value='{sha}'/></properties>"
        says(run(junit(passing(), extra=prop)), verdict, missing)
        suite = junit(passing()).replace(b"<testsuite ", f"<testsuite {name}='{sha}' ".encode())
        says(run(suite), verdict, missing)
    # what is no commit by its name is none: an image, a file's sum
    for other in ("image_sha", "config.commitish", "sha256"):
        says(
            run(junit(passing(), extra=f"<properties><property name='{other}' value='deadbeef'/></properties>")),
            "passed",
        )


def test_a_stale_report_with_failures_does_not_count_either() -> None:
    says(run(junit([case(TESTS[0], FAIL)], at="2026-11-27T01:00:00+00:00")), "omitted", ALL)
