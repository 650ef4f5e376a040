"""A conflict is shown where it is: on the fork's tip, or only on what is to land before the commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bot.cli import build
from bot.clients.symbols import SymbolCache
from bot.core.types import Verdict
from handlers.clashing import Clash, clash
from tests.clients.test_git import lines
from tests.handlers.two_sides import Pair


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path / "work", {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()})


def of(pair: Pair, sha: str) -> Clash:
    plan = pair.plan()
    planned = {c.sha: c for chain in plan.chains for c in chain.commits}
    assert planned[sha].verdict is Verdict.CONFLICT
    found = clash(pair.git, plan, sha)
    with SymbolCache(pair.work.path / "kept.sqlite") as kept:
        assert clash(pair.git, plan, sha, cache=kept) == clash(pair.git, plan, sha, cache=kept) == found
    return found


def only_in_order(pair: Pair) -> tuple[str, str]:
    """A commit that merges onto the fork, but not onto what merges before it; and that one."""
    pair.upstream("far off", {"c.txt": lines((4, "far"))})
    first = pair.upstream("first", {"a.txt": lines((3, "first"))})
    pair.upstream("back again", {"a.txt": lines(), "b.txt": lines((5, "upstream"))})
    second = pair.upstream("second", {"a.txt": lines((3, "second"))})
    pair.fork("the fork's", {"b.txt": lines((5, "fork"))})
    return first, second


def test_a_conflict_with_the_tip_is_labelled_with_the_tip(pair: Pair) -> None:
    pair.upstream("before", {"c.txt": lines((4, "far"))})
    sha = pair.upstream("upstream's", {"a.txt": lines((3, "upstream"))})
    tip = pair.fork("the fork's", {"a.txt": lines((3, "fork"))})
    found = of(pair, sha)
    assert (found.onto, found.text, found.partners) == (f"the fork's tip {tip[:12]}", "", ())
    assert [(hunk.path, hunk.line) for hunk in found.hunks] == [("a.txt", 4)]
    assert found.hunks[0].text.startswith("<<<<<<< fork\nfork\n||||||| parent of ")


def test_where_only_the_order_conflicts_it_says_so_and_with_what(pair: Pair) -> None:
    first, second = only_in_order(pair)
    found = of(pair, second)
    assert "only the order of landing conflicts" in found.text
    assert "the 2 undecided upstream commits that merge before it are in the fork" in found.text
    assert found.onto.endswith("with the 2 undecided upstream commits that merge before it")
    assert found.partners == (first,)
    assert [hunk.path for hunk in found.hunks] == ["a.txt"]
    assert found.hunks[0].text.startswith("<<<<<<< fork, with what merges before\nfirst\n")


def test_what_comes_on_top_in_order_is_said_too(pair: Pair) -> None:
    pair.upstream("first", {"a.txt": lines((3, "first"))})
    pair.upstream("back again", {"a.txt": lines(), "b.txt": lines((5, "upstream"))})
    sha = pair.upstream("second", {"a.txt": lines((3, "second")), "b.txt": lines((5, "upstream's other"))})
    pair.fork("the fork's", {"b.txt": lines((5, "fork"))})
    found = of(pair, sha)
    assert [hunk.path for hunk in found.hunks] == ["b.txt"]
    assert found.text == "With the one undecided upstream commit that merges before it, it conflicts in a.txt too."


def test_a_conflict_without_lines_is_named(pair: Pair) -> None:
    pair.work.git("checkout", "-q", "main")
    sha = pair.upstream("upstream deletes it", {"a.txt": None, "b.txt": lines((2, "x"))})
    pair.fork("the fork's", {"a.txt": lines((3, "fork"))})
    found = of(pair, sha)
    assert (found.hunks, found.text) == ((), "No lines to show of a.txt (modify/delete).")


def explain(pair: Pair, sha: str, *more: str) -> Result:
    sides = ["--upstream", str(pair.work.path), "--upstream-ref", "main", "--fork", str(pair.work.path)]
    cache = ["--fork-ref", "fork", "--cache", str(pair.work.path / "kept")]
    return CliRunner().invoke(build(["plan"]), ["plan", *sides, *cache, "--explain", sha, *more])


def test_the_command_line_tells_it(pair: Pair) -> None:
    first, second = only_in_order(pair)
    page = explain(pair, second)
    assert page.exit_code == 0, page.output
    assert "only the order of landing conflicts" in page.stdout
    assert f"before it, these change the same files: {first[:12]}\n" in page.stdout
    assert "merged onto the fork's tip" in page.stdout
    assert "<<<<<<< fork, with what merges before\nfirst\n" in page.stdout
    facts = json.loads(explain(pair, second, "--json").stdout)
    assert facts["conflict"]["partners"] == [first] and facts["hunks"][0]["path"] == "a.txt"
    assert "conflict" not in json.loads(explain(pair, first, "--json").stdout)
