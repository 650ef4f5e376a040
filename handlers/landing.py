"""A batch has landed: keep what the ledger needs, and one audit record of the whole sync, in one transaction."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bot.context import Git, Pull
from bot.core.audit import ApprovalRecord, AuditKind, ExceptionRecord, LevelRecord, PatchFate, PatchRecord, SyncRecord
from bot.core.batches import Batch, BatchState, ClosedWhy, closed_with_base
from bot.core.gate import GateFacts, decide
from bot.core.render.pull import read_batch, restate
from bot.core.trailers import parse
from bot.core.types import BatchKind, Level, Outcome, Plan
from handlers.auditing import record
from handlers.batches import Seen, landing_facts, row_key, save_batch, why_closed
from handlers.facts import gate_facts
from handlers.fork import FORK, UPSTREAM, Fork
from handlers.rollback import point_before

MAX_PATCHES = 100


async def note_ends(fork: Fork, seen: Seen, plan: Plan | None) -> Seen:
    """Note which batches landed or were closed since the last look; `plan` is the one made before, if there is one.

    To be called with the fork's main branch fetched after the pull requests were listed, and before planning: the
    ledger of a squash is in its pull request's body.
    """
    ended = {b.number: b for b in seen.batches if b.state.in_flight and b.number is not None}
    changed: dict[str, Batch] = {}
    for number, batch in ended.items():
        pull = seen.pulls[number]
        if pull.landed:
            changed[row_key(batch)] = await land(fork, batch, pull, plan)
        elif pull.state == "closed":
            closed = replace(batch, state=BatchState.CLOSED, closed_why=why_closed(pull))
            if closed.closed_why is ClosedWhy.PERSON and await _went_with_base(fork, number):
                closed = replace(closed, closed_why=ClosedWhy.BRANCH_GONE)
                # in the body first: a lost store must not take it for a person's refusal
                await fork.github.update_pull(number, body=restate(pull.body, closed))
            await save_batch(fork, closed)
            changed[row_key(batch)] = closed
    return Seen(tuple(changed.get(row_key(batch), batch) for batch in seen.batches), seen.pulls)


async def _went_with_base(fork: Fork, number: int) -> bool:
    """Whether GitHub closed it since somebody deleted the branch that it was open against, told by its own history:
    of the deletion no webhook may have come, and the branch may be there again.
    """
    return closed_with_base([(one.event, one.created_at) for one in await fork.github.events(number)])


async def land(fork: Fork, batch: Batch, pull: Pull, plan: Plan | None) -> Batch:
    """Note that the batch's pull request was merged. Doing it twice records it once: the batch is in flight no more."""
    commits = batch.commits
    if pull.head.sha != batch.head:  # a person pushed before it landed: what came in is to be read, not assumed
        await fork.fetch_fork(pull.number)
        commits = await asyncio.to_thread(landed_commits, fork.git, batch=batch, pull=pull)
    batch = replace(batch, state=BatchState.MERGED, head=pull.head.sha, commits=commits)
    facts = await gate_facts(fork, pull)
    body = pull.body
    if list(commits) != (read_batch(body) or {}).get("commits"):
        body = restate(body, batch)
        await fork.github.update_pull(pull.number, body=body)
    sync = await asyncio.to_thread(_record, fork, batch, pull, plan, facts)
    async with fork.ctx.store.transaction() as tx:
        await save_batch(fork, batch, {"body": body, "title": pull.title, **landing_facts(pull)}, store=tx)
        await record(tx, scope=fork.scope, kind=AuditKind.SYNC, body=sync.body(), at=fork.now)
    return batch


def landed_commits(git: Git, *, batch: Batch, pull: Pull) -> tuple[str, ...]:
    """Which of the batch's upstream commits its merge brought: those named in the branch's own commits, or whose change
    is there now.
    """
    merged = pull.merge_commit_sha or pull.head.sha
    if git.resolve(merged) is None or git.resolve(pull.head.sha) is None:
        return batch.commits
    before = git.commit(merged).parents[0]
    own = git.commits(pull.head.sha, [git.merge_base(before, pull.head.sha) or before], first_parent=False)
    named = {sha for commit in own for sha in parse(commit.message).picks}
    if len(batch.commits) == 1:
        return batch.commits  # a resolution by hand: no tree can tell, and the pull request was for this one alone
    return tuple(sha for sha in batch.commits if sha in named or git.pick(sha, merged).kind == "empty")


def _record(fork: Fork, batch: Batch, pull: Pull, plan: Plan | None, facts: GateFacts) -> SyncRecord:
    git = fork.git
    merged = pull.merge_commit_sha or pull.head.sha
    known = git.resolve(merged) is not None
    before = point_before(git, batch=batch, merged=merged) if known else pull.base.sha
    parted = git.merge_base(UPSTREAM, FORK) or before
    return SyncRecord(
        pull=pull.number,
        batch=batch.key,
        head=pull.head.sha,
        upstream_base=(plan.ledger.pin if plan else None) or parted,
        upstream_target=batch.commits[-1] if batch.commits else parted,
        rollback_to=before,
        decision=decide(config=fork.config, facts=facts, now=fork.now).decision,
        patches=_patches(git, batch, parted, merged, before) if known else (),
        levels=_levels(facts),
        approvals=tuple(
            ApprovalRecord(s.by, s.area, {m.name: m.text for m in s.metrics}, s.comment_id)
            for s in facts.sign_offs
            if s.stands
        ),
        exceptions=tuple(
            ExceptionRecord(w.waiver.scope, w.waiver.by, w.waiver.until.isoformat(), w.waiver.reason)
            for w in (*facts.waivers, *(facts.file_waivers or ()))
            if w.holds
        ),
    )


def _patches(git: Git, batch: Batch, parted: str, merged: str, before: str) -> tuple[PatchRecord, ...]:
    """The fork's own commits that touch a file of this batch: changed where it took a resolution."""
    touched = {path for change in git.changed_files(before, merged) for path in change.paths}
    own = [c for c in git.commits(before, [parted]) if not parse(c.message).picks]
    changes = git.changes_of(own)
    fate = PatchFate.CHANGED if batch.kind is BatchKind.CONFLICT else PatchFate.KEPT
    return tuple(
        PatchRecord(c.sha, c.subject, fate, "touches a file of this batch")
        for c in own
        if touched & {path for change in changes[c.sha] for path in change.paths}
    )[-MAX_PATCHES:]


def _levels(facts: GateFacts) -> tuple[LevelRecord, ...]:
    found = []
    for level in Level:
        mine = [r for r in facts.results if r.level is level and r.outcome is not None]
        if mine:
            bad = [r.suite for r in mine if r.outcome not in (Outcome.PASSED, Outcome.WAIVED)]
            outcomes = {r.suite: r.outcome for r in mine if r.outcome is not None}
            found.append(
                LevelRecord(level, outcomes, tuple(r.run for r in mine), bad[0] if bad else None, may_go_on=not bad)
            )
    return tuple(found)
