"""What to open next: the plan's bundles and chains, less what is already open, within the caps."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from bot.core.types import BatchKind, Bundle, Chain, Disposition, Grade, Plan, PlannedCommit, ReasonKind, Verdict


class BatchState(StrEnum):
    """The life of a batch's pull request."""

    OPEN = "open"
    DRAFT = "draft"
    MERGED = "merged"
    CLOSED = "closed"

    @property
    def in_flight(self) -> bool:
        """True while it can still land."""
        return self in (BatchState.OPEN, BatchState.DRAFT)


class ClosedWhy(StrEnum):
    """Why a batch was closed without being merged."""

    PERSON = "person"
    LANDED = "landed"
    SUPERSEDED = "superseded"
    SPLIT = "split"
    BRANCH_GONE = "branch_gone"


_AT_ONCE = timedelta(seconds=2)


def closed_with_base(history: Sequence[tuple[str, datetime | None]]) -> bool:
    """Whether GitHub closed a pull request because its base branch was deleted: nobody refused it.

    `history` holds the names and times of its events, oldest first: GitHub writes `base_ref_deleted` and then `closed`,
    within a second, the order of which no page of GitHub's promises.
    """
    closed = [place for place, (event, _) in enumerate(history) if event == "closed"]
    if not closed:
        return False
    last = closed[-1]
    for event, _ in reversed(history[:last]):
        if event in ("reopened", "base_ref_changed"):
            break
        if event == "base_ref_deleted":
            return True
    at = history[last][1]
    return any(
        event == "base_ref_deleted" and at is not None and when is not None and when - at <= _AT_ONCE
        for event, when in history[last + 1 :]
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """One pull request of Graft's: a bundle, or a link of a chain.

    `chain` lists the links known when it was opened, `apart` what a split one is to come back as, one by one.
    """

    key: str
    kind: BatchKind
    commits: tuple[str, ...]
    branch: str
    grade: Grade | None = None
    chain: tuple[str, ...] = ()
    position: int = 1
    number: int | None = None
    head: str | None = None
    base: str | None = None
    state: BatchState = BatchState.OPEN
    closed_why: ClosedWhy | None = None
    paused: bool = False
    levels: tuple[str, ...] = ()
    areas: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToOpen:
    """A batch to be opened, with the planned commits that it carries."""

    batch: Batch
    commits: tuple[PlannedCommit, ...]
    links: tuple[PlannedCommit, ...] = ()


class WaitKind(StrEnum):
    """Why something plannable is not opened now."""

    IN_FLIGHT = "in_flight"
    REFUSED = "refused"
    CAP = "cap"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Commits that could be planned but are not opened now, with the reason and the pull request concerned."""

    commits: tuple[str, ...]
    kind: WaitKind
    text: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Next:
    """What to open, in this order, and what waits."""

    to_open: tuple[ToOpen, ...]
    waiting: tuple[Waiting, ...]


def key_of(*parts: str) -> str:
    """Eight letters and digits that stand for `parts`: the same parts always give the same key."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return base64.b32encode(digest)[:8].decode().lower()


def branch_of(kind: BatchKind, key: str, position: int) -> str:
    """The branch of a batch; a function of its key alone, so that opening it twice is opening it once."""
    return f"graft/bundle/{key}" if kind is BatchKind.BUNDLE else f"graft/chain/{key}/{position}"


def next_batches(
    *,
    plan: Plan,
    batches: Sequence[Batch],
    open_bundles: int,
    open_chains: int,
    allowance: int,
    urgent: Collection[str] = (),
    apart: Collection[str] = (),
    aside: Collection[str] = (),
) -> Next:
    """Choose what to open.

    `open_bundles` and `open_chains` cap what may be open at once, `allowance` what may still be opened today;
    commits named in `urgent` (by /pick) pass the caps, not the dependencies; they and those in `apart` (by /split) come
    in batches of their own. What the fork took back comes again only where it is urgent: somebody has to say so.
    `aside` names branches that could not be pushed just now: others take their place.
    """
    planner = _Next(plan, batches, urgent, apart)
    for bundle in plan.bundles:
        planner.consider_bundle(bundle)
    for chain in plan.chains:
        planner.consider_chain(chain)
    return planner.within(open_bundles=open_bundles, open_chains=open_chains, allowance=allowance, aside=aside)


class _Next:
    def __init__(self, plan: Plan, batches: Sequence[Batch], urgent: Collection[str], apart: Collection[str]) -> None:
        self.batches = batches
        self.urgent = frozenset(urgent)
        self.taken_back = {e.sha: e for e in plan.ledger.entries if e.disposition is Disposition.REVERTED}
        self.holder = {sha: batch for batch in batches if batch.state.in_flight for sha in batch.commits}
        self.refused = {
            sha: batch
            for batch in batches
            if batch.state is BatchState.CLOSED and batch.closed_why is ClosedWhy.PERSON
            for sha in batch.commits
            if sha not in self.holder
        }
        self.apart = frozenset(apart) | self.urgent
        self.unlanded = {c.sha for b in plan.bundles for c in b.commits} | {
            c.sha for h in plan.chains for c in h.commits
        }
        self.unlanded |= {c.sha for c in plan.held}
        self.found: list[ToOpen] = []
        self.waiting: list[Waiting] = []

    def consider_bundle(self, bundle: Bundle) -> None:
        together: list[PlannedCommit] = []
        singles: list[list[PlannedCommit]] = []
        for commit in bundle.commits:
            if commit.sha in self.holder:
                continue
            apart = commit.sha in self.apart
            blocker = self._blocker(commit, set() if apart else {c.sha for c in together})
            if blocker is not None:
                self.waiting.append(blocker)
            elif apart:
                singles.append([commit])
            else:
                together.append(commit)
        for commits in ([together] if together else []) + singles:
            whole = len(commits) == len(bundle.commits)
            key = self._fresh(bundle.key if whole else key_of(*(c.sha for c in commits)))
            self.found.append(
                ToOpen(
                    Batch(
                        key=key,
                        kind=BatchKind.BUNDLE,
                        grade=bundle.grade,
                        commits=tuple(c.sha for c in commits),
                        branch=branch_of(BatchKind.BUNDLE, key, 1),
                    ),
                    tuple(commits),
                )
            )

    def consider_chain(self, chain: Chain) -> None:
        first = chain.commits[0]
        if any(commit.sha in self.holder for commit in chain.commits):
            return
        if (blocker := self._blocker(first, set())) is not None:
            self.waiting.append(blocker)
            return
        landed = [b for b in self.batches if b.state is BatchState.MERGED and first.sha in b.chain]
        key, position = self._fresh(chain.key), 1
        before: tuple[str, ...] = ()
        if landed and first.sha not in self.taken_back:
            last = max(landed, key=lambda b: b.position)
            key, position, before = last.key, last.position + 1, last.chain[: last.chain.index(first.sha)]
        kind = BatchKind.CONFLICT if first.verdict is Verdict.CONFLICT else BatchKind.CHAIN
        batch = Batch(
            key=key,
            kind=kind,
            commits=(first.sha,),
            branch=branch_of(kind, key, position),
            chain=(*before, *(c.sha for c in chain.commits)),
            position=position,
            levels=tuple(level.value for level in chain.levels),
            areas=chain.areas,
            rules=rules_of(chain, first),
        )
        self.found.append(ToOpen(batch, (first,), chain.commits))

    def _fresh(self, key: str) -> str:
        """The key, or one made from it where what it stood for has landed once and was taken back."""
        landed = {batch.key for batch in self.batches if batch.state is BatchState.MERGED}
        while key in landed:
            key = key_of(key, "again")
        return key

    def _blocker(self, commit: PlannedCommit, together: Collection[str]) -> Waiting | None:
        if (batch := self.refused.get(commit.sha)) is not None:
            text = f"its pull request was closed by a person; /retry on #{batch.number} opens it again"
            return Waiting((commit.sha,), WaitKind.REFUSED, text, batch.number)
        if commit.sha in self.taken_back and commit.sha not in self.urgent:
            text = f"the fork took it back; /pick {commit.sha[:10]} takes it in again"
            return Waiting((commit.sha,), WaitKind.REFUSED, text)
        for need in commit.waits_for:
            if need in together or need not in self.unlanded:
                continue
            holder = self.holder.get(need)
            where = f"#{holder.number}" if holder is not None and holder.number else need[:10]
            return Waiting(
                (commit.sha,), WaitKind.IN_FLIGHT, f"waits for {where}", holder.number if holder is not None else None
            )
        return None

    def within(self, *, open_bundles: int, open_chains: int, allowance: int, aside: Collection[str]) -> Next:
        room = {
            True: open_bundles - sum(b.state.in_flight and b.kind is BatchKind.BUNDLE for b in self.batches),
            False: open_chains - sum(b.state.in_flight and b.kind is not BatchKind.BUNDLE for b in self.batches),
        }
        chosen: list[ToOpen] = []
        for candidate in sorted(self.found, key=lambda c: not self._urgent(c)):
            bundle = candidate.batch.kind is BatchKind.BUNDLE
            if candidate.batch.branch in aside:
                text = "its branch could not be pushed: the reason stands above"
                self.waiting.append(Waiting(candidate.batch.commits, WaitKind.REFUSED, text))
                continue
            if not self._urgent(candidate) and (room[bundle] <= 0 or allowance <= 0):
                cap = "as many are open as the file allows" if allowance > 0 else "the day's cap is reached"
                self.waiting.append(Waiting(candidate.batch.commits, WaitKind.CAP, cap))
                continue
            room[bundle] -= 1
            allowance -= 1
            chosen.append(candidate)
        return Next(tuple(chosen), tuple(self.waiting))

    def _urgent(self, candidate: ToOpen) -> bool:
        return any(sha in self.urgent for sha in candidate.batch.commits)


def rules_of(chain: Chain, commit: PlannedCommit) -> tuple[str, ...]:
    """The names of the fork's own rules that a link meets, and `toolchain` where it moves that."""
    named = [reason.text.rpartition(": ")[2] for reason in commit.reasons if reason.kind is ReasonKind.RULE]
    lane = chain.lane or any(reason.kind is ReasonKind.TOOLCHAIN for reason in commit.reasons)
    return tuple(dict.fromkeys([*named, *(("toolchain",) if lane else ())]))
