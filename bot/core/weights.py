"""How much each signal weighs: learned from picks that maintainers really landed, by `graft replay --fit`.

A weight is a hazard: signals of sizes s with weights w leave a pick unchanged with the chance exp(-(BASE + Σ w·s)).
Learned from the 464 picks into facebookexperimental/triton (2025-10 to 2026-04) that merge without a conflict, of
which 433 landed unchanged. Judged by weights fitted on the other parts, 98 % of the least likely changed 55 % landed
unchanged, and 96 % of the least likely changed 92 %. The signals, the prior and both lines below were chosen on these
same picks, so that picks nobody has looked at may do worse: `benchmarks/replay_report.py` prints both.
"""

from __future__ import annotations

from collections.abc import Mapping

BASE = 0.0064
"""The hazard of a commit that no signal speaks against."""

WEIGHTS: Mapping[str, float] = {
    "files": 0.008,
    "forked_file": 0.0096,
    "forked_test": 0.0199,
    "neighbours": 0.0044,
    "places": 0.0091,
    "refers_changed": 0.0219,
    "refers_signature": 0.0307,
    "same_symbol": 0.0126,
    "same_top": 0.0185,
    "tests": 0.015,
    "used_body": 0.015,
    "used_gone": 0.0216,
    "used_signature": 0.02,
}

SAFE_BELOW = 0.0727
"""A chance of work by hand below this is `safe`."""

WATCH_BELOW = 0.175
"""Below this it is `watch`, from here on `risky`."""
