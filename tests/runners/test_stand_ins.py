"""A program that a suite's command calls out of sight: it is found, and shows on a failing test that it reports it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import runners.execute
from bot.core.canary import has_canary
from bot.core.config import Suite
from bot.core.types import Outcome
from runners.harnesses import Place
from runners.harnesses.lit import HARNESS as LIT
from runners.spotting import Called, Tool, look, spot
from tests.runners.suite import LIT_CFG, run

LIT_PY = "import lit.main\nif __name__ == '__main__':\n    lit.main.main()\n"
WAITS = "RUN: sh -c 'while [ ! -e {}/seen ]; do sleep 0.02; done'\n"


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Called]:
    """What was seen called; the file `seen` is there from then on, for which a test may wait."""
    found: list[Called] = []

    async def spotted(root: int, tool: Tool) -> Called:
        found.append(await spot(root, tool))
        (tmp_path / "seen").touch()
        return found[-1]

    monkeypatch.setattr(runners.execute, "spot", spotted)
    return found


def lit_files(test: str, **files: str) -> dict[str, str]:
    return {"lit/lit.cfg": LIT_CFG, "lit/a.t": test, **files}


# --- lit


async def test_the_lit_that_a_build_tool_calls_runs_a_failing_test(tmp_path: Path, seen: list[Called]) -> None:
    suite: dict[str, Any] = {"run": ["./check.sh"], "harness": "lit"}
    script = f"#!/bin/sh\ncd tools && MINE=yes {sys.executable} -u llvm-lit -v ../lit\n"
    files = lit_files(WAITS.format(tmp_path), **{"check.sh": script, "tools/llvm-lit": LIT_PY})
    report = await run(tmp_path, files, **suite)
    assert (report.outcome, report.manifest.canary) == (Outcome.PASSED, True), report
    assert [test.id for test in report.tests] == ["FORK :: a.t"]
    assert [one.words for one in seen] == [(sys.executable, "-u", str(tmp_path / "source/tools/llvm-lit"))]
    assert seen[0].env["MINE"] == "yes"
    assert not has_canary(Suite.model_validate({"suite": "s", **suite}))  # it is not sure that it can be found


async def test_a_failing_suite_needs_no_stand_in_and_keeps_its_exit_status(tmp_path: Path) -> None:
    # the second call writes over what the first one said: only the exit status tells
    script = "#!/bin/sh\nlit bad; bad=$?\nlit lit\nexit $bad\n"
    files = lit_files("RUN: true\n", **{"check.sh": script, "bad/lit.cfg": LIT_CFG, "bad/b.t": "RUN: false\n"})
    report = await run(tmp_path / "twice", files, harness="lit", run=["./check.sh"])
    assert (report.outcome, report.manifest.canary) == (Outcome.FAILED, True), report
    assert "exit status 1 though every reported test passed" in report.reason
    files = lit_files("RUN: false\n", **{"check.sh": "#!/bin/sh\nexec lit lit\n"})
    report = await run(tmp_path / "once", files, harness="lit", run=["./check.sh"])
    assert (report.outcome, report.manifest.canary) == (Outcome.FAILED, True), report


@pytest.mark.skipif(shutil.which("ninja") is None, reason="needs ninja (apt-get install ninja-build)")
async def test_a_lit_in_the_build_folder_that_hides_failures_is_blind(tmp_path: Path) -> None:
    hides = (
        f"#!{sys.executable}\n"
        "import lit.main, lit.Test\n"
        "said = lit.Test.Test.setResult\n"
        "def nothing_fails(self, result):\n"
        "    result.code = lit.Test.PASS\n"
        "    said(self, result)\n"
        "lit.Test.Test.setResult = nothing_fails\n"
        "if __name__ == '__main__':\n"
        "    lit.main.main()\n"
    )
    ninja = "rule lit\n  command = bin/llvm-lit -v ../lit\n  pool = console\nbuild check-foo: lit\n"
    for name, llvm_lit, canary in (
        ("blind", hides, False),
        ("good", hides.replace("lit.Test.PASS", "result.code"), True),
    ):
        files = lit_files("RUN: true\n", **{"build/bin/llvm-lit": llvm_lit, "build/build.ninja": ninja})
        report = await run(tmp_path / name, files, harness="lit", run=["ninja", "-C", "build", "check-foo"])
        assert report.manifest.canary is canary, report
        assert report.outcome is (Outcome.PASSED if canary else Outcome.INFRA), report
        assert ("blind" in report.reason) is not canary


async def test_where_no_lit_of_the_suites_version_is_found_there_is_no_canary(tmp_path: Path) -> None:
    results = '{"__version__": [1, 2, 3], "tests": [{"name": "FORK :: a.t", "code": "PASS", "elapsed": 0.1}]}'
    script = f"#!/bin/sh\nset -- $LIT_OPTS\necho '{results}' > $2\n"
    report = await run(tmp_path, {"check.sh": script}, harness="lit", run=["./check.sh"])
    assert (report.outcome, report.manifest.canary) == (Outcome.PASSED, None), report


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (["/venv/bin/python3", "/venv/bin/lit", "-v", "test"], 2),
        (["python3.12", "-u", "/build/bin/llvm-lit", "-sv", "test"], 3),
        (["/opt/llvm-lit", "test"], 1),
        # others that have the word among their arguments
        (["ninja", "-C", "build/lit"], 0),
        (["python3", "run.py", "test/lit"], 0),
        (["python3", "-m", "pytest", "lit"], 0),
        (["python3", "-m"], 0),
        (["sh", "-c", "lit test"], 0),
        (["python3"], 0),
    ],
)
def test_lit_is_known_by_how_it_is_started(tmp_path: Path, words: list[str], count: int) -> None:
    suite = Suite.model_validate({"suite": "s", "harness": "lit", "run": ["ninja", "check"]})
    hidden = LIT.start(Place(suite, tmp_path, tmp_path)).hidden
    assert hidden is not None
    assert hidden.tool(words) == count


# --- ctest

CTEST = pytest.mark.skipif(shutil.which("ctest") is None, reason="needs CMake (apt-get install cmake)")


@CTEST
async def test_the_ctest_that_a_script_calls_runs_a_failing_test(tmp_path: Path, seen: list[Called]) -> None:
    waits = f"while [ ! -e {tmp_path}/seen ]; do sleep 0.02; done"
    files = {
        "CTestTestfile.cmake": f'add_test(good "sh" "-c" "{waits}")\n',
        "go.sh": '#!/bin/sh\nctest --test-dir . "$@"\n',
    }
    report = await run(tmp_path, files, harness="ctest", run=["./go.sh"])
    assert (report.outcome, report.manifest.canary) == (Outcome.PASSED, True), report
    assert [test.id for test in report.tests] == ["good"]
    assert [one.words[0].rpartition("/")[2] for one in seen] == ["ctest"]


async def test_what_is_called_ctest_and_takes_none_of_its_options_shows_nothing(
    tmp_path: Path, seen: list[Called]
) -> None:
    shutil.copy("/bin/sh", tmp_path / "ctest")
    result = '<testsuite name="x" tests="1"><testcase name="a" classname="a" time="0" status="run"/></testsuite>'
    waits = f"while [ ! -e {tmp_path}/seen ]; do sleep 0.02; done"
    files = {
        "own.sh": f"echo '{result}' > $3\n{waits}\n",
        "go.sh": f'#!/bin/sh\n{tmp_path}/ctest own.sh "$@"\n',
    }
    report = await run(tmp_path / "run", files, harness="ctest", run=["./go.sh"])
    assert [one.words for one in seen] == [(str(tmp_path / "ctest"),)]
    assert (report.outcome, report.manifest.canary) == (Outcome.PASSED, None), report


# --- the processes


async def test_a_process_is_found_below_another_with_all_that_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("import time\ntime.sleep(600)\n")
    inner = f"cd {tmp_path} && MINE=yes {sys.executable} tool.py --its own & wait"
    outer = await asyncio.create_subprocess_exec(
        "sh", "-c", f"sh -c '{inner}'; true", start_new_session=True, env={"PATH": "/usr/bin:/bin"}
    )

    def tool(words: object) -> int:
        return 2 if isinstance(words, list) and words[1:2] == ["tool.py"] else 0

    try:
        async with asyncio.timeout(60):
            called = await spot(outer.pid, tool)
        assert called.words == (sys.executable, str(tmp_path / "tool.py"))
        assert called.env["MINE"] == "yes"
        assert look(outer.pid, lambda _: 0) is None
    finally:
        os.killpg(outer.pid, signal.SIGKILL)
        await outer.wait()
    assert look(2**22 + 1, tool) is None
