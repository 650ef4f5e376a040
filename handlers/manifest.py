"""What a suite must run at a commit: learned from trunk's last good runs, adjusted by what the change did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.clients.store.models import Run, RunState
from bot.core.config import Suite
from bot.core.manifest import Learned, learn
from bot.core.types import Level, Outcome
from bot.core.validation import Report
from handlers.fork import Fork

if TYPE_CHECKING:
    from handlers.validate import Target

GOOD_RUNS = 5


async def expectation(
    fork: Fork, target: Target, level: Level, suite: Suite
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tests that must report and those that may be skipped; nothing is expected before trunk was green once."""
    learned = await learned_of(fork, level, suite)
    return learned.tests, learned.skipped


async def learned_of(fork: Fork, level: Level, suite: Suite) -> Learned:
    """What trunk's last good runs of the suite ran."""
    runs = await fork.ctx.store.runs(fork.name, level=level.value, states=(RunState.DONE,))
    good = [run for run in runs if run.number is None and run.suite == suite.suite and run.outcome == Outcome.PASSED]
    return learn(reports=[_report(run) for run in good[:GOOD_RUNS]], canary=suite.canary)


def _report(run: Run) -> Report:
    return Report.model_validate(run.report)
