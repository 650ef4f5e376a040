"""What the benchmark of scored cases adds to its scorer: the floor, and whether stated confidence is right."""

from __future__ import annotations

import pytest

from benchmarks.bisect_score import calibrated, floor


@pytest.mark.parametrize(
    ("n", "rates", "runs"), [(64, (0, 0), 6.0), (64, (0.1, 0.1), 11.3), (64, (0.2, 0.2), 21.6), (64, (0.3, 0.3), 50.5)]
)
def test_the_floor(n: int, rates: tuple[float, float], runs: float) -> None:
    assert floor(n, *rates) == pytest.approx(runs, abs=0.05)


def test_answers_are_held_against_what_was_stated(capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        {"id": name, "culprit": culprit, "skip": [4]} for name, culprit in (("a", 4), ("b", 4), ("c", 0), ("d", 2))
    ]
    told = [
        {"case": "a", "commits": [4, 5], "confidence": 0.991},
        {"case": "b", "commits": [4], "confidence": 0.994},
        {"case": "c", "commits": [1], "confidence": 0.993},
        {"case": "c", "commits": [], "confidence": 0.9999},
        {"case": "d", "inconclusive": True, "confidence": 0.6},
    ]
    calibrated(cases, told)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[2:]]
    assert rows == [
        ["0.990", "to", "0.995", "3", "99.27", "%", "66.67", "%"],
        ["0.999", "to", "1.000", "1", "99.99", "%", "100.00", "%"],
    ]
