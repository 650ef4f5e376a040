"""Untrusted text can't break out of what it is put into, and hidden blocks can't be closed from inside."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bot.core.render.text import (
    BODY_LIMIT,
    block,
    code,
    details,
    fence,
    fit,
    line,
    plural,
    printable,
    read_block,
    table,
)

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
NASTY = st.text(alphabet=st.sampled_from("`~|<>!-*_[]()#@\\\n\r\x1b[31m\u202e\u200babc /:"), max_size=60)


@given(NASTY)
def test_a_fence_holds_whatever_is_put_into_it(text: str) -> None:
    tokens = MARKDOWN.parse(f"{fence(text)}\n\nafter")
    assert [t.type for t in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content.rstrip("\n") == printable(text).rstrip("\n")


@given(NASTY)
def test_a_cell_stays_one_cell(text: str) -> None:
    tokens = MARKDOWN.parse(table(["a", "b"], [[line(text) or "–", code(text)]]))
    assert sum(t.type == "td_open" for t in tokens) == 2
    assert not any(t.type.startswith("html") for t in tokens)
    inline = [child.type for t in tokens for child in t.children or []]
    assert "html_inline" not in inline and "link_open" not in inline and "image" not in inline


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30), max_size=4))
def test_a_block_comes_back_and_can_not_be_closed_from_inside(data: dict[str, str]) -> None:
    text = block("test", data)
    assert text.count("-->") == 1 and text.endswith("-->")
    assert read_block("test", f"before\n{text}\nafter <!-- graft:test {{}} -->") == data


def test_a_block_that_is_not_there_or_broken_is_none() -> None:
    assert read_block("test", None) is None
    assert read_block("test", "<!-- graft:test {broken -->") is None
    assert read_block("test", "<!-- graft:other {} -->") is None


@given(st.lists(st.text(min_size=1, max_size=400), max_size=30))
def test_fit_keeps_the_limit_and_the_tail_and_says_what_it_left_out(parts: list[str]) -> None:
    limit = 2_000
    text = fit(parts, "<!-- tail -->", limit)
    assert len(text) <= limit
    assert text.endswith("<!-- tail -->")
    if sum(map(len, parts)) + 2 * len(parts) > limit:
        assert "more not shown" in text


def test_two_thousand_failures_fit_into_one_comment() -> None:
    parts = [details(f"test {i}", fence("E   assert 1 == 2\n" * 40)) for i in range(2_000)]
    text = fit(parts, block("report", {"version": 1}))
    assert len(text) <= BODY_LIMIT
    assert text.count("<details>") == text.count("</details>")
    assert read_block("report", text) == {"version": 1}


def test_mentions_and_references_do_nothing() -> None:
    text = line("Fixes #8592, thanks @user, see acme/tilec#1")
    assert "@user" not in text and "#8592" not in text and "tilec#1" not in text


def test_numbers_with_nouns() -> None:
    assert [plural(1, "commit"), plural(2, "commit"), plural(2, "suite")] == ["1 commit", "2 commits", "2 suites"]
