"""A comment as a fact, and the commands that still stand in it: what is edited or deleted says nothing any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from bot.core.command import Command, Malformed, parse


@dataclass(frozen=True, slots=True)
class CommentFact:
    """A comment as GitHub shows it now; times are aware and in UTC.

    `head` is the head commit known when it came (None: not known); `body` what it says, or for an edited or deleted one
    what it said when it came, where that is known; `deleted` whether it was seen once and is gone.
    """

    id: int
    author: str
    body: str
    created_at: datetime
    head: str | None
    edited: bool = False
    deleted: bool = False
    is_bot: bool = False
    url: str = ""


def in_order(comments: Iterable[CommentFact]) -> list[CommentFact]:
    """Each comment once, oldest first; of two readings of one comment the one that says less stands."""
    kept: dict[int, CommentFact] = {}
    for comment in comments:
        known = kept.get(comment.id)
        if known is None or _rank(comment) > _rank(known):
            kept[comment.id] = comment
    return sorted(kept.values(), key=lambda comment: (comment.created_at, comment.id))


def _rank(comment: CommentFact) -> tuple[bool, bool, bool, str, str]:
    return (comment.deleted, comment.edited, comment.head is None, comment.head or "", comment.body)


def commands(comments: Iterable[CommentFact], name: str) -> Iterator[tuple[CommentFact, Command]]:
    """The well-formed commands of one name in people's comments, oldest first, revoked ones too."""
    for comment in in_order(comments):
        if comment.is_bot:
            continue
        for command in parse(comment.body):
            if isinstance(command, Command) and command.name == name:
                yield comment, command


def malformed(comments: Iterable[CommentFact]) -> Iterator[tuple[CommentFact, Malformed]]:
    """The lines that name a command and can't be read."""
    for comment in in_order(comments):
        if not comment.is_bot:
            for command in parse(comment.body):
                if isinstance(command, Malformed):
                    yield comment, command
