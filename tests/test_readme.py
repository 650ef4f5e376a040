"""The README tells the truth: its file is valid, its commands and variables exist."""

from __future__ import annotations

import re
from pathlib import Path

from bot.cli import COMMANDS
from bot.core.command import parse
from bot.core.command.values import Malformed
from bot.core.config import load
from bot.settings import Settings

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_file_is_valid() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert load(example).upstream.repository == "triton-lang/triton"


def test_each_graft_command_that_is_shown_exists() -> None:
    shown = set(re.findall(r"(?:bin/graft|^    graft) ([a-z]+)", README, re.MULTILINE))
    assert shown and shown <= set(COMMANDS)


def test_each_variable_that_is_shown_is_read() -> None:
    shown = set(re.findall(r"`GRAFT_([A-Z_]+)`", README))
    known = {name.upper() for name in Settings.model_fields} | {"RUNNER_TOKEN", "BOT_URL"}
    assert shown and {name.removesuffix("_FILE") for name in shown} <= known


def test_each_command_for_comments_that_is_shown_is_understood() -> None:
    block = README.split("The ones used most:")[1].split("\n\n")[1]
    lines = [part.strip() for part in re.split(r"\s{4,}|\n", block) if part.strip()]
    text = "\n".join(
        line.replace("<area>", "core").replace("<commit>", "1a2b3c4").replace("<test or suite>", "unit::test_a")
        .replace("YYYY-MM-DD", "2026-12-31")
        for line in lines
    )  # fmt: skip
    found = parse(text)
    assert len(found) == len(lines)
    assert not [one for one in found if isinstance(one, Malformed)]
