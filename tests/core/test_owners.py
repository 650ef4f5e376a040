from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.config import Config
from bot.core.owners import (
    MAX_CODEOWNERS,
    People,
    areas_of,
    mentionable,
    owners_of,
    parse_codeowners,
    responsible,
)

CONFIG = Config.of({
    "upstream": {"repository": "a/b"},
    "default_owner": "org/all",
    "areas": {
        "core": {"paths": ["lib/**", "!lib/tlx/**"], "owners": ["Olga"]},
        "tlx": {"paths": ["lib/tlx/**"], "owners": ["org/tlx"]},
        "layouts": {"symbols": ["*Layout*"], "owners": ["upstreamer"]},
        "bare": {"paths": ["bare/**"]},
    },
})  # fmt: skip
PEOPLE = People.of(
    {"OLGA": "admin", "reader": "read", "odd": "owner"}, {"Org/TLX": ["Tim"], "org/all": ["ann"], "org/no": []}
)


@pytest.mark.parametrize(
    ("paths", "symbols", "areas"),
    [
        (["lib/a"], [], ("core",)),
        (["lib/tlx/a"], [], ("tlx",)),
        (["lib/tlx/a", "lib/b"], [], ("core", "tlx")),
        (["x"], ["LinearLayout"], ("layouts",)),
        (["x"], [], ()),
        ([], [], ()),
    ],
)
def test_areas(paths: list[str], symbols: list[str], areas: tuple[str, ...]) -> None:
    assert areas_of(paths, CONFIG, symbols) == areas


def test_owners_fall_to_the_default() -> None:
    assert owners_of("core", CONFIG) == ("Olga",)
    assert owners_of("bare", CONFIG) == ("org/all",)
    assert owners_of("nowhere", CONFIG) == ("org/all",)
    assert owners_of("bare", CONFIG.model_copy(update={"default_owner": None})) == ()


def test_people() -> None:
    assert PEOPLE.can_maintain("olga")
    assert not PEOPLE.can_write("reader")
    assert not PEOPLE.at_least("odd", "read")
    assert not PEOPLE.at_least("nobody", "read")
    assert PEOPLE.is_one_of("tim", ["@org/tlx"])
    assert PEOPLE.is_one_of("Olga", ["@oLGA"])
    assert not PEOPLE.is_one_of("tim", ["org/other"])
    assert not PEOPLE.knows("org/no")
    assert PEOPLE.knows("org/tlx")


FILE = r"""
# a comment
*                 @org/all
*.js              @js-owner # inline comment
/build/logs/      @doctocat
docs/*            docs@example.com
apps/             @octocat
/scripts/         @doctocat @octocat
**/logs           @logger
/apps/github
with\ space/*.txt @spacer
\#hash            @nobody
!neg              @nobody
[ab].py           @nobody
bad               notanowner
/end/             @a-b/c.d
"""


@pytest.mark.parametrize(
    ("path", "owners"),
    [
        ("anything", ("org/all",)),
        ("a/b.js", ("js-owner",)),
        ("build/logs/x/y", ("logger",)),
        ("x/build/logs/y", ("logger",)),
        ("docs/a.md", ("docs@example.com",)),
        ("docs/sub/a.md", ("org/all",)),
        ("x/docs/a.md", ("org/all",)),
        ("apps/x", ("octocat",)),
        ("deep/apps/x", ("octocat",)),
        ("apps/github", ()),
        ("apps/github/x", ()),
        ("scripts/x", ("doctocat", "octocat")),
        ("deep/logs", ("logger",)),
        ("deep/logs/a", ("logger",)),
        ("with space/a.txt", ("spacer",)),
        ("#hash", ("org/all",)),
        ("neg", ("org/all",)),
        ("a.py", ("org/all",)),
        ("bad", ("org/all",)),
        ("end/x", ("a-b/c.d",)),
    ],
)
def test_codeowners_as_github_reads_it(path: str, owners: tuple[str, ...]) -> None:
    assert parse_codeowners(FILE).owners(path) == owners


def test_lines_that_github_ignores_are_told() -> None:
    problems = parse_codeowners(FILE).problems
    assert [problem.split(":")[0] for problem in problems] == ["line 12", "line 13", "line 14", "line 15"]
    assert parse_codeowners("x" * (MAX_CODEOWNERS + 1)).problems
    assert parse_codeowners("").owners("x") == ()


@given(st.text(max_size=200), st.text(max_size=30))
def test_any_codeowners_is_read(text: str, path: str) -> None:
    assert isinstance(parse_codeowners(text).owners(path), tuple)


def test_nobody_outside_the_fork_is_asked() -> None:
    both = mentionable(["upstreamer", "Olga"], people=PEOPLE, default="org/all")
    assert both.owners == ("Olga",)
    assert "upstreamer" in both.warnings[0]
    none = mentionable(["upstreamer"], people=PEOPLE, default="org/all")
    assert none.owners == ("org/all",)
    assert len(none.warnings) == 2
    assert mentionable([], people=PEOPLE, default="org/all").warnings == ()
    assert mentionable(["x"], people=PEOPLE, default=None).owners == ()
    assert "default_owner is not set" in mentionable(["x"], people=PEOPLE, default=None).warnings[-1]
    assert mentionable(["x"], people=PEOPLE, default="org/no").owners == ()


def test_who_answers_for_a_change() -> None:
    assert responsible(paths=["lib/a"], config=CONFIG, people=PEOPLE).owners == ("Olga",)
    owners = parse_codeowners("/x/ @reader mail@example.com\n")
    assert responsible(paths=["x/a"], config=CONFIG, people=PEOPLE, codeowners=owners).owners == ("reader",)
    assert responsible(paths=["y"], config=CONFIG, people=PEOPLE, codeowners=owners).owners == ("org/all",)
    assert responsible(paths=["y"], config=CONFIG, people=PEOPLE, symbols=["Layout"]).owners == ("org/all",)
