"""The harness of pytest: what passes, fails, crashes, hangs, collects nothing, stops itself."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

from bot.core.types import Outcome
from tests.runners.suite import NO_PLUGINS, outcomes, pytests, run


async def test_pytest_says_each_outcome(tmp_path: Path) -> None:
    report = await pytests(
        tmp_path,
        "import pytest\n"
        "def test_ok(): pass\n"
        "def test_bad(): assert 1 == 2\n"
        "def test_skip(): pytest.skip('why not')\n"
        "@pytest.mark.xfail\ndef test_xfail(): assert 0\n"
        "@pytest.fixture\ndef broken(): raise OSError('no')\n"
        "def test_setup(broken): pass\n"
        "@pytest.mark.parametrize('x', [1, 'a::b[c]'])\ndef test_p(x): pass\n",
    )
    assert report.outcome is Outcome.FAILED
    assert outcomes(report) | {"b[c]]": "passed"} == {
        "test_ok": "passed", "test_bad": "failed", "test_skip": "skipped", "test_xfail": "xfailed",
        "test_setup": "error", "test_p[1]": "passed", "b[c]]": "passed",
    }  # fmt: skip
    bad = next(test for test in report.tests if test.id.endswith("test_bad"))
    assert "assert 1 == 2" in bad.message
    assert (bad.file, bad.line) == ("t/test_a.py", 3)
    assert report.manifest.canary is True


async def test_a_crash_keeps_what_ran_before_and_names_the_test(tmp_path: Path) -> None:
    crash = "import os\ndef test_a(): pass\ndef test_b(): os.abort()\ndef test_c(): pass\n"
    report = await pytests(
        tmp_path, crash, expected=("t/test_a.py::test_a", "t/test_a.py::test_b", "t/test_a.py::test_c")
    )
    assert report.outcome is Outcome.FAILED
    assert outcomes(report) == {"test_a": "passed", "test_b": "failed", "test_c": "not_run"}
    assert "SIGABRT" in report.reason
    assert "t/test_a.py::test_b" in report.reason


@pytest.mark.parametrize(
    ("conftest", "outcome", "reason"),
    [
        # as pytest-cov does where the coverage is too low
        ("def pytest_runtestloop(session):\n    yield\n    session.testsfailed += 1\n", "failed", "that are no test's"),
        ("def pytest_sessionfinish(session):\n    session.exitstatus = 2\n", "infra", "interrupted"),
        ("def pytest_sessionfinish(session):\n    session.exitstatus = 6\n", "failed", "exit status 6"),
    ],
)
async def test_the_canary_hides_no_other_reason_to_fail(
    tmp_path: Path, conftest: str, outcome: str, reason: str
) -> None:
    wrapper = "import pytest\n@pytest.hookimpl(wrapper=True)\n" if "yield" in conftest else ""
    files = {"t/test_a.py": "def test_ok(): pass\n", "conftest.py": wrapper + conftest}
    report = await run(
        tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["python", "-m", "pytest", "-p", "no:cacheprovider", "t"]
    )
    assert (report.outcome.value, report.manifest.canary) == (outcome, True)
    assert reason in report.reason and outcomes(report) == {"test_ok": "passed"}


@pytest.mark.parametrize(
    ("how", "why", "outcome"),
    [("shouldfail", "session-timeout: 600.0 sec exceeded", "timed_out"), ("shouldstop", "enough", "not_run")],
)
async def test_a_session_that_stops_itself_is_not_blind(tmp_path: Path, how: str, why: str, outcome: str) -> None:
    conftest = f"def pytest_runtest_teardown(item):\n    item.session.{how} = {why!r}\n"
    files = {"t/test_a.py": "def test_a(): pass\ndef test_b(): pass\n", "conftest.py": conftest}
    report = await run(
        tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["python", "-m", "pytest", "-p", "no:cacheprovider", "t"]
    )
    assert report.outcome.value == outcome and why in report.reason
    assert outcomes(report) == {"test_a": "passed", "test_b": "not_run"}


async def test_a_hang_is_ended_with_all_its_children(tmp_path: Path) -> None:
    hang = (
        "import subprocess, time\ndef test_a(): pass\n"
        "def test_b():\n    subprocess.Popen(['sleep', '987'], start_new_session=True)\n    time.sleep(600)\n"
        "def test_c(): pass\n"
    )
    report = await pytests(tmp_path, hang, seconds="15s")
    assert report.outcome is Outcome.TIMED_OUT
    assert outcomes(report) == {"test_a": "passed", "test_b": "not_run", "test_c": "not_run"}
    assert not any(b"sleep 987" in line for line in _command_lines())


def _command_lines() -> list[bytes]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" "))
    return found


@pytest.mark.parametrize(
    ("files", "outcome", "word"),
    [
        ({"t/readme": ""}, Outcome.OMITTED, "no test reported"),
        (
            {"t/test_a.py": "import pytest\npytest.skip('no GPU', allow_module_level=True)\n"},
            Outcome.OMITTED,
            "skipped",
        ),
        ({"t/test_a.py": "import nosuchmodule\n"}, Outcome.FAILED, "t/test_a.py"),
        ({"t/conftest.py": "import nosuchmodule\n", "t/test_a.py": ""}, Outcome.FAILED, "conftest"),
        ({"u/test_a.py": ""}, Outcome.OMITTED, "status 4"),
    ],
)
async def test_nothing_that_ran_is_no_pass(tmp_path: Path, files: dict[str, str], outcome: Outcome, word: str) -> None:
    report = await run(
        tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["python", "-m", "pytest", "-p", "no:cacheprovider", "t"]
    )
    assert report.outcome is outcome, report
    assert word in report.reason


async def test_a_filter_that_loses_a_test_is_an_omission(tmp_path: Path) -> None:
    both = ("t/test_a.py::test_a", "t/test_a.py::test_b")
    text = "def test_a(): pass\ndef test_b(): pass\n"
    report = await pytests(tmp_path, text, "-k", "test_a and not test_b", expected=both)
    assert (report.outcome, report.manifest.missing) == (Outcome.OMITTED, both[1:])


async def test_a_script_around_pytest_is_seen_through(tmp_path: Path) -> None:
    files = {
        "go.sh": f"#!/bin/sh\n{sys.executable} -m pytest -q t || true\n",
        "t/test_a.py": "def test_a(): assert 0\n",
    }
    report = await run(tmp_path, files, harness="pytest", env=NO_PLUGINS, run=["./go.sh"])
    assert report.outcome is Outcome.FAILED
    assert outcomes(report) == {"test_a": "failed"}


async def test_pytest_of_a_test_does_not_disturb(tmp_path: Path) -> None:
    inner = (
        "import subprocess, sys, pathlib\n"
        "def test_outer(tmp_path):\n"
        "    (tmp_path / 'test_inner.py').write_text('def test_inner(): assert 0')\n"
        "    done = subprocess.run([sys.executable, '-m', 'pytest', str(tmp_path)], capture_output=True)\n"
        "    assert done.returncode == 1, done\n"
    )
    report = await pytests(tmp_path, inner)
    assert report.outcome is Outcome.PASSED, report
    assert outcomes(report) == {"test_outer": "passed"}
