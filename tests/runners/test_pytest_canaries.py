"""pytest's canaries: one at the root, one in each folder whose conftest.py could change what becomes of a failure."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bot.core.types import Outcome
from bot.core.validation import Report
from tests.runners.suite import NO_PLUGINS, outcomes, run

PYTEST = ["python", "-m", "pytest", "-p", "no:cacheprovider"]
HIDES = """import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
EXPECTS = """def pytest_runtest_makereport(item, call):
    import _pytest.runner as runner
    report = runner.TestReport.from_item_and_call(item, call)
    if report.failed:
        report.outcome, report.wasxfail = "skipped", "known"
    return report
"""
CALLS = """def pytest_pyfunc_call(pyfuncitem):
    try:
        pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    except Exception:
        pass
    return True
"""
TAKES = """def pytest_runtest_protocol(item, nextitem):
    if item.name.endswith("canary"):
        return True
"""
SKIPS = """import pytest

def pytest_runtest_call(item):
    pass

def pytest_runtest_setup(item):
    if "gpu" not in item.name:
        pytest.skip("needs a GPU")
"""
BREAKS = "def pytest_runtest_call(item):\n    pass\n\ndef pytest_runtest_makereport(item):\n    item.callspec.params\n"
ASKS = """def pytest_runtest_makereport(item, call):
    assert item.function and item.obj and item.module.__name__ and item.cls is None and item.originalname
    assert {*item.funcargs} <= {*item.fixturenames} and not hasattr(item, "nosuch")
"""
LOOKS = """import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    item.rep = outcome.get_result()
"""
MARKS = """import pytest

def pytest_collection_modifyitems(items):
    for item in items:
        if {}:
            item.add_marker(pytest.mark.xfail)
"""


async def two_folders(tmp_path: Path, conftest: str, *more: str, where: str = "t/b") -> Report:
    """A passing test in t/a, another in t/b/c, and a conftest.py."""
    one = "import pytest\n@pytest.mark.parametrize('x', [1])\ndef test_{0}(x): pass\n"
    files = {"t/a/test_a.py": one.format("a"), "t/b/c/test_b.py": one.format("gpu")}
    files[f"{where}/conftest.py"] = conftest
    return await run(tmp_path, files, harness="pytest", env=NO_PLUGINS, run=[*PYTEST, *more, "t"])


@pytest.mark.parametrize(
    ("conftest", "where", "said"),
    [
        (HIDES, "t/b", "passed"),
        (EXPECTS, "t/b", "xfailed"),
        (CALLS, "t/b", "passed"),
        (TAKES, "t/b", "not reported"),
        (HIDES, "t", "passed"),
        (CALLS, ".", "passed"),
    ],
)
async def test_a_conftest_that_hides_failures_makes_the_harness_blind(
    tmp_path: Path, conftest: str, where: str, said: str
) -> None:
    report = await two_folders(tmp_path, conftest, where=where)
    assert (report.outcome, report.manifest.canary) == (Outcome.INFRA, False), report
    assert "blind" in report.reason and not any("canary" in test.id for test in report.tests)
    assert (f"blind below {where}: the failing test put there was {said}" in report.reason) == (where != "."), report


@pytest.mark.parametrize("conftest", [ASKS, LOOKS])
async def test_a_conftest_that_only_looks_is_no_trouble(tmp_path: Path, conftest: str) -> None:
    report = await two_folders(tmp_path, conftest)
    assert (report.outcome, report.manifest.canary, report.reason) == (Outcome.PASSED, True, ""), report
    assert list(outcomes(report).values()) == ["passed", "passed"]


