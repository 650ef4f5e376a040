"""Belief over who did it, given pass and fail runs whose flake rates are not known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

from bot.core.bisect.values import Rates, Run, Search, Seen

# rates that are thought possible before anything is seen, and how likely each is
_RATES = (0.001, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
_WEIGHTS = (0.30, 0.05, 0.06, 0.08, 0.11, 0.10, 0.10, 0.08, 0.07, 0.03, 0.02)
_SURE = 0.002  # no rate is ever exactly 0: one contradiction must not be the end of a hypothesis
HINTED = 0.75
NONE_SHARE, OLDER_SHARE = 0.06, 0.01
SUSPECTED = 0.75  # how much of the belief follows the suspects; the rest is spread evenly, since they may mislead


@lru_cache(maxsize=65536)
def _evidence(lies: int, truths: int) -> float:
    """P(these counts) under all rates."""
    return sum(w * rate**lies * (1 - rate) ** truths for rate, w in zip(_RATES, _WEIGHTS, strict=True))


def _known(rate: float, lies: int, truths: int) -> float:
    rate = min(max(rate, _SURE), 0.5)
    return float(rate**lies * (1 - rate) ** truths)


class Belief:
    """For each hypothesis c = 0 (older than the range), 1..n, n+1 (none): its share and the rates it implies."""

    def __init__(self, search: Search, runs: Sequence[Run]) -> None:
        self.n = search.n
        fails, passes = [0] * (self.n + 1), [0] * (self.n + 1)
        for run in runs:
            if run.seen is Seen.FAIL:
                fails[run.position] += 1
            elif run.seen is Seen.PASS or (run.seen is Seen.ABSENT and search.absent_is_good):
                passes[run.position] += 1
        self.fails, self.passes = fails, passes
        before_f, before_p = [0, *accumulate(fails)], [0, *accumulate(passes)]
        all_f, all_p = before_f[-1], before_p[-1]
        prior = _prior(search)
        shares, self.false_fail, self.true_fail = [], [], []
        for c in range(self.n + 2):
            ff, tp = before_f[min(c, self.n + 1)], before_p[min(c, self.n + 1)]
            told, lie, catch = _given(search.hint, ff, tp, all_f - ff, all_p - tp)
            shares.append(prior[c] * told)
            self.false_fail.append(lie)
            self.true_fail.append(catch)
        total = math.fsum(shares)
        self.shares = [share / total for share in shares]

    def information(self) -> list[float]:
        """Bits that one run at each position is expected to tell of who did it."""
        low = [s * q for s, q in zip(self.shares, self.false_fail, strict=True)]
        high = [s * q for s, q in zip(self.shares, self.true_fail, strict=True)]
        low_h = [s * _entropy(q) for s, q in zip(self.shares, self.false_fail, strict=True)]
        high_h = [s * _entropy(q) for s, q in zip(self.shares, self.true_fail, strict=True)]
        all_low, all_low_h = math.fsum(low), math.fsum(low_h)
        sum_high = sum_low = sum_high_h = sum_low_h = 0.0
        bits = []
        for position in range(self.n + 1):
            # a run at `position` is bad under every c <= position
            sum_high, sum_low = sum_high + high[position], sum_low + low[position]
            sum_high_h, sum_low_h = sum_high_h + high_h[position], sum_low_h + low_h[position]
            fail = min(max(sum_high + all_low - sum_low, 0.0), 1.0)
            bits.append(_entropy(fail) - (sum_high_h + all_low_h - sum_low_h))
        return bits

    def rates(self) -> Rates:
        """The flake rates, as believed now."""
        lie = math.fsum(s * q for s, q in zip(self.shares, self.false_fail, strict=True))
        catch = math.fsum(s * q for s, q in zip(self.shares, self.true_fail, strict=True))
        return Rates(round(lie, 4), round(1 - catch, 4))


def _given(hint: Rates | None, good_f: int, good_p: int, bad_f: int, bad_p: int) -> tuple[float, float, float]:
    """(P(runs | hypothesis), expected P(fail | good), expected P(fail | bad))."""
    good, bad = _evidence(good_f, good_p), _evidence(bad_p, bad_f)
    told = good * bad
    lie, miss = _evidence(good_f + 1, good_p) * bad, _evidence(bad_p + 1, bad_f) * good
    if hint is not None:
        good, bad = _known(hint.false_fail, good_f, good_p), _known(hint.false_pass, bad_p, bad_f)
        hinted = HINTED * good * bad
        told, lie, miss = (1 - HINTED) * told, (1 - HINTED) * lie, (1 - HINTED) * miss
        told += hinted
        lie += hinted * min(max(hint.false_fail, _SURE), 0.5)
        miss += hinted * min(max(hint.false_pass, _SURE), 0.5)
    return told, lie / told, 1 - miss / told


def _prior(search: Search) -> list[float]:
    allowed = [0.0 if c in search.never else 1.0 for c in range(1, search.n + 1)]
    even = sum(allowed) or 1.0
    inside = [weight / even for weight in allowed]
    if search.suspects is not None:
        weights = [max(w, 0.0) * a for w, a in zip(search.suspects, allowed, strict=True)]
        total = sum(weights)
        if total > 0:
            inside = [SUSPECTED * w / total + (1 - SUSPECTED) * i for w, i in zip(weights, inside, strict=True)]
    share = 1 - NONE_SHARE - OLDER_SHARE
    return [OLDER_SHARE, *(share * weight for weight in inside), NONE_SHARE]


def _entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -(p * math.log2(p) + (1 - p) * math.log2(1 - p))
