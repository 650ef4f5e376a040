"""How far repeated samples of two sides can be told apart: an interval, from the samples alone, for what changed.

A quantile's own interval is between two of its sorted samples, chosen by the binomial distribution so that it holds
the true one 95 times in 100 whatever the samples' distribution (Thompson 1936); with fewer samples than that takes
(six, for the median) it is from the least to the greatest. The two sides' intervals are joined to one of the difference
by recovering what each contributes (MOVER, Zou and Donner 2008). Nothing is drawn at random: the same samples always
give the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Estimate:
    """A quantile of some samples with the interval that holds it 95 times in 100; all in the samples' unit."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Change:
    """How much was added (`now` less `then`), with its 95 % interval, as fractions of what was there before."""

    value: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the interval's width."""
        return (self.high - self.low) / 2

    def turned(self) -> Change:
        """The change with its sign turned: what was gained as what was lost."""
        return Change(-self.value, -self.high, -self.low)

    def sized(self) -> Change:
        """The change in either direction."""
        ends = sorted((abs(self.low), abs(self.high)))
        return Change(abs(self.value), 0.0 if self.low <= 0 <= self.high else ends[0], ends[1])


def estimate(samples: Sequence[float], quantile: float = 0.5) -> Estimate:
    """The quantile (0 to 1; the median where it is 0.5, else by nearest rank) of one or more finite samples."""
    ordered = sorted(samples)
    count = len(ordered)
    low, high = _ranks(count, quantile)
    if quantile == 0.5:
        value = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    else:
        value = ordered[max(1, math.ceil(quantile * count)) - 1]
    return Estimate(value, min(value, ordered[low - 1]), max(value, ordered[high - 1]))


def change(now: Estimate, then: Estimate) -> Change:
    """What was added between two sides, relative to the earlier one; infinite where that is zero."""
    added = now.value - then.value
    down = math.hypot(now.value - now.low, then.high - then.value)
    up = math.hypot(now.high - now.value, then.value - then.low)
    return Change(*(_relative(part, then.value) for part in (added, added - down, added + up)))


def alike(one: Sequence[float], other: Sequence[float]) -> bool:
    """True where the medians of two sets of samples can't be told apart."""
    found = change(estimate(one), estimate(other))
    return found.low <= 0 <= found.high


def _relative(part: float, of: float) -> float:
    if part == 0:
        return 0.0
    return part / abs(of) if of else math.copysign(math.inf, part)


@lru_cache(maxsize=4096)
def _ranks(count: int, quantile: float) -> tuple[int, int]:
    """The ranks (from 1) of the samples between which the quantile lies, but for TAIL on each side."""
    low, high, below = 1, count, 0.0
    for rank in range(count + 1):
        # `below` is the chance that fewer than `rank` samples lie under the quantile
        if rank >= 1 and below <= TAIL:
            low = rank
        if rank >= 1 and 1 - below <= TAIL:
            high = min(high, rank)
            break
        below += _chance(rank, count, quantile)
    return low, high


def _chance(hits: int, count: int, quantile: float) -> float:
    chosen = math.lgamma(count + 1) - math.lgamma(hits + 1) - math.lgamma(count - hits + 1)
    return math.exp(chosen + hits * math.log(quantile) + (count - hits) * math.log1p(-quantile))
