"""Measurements against budgets: what got worse, what is missing, what can't be told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.core.config import Budget, Budgets, Suite
from bot.core.measured import Value, metric_failures, over, trunk_values
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
    assert why is None or why in (found or "")


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
