"""The head that a comment is about: a table, and random races against the truth."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.heads import KEPT, OPENED, Seen, bound_to, head_at, with_seen

START = datetime(2026, 11, 29, 12, tzinfo=UTC)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def seen(*heads: tuple[str, float, str]) -> tuple[Seen, ...]:
    kept: tuple[Seen, ...] = ()
    for sha, second, before in heads:
        kept = with_seen(kept, Seen(sha, at(second), before))
    return kept


A, B, C = ("a", 0.0, OPENED), ("b", 10.0, "a"), ("c", 20.0, "b")


@pytest.mark.parametrize(
    ("known", "current", "pushed", "comment", "expected"),
    [
        # all is known
        ([A], "a", None, 5, "a"),
        ([A], "a", None, 0, "a"),
        ([A, B], "b", None, 0, "a"),
        ([A, B], "b", None, 9, "a"),
        ([A, B], "b", None, 11, "b"),
        ([A, B, C], "c", None, 15, "b"),
        ([A, B, C], "c", 20, 500, "c"),
        # in the very second nobody knows
        ([A, B], "b", None, 10, None),
        ([A, B], "b", 10, 10.0, None),
        # come twice, late, in another order
        ([C, B, A, B], "c", None, 15, "b"),
        ([C, A, B], "c", None, 9, "a"),
        # two pushes in one second: the chain of heads orders them
        ([A, ("d", 10.0, "b"), B], "d", None, 11, "d"),
        ([("d", 10.0, "b"), B, A], "d", None, 9, "a"),
        # put back: each stretch counts by itself
        ([A, B, ("a", 20.0, "b")], "a", None, 15, "b"),
        ([A, B, ("a", 20.0, "b")], "a", None, 25, "a"),
        # a push whose event was lost in between: between the two it can't be told
        ([A, C], "c", None, 15, None),
        ([A, C], "c", None, 25, "c"),
        # the present head is not known to have come: only where nothing was pushed since before the comment
        ([A], "b", None, 15, None),
        ([A], "b", 10, 15, "b"),
        ([A], "b", 16, 15, None),
        ([A], "b", 15, 15, None),
        # nothing is known, as after a lost database
        ([], "b", 10, 15, "b"),
        ([], "b", 20, 15, None),
        ([], "b", None, 15, None),
        # one that was merely seen at some moment, and a comment from before and after
        ([("b", 12.5, "")], "b", None, 12, None),
        ([("b", 12.5, "")], "b", None, 13, "b"),
        ([("b", 12.5, ""), ("b", 3.0, "a")], "b", None, 5, "b"),
        ([("b", 2.5, ""), ("b", 10.0, "a")], "b", None, 5, None),
        ([A, ("b", 12.0, "")], "b", None, 5, "a"),
    ],
)
def test_the_head_at_a_moment(
    known: Sequence[tuple[str, float, str]], current: str, pushed: float | None, comment: float, expected: str | None
) -> None:
    found = head_at(
        seen=seen(*known), current=current, pushed_at=None if pushed is None else at(pushed), at=at(comment)
    )
    assert found == expected


@pytest.mark.parametrize(
    ("created", "edited", "expected", "why"),
    [
        (5, None, "a", ""),
        (5, 8, "a", ""),
        (5, 15, None, "written at a and edited at b"),
        (12, 15, "b", ""),
        (5, 10, None, "moved"),
        (10, 15, None, "moved"),
    ],
)
def test_an_edited_comment_is_about_what_both_its_times_agree_on(
    created: float, edited: float | None, expected: str | None, why: str
) -> None:
    bound = bound_to(
        seen=seen(A, B), current="b", pushed_at=at(10), created=at(created),
        edited=None if edited is None else at(edited),
    )  # fmt: skip
    assert bound.sha == expected
    assert why in bound.why


def test_only_so_many_heads_are_kept() -> None:
    kept = seen(*[(str(n), float(n), str(n - 1)) for n in range(KEPT + 20)])
    assert [one.sha for one in kept] == [str(n) for n in range(20, KEPT + 20)]
    assert head_at(seen=kept, current=kept[-1].sha, pushed_at=None, at=at(3)) is None


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_whatever_is_lost_late_or_doubled_nothing_else_than_the_head_of_that_moment_is_told(
    data: st.DataObject,
) -> None:
    """Pushes at true moments; GitHub shows whole seconds. Each event comes once, twice or never, in any order, and the
    head may be put back to an older one.
    """
    moments = sorted(data.draw(st.lists(st.integers(1, 400), unique=True, max_size=6)))
    truth = [(0.0, "h0")]
    for n, moment in enumerate(moments):
        heads = [f"h{h}" for h in range(n + 2) if f"h{h}" != truth[-1][1]]
        truth.append((moment / 10, data.draw(st.sampled_from(heads))))
    events = [
        Seen(sha, at(float(int(when))), OPENED if place == 0 else truth[place - 1][1])
        for place, (when, sha) in enumerate(truth)
    ]  # fmt: skip
    arrived = data.draw(st.permutations([e for e in events for _ in range(data.draw(st.integers(0, 2)))]))
    known: tuple[Seen, ...] = ()
    for event in arrived:
        known = with_seen(known, event)
    comment = data.draw(st.integers(1, 450)) / 10
    others = data.draw(st.sampled_from([0.0, 44.0]))  # pushes to other branches of that repository
    told = head_at(
        seen=known, current=truth[-1][1], pushed_at=at(int(max(truth[-1][0], others))), at=at(float(int(comment)))
    )
    then = [sha for when, sha in truth if when <= comment][-1]
    if len(set(arrived)) == len(events):
        assert told in (None, then)
        # with nothing lost it is told, but for pushes within one second of each other or of the comment
        seconds = [int(when) for when, _ in truth] + [int(comment)]
        assert told == then or len(set(seconds)) < len(seconds)
    else:
        # an event may be lost for good; then no head is told that came only after the comment
        assert told is None or told in [sha for when, sha in truth if when <= comment]
