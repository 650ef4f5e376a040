"""Graft's own pull requests: kept in the store, rebuilt from GitHub where the store lost them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.clients.github import Pull
from bot.clients.store import Store, Transaction
from bot.clients.store.models import Batch as BatchRow
from bot.core.batches import Batch, BatchState, ClosedWhy
from bot.core.ledger import LandedPullRequest
from bot.core.render.pull import batch_from, read_batch
from bot.core.types import BatchKind, Grade
from handlers.fork import Fork

BRANCHES = "graft/"


async def load_batches(fork: Fork) -> list[Batch]:
    """All batches of the fork, oldest first.

    The store is asked first; where it has none, as after its loss, GitHub's pull requests tell them again.
    """
    rows = await fork.ctx.store.batches(fork.name)
    if not rows:
        await rebuild(fork)
        rows = await fork.ctx.store.batches(fork.name)
    return [_batch(row) for row in rows]


async def rebuild(fork: Fork) -> int:
    """Read the batches from the bodies of Graft's own pull requests on GitHub; gives their number."""
    count = 0
    for pull in reversed(await fork.github.pulls(state="all")):
        if (batch := await _from_pull(fork, pull)) is not None:
            await save_batch(fork, batch, {"body": pull.body, "title": pull.title, **landing_facts(pull)})
            count += 1
    return count


async def save_batch(
    fork: Fork, batch: Batch, more: dict[str, Any] | None = None, *, store: Store | Transaction | None = None
) -> None:
    """Store a batch, in a transaction where one is given; `more` is kept beside what was known of it."""
    store = store or fork.ctx.store
    old = await store.batch(fork.name, row_key(batch))
    plan = {
        **(old.plan if old else {}),
        "grade": batch.grade.value if batch.grade else None,
        "chain": list(batch.chain),
        "closed_why": batch.closed_why.value if batch.closed_why else None,
        "paused": batch.paused,
        "levels": list(batch.levels),
        "areas": list(batch.areas),
        "rules": list(batch.rules),
        "key": batch.key,
        **(more or {}),
    }
    await store.save_batch(
        BatchRow(
            key=row_key(batch),
            kind=batch.kind.value,
            repository=fork.name,
            installation=fork.scope.installation,
            number=batch.number,
            branch=batch.branch,
            head=batch.head or "",
            base=batch.base or "",
            state=batch.state.value,
            position=batch.position,
            commits=batch.commits,
            plan=plan,
            updated_at=fork.now,
        )
    )


async def batch_of(fork: Fork, number: int) -> Batch | None:
    """The batch of a pull request; None for a person's."""
    row = await fork.ctx.store.batch_of(fork.name, number)
    return _batch(row) if row else None


def row_key(batch: Batch) -> str:
    """The links of a chain share its key; their place tells them apart."""
    return batch.key if batch.kind is BatchKind.BUNDLE else f"{batch.key}/{batch.position}"


def landed_pull_requests(rows: Sequence[BatchRow]) -> list[LandedPullRequest]:
    """The merged ones, for the ledger: a squash keeps their commits' trailers only in the body."""
    return [
        LandedPullRequest(
            number=row.number or 0,
            merge_sha=row.plan["merge_sha"],
            title=row.plan.get("title", ""),
            body=_with_trailers(row),
            head=row.head,
            landed_time=row.plan.get("landed_at", 0),
        )
        for row in rows
        if row.state == BatchState.MERGED and row.plan.get("merge_sha")
    ]


def _with_trailers(row: BatchRow) -> str:
    trailers = "\n".join(f"(cherry picked from commit {sha})" for sha in row.commits)
    return f"{row.plan.get('body', '')}\n\n{trailers}"


def landing_facts(pull: Pull) -> dict[str, Any]:
    """Where and when a pull request landed; nothing where it has not."""
    if not pull.landed or pull.merged_at is None:
        return {}
    return {"merge_sha": pull.merge_commit_sha, "landed_at": int(pull.merged_at.timestamp())}


async def _from_pull(fork: Fork, pull: Pull) -> Batch | None:
    # a body can be written by anyone with write access: the branch and the author are Graft's alone
    me = await fork.login()
    if pull.user.login != me or not pull.head.ref.startswith(BRANCHES):
        return None
    data = read_batch(pull.body)
    if data is None:
        return None
    if pull.landed:
        state, why = BatchState.MERGED, None
    elif pull.state == "closed":
        state, why = BatchState.CLOSED, ClosedWhy(data.get("closed_why") or ClosedWhy.PERSON)
    else:
        state, why = (BatchState.DRAFT if pull.draft else BatchState.OPEN), None
    batch = batch_from(data, number=pull.number, branch=pull.head.ref, head=pull.head.sha, state=state)
    return replace(batch, closed_why=why)


def _batch(row: BatchRow) -> Batch:
    plan = row.plan
    return Batch(
        key=plan.get("key", row.key),
        kind=BatchKind(row.kind),
        grade=Grade(plan["grade"]) if plan.get("grade") else None,
        commits=row.commits,
        branch=row.branch,
        chain=tuple(plan.get("chain", ())),
        position=row.position,
        number=row.number,
        head=row.head or None,
        base=row.base or None,
        state=BatchState(row.state),
        closed_why=ClosedWhy(plan["closed_why"]) if plan.get("closed_why") else None,
        paused=bool(plan.get("paused")),
        levels=tuple(plan.get("levels", ())),
        areas=tuple(plan.get("areas", ())),
        rules=tuple(plan.get("rules", ())),
    )
