"""Belief over who did it, given pass and fail runs whose flake rates are not known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from bot.core.bisect.values import Rates, Run, Search, Seen

# rates that are thought possible before anything is seen, and how likely each is
_RATES = {0.001: 0.03, 0.02: 0.05, 0.05: 0.07, 0.1: 0.12, 0.15: 0.12, 0.2: 0.12, 0.25: 0.12, 0.3: 0.16, 0.35: 0.15}
# a test that is nearly a coin, or worse: where it is not thought of, its luck accuses whoever stands near
_COINS_BOTH_WAYS = {0.42: 0.009, 0.5: 0.012}
_COINS_ONE_WAY = {0.42: 0.05, 0.5: 0.06, 0.65: 0.05}
_EACH, _ALIKE, _FALSE_FAILS, _FALSE_PASSES, _NEVER = 0.09, 0.47, 0.31, 0.05, 0.08  # kinds of noise, as told at _given
_TINY = 1e-12
_SURE = 0.002  # no rate is ever exactly 0: one contradiction must not be the end of a hypothesis
# how far a hint is believed: one that tells of noise both ways, one way, and one that claims that runs hardly lie
_NOISY, _TRUST_BOTH, _TRUST_ONE, _TRUST = 0.05, 0.8, 0.5, 0.07
_OTHER_WAY = 0.1  # of the greater rate that was told, the other is never believed to be less: one run must not decide
NONE_SHARE, OLDER_SHARE = 0.11, 0.01
SUSPECTED = 0.75  # how much of the belief follows the suspects; the rest is spread evenly, since they may mislead


def _over(rates: Mapping[float, float]) -> Callable[[int, int], float]:
    """P(so many lies, so many truths) over rates of which each has a weight."""
    total = sum(rates.values())
    shares = [(rate, weight / total) for rate, weight in rates.items()]

    @lru_cache(maxsize=65536)
    def evidence(lies: int, truths: int) -> float:
        return sum(share * rate**lies * (1 - rate) ** truths for rate, share in shares)

    return evidence


_each, _alike, _one_way = _over(_RATES), _over(_RATES | _COINS_BOTH_WAYS), _over(_RATES | _COINS_ONE_WAY)


def _known(rate: float, lies: int, truths: int) -> float:
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
        prior, trust, hint = prior_shares(search), _trust(search), _believable(search.hint)
        shares, self.false_fail, self.true_fail = [], [], []
        record = search.record
        for c in range(self.n + 2):
            ff, tp = before_f[min(c, self.n + 1)], before_p[min(c, self.n + 1)]
            good = ff + record.fails, tp + record.passes
            told, lie, catch = _given(hint, trust, *good, all_f - ff, all_p - tp)
            shares.append(prior[c] * told)
            self.false_fail.append(lie)
            self.true_fail.append(catch)
        total = math.fsum(shares)
        self.shares = [share / total for share in shares]

    def information(self) -> list[float]:
        """Bits that one run at each position is expected to tell of who did it."""
        return information(self.shares, self.false_fail, self.true_fail)

    def clearing(self, first: int, last: int) -> list[float]:
        """The bits by which a run at each position should raise the log odds of c = first..last, if they did it."""
        all_low = math.fsum(s * q for s, q in zip(self.shares, self.false_fail, strict=True))
        share = math.fsum(self.shares[first : last + 1])
        high = low = 0.0
        gained = []
        for position in range(self.n + 1):
            high += self.shares[position] * self.true_fail[position]
            low += self.shares[position] * self.false_fail[position]
            fails = min(max(high + all_low - low, _TINY), 1 - _TINY)
            theirs = math.fsum(
                self.shares[c] * (self.true_fail[c] if c <= position else self.false_fail[c])
                for c in range(first, last + 1)
            )
            after_fail, after_pass = _log_odds(theirs / fails), _log_odds((share - theirs) / (1 - fails))
            chance = theirs / share
            gained.append(chance * after_fail + (1 - chance) * after_pass - _log_odds(share))
        return gained

    def rates(self) -> Rates:
        """The flake rates, as believed now."""
        lie = math.fsum(s * q for s, q in zip(self.shares, self.false_fail, strict=True))
        catch = math.fsum(s * q for s, q in zip(self.shares, self.true_fail, strict=True))
        return Rates(round(lie, 4), round(1 - catch, 4))


def information(shares: Sequence[float], false_fail: Sequence[float], true_fail: Sequence[float]) -> list[float]:
    """Bits told by a run at each position, given each hypothesis's share and its P(fail | good) and P(fail | bad)."""
    all_low = math.fsum(s * q for s, q in zip(shares, false_fail, strict=True))
    all_low_h = math.fsum(s * _entropy(q) for s, q in zip(shares, false_fail, strict=True))
    high = low = high_h = low_h = 0.0
    bits = []
    for share, lie, catch in zip(shares[:-1], false_fail, true_fail, strict=False):
        # a run at a position is bad under every hypothesis up to it
        high, low = high + share * catch, low + share * lie
        high_h, low_h = high_h + share * _entropy(catch), low_h + share * _entropy(lie)
        bits.append(_entropy(min(max(high + all_low - low, 0.0), 1.0)) - (high_h + all_low_h - low_h))
    return bits


