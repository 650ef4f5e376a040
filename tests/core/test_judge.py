"""The judgement over a job: each way in which tests go missing, are skipped, fail or change on purpose."""

from __future__ import annotations

import json
from datetime import date
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.manifest import Exemption, SuiteManifest, TestChanges
from bot.core.types import Outcome
from tests.core.jobs import (
    ALL,
    CORE,
    FAIL,
    GTEST,
    IN_TLX,
    LIT,
    SKIP,
    TESTS,
    TLX,
    case,
    junit,
    passing,
    red,
    run,
    says,
)

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
