"""Measurements against budgets: what got worse, what is missing, what can't be told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.metric_noise import NOISES, row, wrong
from bot.core.config import Budget, Budgets, Suite
from bot.core.measured import Value, baseline, metric_failures, over, trunk_values, value_of
from bot.core.noise import alike, change, estimate
from bot.core.types import Level, Outcome
from bot.core.validation import Environment, Gpu, Measurement, Report, Subject

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def report(*measured: Measurement, gpu: str = "H100") -> Report:
    return Report(
        run_id="run", subject=Subject(repository="o/r", commit="a" * 40), level=Level.L2, suite="speed",
        harness="bench",
        started_at=NOW, finished_at=NOW, outcome=Outcome.PASSED, measurements=measured,
        environment=Environment(gpus=(Gpu(index=0, model=gpu),)),
    )  # fmt: skip


def ms(*samples: float, kernel: str | None = None, metric: str = "ms") -> Measurement:
    return Measurement(metric=metric, samples=samples, kernel=kernel, higher_is_better=False)


SUITE = Suite(
    suite="speed",
    metrics=("ms",),
    budget=Budgets(default=Budget(regression=0.03), kernels={"fa": Budget(regression=0.01, p95=0.02)}),
)


def said(here: Report, *trunk: Report) -> list[tuple[str, Outcome]]:
    found = metric_failures(level=Level.L2, suite=SUITE, report=here, trunk=trunk)
    return [(failure.name, failure.outcome) for failure in found]


@pytest.mark.parametrize(
    ("value", "before", "budget", "why"),
    [
        (Value(103, 103), Value(100, 100), Budget(regression=0.03, better="lower"), None),
        (Value(104, 104), Value(100, 100), Budget(regression=0.03, better="lower"), "4.00% worse"),
        (Value(50, 50), Value(100, 100), Budget(regression=0.03, better="lower"), None),
        (Value(50, 50), Value(100, 100), Budget(regression=0.03), "50.00% worse"),
        (Value(96, 96, True), Value(100, 100), Budget(regression=0.03), "4.00% worse"),
        (Value(120, 120, True), Value(100, 100), Budget(regression=0.03), None),
        (Value(100, 120, False), Value(100, 100), Budget(p95=0.1), "p95 100 became 120"),
        (Value(100, 100), None, Budget(regression=0.03), "no value on trunk"),
        (Value(100, 100), None, Budget(), None),
        (Value(0, 0), Value(0, 0), Budget(regression=0.0), None),
        (Value(1, 1, False), Value(0, 0), Budget(regression=0.5), "worse"),
        (Value(-1.2, -1.2, False), Value(-1.0, -1.0), Budget(regression=0.1), None),
        (Value(5, 5), None, Budget(max=4), "above 4"),
        (Value(5, 5), None, Budget(min=6), "below 6"),
    ],
)
def test_a_value_keeps_its_budget_or_not(value: Value, before: Value | None, budget: Budget, why: str | None) -> None:
    found = over(value, before, budget)
    assert (found is None) == (why is None), found
    assert found is None or (why or "") in found.text
    assert found is None or not found.unsure


def test_what_is_missing_is_not_good() -> None:
    assert said(report(ms(100)), report(ms(100))) == []
    assert said(report()) == [("speed#ms", Outcome.OMITTED)]
    assert said(report(ms(1, metric="other")), report(ms(100))) == [
        ("speed#ms", Outcome.OMITTED),
        ("speed#other", Outcome.OMITTED),
    ]
    # a kernel that trunk measures and the change does not
    trunk = report(ms(100), ms(10, kernel="fa"))
    assert said(report(ms(100)), trunk) == [("speed#fa/ms", Outcome.OMITTED)]
    assert said(report(ms(100), ms(10.05, kernel="fa")), trunk) == []
    assert said(report(ms(100), ms(10.2, kernel="fa")), trunk) == [("speed#fa/ms", Outcome.FAILED)]


def test_only_numbers_of_one_kind_of_machine_are_compared() -> None:
    assert said(report(ms(100)), report(ms(50), gpu="B200")) == [("speed#ms", Outcome.OMITTED)]
    assert said(report(ms(100)), report(ms(50), gpu="B200"), report(ms(99))) == []
    # the newest counts
    assert said(report(ms(100)), report(ms(99)), report(ms(1))) == []


def test_a_suite_without_measurements_is_left_alone() -> None:
    plain = Suite(suite="unit")
    assert metric_failures(level=Level.L1, suite=plain, report=report(), trunk=()) == ()
    assert trunk_values([report(ms(2), ms(9, kernel="fa")), report(ms(1))]) == {"ms": 2.0}


THREE = Budget(regression=0.03, better="lower")


@pytest.mark.parametrize(
    ("now", "then", "budget", "said"),
    [
        # within, beyond, across the budget
        ((100, 101, 102, 100, 101), (100, 101, 102, 101, 100), THREE, "kept"),
        ((110, 111, 112, 110, 111), (100, 101, 102, 101, 100), THREE, "broken"),
        ((103, 104, 105, 103, 104), (100, 101, 102, 101, 100), THREE, "unsure"),
        # one sample of five was disturbed on either side, or all are wide
        ((100, 101, 102, 100, 250), (100, 101, 102, 101, 100), THREE, "unsure"),
        ((100, 101, 102, 100, 101), (10, 101, 102, 101, 100), THREE, "unsure"),
        ((60, 140, 100, 90, 110), (70, 130, 100, 95, 105), THREE, "unsure"),
        # more samples: the same disturbance is told from the change
        ((*(100, 101, 102) * 4, 250), (100, 101, 102) * 4, THREE, "kept"),
        ((*(110, 111, 112) * 4, 90), (100, 101, 102) * 4, THREE, "broken"),
        # a single sample on one side: as it is
        ((104,), (100, 101, 99), THREE, "broken"),
        ((102,), (100, 101, 99), THREE, "kept"),
        ((100, 250, 101), (100,), THREE, "kept"),
        # the other way round
        ((96, 95, 94, 95, 96), (100, 101, 100, 99, 100), Budget(regression=0.03, better="higher"), "broken"),
        ((110, 111, 112, 110, 111), (100, 101, 100, 99, 100), Budget(regression=0.03, better="higher"), "kept"),
        ((90, 91, 90, 89, 90), (100, 101, 100, 99, 100), Budget(regression=0.03), "broken"),
        ((100, 101, 100, 99, 100), (100, 101, 100, 99, 100), Budget(regression=0.03), "kept"),
        # bounds
        ((0.88, 0.89, 0.88), None, Budget(max=0.9), "kept"),
        ((0.89, 0.91, 0.9), None, Budget(max=0.9), "unsure"),
        ((0.91, 0.92, 0.93), None, Budget(max=0.9), "broken"),
        ((0.91, 0.92, 0.93), None, Budget(min=0.9), "kept"),
        ((0.85, 0.92, 0.93), None, Budget(min=0.9), "unsure"),
        ((0.85, 0.86, 0.87), None, Budget(min=0.9), "broken"),
        # what is broken for sure is said before what can't be told
        ((110, 111, 112), (100, 101, 102), Budget(regression=0.03, better="lower", max=111), "broken"),
        # the tail by itself
        ((*(100,) * 19, 180), (*(100,) * 19, 120), Budget(p95=0.02, better="lower"), "unsure"),
        ((*(100,) * 10, *(200,) * 10), (100,) * 20, Budget(p95=0.02, better="lower"), "broken"),
        ((100,) * 20, (100,) * 20, Budget(p95=0.02, better="lower"), "kept"),
        # zero and negative
        ((0, 0, 0), (0, 0, 0), THREE, "kept"),
        ((1, 1, 1), (0, 0, 0), THREE, "broken"),
        ((-90, -91, -92), (-100, -101, -102), THREE, "broken"),
    ],
)  # fmt: skip
def test_repeated_samples_are_told_apart_or_not(
    now: tuple[float, ...], then: tuple[float, ...] | None, budget: Budget, said: str
) -> None:
    found = over(value_of(now), None if then is None else value_of(then), budget)
    assert ("kept" if found is None else "unsure" if found.unsure else "broken") == said, found
    assert found is None or ("can't be told" in found.text) == found.unsure
    assert found is None or ("/retry" in found.text) == found.unsure


def test_what_is_too_noisy_is_said_with_its_spread() -> None:
    here, trunk = report(ms(103, 104, 105, 103, 104)), report(ms(100, 101, 102, 101, 100))
    (failure,) = metric_failures(level=Level.L2, suite=SUITE, report=here, trunk=[trunk])
    assert failure.unsure
    assert failure.outcome is Outcome.OMITTED
    assert failure.why == (
        "can't be told: 101 became 104, 2.97% worse ± 1.40% by the samples' spread, the budget is 3.00%: measure again "
        "with /retry"
    )


def test_what_was_measured_before_at_the_commit_counts_too() -> None:
    """Running again until it suits gains nothing, and settles what could not be told."""

    def told(here: Report, *earlier: Report, trunk: Report) -> list[tuple[Outcome, bool]]:
        found = metric_failures(level=Level.L2, suite=SUITE, report=here, trunk=[trunk], earlier=earlier)
        return [(failure.outcome, failure.unsure) for failure in found]

    trunk = report(ms(*(100, 101, 102, 101) * 5))
    slow, lucky = report(ms(*(110, 111, 112, 110) * 5)), report(ms(100, 101, 102, 101))
    assert told(lucky, trunk=trunk) == []
    assert told(lucky, slow, trunk=trunk) == [(Outcome.FAILED, False)]
    disturbed, calm = report(ms(100, 101, 140, 150)), report(ms(*(100, 101, 102, 101) * 3))
    assert told(disturbed, trunk=trunk) == [(Outcome.OMITTED, True)]
    assert told(calm, disturbed, trunk=trunk) == []
    # of another kind of machine, or single numbers: the newest alone
    assert told(lucky, report(ms(*(110, 111) * 9), gpu="B200"), trunk=trunk) == []
    assert told(report(ms(101)), report(ms(150)), trunk=report(ms(100))) == []


def test_trunk_is_joined_as_far_back_as_it_can_not_be_told_apart() -> None:
    newest, same, other = report(ms(100, 102, 101)), report(ms(101, 100, 103)), report(ms(50, 51, 52))
    (value,) = baseline(newest, [newest, same, other]).values()
    assert sorted(value.samples) == [100, 100, 101, 101, 102, 103]
    (value,) = baseline(newest, [newest, other, same]).values()
    assert len(value.samples) == 6


@pytest.mark.parametrize("noise", sorted(NOISES))
@pytest.mark.parametrize(("sigma", "count"), [(0.01, 5), (0.03, 5), (0.03, 10), (0.01, 30)])
def test_noise_is_seldom_called_a_regression_and_a_regression_seldom_let_through(
    noise: str, sigma: float, count: int
) -> None:
    """`benchmarks/metric_noise.py` in small, where the plain comparison of medians errs in up to a third of all."""
    for slower in (0.0, 0.015, 0.05, 0.1):
        one = row(noise=noise, sigma=sigma, count=count, slower=slower, trials=120, seed=7)
        assert wrong(one) <= 0.03, one
        if sigma <= 0.01 and slower in (0.0, 0.1):
            assert float(one["unsure again"]) <= 0.1, one


_SAMPLES = st.lists(st.floats(0.1, 1000), min_size=1, max_size=40)


@given(now=_SAMPLES, then=_SAMPLES, worse=st.floats(1, 3), budget=st.floats(0, 0.5))
def test_slower_is_never_better(now: list[float], then: list[float], worse: float, budget: float) -> None:
    """The more slowly, the worse the verdict; and it is the same in whatever order and unit the samples stand."""
    order = {None: 0, True: 1, False: 2}

    def rank(here: list[float], there: list[float]) -> int:
        found = over(value_of(here), value_of(there), Budget(regression=budget, better="lower"))
        return order[None if found is None else found.unsure]

    assert rank([sample * worse for sample in now], then) >= rank(now, then)
    assert rank(now[::-1], sorted(then)) == rank(now, then)
    assert rank([sample * 4 for sample in now], [sample * 4 for sample in then]) == rank(now, then)
    here, found = estimate(now), change(estimate(now), estimate(then))
    assert here.low <= here.value <= here.high
    assert found.low <= found.value <= found.high
    assert alike(now, now)
