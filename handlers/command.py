"""Carry out the commands of one comment: bound to the commit known when it came, by role, each once, each answered."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.context import CommandRecord, Comment, Context, Forbidden, Issue, Job, NotFound, Pull, RateLimited, Scope
from bot.core.audit import AuditKind
from bot.core.command import BY_NAME, Command, Malformed, Role, Where, parse
from bot.core.heads import Bound, Seen, bound_to
from bot.core.owners import People
from bot.core.render.answers import Said, answer_body, answer_marker
from bot.core.render.text import code, line, marker, short
from handlers.asked import Asked, see_head, seen_heads
from handlers.auditing import record
from handlers.dashboard import DASHBOARD_LABEL
from handlers.fork import CONFIG_PATH, BrokenConfig, Fork, open_fork
from handlers.handing import take_back
from handlers.orders import EXECUTORS
from handlers.people import people

TRIES = 3
AGAIN = timedelta(minutes=10)
DEADLINE = timedelta(hours=1)
BOUND = ("validate", "report", "signoff", "waive", "ok-to-test")


async def comment(ctx: Context, job: Job) -> None:
    """Job `comment`: read the comment again and do what stands in it now and was not done yet."""
    number, comment_id = int(job.payload["number"]), int(job.payload["comment"])
    try:
        fork = await open_fork(ctx, job.scope)
    except BrokenConfig as broken:
        await _refuse_all(ctx, job, number, comment_id, broken)
        return
    try:
        written = await fork.github.comment(comment_id)
    except NotFound:
        await _gone(fork, number, comment_id)
        return
    if written.updated_at != written.created_at:
        await take_back(fork, number, comment_id)
    found = parse(written.body)
    if written.user.bot or not found:
        return
    issue = await fork.github.issue(number)
    pull = await fork.github.pull(number) if issue.pull_request is not None else None
    meant = await _meant(fork, number, written, pull)
    head = meant.sha
    fresh = [one for one in _counted(found) if await _record(fork, written, one, number, head)]
    if fresh:
        await fork.github.react(comment_id, "eyes")
        said = [await _guarded(fork, one.command, written, issue, pull, meant, job.attempts) for one in fresh]
        await _answer(fork, number, written, head, list(zip(fresh, said, strict=True)))
        await fork.github.react(comment_id, "+1" if all(one.done for one in said) else "confused")
    await _again(fork, number, pull)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A command of a comment by its text and which of those with this text it is: an edit elsewhere moves neither."""

    command: Command | Malformed
    nth: int

    @property
    def key(self) -> tuple[int, str]:
        """How the store knows it among those of its comment."""
        return self.nth, _digest(self.command.text)


def _counted(found: Sequence[Command | Malformed]) -> list[_Counted]:
    texts = [one.text for one in found]
    return [_Counted(one, texts[:at].count(one.text)) for at, one in enumerate(found)]


def _key(one: CommandRecord) -> tuple[int, str]:
    return one.position, one.body_hash


async def _guarded(
    fork: Fork,
    one: Command | Malformed,
    comment: Comment,
    issue: Issue,
    pull: Pull | None,
    meant: Bound,
    tries: int,
) -> Said:
    """What came of the command; an error is tried again by the job, and in the end told."""
    try:
        return await _carry_out(fork, one, comment, issue, pull, meant)
    except RateLimited:
        raise  # not the command's fault, and not counted
    except Exception as error:
        if tries < TRIES:
            raise
        fork.ctx.log.error("a command failed for good", number=issue.number, comment=comment.id, error=repr(error))
        what = f"{type(error).__name__}: {error}"[:300]
        return Said(one.text, False, f"It failed {tries} times and is given up: {line(what, 300)}. Say it again later.")


