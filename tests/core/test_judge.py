"""The judgement over a job's reports: each way in which tests go missing, fail or change on purpose, by format."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.cli.judge import CaseError, judge_case
from bot.core.judge import FindingKind, Job, Judgement, LastGreen, judge
from bot.core.manifest import Exemption, SuiteManifest, TestChanges
from bot.core.types import Outcome

TRIAGE = Path(__file__).parents[3] / "shared" / "triage"
SHA = "5f3c9a1be2d04c7790aa18b3f6d2e4c5a7b90812"
STARTED = datetime(2026, 11, 29, 2, 10, tzinfo=UTC)
TODAY = date(2026, 11, 29)
CORE = "python/test/unit/language/test_core.py"
TLX = "python/test/unit/language/test_tlx_dot.py"
TESTS = (
    *(f"{CORE}::test_dot[{m}-{n}-float16]" for m in (16, 32) for n in (16, 32)),
    f"{CORE}::test_reduce",
    f"{CORE}::TestAtomic::test_add",
    f"{TLX}::test_async_dot",
    f"{TLX}::test_async_dot_scaled",
)
ALL = sorted(TESTS)
IN_TLX = [test for test in ALL if test.startswith(TLX)]
LIT = tuple(f"TRITON :: {path}" for path in ("Conversion/a_to_b.mlir", "Conversion/Deep.Dir/x.mlir", "top.mlir"))
GTEST = ("LinearLayout.Identity", "LinearLayout.Zeros", "Shapes/Swizzle.Test/0", "Shapes/Swizzle.Test/1")


def case(test: str, body: str = "", **attributes: str) -> str:
    """A JUnit element as pytest writes it."""
    path, *inner, name = test.partition("[")[0].split("::")
    name += test.partition("[")[1] + test.partition("[")[2]
    classname = ".".join([path.removesuffix(".py").replace("/", "."), *inner])
    more = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return f"<testcase classname={quoteattr(classname)} name={quoteattr(name)} time='0.01'{more}>{body}</testcase>"


def junit(
    cases: list[str],
    *,
    tests: int | None = None,
    failures: int = 0,
    at: str = "2026-11-29T02:11:09.18+00:00",
    extra: str = "",
    head: str = "<?xml version='1.0' encoding='utf-8'?>",
) -> bytes:
    count = len(cases) if tests is None else tests
    return (
        f"{head}<testsuites name='pytest tests'><testsuite name='pytest' errors='0' failures='{failures}' "
        f"tests='{count}' timestamp='{at}'>{extra}{''.join(cases)}</testsuite></testsuites>"
    ).encode()


def passing(tests: tuple[str, ...] | list[str] = TESTS) -> list[str]:
    return [case(test) for test in tests]


FAIL = "<failure message='Mismatched elements'>E   Mismatched elements</failure>"
SKIP = "<skipped type='pytest.skip' message='requires a GPU'>requires a GPU</skipped>"


def run(
    report: bytes | None = None,
    *,
    suites: tuple[SuiteManifest, ...] | None = None,
    reports: dict[str, bytes] | None = None,
    kind: str = "junit",
    tests: tuple[str, ...] = TESTS,
    conclusion: str | None = "success",
    exit_code: int | None = 0,
    log: str | None = None,
    skipped: tuple[str, ...] = (),
    diff: TestChanges | None = None,
    waivers: tuple[Exemption, ...] = (),
    canary: str | None = None,
) -> Judgement:
    return judge(
        job=Job(SHA, STARTED, conclusion, exit_code, "h100", log.encode() if log is not None else None),
        manifest=suites or (SuiteManifest("unit", tests, "unit.xml", kind, canary),),
        last_green=LastGreen(skipped),
        diff=diff or TestChanges(),
        waivers=waivers,
        reports=reports if reports is not None else ({} if report is None else {"unit.xml": report}),
        today=TODAY,
    )


def red(report: bytes | None = None, **more: Any) -> Judgement:
    return run(report, **{"conclusion": "failure", "exit_code": 1, **more})


def says(judgement: Judgement, verdict: str, missing: list[str] | tuple[str, ...] = ()) -> None:
    assert (judgement.verdict.value, sorted(judgement.missing)) == (verdict, sorted(missing)), judgement.findings


@pytest.mark.skipif(not (TRIAGE / "omissions.json").exists(), reason="the cases are not beside this checkout")
def test_the_published_cases() -> None:
    gold = json.loads((TRIAGE / "omissions.json").read_text())
    wrong = {}
    for name, right in gold.items():
        judgement = judge_case(TRIAGE / "omissions" / name)
        if (judgement.verdict.value, sorted(judgement.missing)) != (right["verdict"], sorted(right["missing"])):
            wrong[name] = judgement
    assert not wrong


# --- JUnit of pytest: what is in the file


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


# --- skips


def test_a_new_skip_is_an_omission_and_an_old_one_is_not() -> None:
    report = junit([case(TESTS[0], SKIP), *passing(TESTS[1:])])
    says(run(report), "omitted", [TESTS[0]])
    says(run(report, skipped=(TESTS[0],)), "passed")
    says(run(report, waivers=(Exemption(TESTS[0], date(2027, 1, 1)),)), "passed")
    says(run(report, diff=TestChanges(skipped=(TESTS[0],))), "passed")
    says(run(report, diff=TestChanges(skipped=())), "omitted", [TESTS[0]])


def test_all_skipped_is_no_pass_unless_it_always_was_so() -> None:
    report = junit([case(test, SKIP) for test in TESTS])
    says(run(report), "omitted", ALL)
    says(run(report, skipped=TESTS), "passed")
    says(run(report, skipped=TESTS[1:]), "omitted", [TESTS[0]])


def test_a_skip_under_its_new_name_is_an_old_one() -> None:
    new = f"{CORE}::test_reduce_all"
    report = junit([case(new, SKIP), *passing([test for test in TESTS if "reduce" not in test])])
    renamed = TestChanges(renamed={f"{CORE}::test_reduce": new})
    says(run(report, skipped=(f"{CORE}::test_reduce",), diff=renamed), "passed")
    says(run(report, diff=renamed), "omitted", [new])


def test_a_skip_that_the_diff_adds() -> None:
    why = "<skipped type='pytest.skip' message='broken by the LLVM bump, #123'/>"
    report = junit([case(TESTS[0], why), *passing(TESTS[1:])])
    says(run(report, diff=TestChanges(files=(CORE,))), "passed")
    says(run(report, diff=TestChanges(files=(TLX,))), "omitted", [TESTS[0]])
    # for want of a device is the machine's doing, whatever the diff touches
    says(
        run(junit([case(TESTS[0], SKIP), *passing(TESTS[1:])]), diff=TestChanges(files=(CORE,))), "omitted", [TESTS[0]]
    )


@pytest.mark.parametrize(
    ("kind", "element", "words"),
    [
        ("lit-xunit", "<testcase classname='K.d' name='{}.mlir'>{}</testcase>", "<skipped message='User interrupt'/>"),
        (
            "ctest",
            "<testcase classname='{0}' name='{0}'>{1}</testcase>",
            "<skipped message='Fixture dependency failed'/>",
        ),
        (
            "gtest",
            "<testcase classname='S' name='{}' file='s.cpp' line='7' status='run' result='completed'>{}</testcase>",
            "<skipped message='s.cpp:7&#x0A;'><![CDATA[s.cpp:7\n]]></skipped>",
        ),
    ],
)
def test_what_a_failure_kept_from_running_is_no_omission(kind: str, element: str, words: str) -> None:
    names = {"lit-xunit": ("K :: d/a.mlir", "K :: d/b.mlir"), "ctest": ("a", "b"), "gtest": ("S.a", "S.b")}[kind]
    suite = "<testsuite name='K' tests='2' timestamp='2026-11-29T02:11:09'>{}</testsuite>"

    def two(first: str, second: str) -> bytes:
        return suite.format(element.format("a", first) + element.format("b", second)).encode()

    says(red(two(FAIL, words), kind=kind, tests=names), "failed")
    # no failure that explains it, or another reason beside one
    says(run(two("", words), kind=kind, tests=names), "omitted", names[1:])
    says(red(two(FAIL, SKIP), kind=kind, tests=names), "failed", names[1:])


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("warning: reached maximum number of test failures, skipping remaining tests", "not_run"),
        ("warning: reached timeout, skipping remaining tests", "not_run"),
        ("!!!!!!!!!!! session-timeout: 600.0 sec exceeded !!!!!!!!!!!", "not_run"),
        ("session timeout: 600.0s", "failed"),
    ],
)
def test_a_run_that_stopped_itself_says_so(line: str, verdict: str) -> None:
    says(red(junit(passing(TESTS[:3])), log=line), verdict)
    says(red(junit([case(TESTS[0], FAIL)]), log=line), "failed", [] if verdict == "not_run" else TESTS[1:])


def test_a_gtest_that_the_diff_switches_off() -> None:
    off = "LinearLayout.DISABLED_Zeros"
    listed = "<testcase classname='LinearLayout' name='DISABLED_Zeros' status='notrun' result='suppressed'/>"
    ran = "".join(
        f"<testcase classname='{test.rpartition('.')[0]}' name='{test.rpartition('.')[2]}' status='run'/>"
        for test in GTEST
        if test != "LinearLayout.Zeros"
    )
    report = f"<testsuites timestamp='2026-11-29T02:11:09'><testsuite name='g'>{ran}{listed}</testsuite></testsuites>"
    for diff in (
        TestChanges(renamed={"LinearLayout.Zeros": off}),
        TestChanges(deleted=("LinearLayout.Zeros",), added=(off,)),
    ):
        says(run(report.encode(), kind="gtest", tests=GTEST, diff=diff), "passed")
    says(run(report.encode(), kind="gtest", tests=GTEST), "omitted", ["LinearLayout.Zeros"])
    says(run(report.encode(), kind="gtest", tests=GTEST[:1], diff=TestChanges(added=(off,))), "omitted", [off])


def test_a_module_that_skips_itself() -> None:
    skipped = (
        "<testcase classname='' name='python.test.unit.language.test_tlx_dot'><skipped message='no tlx'/></testcase>"
    )
    report = junit([*passing([test for test in TESTS if test not in IN_TLX]), skipped])
    says(run(report), "omitted", IN_TLX)
    says(run(report, skipped=tuple(IN_TLX)), "passed")


def test_a_test_that_ran_once_and_was_skipped_once_ran() -> None:
    says(run(junit([case(TESTS[0], SKIP), *passing()])), "passed")


# --- what the diff did


def test_deletions() -> None:
    for deleted in (IN_TLX, [TLX], [f"{TLX}::test_async_dot", f"{TLX}::test_async_dot_scaled"]):
        report = junit(passing([test for test in TESTS if test not in IN_TLX]))
        says(run(report, diff=TestChanges(deleted=tuple(deleted), files=(TLX,))), "passed")
    dots = [test for test in TESTS if "test_dot[" in test]
    report = junit(passing([test for test in TESTS if test not in dots]))
    says(run(report, diff=TestChanges(deleted=(f"{CORE}::test_dot",))), "passed")
    says(run(report, diff=TestChanges(deleted=(f"{CORE}::test_do",))), "omitted", dots)


def test_a_whole_suite_deleted_leaves_no_report_to_expect() -> None:
    says(run(None, tests=tuple(IN_TLX), diff=TestChanges(deleted=tuple(IN_TLX))), "omitted")
    suites = (SuiteManifest("a", TESTS[:6], "unit.xml", "junit"), SuiteManifest("b", tuple(IN_TLX), "b.xml", "junit"))
    says(run(junit(passing(TESTS[:6])), suites=suites, diff=TestChanges(deleted=tuple(IN_TLX))), "passed")


def test_renames_go_by_the_new_id() -> None:
    moved = "python/test/unit/tlx/test_dot.py"
    report = junit(passing([test.replace(TLX, moved) for test in TESTS]))
    says(run(report, diff=TestChanges(renamed={TLX: moved})), "passed")
    says(
        run(junit(passing()), diff=TestChanges(renamed={TLX: moved})),
        "omitted",
        [t.replace(TLX, moved) for t in IN_TLX],
    )
    half = {f"{TLX}::test_async_dot": f"{TLX}::test_dot_async"}
    says(run(junit(passing()), diff=TestChanges(renamed=half)), "omitted", [f"{TLX}::test_dot_async"])


def test_parameters_that_vanish_without_a_word_are_missing() -> None:
    says(run(junit(passing(TESTS[1:]))), "omitted", [TESTS[0]])


def test_an_added_test_must_run() -> None:
    added = TestChanges(added=(f"{TLX}::test_new",), files=(TLX,))
    says(run(junit(passing()), diff=added), "omitted", [f"{TLX}::test_new"])
    says(run(junit([*passing(), case(f"{TLX}::test_new")]), diff=added), "passed")
    says(run(junit([*passing(), case(f"{TLX}::test_new", SKIP)]), diff=added), "omitted", [f"{TLX}::test_new"])
    says(run(junit([*passing(), case(f"{TLX}::test_new", FAIL)]), diff=added), "failed")
    says(run(junit([*passing(), case(f"{TLX}::test_new[1]"), case(f"{TLX}::test_new[2]")]), diff=added), "passed")
    says(run(junit([*passing(), case(f"{TLX}::test_new[1]", SKIP)]), diff=added), "omitted", [f"{TLX}::test_new"])
    says(run(junit([*passing(), case(f"{TLX}::test_newer[1]")]), diff=added), "omitted", [f"{TLX}::test_new"])


# --- waivers


@pytest.mark.parametrize(
    ("waiver", "holds"),
    [
        (Exemption(f"{TLX}::*", date(2027, 1, 31), "h100"), True),
        (Exemption(f"{TLX}::*", date(2026, 11, 29), "h100"), True),
        (Exemption(f"{TLX}::*", date(2026, 11, 28), "h100"), False),
        (Exemption(f"{TLX}::*", date(2027, 1, 31), "mi350"), False),
        (Exemption(f"{TLX}::*", date(2027, 1, 31)), True),
        (Exemption(TLX, date(2027, 1, 31)), True),
        (Exemption(f"{TLX}::*", None), False),
        (Exemption(f"{TLX}::*", date(2027, 1, 31), starts=date(2026, 12, 1)), False),
        (Exemption(f"{CORE}::*", date(2027, 1, 31)), False),
        (Exemption(f"{TLX}::test_async_dot", date(2027, 1, 31)), False),
    ],
)
def test_a_waiver_explains_absence_only_while_it_is_in_force(waiver: Exemption, holds: bool) -> None:
    judgement = run(junit(passing([test for test in TESTS if test not in IN_TLX])), waivers=(waiver,))
    assert (judgement.verdict is Outcome.PASSED) is holds


def test_brackets_in_a_waiver_are_text() -> None:
    waiver = Exemption(f"{CORE}::test_dot[16-16-*]", date(2027, 1, 1))
    says(run(junit(passing(TESTS[1:])), waivers=(waiver,)), "passed")


def test_a_waiver_of_absence_is_no_licence_to_fail() -> None:
    report = junit([case(TESTS[0], FAIL), *passing(TESTS[1:])])
    assert run(report, waivers=(Exemption(TESTS[0], date(2027, 1, 1)),)).verdict is Outcome.FAILED


# --- several suites, shards


def _shards(*parts: tuple[str, ...]) -> tuple[SuiteManifest, ...]:
    return tuple(SuiteManifest(f"shard-{n}", part, f"shard-{n}.xml", "junit") for n, part in enumerate(parts))


def test_shards() -> None:
    suites = _shards(TESTS[:3], TESTS[3:6], TESTS[6:])
    files = {suite.report: junit(passing(list(suite.tests))) for suite in suites}
    says(run(suites=suites, reports=files), "passed")
    says(run(suites=suites, reports={k: v for k, v in files.items() if "1" not in k}), "omitted", TESTS[3:6])
    # cut anew: every test ran, in another shard
    other = {"shard-0.xml": junit(passing(TESTS[:5])), "shard-1.xml": junit(passing(TESTS[5:7]))}
    says(run(suites=suites, reports={**other, "shard-2.xml": junit(passing(TESTS[7:]))}), "passed")
    # the same shard twice
    says(run(suites=suites, reports={**files, "shard-1.xml": files["shard-0.xml"]}), "omitted", TESTS[3:6])


def test_the_same_tests_in_two_suites_have_to_run_twice() -> None:
    suites = (SuiteManifest("a", TESTS, "a.xml", "junit"), SuiteManifest("b", TESTS, "b.xml", "junit"))
    says(run(suites=suites, reports={"a.xml": junit(passing())}), "omitted", ALL)


def test_a_suite_without_a_file_beside_one_that_fails_is_still_missing() -> None:
    suites = _shards(TESTS[:6], TESTS[6:])
    reports = {"shard-0.xml": junit([case(TESTS[0], FAIL), *passing(TESTS[1:6])], failures=1)}
    says(red(suites=suites, reports=reports), "failed", TESTS[6:])
    # where the log says that it crashed, that is why
    says(red(suites=suites, reports=reports, log="Fatal Python error: Segmentation fault"), "failed")


# --- the job's own end


@pytest.mark.parametrize(
    ("how", "verdict"),
    [
        ({"conclusion": "cancelled", "exit_code": None}, "not_run"),
        ({"conclusion": "timed_out", "exit_code": None}, "not_run"),
        ({"conclusion": "skipped", "exit_code": None}, "not_run"),
        ({"conclusion": "startup_failure", "exit_code": None}, "infra"),
        ({"conclusion": "failure", "exit_code": 139}, "failed"),
        ({"conclusion": "failure", "exit_code": 134}, "failed"),
        ({"conclusion": "failure", "exit_code": -11}, "failed"),
        ({"conclusion": "failure", "exit_code": 137}, "infra"),
        ({"conclusion": "failure", "exit_code": 127}, "infra"),
        ({"conclusion": "failure", "exit_code": 1}, "failed"),
        ({"conclusion": "success", "exit_code": 139}, "failed"),
        ({"conclusion": "failure", "exit_code": None}, "infra"),
    ],
)
def test_no_report_and_how_the_job_ended(how: dict[str, Any], verdict: str) -> None:
    for report in (None, b"", junit(passing())[:300]):
        assert run(report, **how).verdict.value == verdict
        assert not run(report, **how).missing


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("##[error]The operation was canceled.", "not_run"),
        ("##[error]The action 'Run unit tests' has timed out after 15 minutes.", "not_run"),
        ("##[error]The runner has received a shutdown signal.", "infra"),
        ("The self-hosted runner lost communication with the server.", "infra"),
        ("fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com", "infra"),
        ("error: RPC failed; curl 92 HTTP/2 stream 0 was not closed cleanly", "infra"),
        ("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "infra"),
        ("OSError: [Errno 28] No space left on device", "infra"),
        ("docker: Error response from daemon: could not select device driver", "infra"),
        ("Fatal Python error: Segmentation fault", "failed"),
        ("Segmentation fault (core dumped)", "failed"),
        ("lit: /llvm/lib/IR/Value.cpp:1: void f(): Assertion `x' failed.", "failed"),
        ("ninja: build stopped: subcommand failed.", "failed"),
        ("ImportError while loading conftest '/w/python/test/conftest.py'.", "failed"),
    ],
)
def test_the_log_says_why_there_is_no_report(line: str, verdict: str) -> None:
    judgement = red(None, log=f"2026-11-29T02:12:01.1234567Z \x1b[31m{line}\x1b[0m\r\n##[error]Process completed\n")
    says(judgement, verdict)


def test_the_first_cause_is_the_root() -> None:
    assert red(None, log="No space left on device\nFatal Python error: Bus error\n").verdict is Outcome.INFRA
    assert red(None, log="Segmentation fault\nConnection reset by peer\n").verdict is Outcome.FAILED


def test_trouble_that_a_green_job_got_over_explains_no_gap() -> None:
    log = "fatal: unable to access 'https://example.com/': Connection reset by peer\nretrying in 5 s\n"
    says(run(None, log=log), "omitted", ALL)
    says(run(None, log=log + "Segmentation fault (core dumped)\n"), "failed")
    says(run(junit(passing()), log=log), "passed")


def test_what_a_job_states_of_its_end_goes_before_noise() -> None:
    log = "Connection reset by peer, retrying\n"
    says(run(None, conclusion="cancelled", exit_code=None, log=log), "not_run")
    says(run(None, conclusion=None, exit_code=None, log="No runner matching the label mi350 was found"), "infra")
    says(run(None, conclusion=None, exit_code=None), "not_run")


def test_infra_never_hides_a_failed_test() -> None:
    report = junit([case(TESTS[0], FAIL), *passing(TESTS[1:3])])
    assert red(report, log="The runner has received a shutdown signal.").verdict is Outcome.FAILED
    assert run(report, conclusion="cancelled", exit_code=None).verdict is Outcome.FAILED


def test_failures_that_are_all_the_machines() -> None:
    busy = "<error message='CUDA error: all CUDA-capable devices are busy or unavailable'/>"
    assert red(junit([case(test, busy) for test in TESTS])).verdict is Outcome.INFRA
    mixed = [case(TESTS[0], FAIL), *(case(test, busy) for test in TESTS[1:])]
    assert red(junit(mixed)).verdict is Outcome.FAILED
    memory = "<failure message='CUDA error: an illegal memory access was encountered; connection reset'/>"
    assert red(junit([case(test, memory) for test in TESTS])).verdict is Outcome.FAILED


def test_a_crash_hidden_by_a_pipe() -> None:
    says(run(None, log="t.py::test_a PASSED\nFatal Python error: Segmentation fault\n"), "failed")
    # a test that talks of crashes, in a job where nothing is missing
    says(run(junit(passing()), log="checking that 'Segmentation fault' is handled\n"), "passed")


@pytest.mark.parametrize("status", [1, 2, 139])
def test_a_red_job_whose_tests_all_pass_is_not_green(status: int) -> None:
    assert red(junit(passing()), exit_code=status).verdict is not Outcome.PASSED


def test_nothing_collected() -> None:
    hows: list[dict[str, Any]] = [{}, {"conclusion": "failure", "exit_code": 5}]
    for how in hows:
        says(run(junit([]), **how), "omitted", ALL)
        says(run(junit([]), **how, log="===== no tests ran in 0.01s =====\n"), "omitted", ALL)
    says(red(None, exit_code=4, log="ERROR: file or directory not found: python/test/unit/tlx\n"), "omitted", ALL)


def test_a_module_that_cannot_be_imported_explains_its_own_tests_only() -> None:
    error = (
        "<testcase classname='' name='python.test.unit.language.test_tlx_dot'>"
        "<error message='collection failure'>ModuleNotFoundError</error></testcase>"
    )
    others = [test for test in TESTS if test not in IN_TLX]
    says(red(junit([*passing(others), error]), exit_code=2), "failed")
    says(red(junit([*passing(others[1:]), error]), exit_code=2), "failed", [others[0]])
    says(red(junit([error]), exit_code=2), "failed")  # pytest stops there


def test_a_crashed_worker_explains_the_rest() -> None:
    crash = "<failure message=\"worker 'gw1' crashed while running 'test_atomic'\"/>"
    says(red(junit([case(TESTS[0], crash), *passing(TESTS[1:3])])), "failed")


def test_stopped_after_the_first_failure() -> None:
    report = junit([case(TESTS[0], FAIL)])
    says(red(report, log="!!!!!!!!!! stopping after 1 failures !!!!!!!!!!\n"), "failed")
    says(red(report), "failed", TESTS[1:])


def test_failures_that_only_the_log_holds() -> None:
    log = f"FAILED {TESTS[0]} - AssertionError\n===== 1 failed, 7 passed in 3.1s =====\n"
    assert run(None, log=log).verdict is Outcome.FAILED


def test_a_blind_harness_is_infra() -> None:
    good = [*passing(), case("graft/canary.py::canary", FAIL)]
    says(run(junit(good, failures=1), canary="canary"), "passed")
    for blind in (passing(), [*passing(), case("graft/canary.py::canary")]):
        assert run(junit(blind), canary="canary").verdict is Outcome.INFRA
    assert run(junit([*good, case(f"{CORE}::x", FAIL)], failures=2), canary="canary").verdict is Outcome.FAILED


def test_an_empty_manifest_proves_nothing_by_itself() -> None:
    says(run(junit([]), tests=()), "omitted")
    says(run(junit(passing()), tests=()), "passed")


# --- lit


def lit_json(**codes: str) -> bytes:
    return json.dumps(
        {
            "__version__": [23, 1, 5],
            "elapsed": 1.0,
            "tests": [{"code": c, "name": n, "output": ""} for n, c in codes.items()],
        }
    ).encode()


def lit_xunit(bodies: dict[str, str]) -> bytes:
    cases = []
    for test, body in bodies.items():
        suite, path = test.split(" :: ")
        folder, _, name = path.rpartition("/")
        cases.append(
            f'<testcase classname="{suite}.{folder.replace(".", "_") or suite}" name="{name}">{body}</testcase>'
        )
    return (
        f'<testsuites><testsuite name="TRITON" tests="{len(cases)}">{"".join(cases)}</testsuite></testsuites>'.encode()
    )


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("PASS", "passed"), ("XFAIL", "passed"), ("FLAKYPASS", "passed"), ("FAIL", "failed"), ("XPASS", "failed"),
        ("UNRESOLVED", "failed"), ("TIMEOUT", "failed"), ("SOMETHING_NEW", "failed"), ("UNSUPPORTED", "omitted"),
        ("EXCLUDED", "omitted"), ("SKIPPED", "omitted"),
    ],
)  # fmt: skip
def test_lit_codes(code: str, verdict: str) -> None:
    report = lit_json(**{LIT[0]: code, **dict.fromkeys(LIT[1:], "PASS")})
    judgement = run(report, kind="lit-json", tests=LIT)
    says(judgement, verdict, [LIT[0]] if verdict == "omitted" else [])
    if verdict == "omitted":
        says(run(report, kind="lit-json", tests=LIT, skipped=(LIT[0],)), "passed")


def test_lit_xunit() -> None:
    says(run(lit_xunit(dict.fromkeys(LIT, "")), kind="lit-xunit", tests=LIT), "passed")
    says(run(lit_xunit({LIT[0]: "<failure>x</failure>"}), kind="lit-xunit", tests=LIT[:1]), "failed")
    unsupported = lit_xunit({**dict.fromkeys(LIT, ""), LIT[1]: "<skipped message='Missing required feature'/>"})
    says(run(unsupported, kind="lit-xunit", tests=LIT), "omitted", [LIT[1]])
    says(run(lit_xunit(dict.fromkeys(LIT[1:], "")), kind="lit-xunit", tests=LIT), "omitted", [LIT[0]])


def test_lit_json_broken() -> None:
    whole = lit_json(**dict.fromkeys(LIT, "PASS"))
    says(run(whole[: whole.rindex(b'{"code"') + 9], kind="lit-json", tests=LIT), "omitted", [LIT[-1]])
    failing = lit_json(**{LIT[0]: "FAIL", **dict.fromkeys(LIT[1:], "PASS")})
    says(run(failing[:-30], kind="lit-json", tests=LIT), "failed", [LIT[-1]])
    for nothing in (b"", b"{}", b"[]", b"null", b'{"tests": []}', b"{"):
        says(run(nothing, kind="lit-json", tests=LIT), "omitted", LIT)


def test_lit_files_deleted_and_renamed() -> None:
    report = lit_json(**dict.fromkeys(LIT[1:], "PASS"), **{"TRITON :: Conversion/new.mlir": "PASS"})
    renamed = TestChanges(renamed={LIT[0]: "TRITON :: Conversion/new.mlir"})
    says(run(report, kind="lit-json", tests=LIT, diff=renamed), "passed")
    says(run(report, kind="lit-json", tests=LIT, diff=TestChanges(deleted=(LIT[0],))), "passed")
    says(run(report, kind="lit-json", tests=LIT), "omitted", [LIT[0]])


# --- gtest and ctest


def gtest(status: dict[str, str]) -> bytes:
    cases = []
    for test, what in status.items():
        group, name = test.split(".")
        body = "<failure message='x'/>" if what == "fail" else "<skipped message='s'/>" if what == "skip" else ""
        ran, ended = (
            ("notrun", "suppressed") if what == "off" else ("run", "skipped" if what == "skip" else "completed")
        )
        cases.append(
            f'<testsuite name="{group}"><testcase name="{name}" classname="{group}" status="{ran}" result="{ended}">'
            f"{body}</testcase></testsuite>"
        )
    return (
        f'<testsuites tests="{len(cases)}" timestamp="2026-11-29T02:11:10.100">{"".join(cases)}</testsuites>'.encode()
    )


def test_gtest() -> None:
    fine = dict.fromkeys(GTEST, "ok")
    says(run(gtest(fine), kind="gtest", tests=GTEST), "passed")
    says(run(gtest({**fine, GTEST[2]: "fail"}), kind="gtest", tests=GTEST), "failed")
    for off in ("off", "skip"):
        says(run(gtest({**fine, GTEST[2]: off}), kind="gtest", tests=GTEST), "omitted", [GTEST[2]])
        says(run(gtest({**fine, GTEST[2]: off}), kind="gtest", tests=GTEST, skipped=(GTEST[2],)), "passed")
    says(run(gtest({}), kind="gtest", tests=GTEST), "omitted", GTEST)


def test_gtest_as_json() -> None:
    suites = [
        {"name": "A", "testsuite": [{"name": "x", "classname": "A", "status": "RUN", "result": "COMPLETED"}]},
        {"name": "B", "testsuite": [{"name": "y", "classname": "B", "status": "RUN", "failures": [{"failure": "no"}]}]},
    ]
    both = ("A.x", "B.y")
    says(run(json.dumps({"tests": 2, "testsuites": suites}).encode(), kind="gtest", tests=both), "failed")
    says(run(json.dumps({"tests": 1, "testsuites": suites[:1]}).encode(), kind="gtest", tests=both), "omitted", ["B.y"])


def test_ctest() -> None:
    names = ("unit.layout", "smoke")

    def ctest(*status: str) -> bytes:
        cases = "".join(
            f'<testcase name="{n}" classname="{n}" status="{s}">{"<failure/>" if s == "fail" else ""}</testcase>'
            for n, s in zip(names, status, strict=True)
        )
        return f'<testsuite name="ctest" tests="2" timestamp="2026-11-29T02:12:00">{cases}</testsuite>'.encode()

    says(run(ctest("run", "run"), kind="ctest", tests=names), "passed")
    says(run(ctest("run", "fail"), kind="ctest", tests=names), "failed")
    says(run(ctest("run", "disabled"), kind="ctest", tests=names), "omitted", ["smoke"])
    parts = (f'<Test Status="{s}"><Name>{n}</Name></Test>' for n, s in zip(names, ("passed", "failed"), strict=True))
    old = f"<Site><Testing>{''.join(parts)}</Testing></Site>"
    says(run(old.encode(), kind="ctest", tests=names), "failed")


# --- logs as reports


def log_of(status: dict[str, str], *, summary: str = "== {} passed in 4.21s ==") -> bytes:
    lines = ["=== test session starts ===", f"collecting ... collected {len(status)} items", ""]
    lines += [f"{test} {said} [ 10%]" for test, said in status.items()]
    return "\n".join([*lines, summary.format(len(status))]).encode()


def log_run(report: bytes, **more: Any) -> Judgement:
    return run(report, **{"kind": "pytest-log", **more})


def test_a_verbose_log() -> None:
    fine = dict.fromkeys(TESTS, "PASSED")
    says(log_run(log_of(fine)), "passed")
    says(log_run(log_of({**fine, TESTS[0]: "FAILED"}), conclusion="failure", exit_code=1), "failed")
    says(log_run(log_of({**fine, TESTS[0]: "SKIPPED (no GPU)"})), "omitted", [TESTS[0]])
    says(log_run(log_of({**fine, TESTS[0]: "XFAIL"})), "passed")
    says(log_run(log_of(dict.fromkeys(TESTS[1:], "PASSED"))), "omitted", [TESTS[0]])
    stamped = b"\r\n".join(
        b"2026-11-29T02:11:09.1844110Z \x1b[32m" + line + b"\x1b[0m" for line in log_of(fine).split(b"\n")
    )
    says(log_run(stamped), "passed")
    says(log_run(stamped.replace(b"11-29T", b"11-27T")), "omitted", ALL)


def test_a_log_of_xdist_and_one_with_output_between() -> None:
    workers = "\n".join(f"[gw{n % 2}] [ {n}0%] PASSED {test} " for n, test in enumerate(TESTS))
    says(log_run(f"{workers}\n== 8 passed in 1s ==".encode()), "passed")
    noisy = "\n".join(f"{test} some output\nmore\nPASSED [ 1%]" for test in TESTS)
    says(log_run(f"{noisy}\n== 8 passed in 1s ==".encode()), "passed")


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        ("FAILED to open the cache, ERROR ignored\nPASSED", "passed"),
        ("FAILED to open the cache\nFAILED [ 10%]", "failed"),
        ("PASSED the first half\nFAILED [ 10%]", "failed"),
        ("PASSED the first half", "omitted"),
        ("XFAIL (bug (12)) [ 3/8]", "passed"),
        ("PASSED      1m 12s", "passed"),
    ],
)
def test_a_status_is_the_last_word_of_its_line(words: str, verdict: str) -> None:
    rest = "".join(f"{test} PASSED [ 90%]\n" for test in TESTS[1:])
    says(log_run(f"{TESTS[0]} {words}\n{rest}".encode()), verdict, TESTS[:1] if verdict == "omitted" else ())


def test_the_short_summary_of_all_proves_a_quiet_run() -> None:
    lines = [f"PASSED {test}" for test in TESTS[1:]]
    summary = "\n".join(["........ [100%]", "=== short test summary info ===", *lines, "{}", "8 passed in 1.2s"])
    says(log_run(summary.format(f"XFAIL {TESTS[0]} - bug 12").encode()), "passed")
    says(log_run(summary.format(f"FAILED {TESTS[0]} - assert 0").encode()), "failed")
    says(log_run(summary.format("").encode()), "omitted", TESTS[:1])


def test_a_cut_log() -> None:
    cut = log_of(dict.fromkeys(TESTS[:5], "PASSED"), summary="")
    says(log_run(cut), "omitted", TESTS[5:])
    says(log_run(cut + b"\nFatal Python error: Segmentation fault\n", conclusion="failure", exit_code=139), "failed")
    says(log_run(cut, conclusion="timed_out", exit_code=None), "not_run")
    says(log_run(cut, conclusion="cancelled", exit_code=None), "not_run")
    says(log_run(cut + b"\nThe runner has received a shutdown signal.", conclusion="failure", exit_code=None), "infra")


def test_a_log_whose_summary_counts_what_it_does_not_show() -> None:
    fine = dict.fromkeys(TESTS, "PASSED")
    assert log_run(log_of(fine, summary="== 1 failed, 7 passed in 2s ==")).verdict is Outcome.FAILED
    assert log_run(log_of(fine, summary="== 8 passed, 1 error in 2s ==")).verdict is Outcome.FAILED
    says(log_run(b"== no tests ran in 0.01s ==", exit_code=5, conclusion="failure"), "omitted", ALL)
    says(log_run(b"collected 8 items / 2 deselected\n== 6 passed, 2 deselected in 1s =="), "omitted", ALL)


def test_a_quiet_log_proves_a_file_whose_letters_are_all_there() -> None:
    quiet = f"{CORE} ......   [ 75%]\n{TLX} ..   [100%]\n== 8 passed in 1s ==\n"
    says(log_run(quiet.encode()), "passed")
    says(log_run(quiet.replace(f"{TLX} .. ", f"{TLX} .s ").encode()), "omitted", IN_TLX)
    says(log_run(quiet.replace(f"{TLX} .. ", f"{TLX} . ").encode()), "omitted", IN_TLX)


# --- properties


@given(st.sets(st.sampled_from(TESTS)), st.sets(st.sampled_from(TESTS)))
@settings(max_examples=60, deadline=None)
def test_never_green_while_an_expected_test_has_no_good_result(absent: set[str], failing: set[str]) -> None:
    shown = [test for test in TESTS if test not in absent]
    judgement = run(junit([case(test, FAIL if test in failing else "") for test in shown]))
    bad = set(shown) & failing
    assert (judgement.verdict is Outcome.PASSED) is (not absent and not bad)
    assert judgement.verdict is not Outcome.FAILED or bad
    if not bad:
        assert set(judgement.missing) == absent


def elements(results: dict[str, str]) -> bytes:
    """GoogleTest's or CTest's elements, by what became of each test."""
    bodies = {"bad": FAIL, "skipped": SKIP, "good": ""}
    cases = "".join(
        f"<testcase classname={quoteattr(test.rpartition('.')[0])} name={quoteattr(test.rpartition('.')[2])}>"
        f"{bodies[said]}</testcase>"
        for test, said in results.items()
    )
    return f"<testsuite name='x' timestamp='2026-11-29T02:11:09'>{cases}</testsuite>".encode()


def lit_codes(results: dict[str, str]) -> bytes:
    codes = {"bad": "TIMEOUT", "skipped": "UNSUPPORTED", "good": "PASS"}
    return json.dumps({"tests": [{"name": test, "code": codes[said]} for test, said in results.items()]}).encode()


def words(results: dict[str, str]) -> bytes:
    said = {"bad": "FAILED", "skipped": "SKIPPED (no GPU)", "good": "PASSED"}
    return "\n".join(f"{test} {said[word]} [ 50%]" for test, word in results.items()).encode()


WAYS = {
    "gtest": (GTEST, elements),
    "ctest": (GTEST, elements),
    "lit-json": (LIT, lit_codes),
    "pytest-log": (TESTS, words),
}


@pytest.mark.parametrize("kind", WAYS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_format_is_green_where_one_result_lacks_fails_or_is_skipped(kind: str, data: st.DataObject) -> None:
    tests, write = WAYS[kind]
    results = {test: data.draw(st.sampled_from(("good", "good", "bad", "skipped", "gone"))) for test in tests}
    lost = sorted(test for test, said in results.items() if said in ("skipped", "gone"))
    failed = "bad" in results.values()
    shown = {test: said for test, said in results.items() if said != "gone"}
    judgement = run(write(shown), kind=kind, tests=tests)
    verdict = "failed" if failed else "omitted" if lost else "passed"
    assert (judgement.verdict.value, sorted(judgement.missing)) == (verdict, lost)


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_no_bytes_make_it_raise_or_pass(data: bytes) -> None:
    for kind in ("junit", "lit-json", "pytest-log", "gtest", "unheard-of"):
        assert run(data, kind=kind).verdict is not Outcome.PASSED


@given(st.integers(0, 1400))
@settings(max_examples=80, deadline=None)
def test_no_cut_of_a_good_report_is_green_with_a_test_lost(cut: int) -> None:
    data = junit(passing())[:cut]
    judgement = run(data)
    assert len(judgement.missing) == len(TESTS) - data.count(b"</testcase>")
    assert (judgement.verdict is Outcome.PASSED) is (not judgement.missing)


# --- the command


def test_a_broken_case_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"no case\.json"):
        judge_case(tmp_path)
    (tmp_path / "case.json").write_text("{}")
    with pytest.raises(CaseError, match="not a case"):
        judge_case(tmp_path)
    manifest = {"suites": {"u": {"tests": ["a"], "report": "../../etc/passwd", "format": "junit"}}}
    job = {"sha": SHA, "started_at": None, "conclusion": "success", "log": None}
    (tmp_path / "case.json").write_text(json.dumps({"job": job, "manifest": manifest, "today": "2026-01-01"}))
    with pytest.raises(CaseError, match="outside"):
        judge_case(tmp_path)


def test_escapes_are_read_back() -> None:
    odd = f"{CORE}::test_op[a<b & 'c'-\"d\"]"
    assert escape(odd) != odd
    says(run(junit(passing([odd])), tests=(odd,)), "passed")
