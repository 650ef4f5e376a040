"""A suite proved twice, on two capacities or by two harnesses: what both say together, and where they disagree.

Both must pass. Where one says that a test passed and the other that it failed, or does not report it, neither can be
believed: that is a finding of its own, no pass and no ordinary failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bot.core.reports import key
from bot.core.types import Outcome
from bot.core.validation import Report, TestOutcome, TestResult, exit_test, level_outcome

_SPOKE = frozenset({Outcome.PASSED, Outcome.WAIVED, Outcome.FAILED, Outcome.OMITTED})


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One test (None: the suite as a whole), and what was said of it on the first and on the second."""

    test: str | None
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Half:
    """One of the two: its outcome (None while it is not done) and its report."""

    outcome: Outcome | None = None
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """What both say: None while one is not done."""

    outcome: Outcome | None
    disagreements: tuple[Disagreement, ...] = ()


def together(*, first: Half, second: Half) -> Together:
    """The outcome of a suite that is proved twice.

    `disagreed` where nothing is wrong but what they disagree about; what is wrong on both, or only where it can be
    tried at all, and a capacity that says nothing keep their own outcome.
    """
    if first.outcome is None or second.outcome is None:
        return Together(None)
    outcome = level_outcome((first.outcome, second.outcome))
    one, other = first.report, second.report
    if one is None or other is None or not {first.outcome, second.outcome} <= _SPOKE:
        return Together(outcome)
    alike = one.harness == other.harness
    said, heard = (_by_key(report, whole=alike) for report in (one, other))
    # ids of different harnesses may have nothing in common: then they can only agree as a whole
    same = alike or 2 * len(said.keys() & heard.keys()) >= max(len(said), len(heard))
    found: list[Disagreement] = []
    for name in dict.fromkeys((*said, *heard)):
        a, b = said.get(name), heard.get(name)
        left, right = _says(a, one), _says(b, other)
        if (same or (a and b)) and {left, right} in ({"passed", "failed"}, {"passed", "not reported"}):
            found.append(Disagreement((said.get(name) or heard[name]).id, left, right))
    bad = _bad(one, said) | _bad(other, heard)
    passes = [half in (Outcome.PASSED, Outcome.WAIVED) for half in (first.outcome, second.outcome)]
    if not found and passes[0] != passes[1] and (not same or not bad):
        found = [Disagreement(None, first.outcome.value, second.outcome.value)]
        bad = frozenset()
    agreed = not bad <= {key(one.test) for one in found if one.test is not None} and same
    return Together(Outcome.DISAGREED if found and not agreed else outcome, tuple(found))


def _by_key(report: Report, *, whole: bool) -> dict[str, TestResult]:
    """The tests by the form that all formats share; of several results of one, the worst. Without `whole` a command's
    own exit status is none of them: another harness has nothing like it.
    """
    found: dict[str, TestResult] = {}
    for test in report.tests:
        name = key(test.id)
        if test.id == exit_test(report.suite) and not whole:
            continue
        if name not in found or test.outcome.bad:
            found[name] = test
    return found


def _bad(report: Report, tests: Mapping[str, TestResult]) -> frozenset[str]:
    failed = (name for name, test in tests.items() if test.outcome.bad)
    return frozenset((*failed, *(key(test) for test in report.manifest.missing)))


def _says(test: TestResult | None, report: Report) -> str:
    if test is None:
        return "not reported"
    if test.outcome.bad:
        return "failed"
    if test.outcome.proves:
        return "passed"
    lacking = test.id in report.manifest.missing or test.id in report.manifest.skipped_new
    return "not reported" if lacking or test.outcome is TestOutcome.NOT_RUN else "skipped"
