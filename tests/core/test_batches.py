"""What to open next: never what is in flight or refused, never past a dependency, within the caps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.batches import (
    Batch,
    BatchState,
    ClosedWhy,
    Next,
    WaitKind,
    branch_of,
    closed_with_base,
    key_of,
    next_batches,
)
from bot.core.types import (
    BatchKind,
    Bundle,
    Chain,
    Grade,
    Ledger,
    Metrics,
    Plan,
    PlannedCommit,
    Reason,
    ReasonKind,
    Verdict,
)

LEDGER = Ledger((), None, None, Metrics(0, 0))


def commit(name: str, *needs: str, verdict: Verdict = Verdict.SAFE) -> PlannedCommit:
    reason = Reason(ReasonKind.INDEPENDENT, "clean")
    return PlannedCommit(name, f"subject of {name}", verdict, (reason,), waits_for=needs)


def plan(bundles: list[list[PlannedCommit]], chains: list[list[PlannedCommit]] | None = None) -> Plan:
    return Plan(
        "up", "fork", "base",
        tuple(Bundle(key_of(*(c.sha for c in b)), Grade.SAFE, tuple(b)) for b in bundles),
        tuple(Chain(key_of(c[0].sha), False, tuple(c)) for c in chains or []),
        (), (), LEDGER,
    )  # fmt: skip


def choose(made: Plan, batches: list[Batch] | None = None, **caps: Any) -> Next:
    given_caps = {"open_bundles": 9, "open_chains": 9, "allowance": 9, **caps}
    return next_batches(plan=made, batches=batches or [], **given_caps)


def opened(chosen: Next, *, number: int = 1, state: BatchState = BatchState.OPEN) -> list[Batch]:
    return [replace(o.batch, number=number + i, state=state) for i, o in enumerate(chosen.to_open)]


def test_the_whole_plan_is_opened_once() -> None:
    made = plan([[commit("a"), commit("b")], [commit("c")]], [[commit("d"), commit("e")]])
    first = choose(made)
    assert [o.batch.commits for o in first.to_open] == [("a", "b"), ("c",), ("d",)]
    assert first.to_open[2].batch.chain == ("d", "e")
    assert choose(made, opened(first)).to_open == ()


def test_a_grown_bundle_opens_only_what_is_new() -> None:
    first = choose(plan([[commit("a")]]))
    again = choose(plan([[commit("a"), commit("b")]]), opened(first))
    assert [o.batch.commits for o in again.to_open] == [("b",)]
    assert again.to_open[0].batch.key != first.to_open[0].batch.key


def test_what_leans_on_an_open_batch_waits_for_it() -> None:
    first = choose(plan([[commit("a")]]))
    again = choose(plan([[commit("a"), commit("b", "a")]]), opened(first, number=7))
    assert again.to_open == ()
    assert [(w.kind, w.number) for w in again.waiting] == [(WaitKind.IN_FLIGHT, 7)]


def test_what_leans_on_one_that_waits_waits_too() -> None:
    first = choose(plan([[commit("a")]]))
    again = choose(plan([[commit("a"), commit("b", "a"), commit("c", "b")]]), opened(first))
    assert again.to_open == ()
    assert len(again.waiting) == 2


def test_a_batch_that_a_person_closed_stays_closed_until_retried() -> None:
    made = plan([[commit("a"), commit("b")]])
    batch = replace(opened(choose(made))[0], state=BatchState.CLOSED, closed_why=ClosedWhy.PERSON)
    assert choose(made, [batch]).to_open == ()
    retried = replace(batch, closed_why=ClosedWhy.SUPERSEDED)
    assert [o.batch.commits for o in choose(made, [retried]).to_open] == [("a", "b")]


def test_the_next_link_keeps_the_chain_and_counts_on() -> None:
    first = opened(choose(plan([], [[commit("a"), commit("b"), commit("c")]])), state=BatchState.MERGED)
    link = choose(plan([], [[commit("b"), commit("c")]]), first).to_open[0].batch
    assert (link.key, link.position, link.chain) == (first[0].key, 2, ("a", "b", "c"))
    assert link.branch == f"graft/chain/{first[0].key}/2"


def test_a_conflicting_link_is_a_conflict() -> None:
    link = choose(plan([], [[commit("a", verdict=Verdict.CONFLICT)]])).to_open[0].batch
    assert link.kind is BatchKind.CONFLICT


def test_split_commits_come_one_by_one_but_never_before_what_they_need() -> None:
    made = plan([[commit("a"), commit("b"), commit("c", "a")]])
    chosen = choose(made, apart=("a", "b", "c"))
    assert [o.batch.commits for o in chosen.to_open] == [("a",), ("b",)]
    assert [w.commits for w in chosen.waiting] == [("c",)]
    chosen = choose(made, apart=("a",))
    assert [o.batch.commits for o in chosen.to_open] == [("b",), ("a",)]
    assert [w.commits for w in chosen.waiting] == [("c",)]


@pytest.mark.parametrize(
    ("caps", "count"),
    [({"open_bundles": 1}, 2), ({"open_chains": 0}, 2), ({"allowance": 1}, 1), ({"allowance": 0}, 0)],
)
def test_the_caps_hold_and_what_they_hold_back_is_said(caps: dict[str, Any], count: int) -> None:
    chosen = choose(plan([[commit("a")], [commit("b")]], [[commit("c")]]), **caps)
    assert len(chosen.to_open) == count
    assert sum(w.kind is WaitKind.CAP for w in chosen.waiting) == 3 - count


def test_what_could_not_be_pushed_gives_its_place_to_the_next() -> None:
    made = plan([[commit("a")], [commit("b")]])
    (first,) = choose(made, open_bundles=1).to_open
    after = choose(made, open_bundles=1, aside=[first.batch.branch])
    assert [o.batch.commits for o in after.to_open] == [("b",)]
    assert [(w.commits, w.kind) for w in after.waiting] == [(("a",), WaitKind.REFUSED)]


def test_an_urgent_commit_passes_the_caps() -> None:
    chosen = choose(plan([[commit("a")], [commit("b")]]), allowance=0, urgent=("b",))
    assert [o.batch.commits for o in chosen.to_open] == [("b",)]


def test_names_are_functions_of_what_they_stand_for() -> None:
    assert key_of("a", "b") == key_of("a", "b") != key_of("ab")
    assert branch_of(BatchKind.BUNDLE, "k", 1) == "graft/bundle/k"
    assert branch_of(BatchKind.CONFLICT, "k", 3) == "graft/chain/k/3"


@given(st.data())
def test_nothing_is_ever_opened_twice_or_before_its_need(data: st.DataObject) -> None:
    names = [f"c{i}" for i in range(data.draw(st.integers(1, 9)))]
    commits = [
        commit(name, *data.draw(st.lists(st.sampled_from(names[:i]), max_size=2)) if i else ())
        for i, name in enumerate(names)
    ]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(names)), max_size=3)) | {len(names)})
    bundles = [commits[a:b] for a, b in zip([0, *cuts], cuts, strict=False) if a < b]
    made = plan(bundles)
    batches: list[Batch] = []
    for _ in range(4):
        apart = data.draw(st.sets(st.sampled_from(names), max_size=3))
        chosen = choose(made, batches, allowance=data.draw(st.integers(0, 3)), apart=apart)
        batches += opened(chosen, number=len(batches) + 1)
        for one in chosen.to_open:
            inside = set(one.batch.commits)
            for c in one.commits:
                assert set(c.waits_for) <= inside
    carried = [sha for batch in batches for sha in batch.commits]
    assert len(carried) == len(set(carried))


@pytest.mark.parametrize(
    ("history", "with_base"),
    [
        ("closed@0", False),
        ("", False),
        ("labeled@0 base_ref_deleted@5 closed@6", True),
        ("base_ref_deleted@5 labeled@5 closed@5", True),
        ("closed@5 base_ref_deleted@6", True),  # GitHub wrote them the other way round
        ("closed@5 base_ref_deleted@60", False),  # refused, and its base deleted later
        ("base_ref_deleted@5 closed@6 reopened@90 closed@99", False),  # taken up again, then refused
        ("base_ref_deleted@5 base_ref_changed@6 closed@7", False),  # somebody gave it another base first
        ("closed@1 reopened@2 base_ref_deleted@5 closed@6", True),
        ("head_ref_deleted@5 closed@5", False),  # its own branch: whose it was did not want it
    ],
)
def test_who_closed_a_pull_request_is_told_by_its_history(history: str, with_base: bool) -> None:
    start = datetime(2026, 11, 29, tzinfo=UTC)
    events = [one.split("@") for one in history.split()]
    assert closed_with_base([(name, start + timedelta(seconds=int(at))) for name, at in events]) is with_base
    if events and not history.startswith("closed@5 "):
        assert closed_with_base([(name, None) for name, _ in events]) is with_base
