"""What an open batch needs, by table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.batches import Batch, ClosedWhy
from bot.core.decisions import PASSED_OVER
from bot.core.types import (
    BatchKind,
    Bundle,
    Chain,
    Disposition,
    Grade,
    Ledger,
    LedgerEntry,
    Metrics,
    Plan,
    PlannedCommit,
    Verdict,
)
from bot.core.upkeep import Deed, upkeep

A, B = "a" * 40, "b" * 40
BUNDLE = Batch(key="k", kind=BatchKind.BUNDLE, commits=(A, B), branch="graft/bundle/k", number=1, head="h", base="old")
LINK = replace(BUNDLE, kind=BatchKind.CHAIN, commits=(A,), chain=(A, B))


def plan(*entries: LedgerEntry, verdict: Verdict = Verdict.SAFE) -> Plan:
    one = PlannedCommit(A, "a", verdict, ())
    bundles = (Bundle("k", Grade.SAFE, (one,)),) if verdict is Verdict.SAFE else ()
    chains = () if bundles else (Chain("k", False, (one,)),)
    return Plan("up", "tip", "base", bundles, chains, (), (), Ledger(entries, None, None, Metrics(1, 0)))


def entry(sha: str, disposition: Disposition, by: str = "walter") -> LedgerEntry:
    return LedgerEntry(sha, disposition, by=by, reason="because")


def test_nothing_is_done_without_a_reason() -> None:
    found = upkeep(batch=BUNDLE, head="h", ours=True, plan=plan(), applies=True)
    assert (found.deed, found.batch) == (Deed.KEEP, BUNDLE)


@pytest.mark.parametrize(
    ("disposition", "by", "out"),
    [
        (Disposition.PICKED, "f" * 40, True),
        (Disposition.EMPTY, "planner", True),
        (Disposition.WONT_PORT, "walter", True),
        (Disposition.SKIPPED, "walter", True),
        (Disposition.DEFERRED, "walter", True),
        (Disposition.DEFERRED, PASSED_OVER, False),
        (Disposition.REVERTED, "f" * 40, False),
        (Disposition.PENDING, "", False),
    ],
)
def test_what_is_decided_is_taken_out(disposition: Disposition, by: str, out: bool) -> None:
    found = upkeep(batch=BUNDLE, head="h", ours=True, plan=plan(entry(A, disposition, by)), applies=True)
    assert found.deed is (Deed.REBUILD if out else Deed.KEEP)
    assert found.batch.commits == ((B,) if out else (A, B))
    assert ("because" in found.text) is out


@pytest.mark.parametrize(
    ("second", "why"),
    [(Disposition.EMPTY, ClosedWhy.LANDED), (Disposition.WONT_PORT, ClosedWhy.SUPERSEDED)],
)
def test_with_nothing_left_it_is_closed(second: Disposition, why: ClosedWhy) -> None:
    decided = plan(entry(A, Disposition.PICKED), entry(B, second))
    found = upkeep(batch=BUNDLE, head="h", ours=True, plan=decided, applies=False)
    assert (found.deed, found.why, found.batch.paused) == (Deed.CLOSE, why, False)
    # a person's work on the branch is kept, though the pull request is closed
    assert upkeep(batch=BUNDLE, head="x", ours=False, plan=decided, applies=False).batch.paused


def test_a_persons_branch_is_left_alone_whatever_else_is_the_matter() -> None:
    decided = plan(entry(A, Disposition.DEFERRED))
    found = upkeep(batch=BUNDLE, head="x", ours=False, plan=decided, applies=False)
    assert (found.deed, found.batch.head) == (Deed.PAUSE, "h")
    paused = replace(BUNDLE, paused=True)
    assert upkeep(batch=paused, head="h", ours=True, plan=decided, applies=False).deed is Deed.KEEP


@pytest.mark.parametrize(
    ("kind", "verdict", "closed"),
    [
        (BatchKind.CHAIN, Verdict.RISKY, False),
        (BatchKind.CHAIN, Verdict.CONFLICT, True),
        (BatchKind.CONFLICT, Verdict.CONFLICT, False),
        (BatchKind.CONFLICT, Verdict.SAFE, True),
        (BatchKind.CONFLICT, Verdict.RISKY, True),
    ],
)
def test_a_link_that_is_to_be_opened_otherwise_by_now(kind: BatchKind, verdict: Verdict, closed: bool) -> None:
    found = upkeep(batch=replace(LINK, kind=kind), head="h", ours=True, plan=plan(verdict=verdict), applies=True)
    assert (found.deed is Deed.CLOSE) is closed
    assert found.why is (ClosedWhy.SUPERSEDED if closed else None)


def test_what_no_longer_applies_is_built_anew() -> None:
    found = upkeep(batch=BUNDLE, head="h", ours=True, plan=plan(), applies=False)
    assert (found.deed, found.batch.commits) == (Deed.REBUILD, (A, B))
    assert "tip" in found.text
