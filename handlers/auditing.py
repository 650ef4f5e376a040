"""Write the audit: an entry in the same transaction as what it records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from bot.clients.store import AuditRow, Store, Transaction
from bot.clients.store.models import Scope
from bot.core.audit import AuditKind, Checkpoint, Entry, Signer, append, checkpoint


async def record(tx: Transaction, *, scope: Scope, kind: AuditKind, body: Mapping[str, Any], at: datetime) -> Entry:
    """Append an entry to the fork's chain inside the caller's transaction.

    Two that append at once collide on the sequence number: the later one's transaction fails, and its job runs again.
    """
    head = await tx.audit_head(scope.repository)
    entry = append(
        head, repository=scope.repository, installation=scope.installation, kind=kind, body=body, at=at
    )  # fmt: skip
    await tx.append_audit(AuditRow(**{field.name: getattr(entry, field.name) for field in fields(AuditRow)}))
    return entry


async def witness(store: Store, *, scope: Scope, signer: Signer) -> Checkpoint | None:
    """The signed checkpoint of the chain as it ends now, to be posted outside; None where there is no entry."""
    head = await store.audit_head(scope.repository)
    return checkpoint(head, signer=signer) if head is not None else None
