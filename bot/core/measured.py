"""Measurements against their budget: what got worse than the file allows, and what can't be told."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from bot.core.config import Budget, Suite
from bot.core.types import Level, Outcome
from bot.core.validation import Measurement, Report
from bot.core.waivers import Failure

Place = tuple[str, str | None, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Value:
    """What the samples of one measurement come to: their median and their 95th percentile, in its own unit."""

    middle: float
    p95: float
    higher_is_better: bool | None = None


def value_of(measurement: Measurement) -> Value:
    """The median, and by nearest rank the 95th percentile; for a metric where more is better, the 5th."""
    ordered = sorted(measurement.samples, reverse=bool(measurement.higher_is_better))
    return Value(median(ordered), ordered[math.ceil(0.95 * len(ordered)) - 1], measurement.higher_is_better)


def values(report: Report) -> dict[Place, Value]:
    """Each measured place (metric, kernel, shape, dtype, target) with its value; samples of one place are joined."""
    joined: dict[Place, Measurement] = {}
    for one in report.measurements:
        place = (one.metric, one.kernel, one.shape, one.dtype, one.target)
        known = joined.get(place)
        joined[place] = one if known is None else known.model_copy(update={"samples": (*known.samples, *one.samples)})
    return {place: value_of(one) for place, one in joined.items()}


def machine(report: Report) -> tuple[str, ...]:
    """What a number depends on beside the code: the GPU models. Numbers of different ones are not compared."""
    return tuple(sorted(gpu.model for gpu in report.environment.gpus))


def needs_baseline(suite: Suite) -> bool:
    """True where a budget of the suite compares with trunk."""
    budgets = (suite.budget.default, *suite.budget.kernels.values())
    return any(budget.regression is not None or budget.p95 is not None for budget in budgets)


def baseline(report: Report, trunk: Iterable[Report]) -> dict[Place, Value]:
    """The newest value that trunk had in each place on the same kind of machine; `trunk` newest first."""
    found: dict[Place, Value] = {}
    for good in trunk:
        if machine(good) == machine(report):
            found = {**values(good), **found}
    return found


def metric_failures(*, level: Level, suite: Suite, report: Report, trunk: Sequence[Report]) -> tuple[Failure, ...]:
    """What breaks its budget, and what the suite must measure and did not; `trunk` are its good reports, newest first.

    Without a value on trunk a budget that compares is not kept: nothing is known of it.
    """
    here = values(report)
    if not here and not suite.metrics:
        return ()
    there = baseline(report, trunk)
    measured = {place[0] for place in here}
    found = [
        Failure(level, suite.suite, Outcome.OMITTED, metric=metric, why="not measured")
        for metric in suite.metrics
        if metric not in measured
    ]
    for place in there:
        # a kernel that trunk measures and this run does not is missing, not good
        if place not in here and place[0] in measured:
            found.append(
                Failure(level, suite.suite, Outcome.OMITTED, metric=place[0], kernel=place[1], why="trunk measures it")
            )
    for place, value in here.items():
        budget = budget_of(suite, place[0], place[1])
        if (why := over(value, there.get(place), budget)) is not None:
            outcome = Outcome.OMITTED if place not in there and "no value on trunk" in why else Outcome.FAILED
            found.append(Failure(level, suite.suite, outcome, metric=place[0], kernel=place[1], why=why))
    return tuple(dict.fromkeys(found))


def budget_of(suite: Suite, metric: str, kernel: str | None) -> Budget:
    """The budget of a kernel's metric: the kernel's own, else the metric's own, else the default."""
    if kernel is not None and kernel in suite.budget.kernels:
        return suite.budget.of(kernel)
    return suite.budget.of(metric)


def over(value: Value, before: Value | None, budget: Budget) -> str | None:
    """How a value breaks its budget, or None where it keeps it."""
    if budget.min is not None and value.middle < budget.min:
        return f"{value.middle:g} is below {budget.min:g}"
    if budget.max is not None and value.middle > budget.max:
        return f"{value.middle:g} is above {budget.max:g}"
    for allowed, now, then, what in (
        (budget.regression, value.middle, before.middle if before else None, ""),
        (budget.p95, value.p95, before.p95 if before else None, "p95 "),
    ):
        if allowed is None:
            continue
        if then is None:
            return "no value on trunk to compare with yet"
        worse = _worse(now, then, _better(budget, value))
        if worse > allowed + 1e-12:
            return f"{what}{then:g} became {now:g}, {worse:.2%} worse, the budget is {allowed:.2%}"
    return None


def _better(budget: Budget, value: Value) -> str | None:
    if budget.better is not None:
        return budget.better
    return {True: "higher", False: "lower", None: None}[value.higher_is_better]


def _worse(now: float, then: float, better: str | None) -> float:
    if now == then:
        return 0.0
    change = (now - then) / abs(then) if then else math.copysign(math.inf, now - then)
    return {"higher": -change, "lower": change}.get(better or "", abs(change))


def trunk_values(trunk: Iterable[Report]) -> dict[str, float]:
    """The newest value of each metric on trunk where no kernel is named: what the numbers of a sign-off compare with;
    `trunk` newest first.
    """
    found: dict[str, float] = {}
    for report in trunk:
        for place, value in values(report).items():
            if place[1] is None:
                found.setdefault(place[0], value.middle)
    return found
