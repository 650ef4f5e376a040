"""The class of each failure of a pull request, held against trunk's own run of the commit below it."""

from __future__ import annotations

import asyncio

from bot.context import GitError, Run, RunState
from bot.core.failure_class import BaseRun, FailureClass, KnownCause, classify
from bot.core.signature import signature
from bot.core.triage.runs import INFRA
from bot.core.types import Outcome
from bot.core.validation import Report, TestResult
from handlers.fork import Fork
from handlers.signatures import sign

_SAYS_NOTHING = (Outcome.INFRA, Outcome.CANCELLED)


async def classes_of(fork: Fork, run: Run, report: Report, known: dict[str, KnownCause]) -> dict[str, FailureClass]:
    """The class of each cause in a signed report, by signature."""
    groups: dict[str, list[TestResult]] = {}
    for test in report.failures:
        groups.setdefault(test.signature or test.id, []).append(test)
    if not groups:
        return {}
    below = await _below(fork, run)
    base = await _base_run(fork, run, below)
    passed = await _passed_here(fork, run)
    return {
        key: classify(
            signature=key,
            tests=[test.id for test in tests],
            machine=signature(tests[0].message, tests[0].id).cls == INFRA,
            base=base,
            base_commit=below,
            known=known.get(key),
            passed_here=passed,
        )
        for key, tests in groups.items()
    }


async def _below(fork: Fork, run: Run) -> str:
    """Where the change left trunk: the merge base; the base that GitHub names where git can't tell."""
    try:
        return await asyncio.to_thread(fork.git.merge_base, run.base, run.sha) or run.base
    except GitError:
        return run.base


async def _base_run(fork: Fork, run: Run, base: str) -> BaseRun | None:
    """Trunk's newest run of the suite there that says something."""
    runs = await fork.ctx.store.runs(
        fork.name,
        base,
        run.level,
        suite=run.suite,
        trunk=True,
        states=(RunState.DONE,),
        capacity=run.capacity,
        limit=5,
    )
    for one in runs:
        if one.report is not None and one.outcome not in _SAYS_NOTHING:
            report = sign(Report.model_validate(one.report))
            return BaseRun(
                commit=base,
                failed={test.id: test.signature or test.id for test in report.failures},
                passed=frozenset(test.id for test in report.tests if test.outcome.proves),
                whole=one.outcome in (Outcome.PASSED, Outcome.WAIVED)
                or (one.outcome == Outcome.FAILED and bool(report.failures) and not report.manifest.missing),
            )
    return None


async def _passed_here(fork: Fork, run: Run) -> frozenset[str]:
    """Tests that passed in another finished run of the suite at the same commit."""
    runs = await fork.ctx.store.runs(
        fork.name,
        run.sha,
        run.level,
        number=run.number,
        suite=run.suite,
        states=(RunState.DONE,),
        capacity=run.capacity,
        limit=5,
    )
    reports = [Report.model_validate(one.report) for one in runs if one.id != run.id and one.report is not None]
    return frozenset(test.id for report in reports for test in report.tests if test.outcome.proves)
