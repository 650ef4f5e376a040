"""What can't be seen because of a breakage: tests that do not run, and tests that fail by it before their own cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bot.core.triage.findings import Finding
from bot.core.triage.signals import Test, Trunk


def masked(trunk: Trunk, findings: Iterable[Finding]) -> Mapping[str, tuple[Test, ...]]:
    """By open cause, the tests of which its failure keeps us from knowing: at their suite's newest judged commit.

    A test that belongs to one open cause and fails by another now is masked by the other.
    """
    hidden: dict[str, set[Test]] = {}
    open_ = {finding.signature: finding for finding in findings if finding.open}
    for suite in trunk.suites:
        judged = trunk.judged(suite)
        if not judged:
            continue
        runs = [run for run in trunk.runs(suite, judged[-1]) if run.judged]
        if not all(run.crashed for run in runs):
            continue
        unseen = {Test(suite, test) for run in runs for test in run.silent}
        unseen |= _ran_before(trunk, suite, judged) - {Test(suite, f.test) for run in runs for f in run.failures}
        unseen -= {Test(suite, test) for run in runs for test in run.passed}
        for run in runs:
            for failure in run.failures:
                if failure.signature in open_:
                    hidden.setdefault(failure.signature, set()).update(unseen)
    for finding in open_.values():
        for test, other in finding.elsewhere:
            if other in open_ and other != finding.signature:
                hidden.setdefault(other, set()).add(test)
    return {signature: tuple(sorted(tests)) for signature, tests in hidden.items() if tests}


def stood_behind(trunk: Trunk, finding: Finding) -> frozenset[str]:
    """The causes by which the tests of this one failed, or could not run, before it was seen: it may be as old."""
    if finding.first_red is None or finding.first_red not in trunk.at:
        return frozenset()
    first = trunk.at[finding.first_red]
    after = trunk.at.get(finding.after, -1) if finding.after else first
    found: set[str] = set()
    for test in finding.red:
        for at in trunk.judged(test.suite):
            if after < at < first:
                found |= trunk.look(test, at).signatures
                found.update(
                    failure.signature
                    for run in trunk.runs(test.suite, at)
                    if run.crashed and test.id not in run.passed
                    for failure in run.failures
                )
    return frozenset(found - {finding.signature})


def _ran_before(trunk: Trunk, suite: str, judged: tuple[int, ...]) -> set[Test]:
    """The tests that the suite's last run without a crash knew."""
    for at in reversed(judged[:-1]):
        for run in trunk.runs(suite, at):
            if run.judged and not run.crashed:
                return {Test(suite, test) for test in (*run.passed, *(failure.test for failure in run.failures))}
    return set()
