"""The command line starts light: help and plan load nothing that they don't use; each command has help."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bot.cli import COMMANDS

HEAVY = ("githubkit", "torch", "triton", "sqlalchemy", "arq", "redis", "starlette", "uvicorn", "httpx", "jsonschema_rs")
PROBE = """
import json, sys
sys.argv = ["graft", *{arguments!r}]
from bot.cli import main
try:
    main()
except SystemExit as end:
    status = end.code
print("\\n" + json.dumps([status, sorted({{name.split(".")[0] for name in sys.modules}} & set({heavy!r}))]))
"""


def start(*arguments: str) -> tuple[int, list[str], str]:
    code = PROBE.format(arguments=list(arguments), heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    status, loaded = json.loads(done.stdout.rstrip().rsplit("\n", 1)[1])
    return int(status or 0), loaded, done.stdout


def test_help_lists_every_command_and_loads_nothing_heavy() -> None:
    status, loaded, text = start("--help")
    assert (status, loaded) == (0, [])
    assert all(name in text for name in COMMANDS)


def test_plan_loads_nothing_heavy() -> None:
    status, loaded, _ = start("plan", "--help")
    assert (status, loaded) == (0, [])


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(name: str) -> None:
    status, _, text = start(name, "--help")
    assert status == 0 and "Usage" in text


def test_an_unknown_command_is_refused_with_the_list() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bot.cli", "plann"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2 and "plann" in done.stderr
