"""Learn from picks that really landed how much each signal weighs, and where safe and watch end.

The model is one of independent hazards: signals of sizes s leave a pick unchanged with the chance exp(-(base + Σ w·s)),
every w at least 0. So each weight is a reason's own chance, and more signals never make a commit safer. What is fitted
is the most likely set of weights, with a mild prior that keeps a signal seen seldom from weighing nothing, or all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import expm1

_BASE = "base"
_PRIOR_SHAPE = 2.5  # of a gamma distribution: its mode is where a weight lies of which nothing is known
_PRIOR_MODE = 0.02
_SWEEPS = 200
_STEPS = 3
_SMALLEST, _LARGEST = 1e-6, 5.0
_ENOUGH = 1e-7


@dataclass(frozen=True, slots=True)
class Sample:
    """A pick that merged: the sizes of its signals by name, and whether it landed unchanged."""

    sizes: Mapping[str, float]
    unchanged: bool


@dataclass(frozen=True, slots=True)
class Learned:
    """The hazard of a commit without signals, and the weight of each signal."""

    base: float
    weights: Mapping[str, float]

    def chance(self, sizes: Mapping[str, float]) -> float:
        """How likely (0 to 1) work by hand is."""
        return -expm1(-self.base - sum(self.weights.get(name, 0.0) * size for name, size in sizes.items()))


@dataclass(frozen=True, slots=True)
class Point:
    """Where the line is drawn at a chance `below`: how many picks are under it, and how many of them land unchanged."""

    below: float
    under: int
    unchanged: int

    @property
    def precision(self) -> float:
        """The share of those under it that land unchanged."""
        return self.unchanged / self.under if self.under else 1.0


def fit(samples: Sequence[Sample], names: Sequence[str]) -> Learned:
    """The weights of the signals `names` that make what happened most likely; deterministic. Needs a sample."""
    if not samples:
        raise ValueError("no pick to learn from: none of them merged")
    every = (_BASE, *names)
    rows = [[1.0, *(sample.sizes.get(name, 0.0) for name in names)] for sample in samples]
    kept = [sample.unchanged for sample in samples]
    weights = [_PRIOR_MODE] * len(every)
    for _ in range(_SWEEPS):
        moved = 0.0
        for index in range(len(every)):
            new = _best(index, weights, rows, kept)
            moved = max(moved, abs(new - weights[index]))
            weights[index] = new
        if moved < _ENOUGH:
            break
    return Learned(weights[0], dict(zip(names, weights[1:], strict=True)))


def curve(chances: Sequence[float], unchanged: Sequence[bool]) -> list[Point]:
    """Precision against share: a point for each chance at which the line could be drawn, the strictest first."""
    points: list[Point] = []
    good = 0
    ranked = sorted(zip(chances, unchanged, strict=True))
    for count, (chance, same) in enumerate(ranked, 1):
        good += same
        if count == len(ranked) or ranked[count][0] > chance:
            above = ranked[count][0] if count < len(ranked) else 1.0
            points.append(Point((chance + above) / 2, count, good))
    return points


def widest(points: Sequence[Point], precision: float) -> Point | None:
    """The point with most picks under it at which at least `precision` of them land unchanged."""
    return max((point for point in points if point.precision >= precision), key=lambda point: point.under, default=None)


def held_out(
    samples: Sequence[Sample],
    names: Sequence[str],
    *,
    folds: int,
    forward: bool,
    groups: Sequence[str] | None = None,
    ignoring: Collection[str] = (),
) -> list[float | None]:
    """The chance of each sample by weights that have not seen it. Samples are in the order of time.

    They are cut into `folds` runs of days; each run is judged by all others, or with `forward` only by those before it
    (None for the first run). With `groups`, the name of one for each sample, whole groups are kept back instead, put
    together to `folds` parts of like size. Signals in `ignoring` have their weight, but no part in the chance.
    """
    parts = _by_time(len(samples), folds) if groups is None else _by_group(groups, folds)
    chances: list[float | None] = [None] * len(samples)
    for part in filter(None, parts):
        kept = set(part)
        seen = [s for place, s in enumerate(samples) if place not in kept and not (forward and place > part[0])]
        if seen:
            learned = fit(seen, names)
            for place in part:
                sizes = {name: size for name, size in samples[place].sizes.items() if name not in ignoring}
                chances[place] = learned.chance(sizes)
    return chances


def _by_time(count: int, folds: int) -> list[list[int]]:
    cuts = [count * fold // folds for fold in range(folds + 1)]
    return [list(range(start, end)) for start, end in pairwise(cuts)]


def _by_group(groups: Sequence[str], folds: int) -> list[list[int]]:
    members: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    parts: list[list[int]] = [[] for _ in range(folds)]
    for places in sorted(members.values(), key=lambda places: (-len(places), places[0])):
        min(parts, key=len).extend(places)
    return parts


def _best(index: int, weights: Sequence[float], rows: Sequence[Sequence[float]], kept: Sequence[bool]) -> float:
    """The weight at `index` that is most likely while the others stand (Newton's steps on a concave function)."""
    own = weights[index]
    hit = [
        (row[index], sum(w * x for w, x in zip(weights, row, strict=True)) - own * row[index], same)
        for row, same in zip(rows, kept, strict=True)
        if row[index]
    ]
    for _ in range(_STEPS):
        slope = (_PRIOR_SHAPE - 1) / own - (_PRIOR_SHAPE - 1) / _PRIOR_MODE
        bend = -(_PRIOR_SHAPE - 1) / own**2
        for size, others, same in hit:
            if same:
                slope -= size
            else:
                odds = 1 / max(expm1(others + own * size), 1e-12)
                slope += size * odds
                bend -= size**2 * odds * (1 + odds)
        own = min(max(own - slope / bend, own / 4, _SMALLEST), _LARGEST)
    return own


__all__ = ["Learned", "Point", "Sample", "curve", "fit", "held_out", "widest"]
