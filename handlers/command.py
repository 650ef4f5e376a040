"""Carry out the commands of one comment: bound to the commit known when it came, by role, each once, each answered."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta

from bot.clients.github import Comment, Issue, NotFound, Pull
from bot.clients.store.models import CommandRecord, Job
from bot.context import Context
from bot.core.audit import AuditKind
from bot.core.command import BY_NAME, Command, Malformed, Role, Where, parse
from bot.core.owners import People
from bot.core.render.answers import Said, answer_body, answer_marker
from bot.core.render.text import code, line, short
from handlers.asked import Asked, see_head
from handlers.auditing import record
from handlers.dashboard import DASHBOARD_LABEL
from handlers.fork import Fork, NotAFork, open_fork
from handlers.orders import EXECUTORS
from handlers.people import people

BOUND = ("validate", "signoff", "waive", "ok-to-test")


async def comment(ctx: Context, job: Job) -> None:
    """Job `comment`: read the comment again and do what stands in it now and was not done yet."""
    try:
        fork = await open_fork(ctx, job.scope)
    except NotAFork:
        return None
    number, comment_id = int(job.payload["number"]), int(job.payload["comment"])
    try:
        written = await fork.github.comment(comment_id)
    except NotFound:
        await fork.enqueue("gate", f"#{number}", {"number": number})  # a sign-off in it is void by now
        return None
    found = parse(written.body)
    if written.user.bot or not found:
        return None
    issue = await fork.github.issue(number)
    pull = await fork.github.pull(number) if issue.pull_request is not None else None
    head = await head_at(fork, number, job.payload.get("received_at"), pull)
    fresh = [one for one in found if await _record(fork, written, one, number, head)]
    if not fresh:
        return await _again(fork, number, pull)
    await fork.github.react(comment_id, "eyes")
    said = [await _carry_out(fork, one, written, issue, pull, head) for one in fresh]
    body = answer_body(comment=comment_id, url=written.html_url, author=written.user.login, head=head or "", said=said)
    await fork.github.upsert_comment(number, answer_marker(comment_id), body)
    async with ctx.store.transaction() as tx:
        for one, answer in zip(fresh, said, strict=True):
            await tx.answer_command(fork.name, comment_id, one.index, answer.text, fork.now)
            entry = {
                "number": number,
                "comment": comment_id,
                "author": written.user.login,
                "head": head or "",
                "command": one.text[:1000],
                "done": answer.done,
                "answer": answer.text[:1000],
            }
            await record(tx, scope=fork.scope, kind=AuditKind.COMMAND, body=entry, at=fork.now)
    await fork.github.react(comment_id, "+1" if all(one.done for one in said) else "confused")
    return await _again(fork, number, pull)


async def _again(fork: Fork, number: int, pull: Pull | None) -> None:
    if pull is not None:
        await fork.enqueue("gate", f"#{number}", {"number": number})


async def _record(fork: Fork, comment: Comment, one: Command | Malformed, number: int, head: str | None) -> bool:
    """Note the command with its commit; False where it was carried out before (an edit elsewhere in the comment)."""
    digest = hashlib.sha256(one.text.encode()).hexdigest()
    record = CommandRecord(
        repository=fork.name,
        installation=fork.scope.installation,
        comment_id=comment.id,
        position=one.index,
        body_hash=digest,
        number=number,
        sha=head or "",
        actor=comment.user.login,
        received_at=fork.now,
    )
    if await fork.ctx.store.record_command(record):
        return True
    known = [
        r
        for r in await fork.ctx.store.commands(fork.name, number)
        if (r.comment_id, r.position, r.body_hash) == (comment.id, one.index, digest)
    ]
    return bool(known) and known[0].answer is None  # a worker died between the record and the answer


async def head_at(fork: Fork, number: int, received_at: str | None, pull: Pull | None) -> str | None:
    """The head commit that was known when the comment came; None where nobody had seen one by then."""
    if pull is None:
        return None
    seen = await fork.note(f"heads:{number}") or []
    when = datetime.fromisoformat(received_at) if received_at else fork.now
    before = [sha for sha, at in seen if datetime.fromisoformat(at) <= when]
    if not before:
        # from now on it is known, so that saying it again works
        await see_head(fork.ctx, fork.scope, number, pull.head.sha, fork.now)
        return None
    return str(before[-1])


async def _carry_out(
    fork: Fork, one: Command | Malformed, comment: Comment, issue: Issue, pull: Pull | None, head: str | None
) -> Said:
    if isinstance(one, Malformed):
        return Said(one.text, False, f"{line(one.problem, 400)}. Written so: {code(one.usage)}")
    who = await people(fork, [comment.user.login])
    if (refusal := _refusal(fork, one, comment, issue, pull, head, who)) is not None:
        return Said(one.text, False, refusal)
    asked = Asked(
        fork, one, comment.user.login, who, issue.number, pull, head, comment.created_at or fork.now, comment.id
    )
    return await EXECUTORS[one.name](asked)


def _refusal(
    fork: Fork, one: Command, comment: Comment, issue: Issue, pull: Pull | None, head: str | None, who: People
) -> str | None:
    spec, author = BY_NAME[one.name], comment.user.login
    place = _where(issue, pull)
    if place not in spec.where:
        return f"{code('/' + one.name)} is not understood here; {', '.join(sorted(w.value for w in spec.where))} only."
    allowed = {
        Role.ANYONE: True,
        Role.WRITE: who.can_write(author),
        Role.OWNER: who.at_least(author, "read"),
        Role.MAINTAIN: who.can_maintain(author),
    }[spec.role]
    if not allowed:
        return f"{line(author)} may not: it takes {spec.role.value} access to {code(fork.name)}."
    if pull is not None and pull.state != "open" and one.name not in ("rollback", "explain", "help", "retry", "bisect"):
        return "This pull request is closed."
    if one.name in BOUND and pull is not None:
        if head is None:
            return "It is not known which commit was meant. Say it again for the present head: " + short(pull.head.sha)
        if head != pull.head.sha:
            return (
                f"Refused: the comment was about {short(head)}, and the head is {short(pull.head.sha)} by now. "
                "Look at the new commit and say it again."
            )
    return None


def _where(issue: Issue, pull: Pull | None) -> Where:
    if pull is not None:
        return Where.PULL
    return Where.DASHBOARD if any(label.name == DASHBOARD_LABEL for label in issue.labels) else Where.ISSUE


async def unanswered(ctx: Context, job: Job) -> None:
    """Job `unanswered`: a command taken up and never answered, as after a crash, is taken up again."""
    before = ctx.now() - timedelta(minutes=10)
    for one in await ctx.store.unanswered_commands(before):
        await ctx.store.enqueue(
            "comment",
            f"#{one.number}!{one.comment_id}",
            {"number": one.number, "comment": one.comment_id, "received_at": one.received_at.isoformat()},
            installation=one.installation,
            repository=one.repository,
            now=ctx.now(),
        )