async def _answer(
    fork: Fork, number: int, written: Comment, head: str | None, answered: Sequence[tuple[_Counted, Said]]
) -> None:
    """One answer to a comment; what an edit asked for in addition gets one of its own, so that the first is kept."""
    mine = {one.key for one, _ in answered}
    known = await fork.ctx.store.commands(fork.name, number)
    before = [r for r in known if r.comment_id == written.id and _key(r) not in mine and r.answer is not None]
    said = [answer for _, answer in answered]
    hidden, first = answer_marker(written.id), answer_marker(written.id)
    if before:
        which = _digest("\n".join(f"{nth} {digest}" for nth, digest in sorted(mine)))[:12]
        hidden = marker(f"answer-to-edit {written.id} {which}")
    body = answer_body(comment=written.id, url=written.html_url, author=written.user.login, head=head or "", said=said)
    await fork.github.upsert_comment(number, hidden, body.replace(first, hidden, 1))
    async with fork.ctx.store.transaction() as tx:
        for one, answer in answered:
            nth, digest = one.key
            await tx.answer_command(fork.name, written.id, nth, answer.text, fork.now, body_hash=digest)
            entry = {
                "number": number,
                "comment": written.id,
                "author": written.user.login,
                "head": head or "",
                "command": one.command.text[:1000],
                "done": answer.done,
                "answer": answer.text[:1000],
            }
            await record(tx, scope=fork.scope, kind=AuditKind.COMMAND, body=entry, at=fork.now)


async def _gone(fork: Fork, number: int, comment_id: int) -> None:
    """The comment was deleted: what was signed in it is void, and what it asked for needs no answer any more."""
    await _close(fork, number, comment_id, "the comment is gone")
    await take_back(fork, number, comment_id)
    await fork.enqueue("gate", f"#{number}", {"number": number})


async def _close(fork: Fork, number: int, comment_id: int, answer: str) -> None:
    for one in await fork.ctx.store.commands(fork.name, number):
        if one.comment_id == comment_id and one.answer is None:
            await fork.ctx.store.answer_command(
                fork.name, comment_id, one.position, answer, fork.now, body_hash=one.body_hash
            )


async def _refuse_all(ctx: Context, job: Job, number: int, comment_id: int, broken: BrokenConfig) -> None:
    """Nothing can be done while the fork's file is broken; that is the answer."""
    github = ctx.github.repository(job.scope.installation, job.scope.repository)
    try:
        written = await github.comment(comment_id)
    except NotFound:
        return
    found = parse(written.body)
    if written.user.bot or not found:
        return
    problem = next((str(problem) for problem in broken.error.problems), "it can't be read")
    text = f"{code(CONFIG_PATH)} of the default branch is broken: {line(problem, 300)}. Mend it and say it again."
    said = [Said(one.text, False, text) for one in found]
    body = answer_body(comment=comment_id, url=written.html_url, author=written.user.login, head="", said=said)
    await github.upsert_comment(number, answer_marker(comment_id), body)


async def _again(fork: Fork, number: int, pull: Pull | None) -> None:
    if pull is not None:
        await fork.enqueue("gate", f"#{number}", {"number": number})


async def _record(fork: Fork, comment: Comment, one: _Counted, number: int, head: str | None) -> bool:
    """Note the command with its commit; False where it was carried out before (an edit elsewhere in the comment)."""
    nth, digest = one.key
    record = CommandRecord(
        repository=fork.name,
        installation=fork.scope.installation,
        comment_id=comment.id,
        position=nth,
        body_hash=digest,
        number=number,
        sha=head or "",
        actor=comment.user.login,
        received_at=fork.now,
    )
    if await fork.ctx.store.record_command(record):
        return True
    known = [
        r for r in await fork.ctx.store.commands(fork.name, number) if (r.comment_id, _key(r)) == (comment.id, one.key)
    ]
    return bool(known) and known[0].answer is None  # a worker died between the record and the answer


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def _meant(fork: Fork, number: int, written: Comment, pull: Pull | None) -> Bound:
    """The head commit that a comment is about, by GitHub's times of the comment and of the pushes."""
    if pull is None or written.created_at is None:
        return Bound(None)
    seen = await seen_heads(fork.ctx, fork.scope, number)
    bound = bound_to(
        seen=seen,
        current=pull.head.sha,
        pushed_at=pull.head.repo.pushed_at if pull.head.repo else None,
        created=written.created_at,
        edited=written.updated_at,
    )
    if bound.sha is None and all(one.sha != pull.head.sha for one in seen[-1:]):
        # from now on it is known, so that saying it again works
        await see_head(fork.ctx, fork.scope, number, Seen(pull.head.sha, fork.now))
    return bound


