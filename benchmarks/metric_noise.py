"""How often a budget is called broken, kept or not to be told, on simulated noise: `python benchmarks/metric_noise.py`.

Each trial draws samples of trunk and of a change that is slower by so much, with multiplicative noise, and judges them
by `bot.core.measured` at a budget of 3 %. Beside it stands the plain comparison of two medians. `again`: how often it
is settled after up to three runs, as with /retry.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable

from bot.core.config import Budget
from bot.core.measured import over, value_of

BUDGET = 0.03
Noise = Callable[[random.Random, float], float]
NOISES: dict[str, Noise] = {
    "normal": lambda rng, sigma: rng.gauss(0, sigma),
    "skewed": lambda rng, sigma: sigma * (rng.lognormvariate(0, 0.8) - 1),
    "spikes": lambda rng, sigma: rng.gauss(0, sigma / 2) + (rng.random() < 0.1) * 10 * sigma,
}


def main() -> int:
    """Print the table; exit status 1 where noise is called a regression, or a regression let through, too often."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [
        row(noise=noise, sigma=sigma, count=count, slower=slower, trials=options.trials, seed=options.seed)
        for noise in NOISES
        for sigma in (0.01, 0.03)
        for count in (3, 5, 10, 30)
        for slower in (0.0, 0.015, 0.05, 0.1)
    ]
    bad = [one for one in rows if wrong(one) > 0.05]
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows)
    return int(bool(bad))


def wrong(one: dict[str, float | str]) -> float:
    """How often the answer was wrong: broken within the budget, kept beyond it (0 to 1)."""
    return float(one["broken"] if float(one["slower"]) <= BUDGET else one["kept"])


def row(*, noise: str, sigma: float, count: int, slower: float, trials: int, seed: int) -> dict[str, float | str]:
    """The rates of one kind of noise (`sigma` and `slower` as fractions), `count` samples a side and run."""
    rng = random.Random(f"{seed} {noise} {sigma} {count} {slower}")
    first, last, plain = Counter[str](), Counter[str](), Counter[str]()
    for _ in range(trials):
        then = [100 * (1 + NOISES[noise](rng, sigma)) for _ in range(count)]
        now = [100 * (1 + slower) * (1 + NOISES[noise](rng, sigma)) for _ in range(count)]
        first[told := judged(now, then)] += 1
        plain["broken" if middle(now) > middle(then) * (1 + BUDGET) else "kept"] += 1
        for _ in range(2):
            if told == "unsure":
                then += [100 * (1 + NOISES[noise](rng, sigma)) for _ in range(count)]
                now += [100 * (1 + slower) * (1 + NOISES[noise](rng, sigma)) for _ in range(count)]
                told = judged(now, then)
        last[told] += 1
    rates = {name: first[name] / trials for name in ("kept", "broken", "unsure")}
    after = {f"{name} again": last[name] / trials for name in ("kept", "broken", "unsure")}
    old = plain["broken"] / trials if slower <= BUDGET else plain["kept"] / trials
    return {"noise": noise, "sigma": sigma, "samples": count, "slower": slower, **rates, **after, "plain wrong": old}


def judged(now: list[float], then: list[float]) -> str:
    """What is said of the two sides."""
    broken = over(value_of(now, False), value_of(then, False), Budget(regression=BUDGET))
    return "kept" if broken is None else "unsure" if broken.unsure else "broken"


def middle(samples: list[float]) -> float:
    """The median."""
    ordered = sorted(samples)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def show(rows: list[dict[str, float | str]]) -> None:
    """The table, rates in percent."""
    names = ("kept", "broken", "unsure", "kept again", "broken again", "unsure again", "plain wrong")
    out = sys.stdout.write
    out(f"{'noise':8s} {'sigma':>6s} {'n':>3s} {'slower':>7s}  " + " ".join(f"{name:>12s}" for name in names) + "\n")
    for one in rows:
        out(f"{one['noise']:8s} {float(one['sigma']):6.1%} {one['samples']:3d} {float(one['slower']):7.1%}  ")
        out(" ".join(f"{float(one[name]):12.1%}" for name in names) + "\n")
    within = [one for one in rows if float(one["slower"]) <= BUDGET]
    for kind, mine in (("false block", within), ("miss", [one for one in rows if one not in within])):
        new, old = max(map(wrong, mine)), max(float(one["plain wrong"]) for one in mine)
        mean, was = (
            math.fsum(map(wrong, mine)) / len(mine),
            math.fsum(float(o["plain wrong"]) for o in mine) / len(mine),
        )
        out(f"{kind}: {mean:.2%} on average (plain: {was:.2%}), {new:.2%} at worst (plain: {old:.2%})\n")


if __name__ == "__main__":
    raise SystemExit(main())
