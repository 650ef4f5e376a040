"""Search for the commit that moved a metric: run-level values of one host, levels and step learnt as it goes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from bot.core.bisect.belief import information, prior_shares
from bot.core.bisect.groups import Group, groups
from bot.core.bisect.passfail import members, worth_of
from bot.core.bisect.values import Ask, Culprit, Inconclusive, Missing, Next, NoCulprit, Run, Search, Seen, Step

CONFIDENCE = 0.995
_LEVELS = [(index - 14) * 0.25 for index in range(29)]  # of the good level, in noises around its middle
_STEPS = (0.7, 0.8, 0.9, 1.0, 1.12, 1.27)  # of the claimed step: what is claimed after a search is biased
_OTHER_HOST = 1.4  # how much noisier a value of another host is
_WILD, _WILD_SIZE = 0.03, 9.0  # share and size of runs that something else disturbed
_HAMMERED = 2  # runs that a position may be ahead of the ends
_LEAST_SIGNAL = 0.4  # noises a step must have to be searched for at all


def next_metric_step(*, search: Search, step: Step, runs: Sequence[Run]) -> Next:
    """What to run next, or the answer. Positions in `search.never` are never accused; values must be above 0."""
    change = math.log1p(step.claimed)
    if step.noise <= 0 or abs(change) < _LEAST_SIGNAL * step.noise:
        return Inconclusive(Missing.SIGNAL)
    host = _host(step, runs)
    known = [run for run in (*step.good, *step.bad, *runs) if run.seen is Seen.VALUE and run.value > 0]
    dead = {run.position for run in runs if run.seen is Seen.SKIP}
    alive = {run.position for run in known}
    if 0 in dead or search.n in dead:
        return Inconclusive(Missing.GOOD_END_BUILDS if 0 in dead else Missing.BAD_END_BUILDS)
    left = search.max_runs - len(runs)
    ends = tuple(p for p in (search.n, 0) if not any(run.position == p and run.host == host for run in known))
    if ends:
        return Ask(ends, "both ends on one host first", host) if left >= len(ends) else Inconclusive(Missing.RUNS)
    shares = _shares(search, step, known, host, change)
    enough = search.confidence or CONFIDENCE
    best = max(groups(shares, dead, search.n), key=lambda group: group.share)
    if shares[search.n + 1] >= enough:
        return NoCulprit(shares[search.n + 1])
    if best.share >= enough:
        ask = _bracket(best, known, host)
        if not ask:
            return Culprit(members(best, search), best.share)
        if left >= len(ask):
            return Ask(ask, "confirm the culprit and its parent", host)
    if left <= 0:
        return Inconclusive(Missing.RUNS, members(best, search), best.share)
    position = _most_telling(search, step, shares, dead, alive, change)
    count = Counter(run.position for run in known if run.host == host)
    end = min((0, search.n), key=lambda p: count[p])
    if count[position] >= count[end] + _HAMMERED:
        # asking one place again and again tells little while the levels themselves are not known
        return Ask((end,), "learn the level of an end", host)
    return Ask((position,), "the run that tells most", host)


def _host(step: Step, runs: Sequence[Run]) -> str:
    """The host that all runs are asked from: the one there are most values of, at both ends."""
    if runs and runs[0].host:
        return runs[0].host
    good, bad = Counter(run.host for run in step.good), Counter(run.host for run in step.bad)
    names = list(step.hosts) or sorted({*good, *bad}) or [""]
    return max(names, key=lambda name: (min(good[name], bad[name]), good[name] + bad[name]))


def _bracket(group: Group, known: Sequence[Run], host: str) -> tuple[int, ...]:
    seen = {run.position for run in known if run.host == host}
    return tuple(position for position in (group.last, group.low) if position not in seen)


def _most_telling(
    search: Search, step: Step, shares: list[float], dead: set[int], alive: set[int], change: float
) -> int:
    # a value is read as one of two levels: it errs as often as noise reaches half the step
    errs = max(0.5 * math.erfc(abs(change) / (2 * math.sqrt(2) * step.noise)), 0.002)
    count = search.n + 2
    worth = worth_of(information(shares, [errs] * count, [1 - errs] * count), dead, alive)
    return max(worth, key=lambda position: (worth[position], -position))


def _density(z: float) -> float:
    """Of a value `z` noises away from its level: heavy-tailed, and now and then disturbed by something else."""
    usual = 0.375 * math.sqrt(2) * math.pow(1 + z * z / 2, -2.5)
    wild = math.exp(-0.5 * (z / _WILD_SIZE) ** 2) / (_WILD_SIZE * 2.5066)
    return (1 - _WILD) * usual + _WILD * wild


def _shares(search: Search, step: Step, known: Sequence[Run], host: str, change: float) -> list[float]:
    """Each hypothesis's share, the level of the host and the size of the step being learnt too."""
    n, noise = search.n, step.noise
    points = [
        (run.position, math.log(run.value) / noise, 1.0 if run.host == host else 1 / _OTHER_HOST) for run in known
    ]
    points.sort()
    middle = _middle([value for position, value, _ in points if position == 0])
    cuts = sorted({position for position, _, _ in points})
    told = [0.0] * (len(cuts) + 1)  # P(values | c in the stretch that ends at cuts[k]); the last one: none
    for level in _LEVELS:
        low = _log_by_position(points, cuts, middle + level)
        below = [0.0]
        for value in low:
            below.append(below[-1] + value)
        none = math.exp(below[-1])
        told[-1] += none * len(_STEPS)
        for share in _STEPS:
            high = _log_by_position(points, cuts, middle + level + share * change / noise)
            above = 0.0
            for index in range(len(cuts) - 1, -1, -1):
                above += high[index]
                told[index] += math.exp(below[index] + above)
    prior = prior_shares(search)
    shares, index = [0.0], 0
    for c in range(1, n + 1):
        while index < len(cuts) and cuts[index] < c:
            index += 1
        shares.append(prior[c] * told[min(index, len(cuts))])
    shares.append(prior[n + 1] * told[-1])
    total = math.fsum(shares)
    return [share / total for share in shares] if total > 0 else [1 / len(shares)] * len(shares)


def _middle(values: list[float]) -> float:
    values = sorted(values)
    return values[len(values) // 2] if values else 0.0


def _log_by_position(points: Sequence[tuple[int, float, float]], cuts: Sequence[int], level: float) -> list[float]:
    sums = dict.fromkeys(cuts, 0.0)
    for position, value, scale in points:
        sums[position] += math.log(_density((value - level) * scale) * scale * 2.5)
    return [sums[cut] for cut in cuts]
