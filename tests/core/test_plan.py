from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.candidates import Candidate, Draft, Surroundings
from bot.core.config import Config, Ingest
from bot.core.divergence import Divergence, FileDivergence
from bot.core.footprint import FileFootprint, Footprint, Language, SymbolChange
from bot.core.lineage import Below
from bot.core.plan import draft
from bot.core.reverts import Link
from bot.core.risk import Trial
from bot.core.types import Commit, PlannedCommit, Reason, ReasonKind, Verdict
from tests.core.test_lineage import touched

LONGEST = Ingest().chain.max_links
CLEAN, CONFLICT = Trial("clean"), Trial("conflict", ("a",))
AROUND = Surroundings(Divergence(files={}, words=frozenset({"there"})))


def file(
    path: str, *, refers: tuple[str, ...] = (), defines: tuple[str, ...] = (), what: str = "defined"
) -> FileFootprint:
    symbols = tuple(SymbolChange(name, "function", what, (name,)) for name in defines)
    return replace(touched(path, (1, 1, 1, 1)), refers=frozenset(refers), symbols=symbols, language=Language.PYTHON)


def candidate(
    name: str, *files: FileFootprint, trial: Trial = CLEAN, touches: tuple[str, ...] = (), **more: object
) -> Candidate:
    commit = Commit(name, "tree", (), "n", "e", 0, "+0000", 0, f"{name} (#7)")
    near, replaces = more.pop("near", ()), more.pop("replaces", ())
    assert isinstance(near, tuple)
    assert isinstance(replaces, tuple)
    below = Below(frozenset(touches), frozenset({*touches, *near}), frozenset(replaces))
    return Candidate(commit, Footprint(name, files or (touched(name),)), trial, below, **more)  # type: ignore[arg-type]


def shape(made: Draft) -> dict[str, list[list[str]]]:
    return {
        "bundles": [[commit.sha for commit in bundle.commits] for bundle in made.bundles],
        "chains": [[commit.sha for commit in chain.commits] for chain in made.chains],
        "held": [[commit.sha for commit in made.held]],
        "settled": [[commit.sha for commit in made.settled]],
    }


def found(made: Draft, sha: str) -> PlannedCommit:
    groups = [*(b.commits for b in made.bundles), *(c.commits for c in made.chains), made.held, made.settled]
    return next(commit for commits in groups for commit in commits if commit.sha == sha)


def test_lines_of_one_that_stays_out_make_a_chain_and_lines_of_a_bundled_one_a_bond() -> None:
    made = draft(
        [
            candidate("free"),
            candidate("bonded", touches=("free",)),
            candidate("out", trial=CONFLICT),
            candidate("after", touches=("out",), trial=CONFLICT),
            candidate("beside", touches=("out",)),
        ],
        AROUND,
    )
    assert shape(made)["bundles"] == [["free", "bonded", "beside"]]
    assert shape(made)["chains"] == [["out", "after"]]
    assert found(made, "bonded").waits_for == ("free",)
    assert found(made, "free").pr == 7


def test_what_a_chain_has_no_room_for_waits_for_it_and_every_chain_can_go_on() -> None:
    """Hundreds that stand on one another are several chains; each link waits for all that it stands on."""
    count = 3 * LONGEST
    names = [f"c{place:03}" for place in range(count)]
    below = {name: tuple(names[max(0, place - 2) : place]) for place, name in enumerate(names)}
    made = draft([candidate(name, trial=CONFLICT, touches=below[name]) for name in names], AROUND)
    assert [len(chain.commits) for chain in made.chains] == [LONGEST] * 3
    waits = {commit.sha: set(commit.waits_for) for chain in made.chains for commit in chain.commits}
    assert waits == {name: set(mates) for name, mates in below.items()}
    queues, landed = [list(chain.commits) for chain in made.chains], set[str]()
    while any(queues):
        ready = [queue for queue in queues if queue and waits[queue[0].sha] <= landed]
        assert ready
        landed |= {queue.pop(0).sha for queue in ready}

    # as many as the file allows: one chain of all
    config = Config.of({"upstream": {"repository": "o/r"}, "ingest": {"chain": {"max_links": count}}})
    made = draft(
        [candidate(name, trial=CONFLICT, touches=below[name]) for name in names], replace(AROUND, config=config)
    )
    assert [len(chain.commits) for chain in made.chains] == [count]