@pytest.mark.parametrize(
    ("conftest", "why"),
    [
        (SKIPS, "not proved below t/b: the failing test put there could not run: Skipped: needs a GPU"),
        (BREAKS, "could not run: a hook failed on it: AttributeError: 'Canary' object has no attribute 'callspec'"),
        (MARKS.format("'gpu' in item.name"), "not proved below t/b: a hook expects each test to fail"),
    ],
    ids=["skips", "breaks", "marks"],
)
@pytest.mark.parametrize("more", [(), ("-n2", "-p", "xdist")], ids=["here", "distributed"])
async def test_what_is_not_proved_is_said(tmp_path: Path, conftest: str, why: str, more: tuple[str, ...]) -> None:
    report = await two_folders(tmp_path, conftest, *more)
    assert (report.outcome, report.manifest.canary) == (Outcome.PASSED, True), report
    assert why in report.reason
    assert set(outcomes(report)) == {"test_a[1]", "test_gpu[1]"}


async def test_a_hook_that_can_t_cope_with_the_root_s_canary_is_named(tmp_path: Path) -> None:
    report = await two_folders(tmp_path, BREAKS, where=".")
    assert (report.outcome, report.manifest.canary) == (Outcome.INFRA, False), report
    assert "a hook failed on it: AttributeError" in report.reason


async def test_expecting_single_tests_to_fail_excuses_no_folder(tmp_path: Path) -> None:
    report = await two_folders(tmp_path, MARKS.format("'gpu' in item.name"), where="t")
    assert (report.outcome, report.reason) == (Outcome.PASSED, ""), report


async def test_the_workers_of_xdist_are_proved_too(tmp_path: Path) -> None:
    report = await two_folders(tmp_path, HIDES, "-n2", "-p", "xdist")
    assert report.outcome is Outcome.INFRA and "blind below t/b" in report.reason, report


@pytest.mark.parametrize("more", [("--maxfail=2",), ("-x", "-n2", "-p", "xdist")])
async def test_canaries_use_up_no_limit_of_failures(tmp_path: Path, more: tuple[str, ...]) -> None:
    report = await two_folders(tmp_path / "good", LOOKS, *more)
    assert (report.outcome, report.manifest.canary, report.reason) == (Outcome.PASSED, True, ""), report
    bad = LOOKS + "\ndef pytest_runtest_setup(item):\n    assert 'gpu' not in item.name\n"
    report = await two_folders(tmp_path / "bad", bad, "-x")
    assert report.outcome is Outcome.FAILED and "blind" not in report.reason, report


async def test_each_pytest_of_a_script_has_to_report_failures(tmp_path: Path) -> None:
    start = f"{sys.executable} -m pytest -q"
    files = {
        "go.sh": f"#!/bin/sh\n{start} one; {start} two; true\n",
        "one/test_a.py": "def test_a(): pass\n", "two/test_b.py": "def test_b(): pass\n", "one/conftest.py": LOOKS,
    }  # fmt: skip
    report = await run(tmp_path / "good", files, harness="pytest", env=NO_PLUGINS, run=["./go.sh"])
    assert (report.outcome, report.reason) == (Outcome.PASSED, ""), report
    files["one/conftest.py"] = HIDES
    report = await run(tmp_path / "bad", files, harness="pytest", env=NO_PLUGINS, run=["./go.sh"])
    assert report.outcome is Outcome.INFRA and "blind below one" in report.reason, report


async def test_a_test_of_the_suite_s_own_stands_for_all(tmp_path: Path) -> None:
    """Where the suite names its canary, that one is asked, and what hooks make of ours is not."""
    test = "def test_bad(): assert 0\ndef test_a(): pass\n"
    files = {"t/test_a.py": test, "t/b/conftest.py": HIDES, "t/b/test_b.py": "def test_b(): pass\n"}
    report = await run(
        tmp_path, files, harness="pytest", env=NO_PLUGINS, run=[*PYTEST, "t"], canary="t/test_a.py::test_bad"
    )
    assert (report.outcome, report.manifest.canary, report.reason) == (Outcome.PASSED, True, ""), report
    assert outcomes(report) == {"test_a": "passed", "test_b": "passed"}
