"""A small simulated trunk: each planted cause is one breakage with its area and owner, and nothing else is."""

from __future__ import annotations

import pytest

from benchmarks.triage_trunk import Simulation, judge


@pytest.mark.parametrize("seed", [3, 4])
def test_each_planted_cause_is_one_breakage(seed: int) -> None:
    simulation = Simulation(commits=110, seed=seed, late=0.2)
    simulation.run()
    told = judge(simulation)
    seen = told["planted and seen failing"]
    assert seen > 15
    assert told["missed"] == []
    assert told["with exactly one breakage"] == told["breakages"] == seen
    assert told["breakages without a planted cause"] == 0
    assert told["right area"] == told["right owner"] == seen
    assert told["culprit among the suspects"] == told["regressions"]
    assert told["regressions called flaky at the end"] == 0
