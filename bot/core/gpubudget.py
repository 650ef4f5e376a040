"""GPU time by area and calendar month (UTC) against what the fork's file allows: for L3, and for L2 on demand.

A request over the budget is refused; what was started runs on. Trunk's periodic L2 is what the fork needs in any case,
so it is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.core.config import Config
from bot.core.types import Level


@dataclass(frozen=True, slots=True)
class GpuRun:
    """A run by what it costs: `seconds` of GPU time, None while it is on its way; `trunk`: of no pull request."""

    level: Level
    suite: str
    trunk: bool
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Raise:
    """A maintainer's word that an area may use more GPU hours this month."""

    area: str
    hours: float
    by: str


@dataclass(frozen=True, slots=True)
class AreaBudget:
    """One area in this month, in GPU hours. `waiting` is what the runs on their way will take, as far as is known."""

    area: str
    allowed: float
    used: float
    waiting: float
    raised: tuple[Raise, ...] = ()

    @property
    def spent(self) -> bool:
        """True where nothing more may be started."""
        return self.used + self.waiting >= self.allowed

    @property
    def text(self) -> str:
        """What is used, of how much."""
        more = f" and {self.waiting:.1f} are on their way" if self.waiting else ""
        by = ", ".join(dict.fromkeys(one.by for one in self.raised))
        raised = f" ({sum(one.hours for one in self.raised):+g} by {by})" if by else ""
        return f"{self.used:.1f} of {self.allowed:g} GPU hours are used{more}{raised}"


def month_start(now: datetime) -> datetime:
    """The first instant of the calendar month, in the time zone of `now` (UTC is meant)."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_key(now: datetime) -> str:
    """The month as `2026-11`."""
    return f"{now:%Y-%m}"


def area_of(config: Config, level: Level, suite: str) -> str | None:
    """The area that pays for a suite: its own, else the first that names it."""
    own = next((one.area for one in config.validation.of(level) if one.suite == suite and one.area), None)
    return own or next((name for name, area in config.areas.items() if suite in area.suites), None)


def counts(level: Level, *, trunk: bool) -> bool:
    """Whether a run is paid for from a budget."""
    return level is Level.L3 or (level is Level.L2 and not trunk)


def month_budgets(*, config: Config, runs: Iterable[GpuRun], raises: Sequence[Raise] = ()) -> dict[str, AreaBudget]:
    """Each area that has a budget, with this month's runs counted. `runs` newest first, those on their way among them:
    one of these is held to take what its suite took last (nothing where it never ran this month).
    """
    counted = [run for run in runs if counts(run.level, trunk=run.trunk)]
    last: dict[tuple[Level, str], float] = {}
    for run in counted:
        if run.seconds:
            last.setdefault((run.level, run.suite), run.seconds)
    used: dict[str, float] = {}
    waiting: dict[str, float] = {}
    for run in counted:
        area = area_of(config, run.level, run.suite)
        if area is None:
            continue
        if run.seconds is None:
            waiting[area] = waiting.get(area, 0.0) + last.get((run.level, run.suite), 0.0) / 3600
        else:
            used[area] = used.get(area, 0.0) + run.seconds / 3600
    found = {}
    for name, one in config.areas.items():
        if one.gpu_hours_per_month is not None:
            mine = tuple(more for more in raises if more.area == name)
            allowed = one.gpu_hours_per_month + sum(more.hours for more in mine)
            found[name] = AreaBudget(name, allowed, used.get(name, 0.0), waiting.get(name, 0.0), mine)
    return found


def over_budget(
    *, config: Config, budgets: Mapping[str, AreaBudget], level: Level, suites: Iterable[str]
) -> dict[str, AreaBudget]:
    """Those of the suites that may not be started on demand this month, each with the budget that is used up."""
    if not counts(level, trunk=False):
        return {}
    paying = {suite: budgets.get(area_of(config, level, suite) or "") for suite in suites}
    return {suite: budget for suite, budget in paying.items() if budget is not None and budget.spent}
