"""One suite over files that are written for it, run as a runner runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bot.core.config import Suite
from bot.core.types import Level
from bot.core.validation import Report, RunRequest
from runners.execute import Work, execute

NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
LIT_CFG = """import lit.formats
config.name = "FORK"
config.test_format = lit.formats.ShTest()
config.suffixes = [".t"]
"""
GTEST = """#!/bin/sh
case "$GTEST_OUTPUT" in xml:*/) out="${GTEST_OUTPUT#xml:}unit.xml";; esac
echo "[ RUN      ] A.x"; echo "[       OK ] A.x (0 ms)"
echo "[ RUN      ] A.y"
"""


def gtest_xml(body: str) -> str:
    return (
        '<testsuites tests="2"><testsuite name="A"><testcase name="x" classname="A" status="run" result="completed"/>'
        f'<testcase name="y" classname="A" status="run" result="completed">{body}</testcase></testsuite></testsuites>'
    )


async def run(
    tmp_path: Path, files: dict[str, str], *, expected: tuple[str, ...] = (), seconds: str = "60s", **suite: Any
) -> Report:
    source = tmp_path / "source"
    for name, text in files.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
        if text.startswith("#!"):
            (source / name).chmod(0o755)
    source.mkdir(parents=True, exist_ok=True)
    (tmp_path / "run" / "results").mkdir(parents=True)
    request = RunRequest(
        run_id="r1",
        repository="a/b",
        commit="1" * 40,
        level=Level.L1,
        suite=Suite.model_validate({"suite": "s", "timeout": seconds, **suite}),
        git_path="/x",
        expected=expected,
    )
    return await execute(Work(request=request, source=source, folder=tmp_path / "run", cache=tmp_path / "cache"))


async def pytests(tmp_path: Path, text: str, *more: str, **options: Any) -> Report:
    options.setdefault("run", ["python", "-m", "pytest", "-p", "no:cacheprovider", *more, "t"])
    return await run(tmp_path, {"t/test_a.py": text}, harness="pytest", env=NO_PLUGINS, **options)


def outcomes(report: Report) -> dict[str, str]:
    return {test.id.rpartition("::")[2]: test.outcome.value for test in report.tests}
