"""GPU time on demand: what areas have used of their month's budget, what may still be started, and who allows more."""

from __future__ import annotations

from typing import Any

from bot.context import RunState
from bot.core.command import values as v
from bot.core.gpubudget import AreaBudget, GpuRun, Raise, month_budgets, month_key, month_start, over_budget
from bot.core.render.answers import Said
from bot.core.render.text import code, line
from bot.core.types import Level
from handlers.asked import Asked
from handlers.fork import Fork

NOTE = "gpu-budget"


async def budgets(fork: Fork) -> dict[str, AreaBudget]:
    """GPU hours of this month, of each area that has a budget; nothing is read where none has."""
    if all(area.gpu_hours_per_month is None for area in fork.config.areas.values()):
        return {}
    store = fork.ctx.store
    waiting = await store.runs(fork.name, states=(RunState.QUEUED, RunState.LEASED))
    ended = await store.runs_since(month_start(fork.now), repository=fork.name)
    runs = [GpuRun(Level(run.level), run.suite, run.number is None, None) for run in waiting]
    runs += [
        GpuRun(Level(run.level), run.suite, run.number is None, float((run.report or {}).get("gpu_seconds") or 0.0))
        for run in ended
    ]
    raises = [Raise(one["area"], one["hours"], one["by"]) for one in (await _raises(fork)).values()]
    return month_budgets(config=fork.config, runs=runs, raises=raises)


async def note_budgets(fork: Fork) -> tuple[AreaBudget, ...]:
    """The month's budgets in the order of the file, kept for `graft doctor`, which does not read the file."""
    found = tuple((await budgets(fork)).values())
    rows = [{"area": one.area, "text": one.text, "spent": one.spent} for one in found]
    said = {"month": month_key(fork.now), "areas": rows}
    if (found or await fork.note(NOTE)) and await fork.note(NOTE) != said:
        await fork.put_note(NOTE, said)
    return found


async def affordable(fork: Fork, level: Level, suites: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Those of the suites that may be started on demand, and what is to be said of the others ("" where all may)."""
    over = over_budget(config=fork.config, budgets=await budgets(fork), level=level, suites=suites)
    if not over:
        return suites, ""
    by_area = {budget.area: budget for budget in over.values()}
    told = [
        f"{', '.join(code(suite) for suite, one in over.items() if one.area == area)}: the GPU budget of "
        f"{code(area)} for {month_key(fork.now)} is used up, {line(budget.text)}"
        for area, budget in by_area.items()
    ]
    how = " or ".join(f"`/gpu-budget {area} add=<hours>`" for area in by_area)
    return tuple(suite for suite in suites if suite not in over), (
        f"{'; '.join(told)}. A maintainer may allow more this month with {how}, or raise `gpu_hours_per_month` in "
        "`.github/graft.yml`. What runs already runs on."
    )


async def gpu_budget(asked: Asked) -> Said:
    """`/gpu-budget`: what is used, of how much; and more for an area, this month, by a maintainer."""
    args, fork = asked.command.args, asked.fork
    assert isinstance(args, v.GpuBudget)
    known = await budgets(fork)
    if args.area is not None and args.area not in known:
        listed = ", ".join(map(code, known)) or "no area"
        return asked.refused(f"{code(args.area)} has no GPU budget in `.github/graft.yml`; {listed} has.")
    if args.area is not None and args.add is not None:
        if not asked.who.can_maintain(asked.author):
            return asked.refused("`add=` is for maintainers.")
        key = f"{asked.comment_id}.{asked.command.index}"
        row = {"area": args.area, "hours": args.add, "by": asked.author}
        await fork.change_note(f"{NOTE}:{month_key(fork.now)}", lambda raises: {**(raises or {}), key: row})
        known = await budgets(fork)
    shown = [one for one in known.values() if args.area in (None, one.area)]
    if not shown:
        return asked.done("No area has a GPU budget: `gpu_hours_per_month` of an area in `.github/graft.yml` sets one.")
    told = "; ".join(f"{code(one.area)}: {line(one.text)}" for one in shown)
    return asked.done(f"{month_key(fork.now)} (UTC), L3 and L2 on demand: {told}.")


async def _raises(fork: Fork) -> dict[str, Any]:
    return await fork.note(f"{NOTE}:{month_key(fork.now)}") or {}
