from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.bisect import (
    Ask,
    Culprit,
    Inconclusive,
    Line,
    Missing,
    Next,
    NoCulprit,
    Rates,
    Run,
    Search,
    Seen,
    differing,
    down,
    expand,
    next_step,
    seen_by_exit,
    stated,
)


def play(
    search: Search, culprit: int, *, rates: Rates, seed: int, dead: frozenset[int] = frozenset()
) -> tuple[Next, list[Run]]:
    """Run a search to its end in a simulated world; culprit 0: nothing in the range did it."""
    rng = random.Random(seed)
    runs: list[Run] = []
    while isinstance(asked := next_step(search=search, runs=runs), Ask):
        for position in asked.positions:
            if position in dead:
                runs.append(Run(position, Seen.SKIP))
                continue
            bad = 0 < culprit <= position
            fails = rng.random() < (1 - rates.false_pass if bad else rates.false_fail)
            runs.append(Run(position, Seen.FAIL if fails else Seen.PASS))
    return asked, runs


CLEAN = Rates(0, 0)


def test_both_ends_come_first() -> None:
    asked = next_step(search=Search(n=40), runs=[])
    assert isinstance(asked, Ask)
    assert set(asked.positions) == {0, 40}


@pytest.mark.parametrize("n", [1, 2, 3, 8, 64, 200])
@pytest.mark.parametrize("hint", [None, CLEAN])
def test_a_clean_range_needs_about_a_binary_search(n: int, hint: Rates | None) -> None:
    for culprit in {1, n // 2 or 1, n}:
        answer, runs = play(Search(n=n, hint=hint), culprit, rates=CLEAN, seed=1)
        assert isinstance(answer, Culprit)
        assert answer.positions == (culprit,)
        assert answer.confidence >= 0.99
        assert len(runs) <= 2 * math.log2(n + 1) + 9


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 60), st.data())
def test_without_flakes_the_culprit_is_always_found(n: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, n))
    dead = frozenset(data.draw(st.sets(st.integers(1, n - 1), max_size=n // 2))) if n > 1 else frozenset()
    answer, runs = play(Search(n=n, parallel=data.draw(st.integers(1, 4))), culprit, rates=CLEAN, seed=2, dead=dead)
    assert isinstance(answer, Culprit)
    assert culprit in answer.positions
    # what is named together, no build can tell apart
    assert set(range(answer.positions[0], answer.positions[-1])) <= dead
    assert all(sum(run.position == position for run in runs) <= 1 for position in dead)


@pytest.mark.parametrize("rates", [Rates(0.1, 0.1), Rates(0.3, 0), Rates(0, 0.2)])
@pytest.mark.parametrize("told", [True, False])
def test_flakes_are_learnt(rates: Rates, told: bool) -> None:
    right = 0
    for seed in range(12):
        culprit = random.Random(seed).randint(1, 32)
        answer, _ = play(Search(n=32, hint=rates if told else None), culprit, rates=rates, seed=seed)
        right += isinstance(answer, Culprit) and answer.positions == (culprit,)
    assert right >= 11


def test_a_wrong_hint_is_overruled() -> None:
    right = 0
    for seed in range(12):
        culprit = random.Random(seed).randint(1, 32)
        answer, _ = play(Search(n=32, hint=Rates(0.01, 0.01)), culprit, rates=Rates(0.2, 0.1), seed=seed)
        right += isinstance(answer, Culprit) and answer.positions == (culprit,)
    assert right >= 11


@pytest.mark.parametrize("rates", [Rates(0.3, 0), Rates(0, 0.3)])
def test_a_hint_of_noise_one_way_shortens_the_search(rates: Rates) -> None:
    led = blind = right = 0
    for seed in range(20):
        culprit = random.Random(seed).randint(1, 64)
        answer, runs = play(Search(n=64, hint=rates), culprit, rates=rates, seed=seed)
        right += isinstance(answer, Culprit) and answer.positions == (culprit,)
        led += len(runs)
        blind += len(play(Search(n=64), culprit, rates=rates, seed=seed)[1])
    assert right >= 19
    assert led < 0.88 * blind


@pytest.mark.parametrize(
    ("culprit", "rates", "hint"),
    [
        (0, Rates(0.5, 0), None),
        (9, Rates(0.5, 0), None),
        (9, Rates(0, 0.5), None),
        (9, Rates(0.5, 0.5), None),
        (9, Rates(0.3, 0.3), Rates(0.02, 0.02)),
        (9, Rates(0.2, 0.2), Rates(0.3, 0)),
    ],
)
def test_a_test_that_is_nearly_a_coin_or_worse_than_told_accuses_hardly_anybody(
    culprit: int, rates: Rates, hint: Rates | None
) -> None:
    wrong = 0
    for seed in range(24):
        answer, _ = play(Search(n=32, hint=hint, max_runs=250), culprit, rates=rates, seed=seed)
        wrong += isinstance(answer, Culprit) and answer.positions != (culprit,)
    assert wrong <= 3


def test_what_a_hint_calls_impossible_may_still_be() -> None:
    right = 0
    for seed in range(20):
        culprit = random.Random(seed).randint(1, 64)
        answer, _ = play(Search(n=64, hint=Rates(0.3, 0)), culprit, rates=Rates(0.3, 0.1), seed=seed)
        right += isinstance(answer, Culprit) and answer.positions == (culprit,)
    assert right >= 19


def test_no_culprit_is_said() -> None:
    for seed in range(5):
        answer, _ = play(Search(n=30), 0, rates=Rates(0.1, 0), seed=seed)
        assert isinstance(answer, NoCulprit)


@pytest.mark.parametrize(
    ("confidence", "text"),
    [
        (0.0, "0.0 %"), (0.5739, "57.3 %"), (0.9965, "99.6 %"), (0.997, "99.7 %"), (0.99899, "99.8 %"),
        (0.999, "99.9 %"), (0.99901, "> 99.9 %"), (0.99999999, "> 99.9 %"), (1.0, "> 99.9 %"),
    ],
)  # fmt: skip
def test_a_confidence_is_never_told_as_more_than_it_is(confidence: float, text: str) -> None:
    assert stated(confidence) == text
    assert down(confidence, 4) <= min(confidence, 0.9999)
    assert stated(down(confidence, 4)) in {text, "99.9 %"}


def test_a_good_end_that_fails_is_no_range() -> None:
    answer, runs = play(Search(n=9), 0, rates=Rates(1, 0), seed=1)
    assert len(runs) <= 18
    assert isinstance(answer, Inconclusive)
    assert answer.missing is Missing.GOOD_END


@pytest.mark.parametrize(("position", "missing"), [(0, Missing.GOOD_END_BUILDS), (9, Missing.BAD_END_BUILDS)])
def test_ends_that_do_not_build(position: int, missing: Missing) -> None:
    answer = next_step(search=Search(n=9), runs=[Run(position, Seen.SKIP)])
    assert answer == Inconclusive(missing)


@pytest.mark.parametrize("position", [0, 9])
def test_an_end_that_is_known_to_have_run_is_tried_again(position: int) -> None:
    search = Search(n=9, end_tries=3)
    other = Run(9 - position, Seen.FAIL if position == 0 else Seen.PASS)
    skips = [Run(position, Seen.SKIP)] * 2
    assert next_step(search=search, runs=[other, *skips]) == Ask((position,), "verify both ends first")
    assert isinstance(next_step(search=search, runs=[other, *skips, skips[0]]), Inconclusive)
    assert isinstance(next_step(search=replace(search, max_runs=3), runs=[other, *skips]), Inconclusive)
    once = next_step(search=search, runs=[other, *skips, Run(position, Seen.PASS if position == 0 else Seen.FAIL)])
    assert isinstance(once, Ask)
    assert position not in once.positions


def test_a_position_that_ran_once_is_no_dead_one() -> None:
    runs = [Run(0, Seen.PASS), Run(2, Seen.FAIL), Run(1, Seen.SKIP), *[Run(1, Seen.PASS)] * 9, *[Run(2, Seen.FAIL)] * 9]
    answer = next_step(search=Search(n=2), runs=runs)
    assert isinstance(answer, Culprit)
    assert answer.positions == (2,)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 40), st.integers(0, 12), st.integers(0, 99))
def test_the_budget_holds(n: int, budget: int, seed: int) -> None:
    answer, runs = play(Search(n=n, max_runs=budget), n, rates=Rates(0.3, 0.3), seed=seed)
    assert len(runs) <= budget
    assert isinstance(answer, Culprit | NoCulprit | Inconclusive)


def test_the_budget_that_ends_too_soon_says_who_it_might_be() -> None:
    answer, _ = play(Search(n=64, max_runs=4), 40, rates=Rates(0.3, 0.3), seed=3)
    assert isinstance(answer, Inconclusive)
    assert answer.missing is Missing.RUNS
    assert answer.rates is not None


def test_a_coin_is_told_for_one() -> None:
    answer, _ = play(Search(n=16, max_runs=150), 9, rates=Rates(0.5, 0.5), seed=4)
    assert isinstance(answer, Inconclusive)
    assert answer.rates is not None
    assert answer.rates.false_fail + answer.rates.false_pass > 0.8
    assert answer.best


def test_suspects_shorten_the_search_and_may_mislead() -> None:
    weights = [0.9 if c == 50 else 0.1 / 63 for c in range(1, 65)]
    _, led = play(Search(n=64, suspects=weights), 50, rates=CLEAN, seed=1)
    answer, _ = play(Search(n=64, suspects=weights), 7, rates=CLEAN, seed=1)
    _, blind = play(Search(n=64), 50, rates=CLEAN, seed=1)
    assert len(led) < len(blind)
    assert isinstance(answer, Culprit)
    assert answer.positions == (7,)


def test_the_culprit_and_its_parent_were_both_seen() -> None:
    answer, runs = play(Search(n=64), 33, rates=Rates(0.1, 0.1), seed=4)
    assert isinstance(answer, Culprit)
    seen = {(run.position, run.seen) for run in runs}
    assert {(answer.positions[0], Seen.FAIL), (answer.positions[0] - 1, Seen.PASS)} <= seen


def test_a_test_that_fails_from_birth_is_the_fault_of_the_commit_that_adds_it() -> None:
    search, runs = Search(n=20), list[Run]()
    while isinstance(asked := next_step(search=search, runs=runs), Ask):
        runs += [Run(position, Seen.FAIL if position >= 13 else Seen.ABSENT) for position in asked.positions]
    assert isinstance(asked, Culprit)
    assert asked.positions == (13,)


def test_rounds_of_several() -> None:
    search = Search(n=100, parallel=4)
    asked = next_step(search=search, runs=[Run(0, Seen.PASS), Run(100, Seen.FAIL)])
    assert isinstance(asked, Ask)
    assert len(set(asked.positions)) == 4


def test_the_same_runs_give_the_same_step() -> None:
    runs = [Run(0, Seen.PASS), Run(64, Seen.FAIL), Run(31, Seen.PASS)]
    assert next_step(search=Search(n=64), runs=runs) == next_step(search=Search(n=64), runs=list(runs))


@pytest.mark.parametrize(
    "bad", [{"n": 0}, {"n": 3, "suspects": [1.0]}, {"n": 3, "confidence": 1.5}, {"n": 3, "max_runs": 1001}]
)
def test_a_search_that_makes_no_sense(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"range|weights|confidence|1000 runs"):
        Search(**bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "harness", "seen"),
    [
        (0, "command", Seen.PASS), (1, "command", Seen.FAIL), (3, "command", Seen.FAIL), (125, "command", Seen.SKIP),
        (126, "command", Seen.SKIP), (127, "command", Seen.SKIP), (137, "command", Seen.SKIP),
        (-9, "command", Seen.SKIP), (139, "command", Seen.FAIL), (-11, "command", Seen.FAIL),
        (134, "pytest", Seen.FAIL), (143, "command", Seen.SKIP), (130, "command", Seen.SKIP),
        (None, "command", Seen.SKIP), (255, "command", Seen.SKIP), (0, "pytest", Seen.PASS),
        (1, "pytest", Seen.FAIL), (2, "pytest", Seen.SKIP), (3, "pytest", Seen.SKIP), (4, "pytest", Seen.ABSENT),
        (5, "pytest", Seen.ABSENT), (6, "pytest", Seen.SKIP), (127, "pytest", Seen.SKIP),
    ],
)  # fmt: skip
def test_exit_statuses_that_can_not_mean_bad_never_do(status: int | None, harness: str, seen: Seen) -> None:
    assert seen_by_exit(status, harness=harness) is seen


