"""How much each signal weighs: learned from picks that maintainers really landed, by `graft replay --fit`.

A weight is a hazard: signals of sizes s with weights w leave a pick unchanged with the chance exp(-(BASE + Σ w·s)).
Learned from the 464 picks into facebookexperimental/triton (2025-10 to 2026-04) that merge without a conflict, of
which 433 landed unchanged. Judged by weights fitted on other parts, by time and by subsystem, 98 % of the least likely
changed 55 % landed unchanged, and 95 % of the least likely changed 94 %. The signals, the prior and both lines below
were chosen on these same picks, so that picks nobody has looked at may do worse: `benchmarks/replay_report.py` prints
both.
"""

from __future__ import annotations

from collections.abc import Mapping

BASE = 0.0059
"""The hazard of a commit that no signal speaks against."""

WEIGHTS: Mapping[str, float] = {
    "files": 0.0073,
    "forked_file": 0.0094,
    "forked_test": 0.0197,
    "neighbours": 0.0041,
    "places": 0.0083,
    "refers_changed": 0.0219,
    "refers_signature": 0.0309,
    "same_symbol": 0.0126,
    "same_top": 0.0188,
    "tests": 0.0122,
    "tests_run": 0.0163,
    "used_body": 0.0149,
    "used_gone": 0.0213,
    "used_signature": 0.0197,
}

SAFE_BELOW = 0.0725
"""A chance of work by hand below this is `safe`."""

WATCH_BELOW = 0.142
"""A chance that its size has no part in below this is `watch`, from here on `risky`."""
