"""Conflicts: each hunk judged by stated rules with evidence, what is mechanical resolved, the rest classed."""

from __future__ import annotations

from bot.core.conflict.files import CI_PATHS, FileConflict, FileResolution, PinPolicy, resolve, resolve_file
from bot.core.conflict.marked import Marked, MarkersBroken, Sides, read_marked
from bot.core.conflict.rules import RULES, HunkClass, HunkVerdict, Place, judge

__all__ = [
    "CI_PATHS",
    "RULES",
    "FileConflict",
    "FileResolution",
    "HunkClass",
    "HunkVerdict",
    "Marked",
    "MarkersBroken",
    "PinPolicy",
    "Place",
    "Sides",
    "judge",
    "read_marked",
    "resolve",
    "resolve_file",
]
