from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.saturation import Disagreement, Half, together
from bot.core.types import Level, Outcome
from bot.core.validation import ManifestCheck, Report, Subject, TestOutcome, TestResult, exit_test

T, U = "t/test_a.py::test_t", "t/test_a.py::test_u"
NOW = datetime(2026, 11, 29, tzinfo=UTC)
WORDS = {"p": TestOutcome.PASSED, "f": TestOutcome.FAILED, "s": TestOutcome.SKIPPED, "n": TestOutcome.NOT_RUN}


def half(
    outcome: Outcome | None,
    tests: str = "",
    *,
    missing: Sequence[str] = (),
    harness: str = "pytest",
    names: Sequence[str] = (T, U),
) -> Half:
    """One of the two; `tests` by the first letter of each outcome (`-`: not in the report)."""
    results = tuple(
        TestResult(id=name, outcome=WORDS[word]) for name, word in zip(names, tests, strict=False) if word != "-"
    )
    report = Report(
        run_id="r",
        subject=Subject(repository="o/r", commit="a" * 40),
        level=Level.L1,
        suite="unit",
        harness=harness,
        started_at=NOW,
        finished_at=NOW,
        outcome=outcome or Outcome.PASSED,
        tests=results,
        manifest=ManifestCheck(expected=2 if missing else 0, missing=tuple(missing)),
    )
    return Half(outcome, report if tests else None)


P, F, O, I = Outcome.PASSED, Outcome.FAILED, Outcome.OMITTED, Outcome.INFRA  # noqa: E741
CASES = [
    # what each says, what both say together, what they disagree about
    (half(P, "pp"), half(P, "pp"), P, []),
    (half(P, "pp"), half(None), None, []),
    (half(None), half(F, "fp"), None, []),
    (half(P, "pp"), half(F, "fp"), Outcome.DISAGREED, [(T, "passed", "failed")]),
    (half(F, "fp"), half(P, "pp"), Outcome.DISAGREED, [(T, "failed", "passed")]),
    (half(P, "pp"), half(O, "p-", missing=[U]), Outcome.DISAGREED, [(U, "passed", "not reported")]),
    (half(P, "pp"), half(O, "ps", missing=[U]), Outcome.DISAGREED, [(U, "passed", "not reported")]),
    # nobody knows yet what has to run: what one leaves out is told apart from what it skips
    (half(P, "pp"), half(P, "p-"), Outcome.DISAGREED, [(U, "passed", "not reported")]),
    (half(P, "pp"), half(P, "ps"), P, []),
    # wrong on both, or where it runs at all: an ordinary failure
    (half(F, "fp"), half(F, "fp"), F, []),
    (half(F, "fp"), half(P, "sp"), F, []),
    (half(F, "fp"), half(F, "ff"), F, [(U, "passed", "failed")]),
    (half(O, "p-", missing=[U]), half(O, "p-", missing=[U]), O, []),
    (half(F, "pf"), half(F, "fp"), Outcome.DISAGREED, [(T, "passed", "failed"), (U, "failed", "passed")]),
    # it crashed there without naming a test
    (half(P, "pp"), half(F, "pp"), Outcome.DISAGREED, [(None, "passed", "failed")]),
    # a capacity that says nothing agrees with nobody and contradicts nobody
    (half(P, "pp"), half(I, "fp"), I, []),
    (half(P, "pp"), half(Outcome.TIMED_OUT), Outcome.TIMED_OUT, []),
    (half(P, "pp"), half(Outcome.CANCELLED), Outcome.CANCELLED, []),
    (half(F), half(P, "pp"), F, []),
    # another harness with names of its own: only as a whole
    (half(P, "pp"), half(P, "pp", harness="lit", names=["S :: a.mlir", "S :: b.mlir"]), P, []),
    (
        half(P, "pp"),
        half(F, "fp", harness="lit", names=["S :: a.mlir", "S :: b.mlir"]),
        Outcome.DISAGREED,
        [(None, "passed", "failed")],
    ),
    # the names of a JUnit file are those of the node ids
    (half(P, "pp"), half(F, "fp", names=["t.test_a::test_t", "t.test_a::test_u"]), Outcome.DISAGREED, None),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "outcome", "about"), CASES)
def test_what_two_capacities_say_together(
    first: Half, second: Half, outcome: Outcome | None, about: list[tuple[str | None, str, str]] | None
) -> None:
    said = together(first=first, second=second)
    assert said.outcome is outcome
    if about is not None:
        assert said.disagreements == tuple(Disagreement(*one) for one in about)


HALVES = st.builds(
    half,
    st.sampled_from([*(one for one in Outcome if one is not Outcome.DISAGREED), None]),
    st.text("pfsn-", max_size=2),
    missing=st.sampled_from([(), (T,), (U,)]),
    harness=st.sampled_from(["pytest", "lit"]),
)


@given(HALVES, HALVES)
def test_both_must_pass_and_the_order_of_the_two_is_nothing(first: Half, second: Half) -> None:
    said, turned = together(first=first, second=second), together(first=second, second=first)
    assert said.outcome is turned.outcome
    assert len(said.disagreements) == len(turned.disagreements)
    if said.outcome in (Outcome.PASSED, Outcome.WAIVED):
        assert {first.outcome, second.outcome} <= {Outcome.PASSED, Outcome.WAIVED}
        assert not said.disagreements
    if said.outcome is Outcome.DISAGREED:
        assert said.disagreements


def test_a_commands_exit_status_is_no_test_that_another_harness_lacks() -> None:
    exits = exit_test("unit")
    ran, judged = half(P, "pp"), half(F, "fpf", harness="command", names=[T, U, exits])
    said = together(first=ran, second=judged)
    assert (said.outcome, said.disagreements) == (Outcome.DISAGREED, (Disagreement(T, "passed", "failed"),))
    # it alone is bad: they differ about the suite as a whole
    said = together(first=ran, second=half(F, "ppf", harness="command", names=[T, U, exits]))
    assert (said.outcome, said.disagreements) == (Outcome.DISAGREED, (Disagreement(None, "passed", "failed"),))
    # a test that only the other harness has is not argued about
    said = together(first=ran, second=half(F, "ppf", harness="command", names=[T, U, "t/test_a.py::test_v"]))
    assert (said.outcome, said.disagreements) == (F, ())
    # two capacities of one harness both have it
    first, second = (half(one, word, harness="command", names=[exits]) for one, word in ((P, "p"), (F, "f")))
    assert together(first=first, second=second).disagreements == (Disagreement(exits, "passed", "failed"),)
