"""Pass/fail search: the run that tells most is asked next; the culprit is named once its bracket stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from bot.core.bisect.belief import Belief
from bot.core.bisect.groups import Group, chance_to_build, groups
from bot.core.bisect.values import Ask, Culprit, Inconclusive, Missing, Next, NoCulprit, Rates, Run, Search, Seen

# of the doubt that is left to an answer, by the sum of both rates as believed, so that each kind of noise errs alike:
# runs that seem never to lie may have been lucky so far, and much noise is easily taken for somewhat less
_DOUBT = ((0.0, 0.6), (0.12, 0.5), (0.17, 1.8), (0.3, 1.6), (0.42, 0.6), (0.54, 0.35), (0.62, 0.5))
_KNOWN = ((0.1, 1.2), (0.2, 2.6), (0.4, 1.8))  # the same where the rates were told and the runs bear them out


def next_step(*, search: Search, runs: Sequence[Run]) -> Next:
    """What to run next, or the answer, from all runs so far; the same runs give the same step."""
    alive = {run.position for run in runs if not _silent(run, search)}
    dead = _dead(search, runs, alive)
    left = search.max_runs - len(runs)
    ends = _ends(search, dead, alive, left)
    if ends is not None:
        return ends
    belief = Belief(search, runs)
    found = groups(belief.shares, dead, search.n)
    best = max(found, key=lambda group: group.share)
    known = 0.0 if search.suspects is not None else belief.known  # suspects may mislead: no doubt is given away
    enough = _enough(search.confidence, belief.rates(), known)
    if belief.shares[search.n + 1] >= enough:
        return NoCulprit(belief.shares[search.n + 1])
    if belief.shares[0] >= enough:
        return Inconclusive(Missing.GOOD_END, confidence=belief.shares[0])
    if best.share >= enough:
        ask = _bracket(best, belief)
        if not ask:
            return Culprit(members(best, search), best.share, belief.rates())
        if left >= len(ask):
            return Ask(ask, "confirm the culprit and its parent")
    if left <= 0:
        return Inconclusive(Missing.RUNS, members(best, search), best.share)
    return Ask(_most_telling(search, belief, dead, alive, min(search.parallel, left)), "the run that tells most")


def _enough(confidence: float, rates: Rates, known: float) -> float:
    """The belief that an answer needs; `known` is how far the rates are those of a hint that the runs bear out."""
    noise = rates.false_fail + rates.false_pass
    factor = _at(noise, _DOUBT)
    return 1 - (1 - confidence) * (factor + max(_at(noise, _KNOWN) - factor, 0.0) * known)


def _at(x: float, points: Sequence[tuple[float, float]]) -> float:
    """What a broken line gives at `x`; beyond its ends, that of the end."""
    if x <= points[0][0]:
        return points[0][1]
    for (low, at_low), (high, at_high) in pairwise(points):
        if x <= high:
            return at_low + (at_high - at_low) * (x - low) / (high - low)
    return points[-1][1]


def _silent(run: Run, search: Search) -> bool:
    return run.seen is Seen.SKIP or (run.seen is Seen.ABSENT and not search.absent_is_good)


def _dead(search: Search, runs: Sequence[Run], alive: set[int]) -> set[int]:
    """The positions that are not asked again: none that ever ran, and an end only after its tries."""
    tries = Counter(run.position for run in runs if run.position not in alive)
    return {at for at, tried in tries.items() if at not in (0, search.n) or tried >= search.end_tries}


def _ends(search: Search, dead: set[int], alive: set[int], left: int) -> Next | None:
    """Both ends come first: good must pass and bad must fail, else whoever is asked is accused."""
    if 0 in dead:
        return Inconclusive(Missing.GOOD_END_BUILDS)
    if search.n in dead:
        return Inconclusive(Missing.BAD_END_BUILDS)
    untried = tuple(position for position in (search.n, 0) if position not in alive)
    if not untried:
        return None
    if left < len(untried):
        return Inconclusive(Missing.RUNS)
    return Ask(untried, "verify both ends first")


def members(group: Group, search: Search) -> tuple[int, ...]:
    """The commits of a group that can have done it."""
    members = tuple(c for c in range(group.first, group.last + 1) if c not in search.never)
    return members or tuple(range(group.first, group.last + 1))


def _bracket(group: Group, belief: Belief) -> tuple[int, ...]:
    """The sides of the bracket that were not yet seen as they have to be."""
    missing = []
    if not belief.fails[group.last]:
        missing.append(group.last)
    if not belief.passes[group.low]:
        missing.append(group.low)
    return tuple(missing)


def _most_telling(search: Search, belief: Belief, dead: set[int], alive: set[int], wanted: int) -> tuple[int, ...]:
    worth = worth_of(belief.information(), dead, alive)
    best = max(worth, key=lambda position: (worth[position], -position))
    if wanted <= 1:
        return (best,)
    return _spread(search, belief, worth, best, wanted)


def worth_of(bits: Sequence[float], dead: set[int], alive: set[int]) -> dict[int, float]:
    """What a run at each position that may build is expected to tell, in bits."""
    return {
        position: told * chance_to_build(position, dead, alive)
        for position, told in enumerate(bits)
        if position not in dead
    }


def _spread(search: Search, belief: Belief, worth: dict[int, float], best: int, wanted: int) -> tuple[int, ...]:
    """A round of several: each part of the belief is cut, the most telling position among them."""
    chosen = [best]
    mass, below = [], 0.0
    for position in range(search.n + 1):
        below += belief.shares[position]
        mass.append(below)
    for part in range(1, wanted + 1):
        if len(chosen) == wanted:
            break
        goal = part / (wanted + 1)
        near = min(worth, key=lambda position: (abs(mass[position] - goal), -worth[position]))
        if near not in chosen:
            chosen.append(near)
    return tuple(sorted(chosen))
