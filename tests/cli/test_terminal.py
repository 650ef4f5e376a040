"""Text of repositories and services is shown, and commands neither the terminal nor rich."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import bot.cli
from bot.cli import build
from bot.cli.terminal import plain, say
from tests.cli.test_doctor import park
from tests.clients.test_git import Work, lines

TITLE = "\x1b]0;another title\x07"
RED = "\x1b[31m"
FOLDER = Path(bot.cli.__file__).parent


@pytest.mark.parametrize(
    "text", [f"{TITLE}said", f"{RED}said", "\rsaid", "sa\x08\x1b[2Jid", "\u202esaid", "\x9b31msaid"]
)
def test_what_is_said_commands_nothing(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    say(text)
    said = capsys.readouterr().out
    assert said.strip().endswith("said")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", plain(text).plain)


def test_a_commit_of_upstream_s_can_not_write_to_the_terminal(tmp_path: Path) -> None:
    work = Work(tmp_path / "work")
    work.commit("base", {"a.txt": lines()})
    work.git("branch", "fork")
    sha = work.commit(f"{TITLE}Tune [bold]it[/] [/dim]", {"a.txt": lines((3, f"{RED}up"))})
    work.git("checkout", "-q", "fork")
    work.commit("the fork's", {"a.txt": lines((3, "fork"))})
    sides = ["--upstream", str(work.path), "--upstream-ref", "main", "--fork", str(work.path), "--fork-ref", "fork"]
    for more in ([], ["--explain", sha]):
        done = CliRunner().invoke(
            build(["plan"]), ["plan", *sides, "--cache", str(tmp_path / "kept"), *more], color=True
        )
        assert done.exit_code == 0
        assert "Tune [bold]it[/] [/dim]" in done.stdout
        assert "\x1b]" not in done.stdout
    assert "a.txt:4\n<<<<<<<" in done.stdout


def test_what_looks_like_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    asyncio.run(park(tmp_path, "KeyError: [/x] is not [bold]"))
    environment = {"GRAFT_DATA": str(tmp_path), "GRAFT_REDIS_URL": "redis://127.0.0.1:1", "COLUMNS": "300"}
    done = CliRunner().invoke(build(["doctor"]), ["doctor"], env=environment)
    assert "KeyError: [/x] is not [bold]" in done.stdout
    assert done.exit_code == 1


def test_nothing_else_writes_to_the_terminal() -> None:
    # a suite's and a search's programs write as they are run by hand: with their colours
    programs = {"run.py", "bisect.py"}
    for file in FOLDER.glob("*.py"):
        text = file.read_text("utf-8")
        if file.name != "terminal.py":
            assert not re.search(r"typer\.echo\(|(?<!\w)Text\(", text), f"{file.name}: use say, emit or plain"
            assert file.name in programs or not re.search(r"(?<![\w.])print\(", text), f"{file.name}: use say or emit"
