"""Graft's own kernel checks (`runners.kernels`) in a process of their own; a kernel wrong on purpose is the canary."""

from __future__ import annotations

import sys
from pathlib import Path

from bot.core.types import Outcome
from runners.harnesses import Collected, Place, Start, by_report
from runners.harnesses.results import read
from runners.process import Ended

CANARY = "canary::wrong_on_purpose"
_CAN_T_RUN = 2


class Kernels:
    """Runs `python -m runners.kernels`; the suite's `run` holds its further arguments."""

    reads = ("results.json",)

    def start(self, place: Place) -> Start:
        """The command; the checks run with the suite's own interpreter where `run` begins with one."""
        run = place.suite.run
        python = (run[0],) if run[:1] and Path(run[0]).name.startswith("python") else (sys.executable,)
        arguments = run[1:] if python == run[:1] else run
        root = str(Path(__file__).parents[2])
        out = str(place.results / "results.json")
        return Start((*python, "-m", "runners.kernels", "--canary", "--out", out, *arguments), {"PYTHONPATH": root})

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Checks as tests, registers, spills and shared memory as measurements."""
        report, measurements, problems = read(place.results / "results.json")
        if report is None and ended.exit_code == _CAN_T_RUN and ended.killed is None:
            said = [line.strip() for line in ended.tail.splitlines() if line.strip()]
            return Collected(Outcome.INFRA, f"can't run here: {said[-1][:500] if said else 'no word why'}")
        found = by_report(place, ended, report, name="results.json")
        reason = "; ".join(part for part in (found.reason, *problems) if part)
        return Collected(found.outcome, reason, found.tests, measurements, canary=place.suite.canary or CANARY)


HARNESS = Kernels()
