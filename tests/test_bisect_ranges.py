"""The benchmark of searches on git ranges, small: its truth, and that all three searchers run on it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.bisect_ranges import Trial, main, trials

SHAS = tuple(f"{n:040x}" for n in range(9))


@pytest.mark.parametrize(
    ("culprit", "named", "right"),
    [
        (4, (4,), True), (4, (5,), False), (4, (3, 4), False), (4, None, False), (4, (), False),
        (6, (6, 7, 8), True), (6, (6,), True), (7, (6, 7, 8), True), (7, (5, 6, 7, 8), False),
        (0, (), True), (0, None, False), (0, (1,), False),
    ],
)  # fmt: skip
def test_what_is_right(culprit: int, named: tuple[int, ...] | None, right: bool) -> None:
    assert Trial(SHAS, culprit, frozenset({6, 7}), 0.0, 1).right(named) is right


def test_trials_are_the_seeds_alone() -> None:
    line = [f"{n:040x}" for n in range(100)]
    first, second, other = (list(trials(line, [8, 32], [0, 15], 5, seed)) for seed in (1, 1, 2))
    assert first == second != other
    assert [trial.culprit for trial in first].count(0) == 4
    assert all(0 < place < len(trial.shas) - 1 for trial in first for place in trial.dead)


def test_all_three_search_one_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = tmp_path / "figures.json"
    line = ["bisect_ranges", "--sizes", "4", "--flakes", "0", "--trials", "1", "--json", str(figures)]
    monkeypatch.setattr(sys, "argv", line)
    assert main() == 0
    told = {one["searcher"]: one for one in json.loads(figures.read_text()) if one["row"] == "all"}
    assert {name: (one["right"], one["wrong"]) for name, one in told.items()} == {
        "git bisect run": (1, 0),
        "repeat three": (1, 0),
        "graft": (1, 0),
    }
    assert told["git bisect run"]["probes"] * 3 == told["repeat three"]["probes"]
