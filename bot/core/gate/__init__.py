"""The gate: facts in, a decision with its tree of reasons out."""

from __future__ import annotations

from bot.core.gate.decide import WAIVERS_FILE, decide, decide_group
from bot.core.gate.facts import (
    GateFacts,
    GateReason,
    GateResult,
    OpenBreakage,
    PullFact,
    PullKind,
    ReasonCode,
    Review,
    ReviewState,
    RunState,
    SuiteResult,
)
from bot.core.gate.levels import may_start
from bot.core.gate.required import Required, required

__all__ = [
    "WAIVERS_FILE",
    "GateFacts",
    "GateReason",
    "GateResult",
    "OpenBreakage",
    "PullFact",
    "PullKind",
    "ReasonCode",
    "Required",
    "Review",
    "ReviewState",
    "RunState",
    "SuiteResult",
    "decide",
    "decide_group",
    "may_start",
    "required",
]
