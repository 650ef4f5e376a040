"""Who did it: a search over a range of commits that asks for runs and answers, or says what is missing.

Pure: `next_step` (pass/fail), `next_metric_step` and `next_paired_step` are functions of all runs so far, so a search
can be stored, stopped, replayed and gone on with.
"""

from __future__ import annotations

from bot.core.bisect.exits import seen_by_exit
from bot.core.bisect.line import Line, differing, expand
from bot.core.bisect.metric import next_metric_step
from bot.core.bisect.paired import Pair, next_paired_step, step_of
from bot.core.bisect.passfail import next_step
from bot.core.bisect.stated import down, stated
from bot.core.bisect.values import (
    MOST_RUNS,
    Ask,
    Culprit,
    Inconclusive,
    Missing,
    Next,
    NoCulprit,
    Rates,
    Record,
    Run,
    Search,
    Seen,
    Step,
)

__all__ = [
    "MOST_RUNS",
    "Ask",
    "Culprit",
    "Inconclusive",
    "Line",
    "Missing",
    "Next",
    "NoCulprit",
    "Pair",
    "Rates",
    "Record",
    "Run",
    "Search",
    "Seen",
    "Step",
    "differing",
    "down",
    "expand",
    "next_metric_step",
    "next_paired_step",
    "next_step",
    "seen_by_exit",
    "stated",
    "step_of",
]
