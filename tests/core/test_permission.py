"""Who may give which command where, and which suites one names."""

from __future__ import annotations

import pytest

from bot.core.command import Command, parse
from bot.core.command.permission import Standing, refusal
from bot.core.command.suites import choose_suites
from bot.core.command.table import Where
from bot.core.config import Config
from bot.core.owners import People
from bot.core.types import Level

L1, L2, L3 = Level

SHA = "1a2b3c4d5e"
WAIVE = '/waive unit::test_dot until=2026-12-31 owner=@octocat reason="driver" plan="new driver"'

CONFIG = Config.of({
    "upstream": {"repository": "a/b"},
    "areas": {"tlx": {"paths": ["x/**"], "owners": ["Olga", "org/tlx"]}},
    "validation": {
        "l2": [{"suite": "gemm-sweep"}, {"suite": "lit"}],
        "l1": [{"suite": "unit"}],
    },
})  # fmt: skip
PEOPLE = People.of(
    {"olga": "read", "wanda": "write", "max": "maintain", "ada": "admin", "tina": "triage", "member": "read"},
    {"org/tlx": ["Member"]},
)
PULL = Standing(Where.PULL, author="stranger")

ALLOWED: list[tuple[str, str, Standing, bool]] = [
    ("/help", "stranger", PULL, True),
    ("/explain", "stranger", Standing(Where.ISSUE), True),
    ("/validate l2", "stranger", PULL, False),
    ("/validate l2", "tina", PULL, False),
    ("/validate l2", "Wanda", PULL, True),
    ("/validate l2", "stranger", Standing(Where.PULL, author="Stranger", trusted=True), True),
    ("/validate l2", "other", Standing(Where.PULL, author="stranger", trusted=True), False),
    ("/validate l2", "wanda", Standing(Where.ISSUE), False),
    ("/validate l2", "wanda", Standing(Where.PULL, open=False), False),
    ("/validate l2 force=yes", "wanda", PULL, False),
    ("/validate l2 force=yes", "max", PULL, True),
    ("/ok-to-test", "stranger", Standing(Where.PULL, author="stranger", trusted=True), False),
    ("/ok-to-test", "wanda", PULL, True),
    ("/signoff l3 tlx", "olga", PULL, True),
    ("/signoff l3 tlx", "member", PULL, True),
    ("/signoff l3 tlx", "ada", PULL, False),
    ("/signoff l3 tlx", "stranger", PULL, False),
    ("/signoff l3 nowhere", "olga", PULL, False),
    ("/unsign", "olga", PULL, True),
    (WAIVE, "wanda", PULL, False),
    (WAIVE, "max", PULL, True),
    (f'/wont-port {SHA} reason="x"', "wanda", Standing(Where.DASHBOARD), False),
    (f'/wont-port {SHA} reason="x"', "ada", Standing(Where.DASHBOARD), True),
    ("/rollback", "max", Standing(Where.PULL, open=False), True),
    ("/rollback 1a2b3c4", "max", Standing(Where.ISSUE), True),
    ("/rollback", "max", Standing(Where.DASHBOARD), False),
    ("/rollback", "wanda", Standing(Where.PULL, open=False), False),
    ("/bisect unit", "wanda", Standing(Where.ISSUE), True),
    ("/bisect unit", "stranger", Standing(Where.ISSUE), False),
]


@pytest.mark.parametrize(("line", "by", "standing", "allowed"), ALLOWED)
def test_who_may(line: str, by: str, standing: Standing, allowed: bool) -> None:
    (command,) = parse(line)
    assert isinstance(command, Command)
    said = refusal(command=command, by=by, is_bot=False, people=PEOPLE, standing=standing, config=CONFIG)
    assert (said is None) is allowed, said
    if said is not None:
        assert said.text
        assert not said.silent
    bot = refusal(command=command, by=by, is_bot=True, people=PEOPLE, standing=standing, config=CONFIG)
    assert bot is not None
    assert bot.silent


def test_signing_waits_for_a_broken_file() -> None:
    (command,) = parse("/signoff l3 tlx")
    assert isinstance(command, Command)
    said = refusal(command=command, by="olga", is_bot=False, people=PEOPLE, standing=PULL, config=None)
    assert said is not None
    assert "broken" in said.text


@pytest.mark.parametrize(
    ("words", "suites", "problem"),
    [
        ((), ["gemm-sweep", "lit"], None),
        (("GEMM-sweep",), ["gemm-sweep"], None),
        (("everything",), ["gemm-sweep", "lit"], None),
        (("gem-sweep",), [], "did you mean gemm-sweep"),
        (("gemm-sweep", "some_suite"), [], "no suite of l2"),
    ],
)
def test_which_suites(words: tuple[str, ...], suites: list[str], problem: str | None) -> None:
    choice = choose_suites(config=CONFIG, level=L2, words=words)
    assert [suite.suite for suite in choice.suites] == suites
    assert (problem is None) is (choice.problem is None)
    assert (problem or "") in (choice.problem or "")


def test_a_level_without_suites() -> None:
    assert "no suite of l3" in (choose_suites(config=CONFIG, level=L3, words=()).problem or "")
