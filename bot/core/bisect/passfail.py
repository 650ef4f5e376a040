"""Pass/fail search: the run that tells most is asked next; the culprit is named once its bracket stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bot.core.bisect.belief import Belief
from bot.core.bisect.groups import Group, chance_to_build, groups
from bot.core.bisect.values import Ask, Culprit, Inconclusive, Missing, Next, NoCulprit, Rates, Run, Search, Seen

CONFIDENCE = 0.99  # errors come from noise, so that of all answers fewer are wrong than this leaves open
# a test whose false fails and false passes sum up to this, as believed, is nearly a coin: its luck passes for a culprit
# now and then, so less and less doubt is left to its answers
_NEARLY_A_COIN, _A_COIN, _OF_A_COIN = 0.54, 0.7, 0.09
_CLEAR = 0.35  # of the belief, from which on it is asked for what proves the first suspect, not for what tells most


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
    enough = _enough(search.confidence or CONFIDENCE, belief.rates())
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
        return Inconclusive(Missing.RUNS, members(best, search), best.share, belief.rates())
    bits = belief.clearing(best.first, best.last) if best.share > _CLEAR else belief.information()
    return Ask(_most_telling(search, belief, bits, dead, alive, min(search.parallel, left)), "the run that tells most")


def _enough(confidence: float, rates: Rates) -> float:
    """The belief that an answer needs."""
    noise = rates.false_fail + rates.false_pass
    coin = min(max((noise - _NEARLY_A_COIN) / (_A_COIN - _NEARLY_A_COIN), 0.0), 1.0)
    return 1 - (1 - confidence) * (1 - (1 - _OF_A_COIN) * coin)


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


def _most_telling(
    search: Search, belief: Belief, bits: Sequence[float], dead: set[int], alive: set[int], wanted: int
) -> tuple[int, ...]:
    worth = worth_of(bits, dead, alive)
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
