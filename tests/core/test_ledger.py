"""The ledger: dispositions, pins, metrics and holes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.decisions import PASSED_OVER, decision_line
from bot.core.ledger import DENSE, STRETCH, LandedPullRequest, dispositions
from bot.core.trailers import pick_message
from bot.core.types import Commit, Disposition, Ledger, LedgerEntry

DAY = 86400


def u(day: int) -> Commit:
    message = f"Upstream {day} (#{day})"
    return Commit(f"a{day:03d}".ljust(40, "0"), "t" * 40, (), "Ann", "a@x.org", 0, "+0000", day * DAY, message)


def f(number: int, message: str) -> Commit:
    return Commit(f"f{number:03d}".ljust(40, "0"), "t" * 40, (), "Ann", "a@x.org", 0, "+0000", number, message)


BASE = u(0)
U = [u(day) for day in range(1, 11)]
LONG = [u(day) for day in range(1, 201)]


def hand(number: int, commit: Commit) -> Commit:
    return f(number, f"{commit.subject}\n\n(cherry picked from commit {commit.sha})")


def graft(number: int, commit: Commit) -> Commit:
    return f(number, pick_message(commit, upstream_repository="o/r", pr=None, batch="k"))


def read(fork: list[Commit], upstream: list[Commit] = U, **more: object) -> Ledger:
    return dispositions(upstream=upstream, fork=fork, base=BASE, now=300 * DAY, **more)  # type: ignore[arg-type]


def decide(day: int, disposition: Disposition, reason: str = "r", owner: str | None = None) -> LedgerEntry:
    return LedgerEntry(u(day).sha, disposition, by="c1", reason=reason, owner=owner)


def of(ledger: Ledger, day: int) -> LedgerEntry:
    return next(entry for entry in ledger.entries if entry.sha == u(day).sha)


def test_nothing_picked() -> None:
    ledger = read([])
    assert (ledger.pin, ledger.frontier) == (None, None)
    assert ledger.metrics.days_behind == 10
    assert ledger.metrics.backlog == 0
    assert {entry.disposition for entry in ledger.entries} == {Disposition.PENDING}


def test_all_is_taken() -> None:
    ledger = read([hand(n, commit) for n, commit in enumerate(U)])
    assert ledger.pin == ledger.frontier == U[-1].sha
    assert ledger.metrics.days_behind == 0
    assert read([], []).metrics.days_behind == 0


def test_a_hole_stops_the_pin_and_not_the_frontier() -> None:
    picks = [graft(day, u(day)) for day in (1, 2, 4, 5)]
    ledger = read(picks, decisions=[decide(3, Disposition.DEFERRED, "needs LLVM", "octocat")])
    assert (ledger.pin, ledger.frontier) == (u(2).sha, u(5).sha)
    assert ledger.metrics.days_behind == 5
    (hole,) = ledger.holes
    assert (hole.sha, hole.age_days, hole.reason, hole.owner) == (u(3).sha, 297.0, "needs LLVM", "octocat")


@pytest.mark.parametrize("disposition", [Disposition.SKIPPED, Disposition.WONT_PORT, Disposition.EMPTY])
def test_what_is_left_on_purpose_is_no_hole(disposition: Disposition) -> None:
    ledger = read([graft(1, u(1))], decisions=[decide(2, disposition)])
    assert ledger.pin == u(2).sha
    assert ledger.metrics.backlog == 0


def test_c22_an_urgent_pick_far_ahead_changes_neither_metric() -> None:
    picks = [graft(day, u(day)) for day in (1, 2)]
    for pick in (graft, hand):
        ledger = read([*picks, pick(9, u(9))])
        assert ledger.frontier == u(2).sha
        assert ledger.metrics.days_behind == 8
        assert ledger.metrics.backlog == 0
        assert of(ledger, 9).disposition is Disposition.PICKED
        assert of(ledger, 5).disposition is Disposition.PENDING


def test_c4_a_revert_adds_to_the_backlog_and_its_revert_takes_it_away() -> None:
    picks = [graft(day, u(day)) for day in range(1, 4)]
    revert = f(10, f"Revert\n\nThis reverts commit {picks[1].sha}.")
    again = f(11, f"Revert\n\nThis reverts commit {revert.sha}.")
    backlog = [read(fork).metrics.backlog for fork in (picks, [*picks, revert], [*picks, revert, again])]
    assert backlog == [0, 1, 0]
    ledger = read([*picks, revert])
    assert (ledger.pin, ledger.frontier) == (u(1).sha, u(3).sha)
    assert of(ledger, 2).disposition is Disposition.REVERTED
    assert "taken back by f010" in ledger.holes[0].reason


def test_c2_c14_no_effect_is_recorded_and_no_hole() -> None:
    ledger = read(
        [graft(1, u(1))],
        skipped={u(2).sha: "the fork deleted .github/workflows/ci.yml"},
        empty={u(3).sha: "already there"},
    )
    assert ledger.pin == u(3).sha
    assert of(ledger, 2) == LedgerEntry(
        u(2).sha, Disposition.SKIPPED, u(2).subject, "planner", "the fork deleted .github/workflows/ci.yml"
    )
    assert ledger.metrics.backlog == 0


@pytest.mark.parametrize(
    ("decision", "empty", "skipped", "reverted", "want"),
    [
        (Disposition.WONT_PORT, True, True, True, Disposition.WONT_PORT),
        (Disposition.DEFERRED, True, True, True, Disposition.EMPTY),
        (None, True, False, True, Disposition.EMPTY),
        (Disposition.DEFERRED, False, True, True, Disposition.REVERTED),
        (None, False, True, True, Disposition.REVERTED),
        (Disposition.DEFERRED, False, True, False, Disposition.DEFERRED),
        (Disposition.PENDING, False, True, False, Disposition.SKIPPED),
        (Disposition.PENDING, False, False, False, Disposition.PENDING),
        (None, False, False, False, Disposition.PENDING),
    ],
)
def test_what_ranks_first(
    decision: Disposition | None, empty: bool, skipped: bool, reverted: bool, want: Disposition
) -> None:
    fork = [graft(1, u(1)), f(2, f"This reverts commit {graft(1, u(1)).sha}")] if reverted else []
    ledger = read(
        fork,
        decisions=[decide(1, decision)] if decision else [],
        empty={u(1).sha: "there"} if empty else {},
        skipped={u(1).sha: "ci"} if skipped else {},
    )
    assert of(ledger, 1).disposition is want
    assert of(read([graft(1, u(1))], decisions=[decide(1, Disposition.WONT_PORT)]), 1).disposition is Disposition.PICKED


def test_the_later_decision_wins_and_abbreviations_do() -> None:
    first = decide(1, Disposition.WONT_PORT)
    second = LedgerEntry(u(1).sha[:9].upper(), Disposition.DEFERRED, by="c2", reason="after all")
    assert of(read([], decisions=[first, second]), 1).reason == "after all"


def test_decisions_are_read_from_bodies_that_landed() -> None:
    squash = f(1, "Bundle (#7)")
    line = decision_line(decide(2, Disposition.DEFERRED, "conflicts", "my-org/core"))
    body = f"(cherry picked from commit {u(1).sha})\n- {line}\nGraft-Batch: k"
    pull = LandedPullRequest(7, squash.sha, "t", body, "graft/bundle/k", 0)
    ledger = read([squash], pull_requests=[pull])
    assert (ledger.pin, ledger.frontier) == (u(1).sha, u(2).sha)
    assert of(ledger, 2) == LedgerEntry(u(2).sha, Disposition.DEFERRED, u(2).subject, "#7", "conflicts", "my-org/core")
    overruled = read([squash], pull_requests=[pull], decisions=[decide(2, Disposition.WONT_PORT)])
    assert of(overruled, 2).disposition is Disposition.WONT_PORT
    assert read([squash], pull_requests=[LandedPullRequest(7, "0" * 40, "t", body, "h", 0)]).pin == u(1).sha


@pytest.mark.parametrize(
    ("decided", "wins"),
    [(0, Disposition.REVERTED), (2, Disposition.WONT_PORT), (None, Disposition.WONT_PORT)],
)
def test_who_picks_a_commit_decides_anew(decided: int | None, wins: Disposition) -> None:
    picked = hand(1, u(2))
    back = f(3, f"Revert it\n\nThis reverts commit {picked.sha}.")
    old = replace(decide(2, Disposition.WONT_PORT, "our own"), time=decided)
    assert of(read([picked], decisions=[old]), 2).disposition is Disposition.PICKED
    entry = of(read([picked, back], decisions=[old]), 2)
    assert entry.disposition is wins
    assert ("our own" in entry.reason) is (wins is Disposition.WONT_PORT)


def test_of_two_decisions_the_later_wins_in_whatever_order_they_come() -> None:
    late, early = (
        replace(decide(2, disposition), time=time)
        for disposition, time in ((Disposition.WONT_PORT, 9), (Disposition.DEFERRED, 5))
    )
    for order in ([early, late], [late, early]):
        assert of(read([], decisions=order), 2).disposition is Disposition.WONT_PORT
    # a text that lands later may only say what was so when it was written
    note = f(20, decision_line(decide(2, Disposition.DEFERRED)))
    assert of(read([note], decisions=[late]), 2).disposition is Disposition.WONT_PORT


def test_what_a_bundle_passes_over_is_triaged_and_takes_back_no_decision() -> None:
    squash = f(1, "Bundle (#7)")
    held = [LedgerEntry(u(day).sha, Disposition.DEFERRED, by=PASSED_OVER, reason="waits for 1") for day in (2, 3)]
    body = f"(cherry picked from commit {u(1).sha})\n(cherry picked from commit {u(4).sha})\n"
    body += "".join(f"- {decision_line(entry)}\n" for entry in held)
    pull = LandedPullRequest(7, squash.sha, "t", body, "graft/bundle/k", 0)
    ledger = read([squash], pull_requests=[pull])
    assert (ledger.frontier, ledger.metrics.backlog) == (u(4).sha, 2)
    assert [(hole.reason, of(ledger, 2).by) for hole in ledger.holes] == [("waits for 1", PASSED_OVER)] * 2
    note = f(0, decision_line(decide(3, Disposition.WONT_PORT, "our own")))
    assert of(read([note, squash], pull_requests=[pull]), 3).disposition is Disposition.WONT_PORT


def test_a_first_reading_of_a_fork_that_picked_in_order_with_holes() -> None:
    picked = [day for day in range(1, 101) if day % 10]
    ledger = read([hand(n, u(day)) for n, day in enumerate(picked)], LONG)
    assert ledger.frontier == u(99).sha
    assert ledger.metrics.backlog == 9
    assert of(ledger, 10).disposition is Disposition.DEFERRED
    assert ledger.holes[0].reason.startswith("passed over without a record")
    assert of(ledger, 100).disposition is Disposition.PENDING
    assert ledger.pin == u(9).sha


@pytest.mark.parametrize(("count", "moves"), [(DENSE - 1, False), (DENSE, True)])
def test_a_first_reading_is_not_moved_by_isolated_picks(count: int, moves: bool) -> None:
    far = list(range(150, 150 + STRETCH, 2))[:count]
    fork = [hand(n, u(day)) for n, day in enumerate([1, 2, *far, 190])]
    ledger = read(fork, LONG)
    assert ledger.frontier == (u(far[-1]).sha if moves else u(2).sha)


def test_grafts_own_bundles_land_out_of_order_and_do_not_move_the_frontier() -> None:
    ledger = read([graft(day, u(day)) for day in range(100, 150)], LONG)
    assert ledger.frontier is None
    assert ledger.metrics.backlog == 0


def test_after_the_first_reading_the_row_goes_on() -> None:
    fork = [hand(day, u(day)) for day in range(5, 25)] + [graft(day, u(day)) for day in (25, 27)]
    ledger = read(fork, LONG, decisions=[decide(26, Disposition.DEFERRED)])
    assert ledger.frontier == u(27).sha
    assert ledger.metrics.backlog == 5


def test_owners_are_those_named_then_those_of_the_paths_then_the_default() -> None:
    decisions = [decide(1, Disposition.DEFERRED, owner="a"), *(decide(n, Disposition.DEFERRED) for n in (2, 3))]
    ledger = read([], decisions=decisions, owners={u(1).sha: "x", u(2).sha: "b"}, default_owner="c")
    assert [hole.owner for hole in ledger.holes] == ["a", "b", "c"]


def test_c23_stale_input_is_said() -> None:
    assert read([], stale_since=5).metrics.stale_since == 5


_actions = st.lists(st.tuples(st.sampled_from(["hand", "graft", "squash", "lost"]), st.integers(1, 60)), max_size=60)


@settings(max_examples=60, deadline=None)
@given(_actions, st.integers(0, 60))
def test_c18_no_pin_moves_backwards(actions: list[tuple[str, int]], more: int) -> None:
    """Whatever lands, however its message was treated: pins only advance, and nothing that was picked is lost."""
    upstream = LONG[:60]
    place = {commit.sha: index for index, commit in enumerate(upstream)}
    fork: list[Commit] = []
    pulls: list[LandedPullRequest] = []
    last = (-1, -1)
    picked: set[str] = set()
    for number, (action, day) in enumerate(actions):
        commit = upstream[day - 1]
        if action == "hand":
            fork.append(hand(number, commit))
        elif action == "graft":
            fork.append(graft(number, commit))
        elif action == "squash":
            fork.append(f(number, f"Two (#{number})\n\n* {graft(0, commit).message}\n* {hand(0, upstream[0]).message}"))
        else:
            fork.append(f(number, f"Lost (#{number})"))
            body = f"(cherry picked from commit {commit.sha})"
            pulls.append(LandedPullRequest(number, fork[-1].sha, "t", body, "h", 0))
        picked.add(commit.sha)
        ledger = dispositions(upstream=upstream, fork=fork, base=BASE, now=0, pull_requests=pulls)
        now = place.get(ledger.pin or "", -1), place.get(ledger.frontier or "", -1)
        assert now[0] >= last[0]
        assert now[1] >= last[1]
        assert now[1] >= now[0]
        last = now
        assert picked <= {e.sha for e in ledger.entries if e.disposition is Disposition.PICKED}
        assert ledger.metrics.backlog == len(ledger.holes)
    longer = dispositions(upstream=LONG[: 60 + more], fork=fork, base=BASE, now=0, pull_requests=pulls)
    assert place.get(longer.frontier or "", -1) == last[1] or last[1] == 59
