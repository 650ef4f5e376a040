"""Measurements against their budget: what got worse than the file allows, and what can't be told.

Repeated samples are compared by their medians and by the 95 % interval of the difference (`bot.core.noise`):

- the interval lies within the budget: kept;
- all of it lies beyond: broken;
- it holds the budget: it can't be told. That is no pass either, with a reason of its own: measuring again adds samples,
  and the interval narrows.

A run's samples are joined with those of the earlier runs at the same commit on the same kind of machine, so that
running again until it suits gains nothing; trunk's with those of its runs before that can't be told apart from the
newest. Where one side has a single sample nothing is known of the spread, and the two numbers are compared as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from bot.core.config import Budget, Suite
from bot.core.noise import Change, Estimate, alike, change, estimate
from bot.core.types import Level, Outcome
from bot.core.validation import Measurement, Report
from bot.core.waivers import Failure

Place = tuple[str, str | None, str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Value:
    """What the samples of one measurement come to: their median and their 95th percentile, in its own unit.

    Without `samples`, or with a single one, nothing is known of their spread.
    """

    middle: float
    p95: float
    higher_is_better: bool | None = None
    samples: tuple[float, ...] = ()

    @property
    def repeated(self) -> bool:
        """True where there is a spread."""
        return len(self.samples) > 1


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a budget is not kept; `unsure`: it may be, the spread is too wide to tell."""

    text: str
    unsure: bool = False


def value_of(samples: Sequence[float], higher_is_better: bool | None = None) -> Value:
    """The median, and by nearest rank the 95th percentile; for a metric where more is better, the 5th."""
    ordered = sorted(samples, reverse=bool(higher_is_better))
    tail = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return Value(median(ordered), tail, higher_is_better, tuple(samples))


def values(report: Report, earlier: Iterable[Report] = ()) -> dict[Place, Value]:
    """Each measured place (metric, kernel, shape, dtype, target) with its value; samples of one place are joined, and
    where it was measured repeatedly those of `earlier` reports from the same kind of machine as well.
    """
    joined = _samples(report)
    better = {_place(one): one.higher_is_better for one in report.measurements}
    for before in earlier:
        if machine(before) == machine(report):
            for place, samples in _samples(before).items():
                if len(joined.get(place, ())) > 1:
                    joined[place] = (*joined[place], *samples)
    return {place: value_of(samples, better[place]) for place, samples in joined.items()}


def _samples(report: Report) -> dict[Place, tuple[float, ...]]:
    found: dict[Place, tuple[float, ...]] = {}
    for one in report.measurements:
        found[_place(one)] = (*found.get(_place(one), ()), *one.samples)
    return found


def _place(one: Measurement) -> Place:
    return one.metric, one.kernel, one.shape, one.dtype, one.target


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
        if machine(good) != machine(report):
            continue
        for place, value in values(good).items():
            newest = found.setdefault(place, value)
            if newest is not value and newest.repeated and value.repeated and alike(newest.samples, value.samples):
                found[place] = value_of((*newest.samples, *value.samples), newest.higher_is_better)
    return found


def metric_failures(
    *, level: Level, suite: Suite, report: Report, trunk: Sequence[Report], earlier: Sequence[Report] = ()
) -> tuple[Failure, ...]:
    """What breaks its budget, and what the suite must measure and did not; `trunk` are its good reports, newest first,
    `earlier` those of the same suite at the same commit.

    Without a value on trunk a budget that compares is not kept: nothing is known of it.
    """
    alone, here = values(report), values(report, earlier)
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
        budget, before = budget_of(suite, place[0], place[1]), there.get(place)
        single = before is not None and not before.repeated
        if (broken := over(alone[place] if single else value, before, budget)) is not None:
            unknown = broken.unsure or (before is None and "no value on trunk" in broken.text)
            outcome = Outcome.OMITTED if unknown else Outcome.FAILED
            found.append(
                Failure(
                    level, suite.suite, outcome, metric=place[0], kernel=place[1], why=broken.text,
                    unsure=broken.unsure,
                )
            )  # fmt: skip
    return tuple(dict.fromkeys(found))


def budget_of(suite: Suite, metric: str, kernel: str | None) -> Budget:
    """The budget of a kernel's metric: the kernel's own, else the metric's own, else the default."""
    if kernel is not None and kernel in suite.budget.kernels:
        return suite.budget.of(kernel)
    return suite.budget.of(metric)


def over(value: Value, before: Value | None, budget: Budget) -> Broken | None:
    """How a value breaks its budget, or None where it keeps it; what is broken for sure comes first."""
    found = [*_bounds(value, budget), *_worse_than(value, before, budget)]
    return min(found, key=lambda one: one.unsure, default=None)


def _bounds(value: Value, budget: Budget) -> list[Broken]:
    here = _middle(value, spread=value.repeated)
    found = []
    for bound, side, broken, kept in (
        (budget.min, "below", here.high, here.low),
        (budget.max, "above", here.low, here.high),
    ):
        if bound is None:
            continue
        # turned so that more is worse
        sign = 1 if side == "above" else -1
        if sign * broken > sign * bound:
            found.append(Broken(f"{value.middle:g} is {side} {bound:g}"))
        elif sign * kept > sign * bound:
            told = f"{value.middle:g}, between {here.low:g} and {here.high:g} by the samples' spread"
            found.append(Broken(f"can't be told whether it is {side} {bound:g}: {told}: {_AGAIN}", unsure=True))
    return found


def _worse_than(value: Value, before: Value | None, budget: Budget) -> list[Broken]:
    found = []
    for allowed, what in ((budget.regression, ""), (budget.p95, "p95 ")):
        if allowed is None:
            continue
        if before is None:
            return [Broken("no value on trunk to compare with yet")]
        spread = value.repeated and before.repeated
        side = _tail if what else _middle
        now, then = side(value, spread=spread), side(before, spread=spread)
        worse = _worse(change(now, then), _better(budget, value))
        told = f"{what}{then.value:g} became {now.value:g}, {_how(worse.value)}"
        if worse.low > allowed + _ROUNDING:
            least = f", at least {worse.low:.2%} by the samples' spread" if spread else ""
            found.append(Broken(f"{told}{least}, the budget is {allowed:.2%}"))
        elif worse.high > allowed + _ROUNDING:
            text = f"can't be told: {told} ± {worse.spread:.2%} by the samples' spread, the budget is {allowed:.2%}"
            found.append(Broken(f"{text}: {_AGAIN}", unsure=True))
    return found


_ROUNDING = 1e-12
_AGAIN = "measure again with /retry"


def _how(worse: float) -> str:
    return f"{worse:.2%} worse" if worse >= 0 else f"{-worse:.2%} better"


def _middle(value: Value, *, spread: bool) -> Estimate:
    return estimate(value.samples) if spread else Estimate(value.middle, value.middle, value.middle)


def _tail(value: Value, *, spread: bool) -> Estimate:
    """The 95th percentile; where more is better the 5th, as that of the samples turned around."""
    if not spread:
        return Estimate(value.p95, value.p95, value.p95)
    if not value.higher_is_better:
        return estimate(value.samples, 0.95)
    turned = estimate([-sample for sample in value.samples], 0.95)
    return Estimate(-turned.value, -turned.high, -turned.low)


def _better(budget: Budget, value: Value) -> str | None:
    if budget.better is not None:
        return budget.better
    return {True: "higher", False: "lower", None: None}[value.higher_is_better]


def _worse(added: Change, better: str | None) -> Change:
    """What was added as what got worse: lost where more is better, either way where that is not known."""
    if better is None:
        return added.sized()
    return added.turned() if better == "higher" else added


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
