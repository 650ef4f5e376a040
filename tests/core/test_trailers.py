"""Trailers: what messages record, and that what Graft writes does nothing to anybody."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.trailers import (
    SUBJECT_LIMIT,
    PullReference,
    inert,
    parse,
    pick_message,
    pull_number,
    revive,
    without_picks,
)
from bot.core.types import Commit

A, B, C = "a" * 40, "b" * 40, "c1" * 20
REACTOR = r"Reactor (?:Backport|Cherry-pick) Revision: (?P<sha>[0-9a-f]{40})"


def commit(message: str, sha: str = A) -> Commit:
    return Commit(sha, "t" * 40, ("p" * 40,), "Ann", "ann@example.org", 1, "+0000", 1, message)


@pytest.mark.parametrize(
    ("text", "picks"),
    [
        (f"Fix\n\n(cherry picked from commit {A})\n", (A,)),
        (f"Fix\r\n\r\n( Cherry  Picked from COMMIT {A.upper()} )\r\n", (A,)),
        (f"Fix\n\n(cherry picked from\ncommit {A})\n", (A,)),
        (f"Fix (cherry picked from commit `{A}`), see", (A,)),
        (f"Fix (cherry picked from commit [{A}](https://example.org/{A}))", (A,)),
        ("short (cherry picked from commit abcdef1)", ("abcdef1",)),
        (f"not one: cherry picked from commit {A}", ()),
        ("(cherry picked from commit nonsense)", ()),
        (f"(cherry picked from commit {B})\n(cherry picked from commit {A})\n(cherry picked from commit {B})", (B, A)),
        (f"x\nReactor Backport Revision: {B}\nReactor Cherry-pick Revision: {A}", (B, A)),
        (f"reactor backport revision: {B}", (B,)),
        ("", ()),
    ],
)
def test_picks_are_read(text: str, picks: tuple[str, ...]) -> None:
    assert parse(text, [REACTOR]).picks == picks


def test_c18_sixty_picks_in_one_body_are_all_read_in_order() -> None:
    shas = [f"{number:040x}" for number in range(60)]
    body = "".join(f"* Title {n} (#{n})\r\n\r\n(cherry picked from commit {sha})\r\n\r\n" for n, sha in enumerate(shas))
    assert parse(body).picks == tuple(shas)


def test_c17_a_trailer_twice_in_one_commit_counts_once() -> None:
    assert parse(f"(cherry picked from commit {A})\n" * 2).picks == (A,)


@pytest.mark.parametrize(
    ("text", "pulls"),
    [
        ("Upstream-PR: triton-lang/triton#12", (PullReference("triton-lang/triton", 12),)),
        ("upstream-pr :  triton-lang/triton#\u200b12\r", (PullReference("triton-lang/triton", 12),)),
        ("Upstream-PR: #12\nUpstream-PR: #13", (PullReference(None, 12), PullReference(None, 13))),
        ("see Upstream-PR: a/b#12", ()),
    ],
)
def test_upstream_pulls_are_read(text: str, pulls: tuple[PullReference, ...]) -> None:
    assert parse(text).upstream_pulls == pulls


@pytest.mark.parametrize(
    ("text", "reverts"),
    [
        (f'Revert "x"\n\nThis reverts commit {A}.', (A,)),
        (f"This reverts commit {A}, reversing\nchanges made to {B}.", (A,)),
        (f"This reverts commits {A}, {B} and {C}.", (A, B, C)),
        ("this Reverts commit abcdef123", ("abcdef123",)),
        ("This reverts the behaviour of commit messages", ()),
    ],
)
def test_reverts_are_read(text: str, reverts: tuple[str, ...]) -> None:
    assert parse(text).reverts == reverts


def test_reverted_pulls_and_identities_are_read() -> None:
    found = parse("Revert\n\nReverts my-org/fork#7\nReverts #8\nDifferential Revision:\nD12\nChange-Id: Iabcdef0123\n")
    assert found.reverted_pulls == (PullReference("my-org/fork", 7), PullReference(None, 8))
    assert found.identities == ("D12", "Iabcdef0123")
    found = parse("Original commit changeset: 0123456789ab\n\nOriginal Phabricator Diff: D9\nThis diff reverts D10\n")
    assert found.reverted_identities == ("D9", "D10", "0123456789ab")


@pytest.mark.parametrize(
    ("marker", "why"), [("(?P<sha>[0-9a-f]{40}", "no regular expression"), ("Pick: ([0-9a-f]+)", "no group named sha")]
)
def test_a_broken_marker_is_named(marker: str, why: str) -> None:
    with pytest.raises(ValueError, match=rf"ingest\.picked_markers\[1\].*{why}"):
        parse("x", [REACTOR, marker])


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Fix (#12)", 12),
        ('Revert "Fix (#12)" (#13)', 13),
        ('Revert "Fix (#12)"', None),
        ("Merge pull request #14 from x/y", 14),
        ("Fix (#\u200b12)", 12),
        ("Fix #12", None),
    ],
)
def test_pull_number(subject: str, number: int | None) -> None:
    assert pull_number(f"{subject}\n\n(#99)") == number


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Fixes #8592 by @user", "Fixes #|8592 by @|user"),
        ("closes owner/repo#1", "closes owner/repo#|1"),
        ("see GH-12, gh-13", "see GH-|12, gh-|13"),
        ("https://github.com/o/r/pull/12#issuecomment-5", "https://redirect.github.com/o/r/pull/12#issuecomment-5"),
        ("https://www.github.com/o/r/issues/12", "https://redirect.github.com/o/r/issues/12"),
        ("www.github.com/o/r/issues/12", "www.github.com/o/r/issues/|12"),
        ("https://git.corp/o/r/pull/12", "https://git.corp/o/r/pull/|12"),
        ("@https://github.com/o/r/pull/12", "@|https://redirect.github.com/o/r/pull/12"),
        ("mail ann@example.org", "mail ann@example.org"),
        ("@triton.jit and (@org/team)", "@|triton.jit and (@|org/team)"),
        (r"\@user \#12 GH\-12", r"\@|user \#|12 GH\-|12"),
        ("&#64;user &commat;user &num;12 &#x23;12", "&#|64;user &|commat;user &|num;12 &#|x23;12"),
        ("[skip ci] [ci skip]", "[|skip ci] [|ci skip]"),
        ("skip-checks: true", "skip-checks|: true"),
        ("<!-- graft:state -->", "<|!-- graft:state -->"),
        ("a # b, C#, x[#], 5 @ 6", "a # b, C#, x[#], 5 @ 6"),
    ],
)
def test_c20_upstream_text_is_inert(text: str, want: str) -> None:
    assert inert(text) == want.replace("|", "\u200b")
    assert revive(inert(text)) == text.replace("https://www.", "https://")


# GitHub's own rules, written down a second time
MENTION = re.compile(r"(?:^|[^A-Za-z0-9_`])@[a-z0-9](?:[a-z0-9-]|/[a-z0-9])*", re.IGNORECASE)
REFERENCE = re.compile(r"(?:(?:[\w.-]+/)?[\w.-]+)?#\d+|\bGH-\d+", re.IGNORECASE)
LINK = re.compile(r"(?:https?://(?:www\.)?|www\.)github\.com/[\w.-]+/[\w.-]+/(?:issues|pull|discussions)/\d+", re.I)
CLOSING = re.compile(
    rf"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:{REFERENCE.pattern}|{LINK.pattern})", re.IGNORECASE
)

_pieces = st.sampled_from(
    [
        *[
            "@",
            "#",
            "1",
            "23",
            "user",
            "o/r",
            "GH-",
            "gh-",
            "https://github.com",
            "www.",
            "github.com",
            "/",
            "pull",
            "issues",
            "discussions/",
            "&",
            ";",
            "`",
            "*",
            "(",
            ")",
            "é",
        ],
        *[
            "&#64;",
            "&commat;",
            "&num;",
            "&amp;",
            "\\",
            "<!--",
            "redirect.",
            "https://redirect.github.com/o/r/pull/1",
            "_",
            "-",
            ".",
            "\u200b",
        ],
        *("Fixes ", "closes: ", "\n", " ", "\r\n", "[skip ci]", "Co-authored-by: X @y <x@y.z>\n", "x" * 150),
        *(f"(cherry picked from commit {B})", "(cherry picked from\n", f"commit {B})", "Upstream-PR: o/r#7\n"),
        *(f"\nReactor Backport Revision: {B}{B}", "Signed-off-by: Fixes #1 <a@b.c>\r\n"),
    ]
)
texts = st.lists(_pieces | st.text(max_size=5), max_size=25).map("".join)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_nothing_live_is_left(text: str) -> None:
    still = inert(text)
    for seen in (still, html.unescape(still)):
        for rule in (MENTION, REFERENCE, LINK, CLOSING):
            assert not rule.search(seen)
    assert "[skip ci]" not in still
    assert inert(still) == still
    assert revive(still) == revive(text)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_a_pick_records_its_own_commit_and_nothing_else(text: str) -> None:
    message = pick_message(commit(text), upstream_repository="o/r", pr=5, batch="k1", markers=[REACTOR])
    found = parse(message, [REACTOR])
    assert found.picks == (A,)
    assert found.upstream_pulls == (PullReference("o/r", 5),)
    assert found.batches == ("k1",)
    assert len(message.split("\n", 1)[0]) <= 2 * SUBJECT_LIMIT
    emails = re.sub(r"(?m)^(Co-authored-by|Signed-off-by): (.*) <\S+@\S+>$", r"\1: \2", message)
    for rule in (MENTION, REFERENCE, LINK, CLOSING):
        assert not rule.search(emails)
    again = pick_message(commit(message, C), upstream_repository="o/r", pr=5, batch="k2", markers=[REACTOR])
    assert parse(again, [REACTOR]).picks == (C,)
    assert parse(again, [REACTOR]).batches == ("k2",)


def test_pick_message_keeps_people_and_words() -> None:
    original = (
        "[AMD] Fix crash (#8592)\r\n\r\nFixes #8500, thanks @helper.\r\n\r\n---------\r\n\r\n"
        "Co-authored-by: Ben Two <1+ben@users.noreply.github.com>\r\nsigned-off-by: Ann <ann@example.org>\r\n"
    )
    message = pick_message(commit(original), upstream_repository="triton-lang/triton", pr=8592, batch="2kx")
    assert message == (
        "[AMD] Fix crash (#|8592)\n\nFixes #|8500, thanks @|helper.\n\n---------\n\n"
        "Co-authored-by: Ben Two <1+ben@users.noreply.github.com>\nSigned-off-by: Ann <ann@example.org>\n"
        f"Upstream-PR: triton-lang/triton#|8592\nGraft-Batch: 2kx\n(cherry picked from commit {A})\n"
    ).replace("|", "\u200b")


def test_a_long_subject_is_capped_and_nothing_is_lost() -> None:
    words = " ".join(f"word{n}" for n in range(80))
    message = pick_message(commit(words), upstream_repository="o/r", pr=None, batch="k")
    subject, rest = message.split("\n\n")[:2]
    assert len(subject) <= SUBJECT_LIMIT
    assert f"{subject[:-1]} {rest[1:]}" == words
    assert "Upstream-PR" not in message


def test_an_empty_message_gets_a_subject() -> None:
    assert pick_message(commit("\n"), upstream_repository="o/r", pr=None, batch="k").startswith(f"Pick {A[:12]}\n\n")


def test_without_picks_reads_the_same_and_records_nothing() -> None:
    text = f"(cherry picked from commit {A})"
    assert parse(without_picks(text)).picks == ()
    assert revive(without_picks(text)) == text
