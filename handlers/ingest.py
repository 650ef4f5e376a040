"""Take upstream in: fetch both sides, plan, open what the plan allows, bring the dashboard up to date."""

from __future__ import annotations

from bot.clients.git import FetchError
from bot.clients.store.models import Job
from bot.context import Context
from handlers.cherry_pick import work_off
from handlers.dashboard import update_dashboard
from handlers.fork import open_fork
from handlers.plans import plan_now, stored_plan


async def ingest(ctx: Context, job: Job) -> None:
    """Job `ingest`: look again at both sides. Safe to run at any time and any number of times."""
    fork = await open_fork(ctx, job.scope)
    try:
        await fork.fetch_fork()
        await fork.fetch_upstream()
    except FetchError as error:
        # upstream can't be read: what is known stands, marked stale from the last good reading on, never "0 behind"
        state = await fork.note("ingest") or {}
        await fork.put_note("ingest", {**state, "error": str(error), "failed_at": int(fork.now.timestamp())})
        await update_dashboard(fork, await stored_plan(fork))
        raise  # the job is tried again soon, and is parked for `graft doctor` to show if that does not help
    await fork.put_note("ingest", {"good_at": int(fork.now.timestamp()), "error": None})
    plan = await plan_now(fork)
    await work_off(fork, plan)
    await update_dashboard(fork, plan)
