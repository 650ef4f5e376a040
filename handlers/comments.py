"""A pull request's comments as facts, each bound to the head commit that was known when it came."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.context import Comment
from bot.core.comments import CommentFact
from bot.core.render.answers import read_answer
from handlers.fork import Fork


async def comment_facts(fork: Fork, number: int) -> list[CommentFact]:
    """All comments of a pull request as facts.

    The head comes from the record made when the comment's delivery arrived; where the store lost it, from the answer
    that Graft gave on GitHub.
    """
    me = await fork.login()
    comments = await fork.github.comments(number)
    records = await fork.ctx.store.commands(fork.name, number)
    mine = (read_answer(comment.body) for comment in comments if comment.user.login == me)
    heads = {bound.comment: bound.sha for bound in mine if bound is not None}
    heads |= {record.comment_id: record.sha for record in records}
    # a deleted comment is simply not among them: what it asked for is gone with it
    return [_fact(comment, heads) for comment in comments if comment.user.login != me]


def _fact(comment: Comment, heads: dict[int, str]) -> CommentFact:
    created = comment.created_at or datetime.fromtimestamp(0, UTC)
    return CommentFact(
        id=comment.id,
        author=comment.user.login,
        body=comment.body,
        created_at=created,
        head=heads.get(comment.id) or None,
        edited=comment.updated_at is not None and comment.updated_at > created,
        is_bot=comment.user.bot,
        url=comment.html_url,
    )
