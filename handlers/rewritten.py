"""Upstream's history rewritten: said with what it means, and followed when a maintainer says so."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

from bot.context import FetchError, Git
from bot.core.audit import AuditKind
from bot.core.batches import ClosedWhy
from bot.core.decisions import PASSED_OVER
from bot.core.render.rewritten import RewriteNote, followed_comments
from bot.core.render.text import line, marker, short
from bot.core.rewrite import Rewrite, kept, patch_identity, twins
from handlers.auditing import record
from handlers.batches import load_batches
from handlers.cherry_pick import close_batch
from handlers.dashboard import FOLLOW, REWRITTEN, noted_rewrite
from handlers.fork import FORK, UPSTREAM, Fork
from handlers.plans import stored_plan

REWRITTEN_REF = "refs/graft/rewritten"
MOST = 2_000  # commits of a side beyond which patches are not compared


async def note_rewrite(fork: Fork) -> None:
    """Note what of upstream is gone and what is new, for the dashboard. Raises FetchError."""
    rewrite = await _read(fork)
    plan = await stored_plan(fork)
    picked = rewrite.picked(plan.ledger.entries if plan else ())
    related = await asyncio.to_thread(fork.git.merge_base, rewrite.new, FORK) is not None
    note = RewriteNote(
        rewrite.old,
        rewrite.new,
        len(rewrite.gone),
        len(rewrite.fresh),
        len(rewrite.twins),
        tuple(entry.sha for entry in picked)[:200],
        related,
    )
    await fork.put_note(REWRITTEN, asdict(note))


async def forget_rewrite(fork: Fork) -> None:
    """Upstream goes on from what is known again."""
    if await fork.note(REWRITTEN):
        await fork.put_note(REWRITTEN, None)
    if await asyncio.to_thread(fork.git.resolve, REWRITTEN_REF) is not None:
        await asyncio.to_thread(fork.git.set_ref, REWRITTEN_REF, None)


async def follow_if_asked(fork: Fork) -> None:
    """Follow upstream's rewritten history where a maintainer ticked its box, or say why not."""
    asked = await fork.note(FOLLOW)
    if not asked:
        return
    why_not = await _follow(fork, asked["sha"], by=asked["by"], issue=asked["issue"])
    if why_not is not None:
        text = f"{marker('follow')}\n{line(asked['by'], 60)} asked to follow {short(asked['sha'])}. Not done: {why_not}"
        await fork.github.upsert_comment(asked["issue"], marker("follow"), text)
    await fork.put_note(FOLLOW, None)


async def _follow(fork: Fork, sha: str, *, by: str, issue: int) -> str | None:
    """Take upstream's rewritten history for upstream; gives the reason where that was not done.

    `sha` is the tip that the person saw. Decisions and picks are kept for the commits that stand there again; pull
    requests with commits that are gone are closed, but for those with a person's own commits.
    """
    note = await noted_rewrite(fork)
    if note is None or note.new != sha or not note.related:
        return "that is not where upstream is now."
    try:
        rewrite = await _read(fork)
    except FetchError as error:
        return f"upstream can't be read: {line(error.stderr, 300)}"
    if not await asyncio.to_thread(fork.git.is_ancestor, sha, rewrite.new):
        return "its history was rewritten once more since; the box names its new tip."
    plan = await stored_plan(fork)
    entries = plan.ledger.entries if plan else ()
    decisions = kept(rewrite, entries, passed_over=PASSED_OVER)
    # told first: what a lost store would not know stands on GitHub
    for hidden, text in followed_comments(note, by=by, kept=decisions):
        await fork.github.upsert_comment(issue, hidden, text)
    gone = {commit.sha for commit in rewrite.gone}
    await _close_gone(fork, gone, rewrite)
    lists = {key: await fork.note(key) or [] for key in ("urgent", "split")}
    body = {
        "what": "followed upstream's rewritten history",
        "by": by,
        "old": rewrite.old,
        "new": rewrite.new,
        "gone": len(gone),
        "fresh": len(rewrite.fresh),
        "picked": [entry.sha for entry in rewrite.picked(entries)],
        "kept": {entry.sha: entry.disposition.value for entry in decisions},
    }
    async with fork.ctx.store.transaction() as tx:
        for entry in decisions:
            await tx.save_decision(fork.scope.installation, fork.name, entry, fork.now)
        await record(tx, scope=fork.scope, kind=AuditKind.DECISION, body=body, at=fork.now)
    for key, shas in lists.items():
        await fork.put_note(key, [rewrite.twins.get(one, one) for one in shas])
    await asyncio.to_thread(fork.git.set_ref, UPSTREAM, rewrite.new, expected=rewrite.old)
    await forget_rewrite(fork)
    return None


async def _close_gone(fork: Fork, gone: set[str], rewrite: Rewrite) -> None:
    for batch in await load_batches(fork):
        if not batch.state.in_flight or batch.paused or batch.number is None or gone.isdisjoint(batch.commits):
            continue
        pull = await fork.github.pull(batch.number)
        if pull.state != "open" or pull.head.sha != batch.head:
            continue
        names = ", ".join(
            f"{short(sha)} (now {short(rewrite.twins[sha])})" if sha in rewrite.twins else short(sha)
            for sha in batch.commits
            if sha in gone
        )
        text = f"Upstream's history was rewritten and no longer has {names}. What is there now is planned anew."
        await close_batch(fork, batch, ClosedWhy.SUPERSEDED, text, body=pull.body)


async def _read(fork: Fork) -> Rewrite:
    refs = [f"+refs/heads/{fork.config.upstream.branch}:{REWRITTEN_REF}"]
    await asyncio.to_thread(fork.git.fetch, fork.upstream_url(), refs)
    old, new = await fork.tip(UPSTREAM), await fork.tip(REWRITTEN_REF)
    return await asyncio.to_thread(_compare, fork.git, old, new)


def _compare(git: Git, old: str, new: str) -> Rewrite:
    base = git.merge_base(old, new)
    since = [base] if base else []
    gone, fresh = git.commits(old, since), git.commits(new, since)
    compared = (*gone, *fresh) if max(len(gone), len(fresh)) <= MOST else ()
    patches = {c.sha: patch_identity(git.diff(c.parents[0], c.sha)) for c in compared if c.parents}
    return Rewrite(old, new, base, tuple(gone), tuple(fresh), twins(gone=gone, fresh=fresh, patches=patches))
