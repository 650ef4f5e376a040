"""Repair what a lost webhook, a lost wake-up or a dead runner left behind: look at everything again."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from bot.context import Context, GitError, Job
from handlers.alarm import watch
from handlers.fork import Fork, open_fork
from handlers.offering import offer, wake_results
from handlers.refs import forget_refs
from handlers.validate import push_again

_PACKED = "packed"


async def sweep(ctx: Context, job: Job) -> None:
    """Job `sweep`, on the schedule, for each repository: ingest where it is due, and each open pull request anew."""
    fork = await open_fork(ctx, job.scope)
    state = await fork.note("ingest") or {}
    due = state.get("good_at", 0) + fork.config.ingest.every.total_seconds()
    if fork.now.timestamp() >= due:
        await fork.enqueue("ingest", "repository")
    await watch(fork)
    pulls = await fork.github.pulls(state="open", base=fork.config.fork.branch)
    for pull in pulls:
        await fork.enqueue("validate", f"#{pull.number}", {"number": pull.number})
    await fork.enqueue("validate_trunk", "trunk")
    if fork.config.triage.other_ci:
        await fork.enqueue("other_ci", "repository")
    await fork.enqueue("triage", "trunk")
    await push_again(fork)
    await forget_refs(fork, pulls)
    await _pack(fork)


async def _pack(fork: Fork) -> None:
    """Once a day: each fetch leaves a pack and each batch loose objects, and git slows down with their number."""
    today = fork.now.date().isoformat()
    if await fork.note(_PACKED) == today:
        return
    await fork.put_note(_PACKED, today)
    try:
        await asyncio.to_thread(fork.git.maintain)
    except GitError as error:
        fork.ctx.log.warning("the mirror was not packed", error=str(error))


async def prune(ctx: Context, job: Job) -> None:
    """Job `prune`: forget old deliveries and done jobs."""
    now, settings = ctx.now(), ctx.settings
    await ctx.store.prune(
        payloads_before=now - timedelta(days=settings.keep_payload_days),
        rows_before=now - timedelta(days=settings.keep_delivery_days),
    )


async def expire_runs(ctx: Context, job: Job) -> None:
    """Job `expire_runs`, for all repositories: runs whose runner went silent are queued anew, overdue ones ended."""
    expired = await ctx.store.expire(ctx.now())
    for run in expired.requeued:
        await offer(ctx, run)
    for run in (*expired.requeued, *expired.overdue):
        await wake_results(ctx, run)
