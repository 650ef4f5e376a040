"""What people read when upstream's history was rewritten: what is gone, and what following it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.core.render.text import block, line, marker, plural, short, table
from bot.core.types import LedgerEntry

PER_COMMENT = 200
_SHOWN = 30


@dataclass(frozen=True, slots=True)
class RewriteNote:
    """A rewritten upstream in numbers: commits gone, new ones, gone ones that stand there again, picked of the gone.

    `related` is False where the new history has nothing in common with the fork: then it can't be followed.
    """

    old: str
    new: str
    gone: int
    fresh: int
    again: int
    picked: tuple[str, ...] = ()
    related: bool = True


def rewrite_alarm(note: RewriteNote) -> str:
    """The warning on the dashboard."""
    picked = ", ".join(short(sha) for sha in note.picked[:6]) + (" …" if len(note.picked) > 6 else "")
    held = f"this fork had picked {len(note.picked)} of the gone: {picked}" if note.picked else "this fork had none"
    what = (
        f"Upstream's history was rewritten: {short(note.old)} is no longer in it, its tip is {short(note.new)}. "
        f"{plural(note.gone, 'commit')} gone, {note.fresh} new; {note.again} of the gone stand there again "
        f"under another name; {held}. "
    )
    if not note.related:
        return what + (
            "The new history has nothing in common with this fork, so that it can't be followed: does "
            "`.github/graft.yml` name the right repository and branch?"
        )
    return what + "Nothing of it is taken in until a maintainer ticks the box below."


def rewrite_box(note: RewriteNote) -> str:
    """The box that a maintainer ticks."""
    return (
        f"- [ ] Follow upstream's rewritten history to {short(note.new)} (for maintainers) "
        f"<!-- graft:do follow {note.new} -->"
    )


def followed_comments(note: RewriteNote, *, by: str, kept: Sequence[LedgerEntry]) -> list[tuple[str, str]]:
    """What is said once it is followed, as (marker, text) of each comment: the decisions that were kept stand in them,
    for when the store is lost.
    """
    comments = []
    portions = [kept[at : at + PER_COMMENT] for at in range(0, len(kept), PER_COMMENT)] or [()]
    for index, portion in enumerate(portions):
        hidden = marker(f"followed {note.new[:12]} {index}")
        rows = [
            [short(e.sha), line(e.subject, 100), e.disposition.value.replace("_", " "), line(e.reason, 160)]
            for e in portion[:_SHOWN]
        ]
        parts = [
            f"{hidden}\n{line(by, 60)} let Graft follow upstream's rewritten history from {short(note.old)} to "
            f"{short(note.new)}: {plural(note.gone, 'commit')} gone, {note.fresh} new, {note.again} of them known.",
            table(["upstream", "subject", "kept as", "why"], rows) if rows else "No decision had to be carried over.",
        ]
        if len(portion) > _SHOWN:
            parts.append(f"… and {len(portion) - _SHOWN} more, in the hidden block.")
        told = [
            {"sha": e.sha, "as": e.disposition.value, "by": e.by, "reason": e.reason[:120], "owner": e.owner}
            for e in portion
        ]
        comments.append((hidden, "\n\n".join([*parts, block("answer", {"decisions": told})])))
    return comments
