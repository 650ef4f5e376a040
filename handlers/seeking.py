"""The command `/bisect`: begin or end the search for the culprit of one of trunk's breakages."""

from __future__ import annotations

import re

from bot.context import Breakage
from bot.core.command import values as v
from bot.core.manifest import covers
from bot.core.render.answers import Said
from bot.core.render.text import code
from bot.core.triage import State, suite_of
from bot.core.triage.searching import Hunt
from handlers.asked import Asked
from handlers.bisecting import ask, why_not
from handlers.measuring import bisect_metric

_METRIC = re.compile(r"[A-Za-z0-9][\w.-]*#[^#\s]+")  # suite#metric, as in a waiver
_ALIVE = [state.value for state in State if state.alive]


async def bisect(asked: Asked) -> Said:
    """`/bisect`: on a breakage's own issue, or of a suite, test or metric that is bad on trunk."""
    args, fork = asked.command.args, asked.fork
    assert isinstance(args, v.Bisect)
    if args.target is not None and _METRIC.fullmatch(args.target):
        return await bisect_metric(asked, args.target, stop=args.stop)
    rows = [row for row in await fork.ctx.store.breakages(fork.name, _ALIVE) if row.data.get("signature")]
    here = [row for row in rows if row.number == asked.number]
    meant = here or [row for row in rows if args.target is not None and _is_of(row, args.target)]
    if here and args.target is not None and not _is_of(here[0], args.target):
        return asked.refused(f"{code(args.target)} is no suite or test of this breakage.")
    if not meant:
        what = code(args.target) if args.target else "This issue"
        return asked.refused(f"{what} is no open breakage of trunk: only what trunk's own runs show is searched.")
    if len(meant) > 1:
        listed = ", ".join(f"#{row.number}" for row in meant if row.number)
        return asked.refused(f"{code(args.target or '')} fails by more than one cause: say it on one of {listed}.")
    (row,) = meant
    if args.stop:
        hunt = Hunt.of(row.data)
        if hunt is None or not hunt.running:
            return asked.refused("No search is running here.")
        await ask(fork, row, by=asked.author, end=True)
        return asked.done("The search ends; what it has waiting or running is withdrawn.")
    if (problem := await why_not(fork, row)) is not None:
        return asked.refused(problem)
    await ask(fork, row, by=asked.author, end=False)
    where = f"#{row.number}" if row.number else "the dashboard"
    return asked.done(f"The search begins; how it stands is told on {where}.")


def _is_of(row: Breakage, target: str) -> bool:
    named = {name for series in row.data["suites"] for name in (series, suite_of(series))}
    return target in named or any(covers(target, test) for test in row.data["tests"])