def test_what_was_not_built_or_ran_out_of_time_shows_nothing() -> None:
    assert seen_by_exit(1, built=False) is Seen.SKIP
    assert seen_by_exit(1, timed_out=True) is Seen.SKIP


def test_a_repro_that_can_not_work_accuses_nobody() -> None:
    search, runs = Search(n=16), list[Run]()
    while isinstance(asked := next_step(search=search, runs=runs), Ask):
        runs += [Run(position, seen_by_exit(127)) for position in asked.positions]
    assert isinstance(asked, Inconclusive)
    search, runs = Search(n=16), []
    while isinstance(asked := next_step(search=search, runs=runs), Ask):
        runs += [Run(position, seen_by_exit(4, harness="pytest")) for position in asked.positions]
    assert isinstance(asked, NoCulprit)


def test_inside_a_bundle_to_one_upstream_commit() -> None:
    members = [f"up{index:02}" for index in range(1, 63)]
    line = expand("bundle", parent="parent", members=members)
    assert line == Line("parent", tuple(members), inside="bundle")
    assert (line.at(0), line.at(62), line.n) == ("parent", "up62", 62)
    dead = frozenset({5, 6, 7, 30, 44})
    answer, runs = play(Search(n=line.n, hint=Rates(0.1, 0.1)), 37, rates=Rates(0.1, 0.1), seed=11, dead=dead)
    assert isinstance(answer, Culprit)
    assert line.named(answer.positions) == ("up37",)
    assert len(runs) <= 60
    assert expand("bundle", parent="parent", members=["one"]) is None
    with pytest.raises(IndexError):
        line.at(63)


def test_dependencies_that_differ_refuse_a_search() -> None:
    assert differing({"torch": "2.9", "numpy": "2"}, {"torch": "2.10", "numpy": "2", "x": "1"}) == ("torch", "x")
    assert differing({"a": "1"}, {"a": "1"}) == ()
