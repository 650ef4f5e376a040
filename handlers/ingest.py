"""Take upstream in: fetch both sides, plan, open what the plan allows, bring the dashboard up to date."""

from __future__ import annotations

from bot.context import Context, FetchError, Job
from handlers.batches import see
from handlers.cherry_pick import work_off
from handlers.dashboard import update_dashboard
from handlers.fork import Fork, open_fork
from handlers.landing import note_ends
from handlers.planning import CannotPlan
from handlers.plans import plan_now, stored_plan
from handlers.rewritten import follow_if_asked, forget_rewrite, note_rewrite


async def ingest(ctx: Context, job: Job) -> None:
    """Job `ingest`: look again at both sides. Safe to run at any time and any number of times."""
    fork = await open_fork(ctx, job.scope)
    await follow_if_asked(fork)
    before = await stored_plan(fork)
    # listed before the fetch: whatever had landed by then is in what is fetched
    seen = await see(fork)
    try:
        await _read(fork)
    except FetchError:
        await update_dashboard(fork, before)
        raise  # the job is tried again soon, and is parked for `graft doctor` to show if that does not help
    seen = await note_ends(fork, seen, before)
    try:
        plan = await plan_now(fork)
    except CannotPlan as error:
        await _failed(fork, str(error))
        await update_dashboard(fork, before)
        raise
    await work_off(fork, plan, seen)
    await fork.put_note("ingest", {"good_at": int(fork.now.timestamp()), "error": None})
    await update_dashboard(fork, plan)


async def _read(fork: Fork) -> None:
    """Fetch both sides; where one can't be read, what is known stands, stale from the last good reading on, never 0."""
    side = f"{fork.name}, branch {fork.config.fork.branch}"
    try:
        await fork.fetch_fork()
        side = f"{fork.config.upstream.repository}, branch {fork.config.upstream.branch}"
        await fork.fetch_upstream()
    except FetchError as error:
        await _failed(fork, f"{side}: {_MEND.get(error.kind, '')}{error.stderr}")
        if error.kind == "moved":
            await note_rewrite(fork)
        raise
    await forget_rewrite(fork)


async def _failed(fork: Fork, why: str) -> None:
    state = await fork.note("ingest") or {}
    await fork.put_note("ingest", {**state, "error": why, "failed_at": int(fork.now.timestamp())})


_MEND = {
    "moved": "its history was rewritten; a maintainer must say whether to follow it. ",
    "missing": "it is not there: was it renamed or deleted? `.github/graft.yml` names it. ",
    "auth": "it may not be read with the access that Graft has. ",
}
