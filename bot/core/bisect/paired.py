"""A metric's step where each value is divided by one of the good end, measured beside it: a machine that drifts, or is
another one, moves both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median, stdev

from bot.core.bisect.metric import next_metric_step
from bot.core.bisect.values import Ask, Inconclusive, Missing, Next, Run, Search, Seen, Step

ENDS = 5  # pairs at the bad end from which step and noise are told
_FEW = 1.3  # noise told by few runs is told too small


@dataclass(frozen=True, slots=True)
class Pair:
    """A value at a position and one of the good end, measured right before; None: that run measured nothing.

    At the good end itself `base` is the value of the good end that was measured before.
    """

    position: int
    base: float | None
    value: float | None

    @property
    def run(self) -> Run:
        """The pair as one run."""
        if not self.base or not self.value or min(self.base, self.value) <= 0:
            return Run(self.position, Seen.SKIP)
        return Run(self.position, Seen.VALUE, self.value / self.base)


def next_paired_step(*, search: Search, pairs: Sequence[Pair], least: float = 0.0) -> Next:
    """What to measure next, or the answer. A step smaller than `least` (0.03 = 3 %) is none; values must be above 0."""
    first = pairs[:ENDS]
    for pair in first:
        if pair.base is None or pair.base <= 0:
            return Inconclusive(Missing.GOOD_END_BUILDS)
        if pair.run.seen is not Seen.VALUE:
            return Inconclusive(Missing.BAD_END_BUILDS)
    if len(first) < ENDS:
        if search.max_runs <= ENDS:
            return Inconclusive(Missing.RUNS)
        return Ask((search.n,), "tell the step and the noise at the bad end")
    step = step_of(first)
    if abs(step.claimed) < least:
        return Inconclusive(Missing.SIGNAL)
    # without a value of the good end a pair says nothing, not even that its position can't be measured
    runs = [pair.run for pair in pairs[ENDS:] if pair.base]
    left = search.max_runs - len(pairs) + len(runs)
    if left < len(runs):
        return Inconclusive(Missing.RUNS)
    return next_metric_step(search=replace(search, max_runs=left), step=step, runs=runs)


def step_of(pairs: Sequence[Pair]) -> Step:
    """The step and the noise of single pairs, by those of the bad end; at the good end a pair is 1 but for noise."""
    bad = [pair.run for pair in pairs]
    logs = [math.log(run.value) for run in bad]
    claimed = math.exp(median(logs)) - 1
    # far below the step, noise that is told by few runs says more of luck than of the machine
    noise = max(stdev(logs) * _FEW, abs(claimed) / 8, 1e-6)
    return Step(claimed=claimed, noise=noise, good=[Run(0, Seen.VALUE, 1.0)] * ENDS, bad=bad)
