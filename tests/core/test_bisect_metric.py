"""The search for the commit that moved a metric, in a simulated world."""

from __future__ import annotations

import math
import random

import pytest

from bot.core.bisect import (
    Ask,
    Culprit,
    Inconclusive,
    Missing,
    Next,
    NoCulprit,
    Pair,
    Run,
    Search,
    Seen,
    Step,
    next_metric_step,
    next_paired_step,
)


def measure(search: Search, culprit: int, *, size: float, seed: int, noise: float = 0.01) -> tuple[Next, list[Run]]:
    rng = random.Random(seed)
    hosts = {name: rng.gauss(0, 0.7 * noise) for name in ("h1", "h2", "h3")}

    def run(position: int, host: str) -> Run:
        spike = rng.uniform(0.05, 0.2) if rng.random() < 0.02 else 0.0
        bad = 0 < culprit <= position
        value = 10 * math.exp(rng.gauss(0, noise) + hosts[host] + spike) * (1 + size * bad)
        return Run(position, Seen.VALUE, value, host)

    step = Step(
        claimed=size * rng.uniform(0.8, 1.3), noise=noise, hosts=tuple(hosts),
        good=[run(0, rng.choice(list(hosts))) for _ in range(5)],
        bad=[run(search.n, rng.choice(list(hosts))) for _ in range(5)],
    )  # fmt: skip
    runs: list[Run] = []
    while isinstance(asked := next_metric_step(search=search, step=step, runs=runs), Ask):
        assert len({asked.host, *(run.host for run in runs)}) == 1
        runs += [run(position, asked.host) for position in asked.positions]
    return asked, runs


@pytest.mark.parametrize("size", [0.05, 0.03, -0.04])
def test_a_step_is_found(size: float) -> None:
    right = total = 0
    for seed in range(8):
        culprit = random.Random(seed).randint(1, 40)
        answer, runs = measure(Search(n=40), culprit, size=size, seed=seed)
        right += isinstance(answer, Culprit) and answer.positions == (culprit,)
        total += len(runs)
    assert right >= 7
    assert total / 8 <= 20


def test_documentation_never_moved_a_metric() -> None:
    search = Search(n=40, never=frozenset(range(1, 41)) - {20})
    answer, runs = measure(search, 20, size=0.05, seed=1)
    assert isinstance(answer, Culprit)
    assert answer.positions == (20,)
    assert len(runs) <= 6


def test_a_claimed_step_that_is_not_there() -> None:
    answers = [measure(Search(n=40), 0, size=0.05, seed=seed)[0] for seed in range(5)]
    assert all(isinstance(answer, NoCulprit) for answer in answers)


def test_a_step_below_the_noise_is_not_searched_for() -> None:
    answer = next_metric_step(search=Search(n=9), step=Step(claimed=0.001, noise=0.01), runs=[])
    assert answer == Inconclusive(Missing.SIGNAL)


def test_a_metric_without_runs_at_its_ends_asks_for_them() -> None:
    asked = next_metric_step(search=Search(n=9), step=Step(claimed=0.05, noise=0.01, hosts=("a", "b")), runs=[])
    assert isinstance(asked, Ask)
    assert set(asked.positions) == {0, 9}
    assert asked.host in {"a", "b"}


def paired(search: Search, culprit: int, *, size: float, seed: int, least: float = 0.0) -> tuple[Next, list[Pair]]:
    """On machines of which each is another one, up to 30 % apart, and which get slower all the while."""
    rng = random.Random(seed)
    pairs: list[Pair] = []
    while isinstance(asked := next_paired_step(search=search, pairs=pairs, least=least), Ask):
        for position in asked.positions:
            machine = rng.uniform(1, 1.3) * (1 + 0.005 * len(pairs))
            values = [machine * math.exp(rng.gauss(0, 0.007)) for _ in range(2)]
            values[1] *= 1 + size * (0 < culprit <= position)
            pairs.append(Pair(position, values[0], values[1]))
    return asked, pairs


@pytest.mark.parametrize("size", [0.06, -0.05])
def test_paired_values_find_a_step_on_machines_that_differ_and_drift(size: float) -> None:
    right = total = 0
    for seed in range(8):
        culprit = random.Random(seed).randint(1, 40)
        answer, pairs = paired(Search(n=40), culprit, size=size, seed=seed)
        right += isinstance(answer, Culprit) and answer.positions == (culprit,)
        assert not isinstance(answer, Culprit) or answer.confidence >= 0.99
        total += len(pairs)
    assert total / 8 <= 20
    assert right >= 7


def test_a_step_within_its_budget_is_none() -> None:
    answer, pairs = paired(Search(n=9), 4, size=0.02, seed=1, least=0.05)
    assert answer == Inconclusive(Missing.SIGNAL)
    assert len(pairs) == 5


@pytest.mark.parametrize(
    ("pairs", "missing"),
    [
        ([Pair(9, None, 1.0)], Missing.GOOD_END_BUILDS),
        ([Pair(9, 1.0, None)], Missing.BAD_END_BUILDS),
        ([Pair(9, 1.0, 2.0 + at / 100) for at in range(5)] + [Pair(3, None, 2.0)] * 15, Missing.RUNS),
    ],
)
def test_ends_that_can_not_be_measured(pairs: list[Pair], missing: Missing) -> None:
    answer = next_paired_step(search=Search(n=9, max_runs=20), pairs=pairs)
    assert isinstance(answer, Inconclusive)
    assert answer.missing is missing
