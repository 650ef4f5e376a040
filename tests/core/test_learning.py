"""Weights are learned as they were: found again from made-up history, mild where little is known."""

from __future__ import annotations

import random
from math import exp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.learning import Sample, curve, fit, held_out, widest


def history(count: int, weights: dict[str, float], base: float, seed: int = 1) -> list[Sample]:
    dice = random.Random(seed)
    samples = []
    for _ in range(count):
        sizes = {name: dice.choice([0.0, 0.0, 1.0, 2.0]) for name in weights}
        hazard = base + sum(weights[name] * size for name, size in sizes.items())
        samples.append(Sample(sizes, dice.random() < exp(-hazard)))
    return samples


def test_the_weights_of_a_long_history_are_found_again() -> None:
    true = {"a": 0.3, "b": 0.05, "c": 0.0}
    learned = fit(history(6000, true, 0.02), sorted(true))
    assert learned.base == pytest.approx(0.02, abs=0.015)
    for name, weight in true.items():
        assert learned.weights[name] == pytest.approx(weight, abs=0.04)


def test_little_is_known_of_what_was_seen_once() -> None:
    samples = [Sample({}, True)] * 50 + [Sample({"rare": 1.0}, False)]
    assert 0.02 < fit(samples, ["rare"]).weights["rare"] < 1.5
    assert fit([Sample({}, True)] * 50, ["unseen"]).weights["unseen"] == pytest.approx(0.02, abs=1e-4)


def test_nothing_to_learn_from_is_said() -> None:
    with pytest.raises(ValueError, match="no pick"):
        fit([], ["a"])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3), st.booleans()), min_size=1, max_size=40))
def test_weights_are_never_negative_and_learning_is_deterministic(rows: list[tuple[float, float, bool]]) -> None:
    samples = [Sample({"a": a, "b": b}, same) for a, b, same in rows]
    learned = fit(samples, ["a", "b"])
    assert learned == fit(samples, ["a", "b"])
    assert learned.base > 0
    assert all(weight >= 0 for weight in learned.weights.values())
    assert 0 <= learned.chance({"a": 1}) <= learned.chance({"a": 2}) <= 1


def test_whole_groups_are_kept_back_and_what_is_ignored_has_no_part_in_the_chance() -> None:
    samples = [Sample({"a": 1.0, "size": 1.0}, place % 3 > 0) for place in range(12)]
    groups = ["x", "y", "z", "y"] * 3
    chances = held_out(samples, ["a", "size"], folds=3, forward=False, groups=groups)
    assert len(set(chances)) <= 3  # samples of one group are alike here, and judged by the same others
    for name in "xyz":
        place = groups.index(name)
        others = fit([s for s, group in zip(samples, groups, strict=True) if group != name], ["a", "size"])
        assert chances[place] == pytest.approx(others.chance(samples[place].sizes))
    less = held_out(samples, ["a", "size"], folds=3, forward=False, groups=groups, ignoring={"size"})
    assert all(one is not None and two is not None and one < two for one, two in zip(less, chances, strict=True))


def test_the_curve_counts_what_is_under_the_line() -> None:
    points = curve([0.1, 0.2, 0.2, 0.4], [True, True, False, False])
    assert [(p.under, p.unchanged) for p in points] == [(1, 1), (3, 2), (4, 2)]
    assert points[0].below == pytest.approx(0.15)
    best = widest(points, 0.6)
    assert best is not None
    assert best.under == 3
    assert widest(points[1:], 0.9) is None


def test_what_is_held_out_is_judged_by_the_others_only() -> None:
    samples = history(60, {"a": 0.5}, 0.05)
    chances = held_out(samples, ["a"], folds=3, forward=False)
    others = fit(samples[20:], ["a"])
    assert chances[:20] == [others.chance(s.sizes) for s in samples[:20]]
    ahead = held_out(samples, ["a"], folds=3, forward=True)
    assert ahead[:20] == [None] * 20
    assert ahead[40:] == [fit(samples[:40], ["a"]).chance(s.sizes) for s in samples[40:]]
