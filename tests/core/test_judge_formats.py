"""The judgement over a job by reports in the formats of lit, GoogleTest and CTest, and by logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.core.judge import Judgement
from bot.core.manifest import TestChanges
from bot.core.types import Outcome
from tests.core.jobs import (
    ALL,
    CORE,
    GTEST,
    IN_TLX,
    LIT,
    TESTS,
    TLX,
    run,
    says,
)

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