def test_the_lines_that_a_commit_replaces_say_more_than_those_beside_them() -> None:
    rows = [(name, [f"{name}{n:02}" for n in range(links)]) for name, links in (("a", LONGEST - 1), ("b", 3))]
    row = [
        candidate(link, trial=CONFLICT, touches=tuple(links[max(n - 1, 0) : n]))
        for _, links in rows
        for n, link in enumerate(links)
    ]
    made = draft([*row, candidate("new", trial=CONFLICT, touches=("a05", "b00"), replaces=("a05",))], AROUND)
    assert [chain.commits[-1].sha for chain in made.chains] == ["new", "b02"]
    assert found(made, "new").waits_for == ("a05", "b00")


@pytest.mark.parametrize(
    ("brings", "uses", "leans"),
    [
        (file("u.py", defines=("fresh_name",)), file("c.py", refers=("fresh_name",)), True),
        (file("u.py", defines=("there",)), file("c.py", refers=("there",)), False),
        (file("u.py", refers=("local",)), file("u.py", refers=("local",)), True),
        (file("u.py", refers=("local",)), file("c.py", refers=("local",)), False),
        (file("u.py", refers=("rocdl.new.op",)), file("c.py", refers=("rocdl.new.op",)), True),
        (file("u.py", refers=("THE_NEW_SWITCH",)), file("c.py", refers=("THE_NEW_SWITCH",)), True),
        (file("u.py", defines=("fresh",)), file("c.py", refers=("fresh",), defines=("fresh",)), False),
        (touched("n.py", status="A"), touched("n.py"), True),
        (touched("n.py", status="R", old="o.py"), touched("n.py"), False),
    ],
)
def test_what_leans_on_what_only_an_unlanded_commit_brings(
    brings: FileFootprint, uses: FileFootprint, leans: bool
) -> None:
    made = draft([candidate("out", brings, trial=CONFLICT), candidate("uses", uses)], AROUND)
    assert shape(made)["chains"] == ([["out", "uses"]] if leans else [["out"]])
    if leans:
        assert found(made, "uses").verdict is Verdict.RISKY
        assert found(made, "uses").waits_for == ("out",)


def test_what_a_bundled_commit_brings_only_binds() -> None:
    made = draft(
        [candidate("brings", file("u.py", defines=("fresh",))), candidate("uses", file("c.py", refers=("fresh",)))],
        AROUND,
    )
    assert shape(made)["bundles"] == [["brings", "uses"]]
    assert found(made, "uses").waits_for == ("brings",)


def test_near_one_that_stays_out_is_worth_watching_and_no_more() -> None:
    same = file("u.py", defines=("shared_function",), what="body")
    made = draft([candidate("out", same, trial=CONFLICT), candidate("close", same, near=("out",))], AROUND)
    assert shape(made)["bundles"] == [["close"]]
    assert found(made, "close").verdict is Verdict.WATCH
    assert ReasonKind.CORRELATED in {reason.kind for reason in found(made, "close").reasons}


def test_a_lane_is_no_chain_and_its_dependents_wait() -> None:
    made = draft(
        [
            candidate("bump", touched("cmake/llvm-hash.txt")),
            candidate("waits", touches=("bump",)),
            candidate("waits_too", touches=("waits",)),
            candidate("second", touched("cmake/llvm-hash.txt"), touches=("bump",)),
            candidate("free"),
        ],
        AROUND,
    )
    assert [chain.lane for chain in made.chains] == [True]
    assert shape(made) == {
        "bundles": [["free"]],
        "chains": [["bump", "second"]],
        "held": [["waits", "waits_too"]],
        "settled": [[]],
    }
    assert found(made, "waits_too").waits_for == ("waits",)


def test_what_the_proof_refused_goes_where_it_belongs() -> None:
    reason = Reason(ReasonKind.ORDER_DIFFERS, "differs", ("out",), 0.9)
    around = replace(AROUND, moved={"early": (reason, ("out",))})
    made = draft([candidate("out", trial=CONFLICT), candidate("early"), candidate("free")], around)
    assert shape(made)["chains"] == [["out", "early"]]
    assert found(made, "early").waits_for == ("out",)
    assert reason in found(made, "early").reasons
    tied = replace(AROUND, tied={"b": frozenset({"a"})})
    config = Config.of({"upstream": {"repository": "u/u"}, "ingest": {"bundle": {"max_commits": 1}}})
    assert shape(draft([candidate("a"), candidate("b")], replace(tied, config=config)))["bundles"] == [["a", "b"]]


def test_a_series_of_reverts_is_one_chain_and_a_pair_one_bundle() -> None:
    links = {
        "back": Link("back", "revert", ("one", "two"), "body"),
        "again": Link("again", "reland", ("one",), "title"),
        "undo": Link("undo", "revert", ("pair",), "body"),
    }
    made = draft(
        [candidate(name) for name in ("one", "pair", "two", "back", "undo", "again")], replace(AROUND, links=links)
    )
    assert shape(made)["chains"] == [["one", "two", "back", "again"]]
    assert shape(made)["bundles"] == [["pair", "undo"]]