async def _carry_out(
    fork: Fork, one: Command | Malformed, comment: Comment, issue: Issue, pull: Pull | None, meant: Bound
) -> Said:
    if isinstance(one, Malformed):
        return Said(one.text, False, f"{line(one.problem, 400)}. Written so: {code(one.usage)}")
    who = await people(fork, [comment.user.login])
    if (refusal := _refusal(fork, one, comment, issue, pull, meant, who)) is not None:
        return Said(one.text, False, refusal)
    asked = Asked(
        fork, one, comment.user.login, who, issue.number, pull, meant.sha, comment.created_at or fork.now, comment.id
    )
    return await EXECUTORS[one.name](asked)


def _refusal(
    fork: Fork, one: Command, comment: Comment, issue: Issue, pull: Pull | None, meant: Bound, who: People
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
        if meant.sha is None:
            return (
                f"Refused: it is not known which commit was meant{f' ({meant.why})' if meant.why else ''}. "
                f"Look at the present head, {short(pull.head.sha)}, and say it again in a new comment."
            )
        if meant.sha != pull.head.sha:
            return (
                f"Refused: the comment was about {short(meant.sha)}, and the head is {short(pull.head.sha)} by now. "
                "Look at the new commit and say it again."
            )
    return None


def _where(issue: Issue, pull: Pull | None) -> Where:
    if pull is not None:
        return Where.PULL
    return Where.DASHBOARD if any(label.name == DASHBOARD_LABEL for label in issue.labels) else Where.ISSUE


async def unanswered(ctx: Context, job: Job) -> None:
    """Job `unanswered`: a command taken up and never answered, as after a crash, is taken up again; after the deadline
    its answer is that nothing came of it.
    """
    waiting: dict[tuple[Scope, int, int], datetime] = {}
    for one in await ctx.store.unanswered_commands(ctx.now() - AGAIN):
        waiting.setdefault((Scope(one.installation, one.repository), one.number, one.comment_id), one.received_at)
    for (scope, number, comment_id), since in waiting.items():
        if ctx.now() - since < DEADLINE:
            payload = {"number": number, "comment": comment_id, "received_at": since.isoformat()}
            await ctx.store.enqueue(
                "comment",
                f"#{number}!{comment_id}",
                payload,
                installation=scope.installation,
                repository=scope.repository,
                now=ctx.now(),
            )
            continue
        try:
            await _give_up(await open_fork(ctx, scope), number, comment_id)
        except Exception as error:  # one that can't be answered keeps no other from its answer
            ctx.log.warning("a command can't be answered", number=number, comment=comment_id, error=repr(error))


async def _give_up(fork: Fork, number: int, comment_id: int) -> None:
    """Say of a comment's commands that the time is over; where nobody can be told, note it."""
    waiting = {
        _key(one): one
        for one in await fork.ctx.store.commands(fork.name, number)
        if one.comment_id == comment_id and one.answer is None
    }
    try:
        written = await fork.github.comment(comment_id)
        left = [one for one in _counted(parse(written.body)) if one.key in waiting]
        text = f"Nothing came of it within {DEADLINE.total_seconds() / 60:.0f} minutes. Say it again."
        if left:
            answered = [(one, Said(one.command.text, False, text)) for one in left]
            await _answer(fork, number, written, waiting[left[0].key].sha, answered)
            await fork.github.react(comment_id, "confused")
    except (NotFound, Forbidden) as error:
        fork.ctx.log.warning("nobody can be told", number=number, comment=comment_id, error=str(error))
    await _close(fork, number, comment_id, "given up")  # edited away, or not to be told
