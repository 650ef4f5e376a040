"""`graft run`: what a runner does, on a checkout, without a bot; its exit status and its JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.cli import build
from tests.runners.world import commit

YAML = """
upstream: {repository: a/b}
validation:
  l1:
    - {suite: unit, run: [python, -m, pytest, t], env: {PYTEST_DISABLE_PLUGIN_AUTOLOAD: "1"}}
    - {suite: shell, harness: command, run: [sh, -c, "test ! -f broken"]}
"""


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    commit(tmp_path / "fork", {".github/graft.yml": YAML, "t/test_a.py": "def test_a(): pass\n"})
    return tmp_path / "fork"


def graft(*arguments: str) -> Result:
    return CliRunner().invoke(build(["run"]), ["run", *arguments])


def test_a_level_that_passes(fork: Path) -> None:
    result = graft("l1", "--checkout", str(fork), "--json")
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout.splitlines()[-1])
    assert (said["level"], said["outcome"]) == ("l1", "passed")
    assert [(report["suite"], report["outcome"]) for report in said["reports"]] == [
        ("unit", "passed"),
        ("shell", "passed"),
    ]
    assert said["reports"][0]["repeat"] == "graft run l1 --suite unit"


def test_a_failure_and_an_omission_end_with_1(fork: Path, tmp_path: Path) -> None:
    (fork / "broken").touch()
    result = graft("l1", "--suite", "shell", "--checkout", str(fork))
    assert result.exit_code == 1
    assert "shell: failed" in result.stdout
    (tmp_path / "expected.json").write_text(json.dumps({"unit": ["t/test_a.py::test_a", "t/test_a.py::test_gone"]}))
    result = graft("l1", "--suite", "unit", "--checkout", str(fork), "--expected", str(tmp_path / "expected.json"))
    assert result.exit_code == 1
    assert "missing t/test_a.py::test_gone" in result.stdout


def test_a_suite_as_it_is_proved_a_second_time(fork: Path) -> None:
    twice = YAML.replace('broken"]}', 'broken"], second: {harness: command, run: [sh, -c, "test -f broken"]}}')
    (fork / ".github" / "graft.yml").write_text(twice)
    assert graft("l1", "--suite", "shell", "--checkout", str(fork)).exit_code == 0
    result = graft("l1", "--second", "--checkout", str(fork), "--json")  # those of the level that are
    assert result.exit_code == 1, result.output
    (report,) = json.loads(result.stdout.splitlines()[-1])["reports"]
    assert (report["suite"], report["repeat"]) == ("shell", "graft run l1 --suite shell --second")
    for arguments in (("--suite", "shell", "--suite", "unit"), ("--suite", "unit")):
        result = graft("l1", "--second", "--checkout", str(fork), *arguments)
        assert (result.exit_code, "unit: proved once only" in result.stderr) == (2, True), result.output


def test_what_can_t_run_ends_with_2_and_says_what_to_mend(fork: Path, tmp_path: Path) -> None:
    for arguments, words in (
        (("l1", "--suite", "nope", "--checkout", str(fork)), "has no suite nope; it has"),
        (("l2", "--checkout", str(fork)), "l2 has no suite that runs by itself"),
        (("l1", "--checkout", str(tmp_path)), "can't be read"),
        (("l1", "--checkout", str(fork), "--expected", str(fork / "t/test_a.py")), "not a JSON object"),
    ):
        result = graft(*arguments)
        assert result.exit_code == 2, result.output
        assert words in result.stderr
    (fork / ".github" / "graft.yml").write_text("upstream: {repository: a/b}\nvalidatoin: {}\n")
    result = graft("l1", "--checkout", str(fork))
    assert result.exit_code == 2
    assert "validation" in result.stderr
