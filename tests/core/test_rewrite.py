"""Upstream's history rewritten: which commits stand there again, and what of the record they take over."""

from __future__ import annotations

import pytest

from bot.core.decisions import PASSED_OVER
from bot.core.render.answers import read_decisions
from bot.core.render.rewritten import PER_COMMENT, RewriteNote, followed_comments, rewrite_alarm, rewrite_box
from bot.core.render.text import BODY_LIMIT
from bot.core.rewrite import Rewrite, kept, patch_identity, twins
from bot.core.types import Commit, Disposition, LedgerEntry
from tests.golden import same_as_golden


def commit(sha: str, *, subject: str = "", number: int | None = None, time: int = 1) -> Commit:
    subject = subject or f"subject {sha}"
    message = f"{subject} (#{number})" if number else subject
    return Commit(
        sha=sha, tree="t", parents=("p",), author_name="A", author_email="a@x", author_time=time, author_tz="+0000",
        committer_time=time, message=message,
    )  # fmt: skip


def test_a_patch_is_known_wherever_it_stands() -> None:
    one = "diff --git a/x b/x\nindex 1234..5678 100644\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ def f\n a\n-b\n+c\n"
    moved = one.replace("1234..5678", "9999..8888").replace("@@ -1,3 +1,3 @@ def f", "@@ -7,3 +9,3 @@ def g")
    assert patch_identity(one) == patch_identity(moved) is not None
    assert patch_identity(one) != patch_identity(one.replace("+c", "+d"))
    assert patch_identity("") is None


def test_twins_by_patch_then_by_person_then_by_number() -> None:
    gone = [commit("a1"), commit("b1", subject="same", time=5), commit("c1", number=7), commit("d1")]
    fresh = [commit("a2"), commit("b2", subject="same", time=5), commit("c2", subject="Other", number=7), commit("e2")]
    found = twins(gone=gone, fresh=fresh, patches={"a1": "P", "a2": "P", "b1": "Q", "b2": "R", "d1": "S"})
    assert found == {"a1": "a2", "b1": "b2", "c1": "c2"}


def test_several_alike_keep_their_order_and_a_lost_one_is_not_guessed() -> None:
    gone = [commit("a1", subject="s"), commit("a2", subject="s")]
    fresh = [commit("b1", subject="s"), commit("b2", subject="s")]
    patches = dict.fromkeys(("a1", "a2", "b1", "b2"), "P")
    assert twins(gone=gone, fresh=fresh, patches=patches) == {"a1": "b1", "a2": "b2"}
    assert twins(gone=gone, fresh=fresh[:1], patches=patches) == {}


@pytest.mark.parametrize(
    ("disposition", "by", "becomes"),
    [
        (Disposition.PICKED, "f" * 40, Disposition.EMPTY),
        (Disposition.WONT_PORT, "walter", Disposition.WONT_PORT),
        (Disposition.DEFERRED, "walter", Disposition.DEFERRED),
        (Disposition.REVERTED, "f" * 40, Disposition.DEFERRED),
        (Disposition.DEFERRED, PASSED_OVER, None),
        (Disposition.EMPTY, "planner", None),
        (Disposition.SKIPPED, "planner", None),
        (Disposition.PENDING, "", None),
    ],
)
def test_what_a_twin_takes_over(disposition: Disposition, by: str, becomes: Disposition | None) -> None:
    rewrite = Rewrite("o", "n", "b", (commit("a1"),), (commit("a2"),), {"a1": "a2"})
    entry = LedgerEntry("a1", disposition, "subject", by, "because", "maria")
    found = kept(rewrite, [entry], passed_over=PASSED_OVER)
    assert [e.disposition for e in found] == ([becomes] if becomes else [])
    assert all(e.sha == "a2" and "before upstream's history was rewritten" in e.reason for e in found)


def test_what_is_said_fits_and_is_read_back() -> None:
    decisions = [LedgerEntry(f"{n:040x}", Disposition.EMPTY, "s" * 200, "f" * 40, "r" * 300) for n in range(450)]
    note = RewriteNote("o" * 40, "n" * 40, 500, 480, 450, ("a" * 40,) * 9)
    comments = followed_comments(note, by="maria", kept=decisions)
    assert len(comments) == len({hidden for hidden, _ in comments}) == -(-450 // PER_COMMENT)
    assert all(len(text) < BODY_LIMIT for _, text in comments)
    assert [e.sha for _, text in comments for e in read_decisions(text)] == [e.sha for e in decisions]
    assert "had picked 9 of the gone" in rewrite_alarm(note)
    few = followed_comments(
        note, by="maria", kept=[LedgerEntry("b" * 40, Disposition.EMPTY, "Fix #7 for @x", "f" * 40, "r")]
    )
    same_as_golden("rewritten.md", "\n\n".join([rewrite_alarm(note), rewrite_box(note), few[0][1]]))
    assert "can't be followed" in rewrite_alarm(RewriteNote("o" * 40, "n" * 40, 5, 5, 0, related=False))
