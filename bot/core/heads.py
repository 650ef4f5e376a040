"""Which head commit a pull request had at a moment, by GitHub's own times; None where that can't be told.

A comment is about the head that it was written under, however late it is read. Both times are GitHub's, in whole
seconds: a push within the comment's very second may have come before or after it, so nothing is told then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

OPENED = "0" * 40
KEPT = 50


@dataclass(frozen=True, slots=True)
class Seen:
    """A head, and when the pull request got it (aware). `before` is the head that it replaced: OPENED for the first
    one, "" where that is not known.
    """

    sha: str
    at: datetime
    before: str = ""


@dataclass(frozen=True, slots=True)
class Bound:
    """The commit that was meant, or None with the reason why it can't be told."""

    sha: str | None
    why: str = ""


def with_seen(known: Sequence[Seen], new: Seen) -> tuple[Seen, ...]:
    """The history with one more head, oldest first, of which it may have come late or twice; the newest KEPT are kept.

    A mere look (`before` not known) at a head whose coming is known adds nothing.
    """
    left = sorted({*known, new}, key=_order)
    kept: list[Seen] = []
    while left:
        same = [one for one in left if _second(one.at) == _second(left[0].at)]
        # within one second GitHub's chain of heads gives the order
        following = next((one for one in same if kept and one.before == kept[-1].sha), same[0])
        left.remove(following)
        if not kept or kept[-1].sha != following.sha or (kept[-1].before and following.before):
            kept.append(following)
        elif following.before:
            kept[-1] = following
    return tuple(kept[-KEPT:])


def head_at(*, seen: Sequence[Seen], current: str, pushed_at: datetime | None, at: datetime) -> str | None:
    """The head at the moment `at`, from the heads `seen` (oldest first) and the `current` one.

    `pushed_at` is when anything was last pushed to the repository that the head is in. None where a push may have been
    missed, or came in the very second.
    """
    if not seen or seen[-1].sha != current:
        return current if pushed_at is not None and _second(pushed_at) < _second(at) else None
    changes = seen[1:] if seen[0].before == OPENED else seen  # a comment can't be older than its pull request
    if any(_second(one.at) == _second(at) for one in changes):
        return None
    earlier = len(seen) - len(changes) + sum(one.at < at for one in changes)
    if earlier == 0:
        return None
    last = seen[earlier - 1].sha
    following = seen[earlier].before if earlier < len(seen) else last
    return last if following in ("", last) else None


def bound_to(
    *, seen: Sequence[Seen], current: str, pushed_at: datetime | None, created: datetime, edited: datetime | None
) -> Bound:
    """The commit that a comment is about: the head when it was written and, where it was edited since, still then.

    What an edit added and what stood there before can't be told apart afterwards, so both moments must agree.
    """
    heads = [
        head_at(seen=seen, current=current, pushed_at=pushed_at, at=moment)
        for moment in dict.fromkeys((created, edited or created))
    ]
    if None in heads:
        return Bound(None, "the head moved while your comment came, or nobody saw when it moved")
    if heads[0] != heads[-1]:
        return Bound(None, f"written at {str(heads[0])[:10]} and edited at {str(heads[-1])[:10]}")
    return Bound(heads[0])


def _second(at: datetime) -> datetime:
    return at.replace(microsecond=0)


def _order(one: Seen) -> tuple[datetime, bool, bool, datetime, str, str]:
    return _second(one.at), one.before != OPENED, not one.before, one.at, one.sha, one.before
