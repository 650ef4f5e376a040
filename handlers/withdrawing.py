"""Runs that a search asked for and that no search waits for any more: they end, whatever ended it."""

from __future__ import annotations

from bot.context import Run, RunState
from bot.core.triage import series_of
from bot.core.triage.searching import Hunt
from bot.core.turns import Turn
from handlers.fork import Fork
from handlers.measuring import running_hunts
from handlers.validate import cancel_runs


async def withdraw(fork: Fork) -> list[Run]:
    """End the searches' unfinished runs, waiting and running, that no running search can use; gives them.

    Searches share their runs, so that not the end of one but what all of them want says which are left.
    """
    unfinished = await fork.ctx.store.runs(fork.name, states=(RunState.QUEUED, RunState.LEASED), capacity=None)
    asked = [run for run in unfinished if run.turn is Turn.SEARCH]
    if not asked:
        return []
    wanted: set[tuple[str, str, str]] = set()
    for row in await fork.ctx.store.breakages(fork.name):
        hunt = Hunt.of(row.data)
        if hunt is not None and hunt.running:
            wanted |= {(sha, hunt.level, hunt.suite) for sha in hunt.shas}
    rounds = {name for metric in await running_hunts(fork) for one in metric.rounds for name in (one.base, one.run)}
    left = [
        run
        for run in asked
        if run.id not in rounds and (run.sha, run.level, series_of(run.suite, run.capacity)) not in wanted
    ]
    if left:
        fork.ctx.log.info("runs were withdrawn: no search waits for them", count=len(left))
        await cancel_runs(fork, left)
    return left
