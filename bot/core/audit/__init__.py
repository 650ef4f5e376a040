"""The audit: a hash chain of every decision and act, its signed checkpoints, and the record of a sync."""

from __future__ import annotations

from bot.core.audit.chain import (
    GENESIS,
    AuditKind,
    Entry,
    Fault,
    FaultKind,
    Verification,
    append,
    canonical,
    from_line,
    to_line,
    verify,
    verify_lines,
)
from bot.core.audit.checkpoint import Checkpoint, HmacSigner, Signer, checkpoint, find_checkpoints, genuine
from bot.core.audit.records import (
    ApprovalRecord,
    ExceptionRecord,
    LevelRecord,
    PatchFate,
    PatchRecord,
    SyncRecord,
)

__all__ = [
    "GENESIS",
    "ApprovalRecord",
    "AuditKind",
    "Checkpoint",
    "Entry",
    "ExceptionRecord",
    "Fault",
    "FaultKind",
    "HmacSigner",
    "LevelRecord",
    "PatchFate",
    "PatchRecord",
    "Signer",
    "SyncRecord",
    "Verification",
    "append",
    "canonical",
    "checkpoint",
    "find_checkpoints",
    "from_line",
    "genuine",
    "to_line",
    "verify",
    "verify_lines",
]
