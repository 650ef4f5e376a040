"""What an open batch needs: nothing, to be built anew, to be left to a person, or to be closed; with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.core.batches import Batch, ClosedWhy
from bot.core.decisions import PASSED_OVER
from bot.core.render.text import line, short
from bot.core.types import BatchKind, Disposition, LedgerEntry, Plan, Verdict


class Deed(StrEnum):
    """What is to be done with an open batch."""

    KEEP = "keep"
    REBUILD = "rebuild"
    PAUSE = "pause"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Upkeep:
    """The deed, the batch as it then stands (to rebuild: with the commits that it is to carry), and the reason."""

    deed: Deed
    batch: Batch
    text: str = ""
    why: ClosedWhy | None = None


def upkeep(*, batch: Batch, head: str, ours: bool, plan: Plan, applies: bool) -> Upkeep:
    """Decide for one open batch.

    `head` is where its branch stands now, `ours` whether Graft itself built that, `applies` whether the branch's
    commits still apply to the fork's tip one by one.
    """
    entries = {entry.sha: entry for entry in plan.ledger.entries}
    out = {sha: entries[sha] for sha in batch.commits if sha in entries and _decided(entries[sha])}
    wanted = tuple(sha for sha in batch.commits if sha not in out)
    if not wanted:
        there = all(entry.disposition in _THERE for entry in out.values())
        why = ClosedWhy.LANDED if there else ClosedWhy.SUPERSEDED
        return Upkeep(Deed.CLOSE, replace(batch, paused=batch.paused or not ours), _each(out), why)
    if not ours:
        return Upkeep(Deed.PAUSE, replace(batch, paused=True), f"{short(batch.head)} became {short(head)}")
    batch = replace(batch, head=head)
    if batch.paused:
        return Upkeep(Deed.KEEP, batch, "left to the person who pushed here")
    if (why_otherwise := _otherwise(batch, plan)) is not None:
        return Upkeep(Deed.CLOSE, batch, why_otherwise, ClosedWhy.SUPERSEDED)
    if out:
        return Upkeep(Deed.REBUILD, replace(batch, commits=wanted), _each(out))
    if not applies:
        return Upkeep(Deed.REBUILD, batch, f"The base moved to {short(plan.fork_tip)}, and it no longer applied there.")
    return Upkeep(Deed.KEEP, batch)


def _decided(entry: LedgerEntry) -> bool:
    """True where there is nothing to land any more. What history merely passed over is still to be taken in."""
    return entry.disposition.final or (entry.disposition is Disposition.DEFERRED and entry.by != PASSED_OVER)


_THERE = frozenset({Disposition.PICKED, Disposition.EMPTY})
_WORDS = {
    Disposition.PICKED: "is in the fork already",
    Disposition.EMPTY: "changes nothing in the fork",
    Disposition.DEFERRED: "was deferred",
    Disposition.SKIPPED: "is skipped",
    Disposition.WONT_PORT: "won't be ported",
}


def _each(out: Mapping[str, LedgerEntry]) -> str:
    said = []
    for sha, entry in list(out.items())[:20]:
        by = f" ({line(entry.by[:10] if entry.disposition in _THERE else entry.by, 60)})" if entry.by else ""
        why = f": {line(entry.reason, 160)}" if entry.reason else ""
        said.append(f"- {short(sha)} {_WORDS.get(entry.disposition, entry.disposition.value)}{by}{why}")
    more = f"\n- … and {len(out) - 20} more" if len(out) > 20 else ""
    return "\n".join(said) + more


def _otherwise(batch: Batch, plan: Plan) -> str | None:
    """Why the one commit of a link has to be opened in another way by now."""
    if batch.kind is BatchKind.BUNDLE:
        return None
    verdicts = {c.sha: c.verdict for b in plan.bundles for c in b.commits}
    verdicts |= {c.sha: c.verdict for chain in plan.chains for c in chain.commits}
    verdict = verdicts.get(batch.commits[0])
    if verdict is None:
        return None
    if batch.kind is BatchKind.CONFLICT and verdict is not Verdict.CONFLICT:
        return f"{short(batch.commits[0])} merges with the fork by now: it is opened anew, without conflict markers."
    if batch.kind is BatchKind.CHAIN and verdict is Verdict.CONFLICT:
        return f"{short(batch.commits[0])} conflicts with what has landed since: a draft for its resolution follows."
    return None
