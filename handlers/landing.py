"""A batch has landed: keep what the ledger needs, and one audit record of the whole sync, in one transaction."""

from __future__ import annotations

import asyncio

from bot.clients.git import Git
from bot.clients.github import Pull
from bot.core.audit import ApprovalRecord, AuditKind, ExceptionRecord, LevelRecord, PatchFate, PatchRecord, SyncRecord
from bot.core.batches import Batch
from bot.core.gate import GateFacts, decide
from bot.core.trailers import parse
from bot.core.types import BatchKind, Level, Outcome, Plan
from handlers.auditing import record
from handlers.batches import landing_facts, save_batch
from handlers.fork import Fork
from handlers.gate import gate_facts
from handlers.rollback import point_before

MAX_PATCHES = 100


async def land(fork: Fork, batch: Batch, pull: Pull, plan: Plan) -> None:
    """Note that the batch's pull request was merged. Doing it twice records it once: the batch is in flight no more."""
    facts = await gate_facts(fork, pull)
    body = await asyncio.to_thread(_record, fork, batch, pull, plan, facts)
    async with fork.ctx.store.transaction() as tx:
        await save_batch(fork, batch, {"body": pull.body, "title": pull.title, **landing_facts(pull)}, store=tx)
        await record(tx, scope=fork.scope, kind=AuditKind.SYNC, body=body.body(), at=fork.now)


def _record(fork: Fork, batch: Batch, pull: Pull, plan: Plan, facts: GateFacts) -> SyncRecord:
    merged = pull.merge_commit_sha or pull.head.sha
    known = fork.git.resolve(merged) is not None
    before = point_before(fork.git, batch=batch, merged=merged) if known else pull.base.sha
    return SyncRecord(
        pull=pull.number,
        batch=batch.key,
        head=pull.head.sha,
        upstream_base=plan.ledger.pin or plan.merge_base,
        upstream_target=batch.commits[-1] if batch.commits else plan.merge_base,
        rollback_to=before,
        decision=decide(config=fork.config, facts=facts, now=fork.now).decision,
        patches=_patches(fork.git, batch, plan, merged, before) if known else (),
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


def _patches(git: Git, batch: Batch, plan: Plan, merged: str, before: str) -> tuple[PatchRecord, ...]:
    """The fork's own commits that touch a file of this batch: changed where it took a resolution."""
    touched = {path for change in git.changed_files(before, merged) for path in change.paths}
    own = [c for c in git.commits(before, [plan.merge_base]) if not parse(c.message).picks]
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
