"""How a belief is written down: never as more than the runs can carry."""

from __future__ import annotations

import math

_MOST = 0.999  # no search that may be lied to knows more than this for sure


def stated(confidence: float) -> str:
    """A confidence (0..1) for people, rounded down: `99.7 %`, and `> 99.9 %` at most, so never 100 %."""
    if confidence > _MOST:
        return f"> {100 * _MOST:.1f} %"
    return f"{down(confidence, 3) * 100:.1f} %"


def down(confidence: float, digits: int) -> float:
    """A confidence (0..1) with so many digits, rounded down and below 1: for machines to read."""
    unit = float(10**digits)
    return min(math.floor(confidence * unit + 1e-6), unit - 1) / unit