@pytest.mark.parametrize(
    ("target", "around", "place", "waits"),
    [
        (candidate("one", trial=CONFLICT), {}, "chains", ("one",)),
        (candidate("one", touched("cmake/llvm-hash.txt")), {}, "held", ("one",)),
        (None, {"absent": {"one": Footprint("one", ())}}, "held", ("one",)),
        (None, {"absent": {"one": Footprint("one", ())}, "given_up": {"one"}}, "settled", ()),
        (candidate("one", trial=Trial("empty")), {}, "settled", ()),
        (None, {"landed": {"one"}}, "settled", ()),
    ],
)
def test_a_revert_that_picks_as_empty_comes_after_what_it_takes_back(
    target: Candidate | None, around: dict[str, object], place: str, waits: tuple[str, ...]
) -> None:
    """That there is nothing to take back does not mean that it has been taken back: it may be still to come."""
    links = {"back": Link("back", "revert", ("one",), "body")}
    surroundings = replace(AROUND, links=links, **around)  # type: ignore[arg-type]
    back = candidate("back", trial=Trial("empty"))
    made = draft([*([target] if target is not None else []), back], surroundings)
    assert "back" in [sha for group in shape(made)[place] for sha in group]
    planned = found(made, "back")
    assert planned.waits_for == waits
    given_up = "given_up" in around
    assert planned.verdict is (Verdict.RISKY if waits else Verdict.EMPTY)
    assert (ReasonKind.REVERT in {reason.kind for reason in planned.reasons}) is (bool(waits) or given_up)
    assert (ReasonKind.ALREADY_THERE in {reason.kind for reason in planned.reasons}) is not (bool(waits) or given_up)


def test_what_was_left_out_for_good_or_for_later_still_counts_as_missing() -> None:
    absent = {"deferred": Footprint("deferred", (file("u.py", defines=("fresh",)),))}
    made = draft([candidate("uses", file("c.py", refers=("fresh",)))], replace(AROUND, absent=absent))
    assert shape(made)["held"] == [["uses"]]
    assert found(made, "uses").waits_for == ("deferred",)


def test_what_git_could_not_try_says_so() -> None:
    made = draft([candidate("broken", trial=Trial("conflict"), error="unable to read 1234")], AROUND)
    assert any("unable to read 1234" in reason.text for reason in found(made, "broken").reasons)


def test_a_fork_file_in_a_folder_that_moves_is_named() -> None:
    around = replace(
        AROUND, divergence=Divergence(files={"old/mine": FileDivergence("old/mine", "own")}, words=frozenset())
    )
    made = draft([candidate("move", touched("new/a", status="R", old="old/a"))], around)
    assert any("old/mine" in reason.evidence for reason in found(made, "move").reasons)


def test_skipped_and_empty_are_settled_with_their_reason() -> None:
    config = Config.of({"upstream": {"repository": "u/u"}, "ingest": {"skip": ["ci/**"]}})
    made = draft(
        [
            candidate("ci", touched("ci/x")),
            candidate("there", trial=Trial("empty")),
            candidate("gone", trial=Trial("empty", (), True), kept_deleted=("x",)),
            candidate("mixed", touched("ci/x"), touched("a")),
        ],
        replace(AROUND, config=config),
    )
    assert [(commit.sha, commit.verdict, commit.reasons[0].kind) for commit in made.settled] == [
        ("ci", Verdict.SKIPPED, ReasonKind.SKIP_RULE),
        ("there", Verdict.EMPTY, ReasonKind.ALREADY_THERE),
        ("gone", Verdict.EMPTY, ReasonKind.NO_EFFECT),
    ]
    assert shape(made)["bundles"] == [["mixed"]]


def test_evidence_that_the_text_names_is_not_told_twice() -> None:
    one, other = "a" * 40, "b" * 40
    reason = Reason(
        ReasonKind.CORRELATED,
        f"touches lines that {one[:12]} wrote, in lib/A.cpp",
        (one, other, "lib/A.cpp", "lib/B.cpp"),
    )
    assert reason.brief(1) == ((other,), 1)
    assert reason.brief(5) == ((other, "lib/B.cpp"), 0)


def test_evidence_is_not_lost_for_being_like_a_part_of_the_text() -> None:
    pieces = ("ops", "get", "files", "lib/A", "a.cpp", "abc123")
    reason = Reason(ReasonKind.CHANGES_USED_SYMBOL, "changes files of targets and props, as lib/A.cpp does", pieces)
    assert reason.brief(9) == (pieces, 0)
