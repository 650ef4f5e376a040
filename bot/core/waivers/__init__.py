"""Waivers: leave to land in spite of a failure, given in a pull request or kept in the fork's own file."""

from __future__ import annotations

from bot.core.waivers.file import WaiverFileError, add_to_file, read_file, write_file
from bot.core.waivers.judge import (
    LONGEST,
    NEAR,
    TOO_MANY,
    Ask,
    Failure,
    JudgedWaiver,
    ScopeKind,
    Waiver,
    WaiverState,
    asks,
    from_comments,
    judge,
    kind_of,
    narrow,
    scope_problem,
)

__all__ = [
    "LONGEST",
    "NEAR",
    "TOO_MANY",
    "Ask",
    "Failure",
    "JudgedWaiver",
    "ScopeKind",
    "Waiver",
    "WaiverFileError",
    "WaiverState",
    "add_to_file",
    "asks",
    "from_comments",
    "judge",
    "kind_of",
    "narrow",
    "read_file",
    "scope_problem",
    "write_file",
]
