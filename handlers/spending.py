"""What each suite cost and what it caught, from the runs that there are."""

from __future__ import annotations

from datetime import timedelta

from bot.context import Run
from bot.core.doctor import RunFact, SuiteCost, suite_costs
from handlers.fork import Fork

WINDOW = timedelta(days=30)


async def note_costs(fork: Fork) -> tuple[SuiteCost, ...]:
    """The cost of each suite over the last thirty whole days: it changes once a day, not with each run."""
    today = fork.now.replace(hour=0, minute=0, second=0, microsecond=0)
    ended = await fork.ctx.store.runs_since(today - WINDOW, repository=fork.name)
    return suite_costs([run_fact(run) for run in ended if run.finished_at is not None and run.finished_at < today])


def run_fact(run: Run) -> RunFact:
    """An ended run as its cost is counted."""
    seconds = 0.0
    if run.started_at is not None and run.finished_at is not None:
        seconds = max(0.0, (run.finished_at - run.started_at).total_seconds())
    gpu = float((run.report or {}).get("gpu_seconds") or 0)
    return RunFact(run.repository, run.level, run.suite, run.number is None, run.sha, run.outcome or "", gpu, seconds)
