"""Offer a run to those who may do it, and ask for what its present state means."""

from __future__ import annotations

from bot.context import Context, QueueUnavailable, Run
from bot.core.dispatched import workflow_of


async def offer(ctx: Context, run: Run) -> None:
    """Ring for a runner, or have the run's workflow started.

    Where Redis is away the run stays queued in the store, and the sweep offers it again.
    """
    if workflow_of(run.label) is not None:
        await ctx.store.enqueue(
            "elsewhere", "repository", {}, installation=run.installation, repository=run.repository, now=ctx.now()
        )
        await ctx.queue.wake()
        return
    try:
        await ctx.queue.push_run(run.label, run.id, run.repository, run.sha, run.suite, attempt=run.attempt)
    except QueueUnavailable as error:
        ctx.log.warning("run not offered yet", run=run.id, error=str(error))


async def wake_results(ctx: Context, run: Run) -> None:
    """Have the results of the run's pull request, or of trunk, looked at again."""
    kind, key = ("results", f"#{run.number}") if run.number is not None else ("triage", "trunk")
    await ctx.store.enqueue(
        kind,
        key,
        {"number": run.number, "sha": run.sha},
        installation=run.installation,
        repository=run.repository,
        now=ctx.now(),
    )
    await ctx.queue.wake()
