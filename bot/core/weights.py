"""How much each signal weighs: learned from picks that maintainers really landed, by `graft replay --fit`.

A weight is a hazard: signals of sizes s with weights w leave a pick unchanged with the chance exp(-(BASE + Σ w·s)).
"""

from __future__ import annotations

from collections.abc import Mapping

BASE = 0.005
"""The hazard of a commit that no signal speaks against."""

WEIGHTS: Mapping[str, float] = {
    "extent": 0.004,
    "forked_file": 0.02,
    "forked_test": 0.04,
    "refers_signature": 0.02,
    "same_symbol": 0.02,
    "same_top": 0.05,
    "tests": 0.02,
    "used_body": 0.005,
    "used_gone": 0.05,
    "used_signature": 0.04,
}

SAFE_BELOW = 0.06
"""A chance of work by hand below this is `safe`."""

WATCH_BELOW = 0.25
"""Below this it is `watch`, from here on `risky`."""