def _given(
    hint: Rates | None, trust: float, good_f: int, good_p: int, bad_f: int, bad_p: int
) -> tuple[float, float, float]:
    """(P(runs | hypothesis), expected P(fail | good), expected P(fail | bad)).

    Either rate is anything; or a test lies both ways alike; or it fails at random where it should pass and never the
    other way round; or what is broken shows only now and then; or it never lies.
    """
    each_good, each_bad = _EACH * _each(good_f, good_p), _each(bad_p, bad_f)
    one_good = _FALSE_FAILS * _known(_SURE, bad_p, bad_f)
    one_bad = _FALSE_PASSES * _known(_SURE, good_f, good_p)
    lies, truths = good_f + bad_p, good_p + bad_f
    never = _NEVER * _known(_SURE, lies, truths)
    more_alike = _ALIKE * _alike(lies + 1, truths)
    false_fails, false_passes = one_good * _one_way(good_f, good_p), one_bad * _one_way(bad_p, bad_f)
    told = each_good * each_bad + _ALIKE * _alike(lies, truths) + false_fails + false_passes + never
    lie = _EACH * _each(good_f + 1, good_p) * each_bad + more_alike
    lie += one_good * _one_way(good_f + 1, good_p) + (false_passes + never) * _SURE
    miss = each_good * _each(bad_p + 1, bad_f) + more_alike
    miss += one_bad * _one_way(bad_p + 1, bad_f) + (false_fails + never) * _SURE
    if hint is not None:
        good, bad = _known(hint.false_fail, good_f, good_p), _known(hint.false_pass, bad_p, bad_f)
        hinted = trust * good * bad
        told, lie, miss = (1 - trust) * told, (1 - trust) * lie, (1 - trust) * miss
        told += hinted
        lie += hinted * hint.false_fail
        miss += hinted * hint.false_pass
    return told, lie / told, 1 - miss / told


def _trust(search: Search) -> float:
    if search.trust is not None or search.hint is None:
        return search.trust or 0.0
    noisy = sum(rate >= _NOISY for rate in (search.hint.false_fail, search.hint.false_pass))
    return (_TRUST, _TRUST_ONE, _TRUST_BOTH)[noisy]


def _believable(hint: Rates | None) -> Rates | None:
    """The rates that were told, none of them 0: what was never seen may still be."""
    if hint is None:
        return None
    least = max(_SURE, _OTHER_WAY * max(hint.false_fail, hint.false_pass))
    return Rates(*(min(max(rate, least), 0.5) for rate in (hint.false_fail, hint.false_pass)))


def prior_shares(search: Search) -> list[float]:
    """The belief before any run: older than the range, each of 1..n, none of them."""
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


def _log_odds(share: float) -> float:
    share = min(max(share, _TINY), 1 - _TINY)
    return math.log2(share / (1 - share))


def _entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -(p * math.log2(p) + (1 - p) * math.log2(1 - p))
