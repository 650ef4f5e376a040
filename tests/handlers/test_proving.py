from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.candidates import Candidate, Draft
from bot.core.risk import Trial
from bot.core.types import Bundle, Chain, Grade, PlannedCommit, ReasonKind, Verdict
from handlers.outlining import outlines
from handlers.proving import Proof, prove
from tests.clients.test_git import lines
from tests.handlers.two_sides import Pair


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path / "work", {"a.txt": lines(), "b.txt": lines()})


def held_up(pair: Pair, *, bundles: list[list[str]], chains: list[list[str]]) -> Proof:
    """The proof for a draft that is given, whatever the planner would have said."""
    git = pair.git
    commits = git.commits("main", [pair.base])
    drawn = outlines(git, commits)
    results = {result.commit: result for result in git.picks([commit.sha for commit in commits], "fork")}
    reference = next(result.tree for result in reversed(list(results.values())) if result.tree)

    def planned(sha: str) -> PlannedCommit:
        return PlannedCommit(sha, "", Verdict.SAFE, ())

    draft = Draft(
        tuple(Bundle(f"b{n}", Grade.SAFE, tuple(map(planned, shas))) for n, shas in enumerate(bundles)),
        tuple(Chain(f"c{n}", False, tuple(map(planned, shas))) for n, shas in enumerate(chains)),
        (),
        (),
    )
    return prove(
        git,
        draft=draft,
        fork="fork",
        reference=reference or "",
        candidates=[Candidate(commit, drawn[commit.sha], Trial(results[commit.sha].kind)) for commit in commits],
        clean=frozenset(sha for sha, result in results.items() if result.kind != "conflict"),
    )


def test_what_is_independent_holds(pair: Pair) -> None:
    one = pair.upstream("one", {"a.txt": lines((3, "x"))})
    two = pair.upstream("two", {"a.txt": lines((3, "x"), (20, "y"))})
    late = pair.upstream("late", {"b.txt": lines((3, "x"))})
    assert held_up(pair, bundles=[[two], [one]], chains=[[late]]).holds


def test_what_leans_on_another_bundle_is_tied_to_it(pair: Pair) -> None:
    one = pair.upstream("one", {"a.txt": lines((3, "x"))})
    two = pair.upstream("two", {"a.txt": lines((3, "y"))})
    proof = held_up(pair, bundles=[[one], [two]], chains=[])
    assert not proof.holds
    assert proof.tied == {two: frozenset({one})}


def test_what_leans_on_a_chain_goes_with_it(pair: Pair) -> None:
    one = pair.upstream("one", {"a.txt": lines((3, "x"))})
    two = pair.upstream("two", {"a.txt": lines((3, "y"))})
    proof = held_up(pair, bundles=[[two]], chains=[[one]])
    reason, mates = proof.moved[two]
    assert reason.kind is ReasonKind.ORDER_DIFFERS
    assert mates == (one,)


def test_what_comes_out_otherwise_is_refused(pair: Pair) -> None:
    pair.fork("own", {"a.txt": lines((28, "fork"))})
    first = pair.upstream("first", {"a.txt": lines((3, "x"))})
    back = pair.upstream("back", {"a.txt": lines()})
    again = pair.upstream("again", {"a.txt": lines((3, "x"))})
    # on its own `again` is the same change as `first`: landed early, the end of the chain takes it back
    proof = held_up(pair, bundles=[[again]], chains=[[first, back]])
    assert not proof.holds
    assert set(proof.moved) == {again}
