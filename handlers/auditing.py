"""Write the audit: an entry in the same transaction as what it records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from bot.context import AuditRow, Context, Job, Scope, Store, Transaction
from bot.core.audit import AuditKind, Checkpoint, Entry, HmacSigner, Signer, append, checkpoint, find_checkpoints
from bot.core.render.text import fence, marker
from handlers.dashboard import dashboard_issue
from handlers.fork import open_fork


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


async def post_witness(ctx: Context, job: Job) -> None:
    """Job `witness`: the signed end of the audit as a line on the dashboard issue, where the database's owner can't
    take it back unseen. A comment holds a month of them.
    """
    fork = await open_fork(ctx, job.scope)
    signer = HmacSigner.of_secret(ctx.settings.private_key.get_secret_value().encode())
    point = await witness(ctx.store, scope=job.scope, signer=signer)
    number = await dashboard_issue(fork) if point is not None else None
    if point is None or number is None:
        return
    hidden, me = marker(f"witness {fork.now:%Y-%m}"), await fork.login()
    before = [c.body for c in await fork.github.comments(number) if c.user.login == me and hidden in c.body]
    lines = [one.line for one in find_checkpoints(before)]
    known = {one.sequence for one in find_checkpoints(before)}
    if point.sequence not in known:
        text = f"{hidden}\nWhere the audit ended; `graft audit verify` holds the store against it.\n\n"
        await fork.github.upsert_comment(number, hidden, text + fence("\n".join([*lines, point.line])))


async def witness(store: Store, *, scope: Scope, signer: Signer) -> Checkpoint | None:
    """The signed checkpoint of the chain as it ends now, to be posted outside; None where there is no entry."""
    head = await store.audit_head(scope.repository)
    return checkpoint(head, signer=signer) if head is not None else None
