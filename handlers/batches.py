"""Graft's own pull requests: kept in the store, rebuilt from GitHub where the store lost them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.context import Batch as BatchRow
from bot.context import Pull, Store, Transaction
from bot.core.batches import Batch, BatchState, ClosedWhy
from bot.core.ledger import LandedPullRequest
from bot.core.render.answers import read_decisions
from bot.core.render.pull import batch_from, read_batch
from bot.core.types import BatchKind, Disposition, Grade, LedgerEntry
from handlers.fork import Fork

BRANCHES = ("graft/bundle/", "graft/chain/")
RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class Seen:
    """All batches, and by number the pull requests of those that were open when last looked at, or are now."""

    batches: tuple[Batch, ...]
    pulls: Mapping[int, Pull]


@dataclass(frozen=True, slots=True)
class Restored:
    """How much was read back from GitHub."""

    batches: int
    decisions: int


async def load_batches(fork: Fork) -> list[Batch]:
    """All batches of the fork, oldest first. After a loss of the store GitHub tells them again, before all else."""
    if not await fork.note(RESTORED):
        await restore(fork)
    return [_batch(row) for row in await fork.ctx.store.batches(fork.name)]


async def restore(fork: Fork) -> Restored:
    """Read back from GitHub what a lost store held: batches, decisions, what was asked for. Adds what is missing.

    Batches stand in the bodies of Graft's own pull requests, decisions in its answers to comments.
    """
    me = await fork.login()
    known = {row.number for row in await fork.ctx.store.batches(fork.name)}
    mine = [pull for pull in reversed(await fork.github.pulls(state="all")) if _ours(pull, me)]
    batches = [(pull, batch) for pull in mine if (batch := _from_pull(pull)) is not None]
    for pull, batch in batches:
        if batch.number not in known:
            await save_batch(fork, batch, {"body": pull.body, "title": pull.title, **landing_facts(pull)})
    await add_to_note(fork, "split", [sha for _, batch in batches for sha in batch.apart])
    today = sum(p.created_at is not None and p.created_at.date() == fork.now.date() for p, _ in batches)
    opened = await fork.note("opened") or {}
    if opened.get("day") != fork.now.date().isoformat():
        await fork.put_note("opened", {"day": fork.now.date().isoformat(), "count": today})
    decisions = await _restore_decisions(fork, me)
    await fork.put_note(RESTORED, True)
    return Restored(len(batches), decisions)


async def _restore_decisions(fork: Fork, me: str) -> int:
    """Each decision as Graft's latest answer about that commit has it."""
    if await fork.ctx.store.decisions(fork.name):
        return 0
    latest: dict[str, LedgerEntry] = {}
    for comment in await fork.github.all_comments():
        if comment.user.login == me:
            at = int(comment.created_at.timestamp()) if comment.created_at is not None else None
            for entry in read_decisions(comment.body, at):
                latest.pop(entry.sha, None)
                latest[entry.sha] = entry
    stand = [entry for entry in latest.values() if entry.disposition is not Disposition.PENDING]
    for entry in stand:
        await fork.ctx.store.save_decision(fork.scope.installation, fork.name, entry, fork.now)
    await add_to_note(fork, "urgent", [e.sha for e in latest.values() if e.disposition is Disposition.PENDING])
    return len(stand)


async def add_to_note(fork: Fork, key: str, shas: Sequence[str], *, most: int = 500) -> None:
    """Add upstream commits to a list that is kept for this fork."""
    if shas:
        await fork.change_note(key, lambda known: list(dict.fromkeys([*(known or []), *shas]))[-most:])


async def forget(fork: Fork, key: str, sha: str) -> None:
    """Take an upstream commit off such a list."""
    await fork.change_note(key, lambda known: known and [one for one in known if one != sha])


async def see(fork: Fork) -> Seen:
    """The batches beside their pull requests as GitHub has them now: one list tells all that are open."""
    batches = await load_batches(fork)
    me = await fork.login()
    pulls = {pull.number: pull for pull in await fork.github.pulls("open") if _ours(pull, me)}
    known = {batch.number for batch in batches}
    for pull in pulls.values():
        # opened before a crash, and never noted
        if pull.number not in known and (batch := _from_pull(pull)) is not None:
            await save_batch(fork, batch, {"body": pull.body, "title": pull.title})
            batches.append(batch)
    for batch in batches:
        if batch.state.in_flight and batch.number is not None and batch.number not in pulls:
            pulls[batch.number] = await fork.github.pull(batch.number)
    return Seen(tuple(batches), pulls)


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
        "apart": list(batch.apart),
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


def _ours(pull: Pull, me: str) -> bool:
    # a body can be written by anyone with write access: the branch and the author are Graft's alone
    return pull.user.login == me and pull.head.ref.startswith(BRANCHES)


def _from_pull(pull: Pull) -> Batch | None:
    data = read_batch(pull.body)
    if data is None:
        return None
    try:
        batch = batch_from(data, number=pull.number, branch=pull.head.ref, head=pull.head.sha, state=state_of(pull))
    except ValueError:
        return None  # somebody edited the block: what it held is not to be guessed
    if batch.state is BatchState.CLOSED:
        return replace(batch, closed_why=batch.closed_why or ClosedWhy.PERSON)
    return replace(batch, closed_why=None)


def state_of(pull: Pull) -> BatchState:
    """Where a pull request is in its life."""
    if pull.landed:
        return BatchState.MERGED
    if pull.state == "closed":
        return BatchState.CLOSED
    return BatchState.DRAFT if pull.draft else BatchState.OPEN


def why_closed(pull: Pull) -> ClosedWhy:
    """Graft notes in the body why it closes one; where nothing is noted a person did."""
    try:
        return ClosedWhy((read_batch(pull.body) or {}).get("closed_why") or ClosedWhy.PERSON)
    except ValueError:
        return ClosedWhy.PERSON


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
        apart=tuple(plan.get("apart", ())),
    )
