"""The judgement over a job that ended otherwise than by its tests: what explains a gap, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.types import Outcome
from tests.core.jobs import (
    ALL,
    CORE,
    FAIL,
    IN_TLX,
    TESTS,
    case,
    junit,
    passing,
    red,
    run,
    says,
)


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
