"""What a batch is to its plan: its commits, its chain's links, the pin after it, and what it passes over."""

from __future__ import annotations

import pytest

from bot.core.batches import Batch
from bot.core.decisions import PASSED_OVER
from bot.core.outlook import link_states, passed_over, pin_after, planned
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
    Reason,
    ReasonKind,
    Verdict,
)

HEAVY = Reason(ReasonKind.CHANGES_USED_SYMBOL, "the fork changed it", (), 0.9)
LIGHT = Reason(ReasonKind.INDEPENDENT, "clean", (), 0.1)
WORDS = {
    "a": "picked", "b": "pending", "c": "deferred", "d": "pending", "e": "pending", "f": "reverted", "g": "pending"
}  # fmt: skip


def commit(name: str, *reasons: Reason) -> PlannedCommit:
    return PlannedCommit(name, f"subject {name}", Verdict.SAFE, reasons)


def plan(pin: str | None = "a") -> Plan:
    """a is picked, c deferred by a person, f taken back; b and d make a chain, e is held, g is a bundle."""
    entries = tuple(LedgerEntry(sha, Disposition(word), f"ledger {sha}", by="x") for sha, word in WORDS.items())
    return Plan(
        "g", "tip", "base",
        bundles=(Bundle("k", Grade.SAFE, (commit("g", LIGHT),)),),
        chains=(Chain("c1", False, (commit("b", LIGHT, HEAVY), commit("d"))),),
        held=(commit("e", HEAVY),),
        settled=(),
        ledger=Ledger(entries, pin, None, Metrics(0, 0)),
    )  # fmt: skip


def batch(*commits: str, chain: tuple[str, ...] = ()) -> Batch:
    return Batch("k", BatchKind.BUNDLE, commits, "graft/bundle/k", chain=chain)


def test_commits_come_as_planned_and_else_as_the_ledger_knows_them() -> None:
    found = planned(plan(), ["d", "a", "unheard-of"])
    assert [one.subject for one in found] == ["subject d", "ledger a", ""]


def test_what_is_kept_back_before_the_batch_is_left_as_holes_with_the_heaviest_reason() -> None:
    found = passed_over(plan(), batch("g"))
    assert [(entry.sha, entry.reason) for entry in found] == [
        ("b", "in chain c1: the fork changed it"), ("d", "in chain c1: "), ("e", "held: the fork changed it"),
    ]  # fmt: skip
    assert {(entry.by, entry.disposition) for entry in found} == {(PASSED_OVER, Disposition.DEFERRED)}
    assert [entry.sha for entry in passed_over(plan(), batch("d"))] == ["b"]
    assert passed_over(plan(), batch("b")) == passed_over(plan(), batch("unheard-of")) == ()


def test_each_link_says_where_it_stands() -> None:
    found = link_states(plan(), batch("d", chain=("a", "b", "c", "d", "f")))
    assert [(link.sha, words) for link, words in found] == [
        ("a", "picked"),
        ("b", "opens when the one before has landed"),
        ("c", "deferred"),
        ("d", "**this pull request**"),
        ("f", "the fork took it back: `/pick` takes it in again"),
    ]


@pytest.mark.parametrize(
    ("pin", "landing", "after"),
    [
        ("a", (), "a"),
        ("a", ("b",), "b"),
        ("a", ("b", "d"), "b"),  # c is a hole
        ("a", ("d", "e", "g"), "a"),
        (None, (), "a"),
        (None, ("b",), "b"),
        ("d", ("e",), "e"),
    ],
)
def test_the_pin_stands_before_the_first_hole_that_is_left(
    pin: str | None, landing: tuple[str, ...], after: str
) -> None:
    assert pin_after(plan(pin), landing) == after
