"""The plan over real git: what lands, what belongs together, what waits, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.clients.git import Git
from bot.clients.symbols import SymbolCache
from bot.core.render.plan import as_dict
from bot.core.types import Disposition, LedgerEntry, ReasonKind, Verdict
from handlers.planning import CannotPlan, deleted_by_fork, make_plan, read_ledger
from tests.clients.test_git import Work, lines
from tests.handlers.two_sides import NOW, Pair, bundled, chained, config, everything, kinds, of


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path / "work", {"a.txt": lines(), "b.txt": lines(), "ci/x.yml": lines(), "hash.txt": "1\n"})


def test_independent_commits_are_safe_and_land_in_upstream_order(pair: Pair) -> None:
    first = pair.upstream("one (#7)", {"a.txt": lines((3, "x"))})
    second = pair.upstream("two", {"b.txt": lines((3, "y"))})
    plan = pair.plan()
    assert bundled(plan) == [first, second]
    assert of(plan, first).verdict is Verdict.SAFE
    assert of(plan, first).pr == 7
    assert kinds(of(plan, first)) == {ReasonKind.INDEPENDENT}


def test_the_plan_is_the_same_byte_for_byte_whatever_is_kept(pair: Pair) -> None:
    """Nothing kept, all kept, a few upstream commits later, and after the fork moved."""
    pair.fork("own", {"a.txt": lines((20, "fork")), "b.txt": lines((3, "fork"))})
    early = pair.upstream("merges with the fork's", {"a.txt": lines((3, "one"))})
    pair.upstream("conflicts", {"b.txt": lines((3, "upstream"))})
    pair.upstream("stands on it", {"b.txt": lines((3, "upstream again"))})
    with SymbolCache(":memory:") as cache:

        def plans() -> None:
            made = [
                make_plan(pair.git, upstream="main", fork="fork", config=config(), now=NOW, cache=kept)
                for kept in (None, cache, cache)
            ]
            said = {json.dumps({**as_dict(plan), "timings": None}) for plan in made}
            assert len(said) == 1

        plans()
        pair.upstream("later", {"a.txt": lines((3, "one"), (9, "nine"))})
        plans()
        pair.pick(early)
        pair.fork("more of its own", {"a.txt": lines((3, "one"), (14, "fork"), (20, "fork"))})
        plans()


def test_c1_what_is_there_and_what_is_empty_is_settled_and_the_rest_goes_on(pair: Pair) -> None:
    there = pair.upstream("there", {"a.txt": lines((3, "x"))})
    empty = pair.upstream("empty", {})
    rest = pair.upstream("rest", {"b.txt": lines((3, "y"))})
    pair.fork("the same by hand", {"a.txt": lines((3, "x"))})
    plan = pair.plan()
    assert {commit.sha: commit.verdict for commit in plan.settled} == {there: Verdict.EMPTY, empty: Verdict.EMPTY}
    assert kinds(of(plan, there)) == {ReasonKind.ALREADY_THERE}
    assert kinds(of(plan, empty)) == {ReasonKind.NO_EFFECT}
    assert bundled(plan) == [rest]
    assert plan.ledger.metrics.backlog == 0


def test_c2_c14_what_the_fork_deleted_stays_deleted_and_makes_no_hole(pair: Pair) -> None:
    pair.fork("no ci of upstream's", {"ci/x.yml": None})
    edit = pair.upstream("ci", {"ci/x.yml": lines((3, "x"))})
    pair.work.git("mv", "ci/x.yml", "ci/y.yml")
    move = pair.upstream("rename ci", {})
    again = pair.upstream("ci again", {"ci/y.yml": lines((3, "z"))})
    plan = pair.plan()
    assert [commit.sha for commit in plan.settled] == [edit, move, again]
    assert {commit.verdict for commit in plan.settled} == {Verdict.EMPTY}
    assert kinds(of(plan, edit)) == {ReasonKind.NO_EFFECT}
    assert not plan.ledger.holes
    assert plan.ledger.pin == again


def test_c2_beside_other_changes_the_deletion_is_kept_and_said(pair: Pair) -> None:
    pair.fork("no ci of upstream's", {"ci/x.yml": None})
    both = pair.upstream("both", {"ci/x.yml": lines((3, "x")), "a.txt": lines((3, "x"))})
    plan = pair.plan()
    assert chained(plan) == [[both]]
    assert of(plan, both).verdict is Verdict.RISKY
    assert any("ci/x.yml" in reason.evidence for reason in of(plan, both).reasons)
    assert deleted_by_fork(pair.git, upstream="main", base="fork") == {"ci/x.yml"}


def test_skip_rules_are_recorded_as_skipped(pair: Pair) -> None:
    only = pair.upstream("ci", {"ci/x.yml": lines((3, "x"))})
    plan = pair.plan(config(skip=["ci/**"]))
    assert of(plan, only).verdict is Verdict.SKIPPED
    entry = plan.ledger.entries[0]
    assert entry.disposition is Disposition.SKIPPED


def test_a_conflict_takes_along_what_stands_on_it_and_nothing_else(pair: Pair) -> None:
    pair.fork("own", {"a.txt": lines((3, "fork"))})
    conflict = pair.upstream("conflict", {"a.txt": lines((3, "upstream"))})
    free = pair.upstream("free", {"a.txt": lines((3, "upstream"), (20, "far away"))})
    leaning = pair.upstream("leaning", {"a.txt": lines((3, "upstream again"), (20, "far away"))})
    plan = pair.plan()
    assert chained(plan) == [[conflict, leaning]]
    assert of(plan, conflict).verdict is Verdict.CONFLICT
    assert of(plan, leaning).waits_for == (conflict,)
    assert bundled(plan) == [free]


def test_a_conflict_says_in_which_files_and_what_stands_in_the_way_there(pair: Pair) -> None:
    pair.fork("own", {"a.txt": lines((3, "fork")), "new.txt": "the fork's\n", "b.txt": lines((9, "fork"))})
    brings = pair.upstream("brings", {"a.txt": lines((3, "up")), "new.txt": "upstream's\n", "more.txt": lines()})
    leans = pair.upstream("leans", {"more.txt": lines((7, "more")), "b.txt": None})
    plan = pair.plan()
    first, second = (of(plan, sha).reasons[0] for sha in (brings, leans))
    assert (first.text, first.evidence) == (
        "does not merge in a.txt and 1 more file",
        ("a.txt", "new.txt: both added it"),
    )
    assert (second.text, second.evidence) == (
        "does not merge in b.txt and 1 more file",
        ("b.txt: upstream deletes it", "more.txt: the fork does not hold it"),
    )


def test_who_uses_a_name_that_only_an_unlanded_commit_brings_joins_its_chain(pair: Pair) -> None:
    pair.fork("own", {"a.txt": lines((3, "fork"))})
    brings = pair.upstream("brings", {"a.txt": lines((3, "upstream")), "new.py": "def brand_new():\n    return 1\n"})
    uses = pair.upstream("uses", {"c.py": "from new import brand_new\n\nbrand_new()\n"})
    plan = pair.plan()
    assert chained(plan) == [[brings, uses]]
    assert ReasonKind.LEANS_ON_UNLANDED in kinds(of(plan, uses))
    assert of(plan, uses).verdict is Verdict.RISKY


def test_two_chains_become_one_where_a_commit_belongs_to_both(pair: Pair) -> None:
    pair.fork("own", {"a.txt": lines((3, "fork")), "b.txt": lines((3, "fork"))})
    one = pair.upstream("one", {"a.txt": lines((3, "u"))})
    two = pair.upstream("two", {"b.txt": lines((3, "u"))})
    both = pair.upstream("both", {"a.txt": lines((3, "v")), "b.txt": lines((3, "v"))})
    plan = pair.plan()
    assert chained(plan) == [[one, two, both]]
    assert of(plan, both).waits_for == (one, two)


def test_dependent_safe_commits_share_a_bundle_whatever_the_cap(pair: Pair) -> None:
    shas = [pair.upstream(f"step {n}", {"a.txt": lines((3, f"v{n}"))}) for n in range(4)]
    other = pair.upstream("other", {"b.txt": lines((3, "x"))})
    plan = pair.plan(config(bundle={"max_commits": 2}))
    assert [[commit.sha for commit in bundle.commits] for bundle in plan.bundles] == [shas, [other]]


def test_c16_a_toolchain_bump_has_a_lane_and_its_dependents_are_held_until_it_lands(pair: Pair) -> None:
    rule = [{"name": "llvm-bump", "paths": ["hash.txt"], "levels": ["l1", "l2", "l3"], "toolchain": True}]
    bump = pair.upstream("bump", {"hash.txt": "2\n", "a.txt": lines((3, "new api"))})
    dependent = pair.upstream("dependent", {"a.txt": lines((3, "new api used"))})
    free = pair.upstream("free", {"b.txt": lines((3, "x"))})
    plan = pair.plan(config(risk=rule))
    (chain,) = plan.chains
    assert chain.lane
    assert [level.value for level in chain.levels] == ["l1", "l2", "l3"]
    assert [commit.sha for commit in chain.commits] == [bump]
    assert [(commit.sha, commit.waits_for) for commit in plan.held] == [(dependent, (bump,))]
    assert bundled(plan) == [free]
    pair.pick(bump)
    released = pair.plan(config(risk=rule))
    assert bundled(released) == [dependent, free]
    assert not released.held


def test_what_a_person_deferred_holds_what_leans_on_it(pair: Pair) -> None:
    deferred = pair.upstream("deferred", {"a.txt": lines((3, "x"))})
    leaning = pair.upstream("leaning", {"a.txt": lines((3, "y"))})
    free = pair.upstream("free", {"b.txt": lines((3, "x"))})
    decision = LedgerEntry(deferred, Disposition.DEFERRED, by="octocat", reason="later")
    plan = pair.plan(decisions=(decision,))
    assert deferred not in {commit.sha for commit in everything(plan)}
    assert of(plan, leaning).waits_for == (deferred,) or of(plan, leaning).verdict is Verdict.CONFLICT
    assert bundled(plan) == [free]


def test_c4_what_the_fork_took_back_is_planned_again_but_never_as_safe(pair: Pair) -> None:
    change = pair.upstream("change", {"a.txt": lines((3, "x"))})
    picked = pair.pick(change)
    assert everything(pair.plan()) == []
    pair.work.git("revert", "--no-edit", picked)
    plan = pair.plan()
    assert chained(plan) == [[change]]
    assert ReasonKind.REVERT in kinds(of(plan, change))
    pair.work.git("revert", "--no-edit", "HEAD")
    assert everything(pair.plan()) == []


def test_c5_a_series_of_reverts_and_relands_is_one_chain(pair: Pair) -> None:
    one = pair.upstream("one", {"a.txt": lines((3, "x"))})
    two = pair.upstream("two", {"b.txt": lines((3, "x"))})
    back = pair.upstream(f"Revert both\n\nThis reverts commits {one} and {two}.", {"a.txt": lines(), "b.txt": lines()})
    again = pair.upstream(f'Reland "one"\n\nReland of {one}', {"a.txt": lines((3, "x"))})
    again_two = pair.upstream(f'Reland "two"\n\nReland of {two}', {"b.txt": lines((3, "x"))})
    plan = pair.plan()
    assert chained(plan) == [[one, two, back, again, again_two]]
    assert bundled(plan) == []


def test_c6_a_pair_inside_the_range_is_never_cut(pair: Pair) -> None:
    change = pair.upstream("change it", {"a.txt": lines((3, "x"))})
    others = [pair.upstream(f"other {n}", {f"n{n}.py": "x = 1\n"}) for n in range(3)]
    pair.work.git("revert", "--no-edit", change)
    revert = pair.work.git("rev-parse", "HEAD")
    plan = pair.plan(config(bundle={"max_commits": 2}))
    holder = next(bundle for bundle in plan.bundles if change in {commit.sha for commit in bundle.commits})
    assert {commit.sha for commit in holder.commits} >= {change, revert}
    assert set(bundled(plan)) == {change, revert, *others}


def test_c6_a_revert_of_what_nobody_finds_is_never_safe(pair: Pair) -> None:
    lost = pair.upstream('Revert "Something that was never here at all"', {"a.txt": lines((3, "x"))})
    assert of(pair.plan(), lost).verdict is Verdict.RISKY


def test_c6_what_both_sides_hold_is_taken_back_and_brought_in_again_without_waiting(tmp_path: Path) -> None:
    work = Work(tmp_path / "work")
    work.commit("first", {"a.txt": lines(), "b.txt": lines(), "c.txt": lines()})
    work.commit("Tune it (#41)", {"a.txt": lines((3, "tuned"))})
    work.commit("Tune the other (#42)", {"b.txt": lines((3, "tuned"))})
    work.commit('Revert "Tune the other" (#43)', {"b.txt": lines()})
    work.git("branch", "fork")
    back = work.commit('Revert "Tuning" (#44)\n\nReverts up/up#41\n', {"a.txt": lines()})
    again = work.commit('Reland "Tune the other" (#45)\n', {"b.txt": lines((3, "tuned"))})
    lost = work.commit('Reland "Never seen here" (#46)\n', {"c.txt": lines((3, "seen"))})
    work.git("checkout", "-q", "fork")
    work.commit("own", {"own.txt": "the fork's\n"})
    plan = make_plan(Git(work.path / ".git"), upstream="main", fork="fork", config=config(), now=NOW)
    assert bundled(plan) == [back, again]
    assert of(plan, lost).verdict is Verdict.RISKY
    assert of(plan, lost).reasons[0].text == "brings in again a commit that is not found"


def test_c8_a_merge_and_a_pull_request_rebased_into_three_all_count(pair: Pair) -> None:
    pair.work.git("checkout", "-q", "-b", "side", "main")
    pair.work.commit("side one", {"s1.py": "s = 1\n"})
    pair.work.commit("side two", {"s2.py": "s = 2\n"})
    pair.upstream("on main", {"b.txt": lines((3, "x"))})
    pair.work.git("merge", "-q", "--no-ff", "-m", "Merge pull request #9 from up/side", "side")
    merge = pair.work.git("rev-parse", "HEAD")
    three = [pair.upstream(f"part {n} (#10)", {f"p{n}.py": "p = 1\n"}) for n in range(3)]
    plan = pair.plan()
    assert set(bundled(plan)) >= {merge, *three}
    assert of(plan, merge).pr == 9


def test_c12_edits_inside_a_renamed_folder_follow_it(tmp_path: Path) -> None:
    pair = Pair(tmp_path / "work", {f"old/f{n}.py": f"# {n}\n{lines()}" for n in range(40)})
    pair.fork("own", {"old/f7.py": f"# 7\n{lines((20, 'own'))}"})
    pair.work.git("checkout", "-q", "main")
    pair.work.git("mv", "old", "new")
    rename = pair.upstream("rename", {})
    edit = pair.upstream("edit", {"new/f7.py": f"# 7\n{lines((3, 'edit'))}"})
    assert bundled(pair.plan()) == [rename, edit]
    pair.fork("more of its own", {"old/mine.py": "mine = 1\n"})
    plan = pair.plan()
    # git asks where a file belongs whose folder went away: a person's question, with the stragglers named
    assert chained(plan) == [[rename]]
    assert any("old/mine.py" in reason.evidence for reason in of(plan, rename).reasons)
    assert bundled(plan) == [edit]


def test_c17_a_commit_picked_twice_counts_once(pair: Pair) -> None:
    change = pair.upstream("change", {"a.txt": lines((3, "x"))})
    pair.pick(change)
    pair.fork(f"again\n\n(cherry picked from commit {change})\n(cherry picked from commit {change})", {"n.py": "n\n"})
    plan = pair.plan()
    assert everything(plan) == []
    assert plan.ledger.metrics.days_behind == 0


def test_c22_an_urgent_pick_far_ahead_moves_no_metric(pair: Pair) -> None:
    between = [pair.upstream(f"b{n}", {f"n{n}.py": "n\n"}) for n in range(5)]
    urgent = pair.upstream("urgent", {"a.txt": lines((3, "x"))})
    before = pair.plan()
    pair.pick(urgent)
    after = pair.plan()
    assert after.ledger.metrics == before.ledger.metrics
    assert after.ledger.metrics.backlog == 0
    assert bundled(after) == between


def test_c24_conflicts_do_not_keep_the_clean_ones_from_landing(pair: Pair) -> None:
    pair.fork("own", {"a.txt": lines((3, "fork"))})
    clean = []
    for number in range(12):
        if number % 4 == 0:
            pair.upstream(f"conflict {number}", {"a.txt": lines((3, f"u{number}"))})
        clean.append(pair.upstream(f"clean {number}", {f"n{number}.py": "n\n"}))
    plan = pair.plan()
    assert bundled(plan) == clean
    assert len(plan.chains) == 1


def test_the_same_input_gives_the_same_plan(pair: Pair) -> None:
    pair.fork("own", {"a.txt": lines((3, "fork"))})
    for number in range(6):
        pair.upstream(f"u{number}", {"a.txt": lines((3, f"{number}")), f"n{number}.py": "n\n"})
        pair.upstream(f"v{number}", {"b.txt": lines((number * 4, f"{number}"))})
    assert pair.plan() == pair.plan()


def test_nothing_is_written_to_the_repository(pair: Pair) -> None:
    pair.fork("own", {"a.txt": lines((20, "fork"))})
    pair.upstream("u", {"a.txt": lines((3, "u"))})
    before = sorted(str(path) for path in (pair.work.path / ".git").rglob("*"))
    pair.plan()
    assert sorted(str(path) for path in (pair.work.path / ".git").rglob("*")) == before


def test_a_fork_that_is_level_has_an_empty_plan(pair: Pair) -> None:
    plan = pair.plan()
    assert everything(plan) == []
    assert plan.ledger.metrics.days_behind == 0


def test_what_can_not_be_planned_says_what_and_how_to_mend_it(pair: Pair) -> None:
    with pytest.raises(CannotPlan, match="nowhere"):
        make_plan(pair.git, upstream="nowhere", fork="fork", config=None, now=NOW)
    pair.work.git("checkout", "-q", "--orphan", "other")
    pair.work.commit("other", {"z": "z\n"})
    with pytest.raises(CannotPlan, match="no common ancestor"):
        make_plan(pair.git, upstream="other", fork="fork", config=None, now=NOW)


def test_the_ledger_is_read_without_a_plan(pair: Pair) -> None:
    change = pair.upstream("change", {"a.txt": lines((3, "x"))})
    ledger = read_ledger(pair.git, upstream="main", fork="fork", now=NOW)
    assert [(entry.sha, entry.disposition) for entry in ledger.entries] == [(change, Disposition.PENDING)]
