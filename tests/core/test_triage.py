"""Trunk's history read for its causes: by place on trunk, whatever the order in which reports came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.signature import Signature
from bot.core.triage import (
    Candidate,
    Change,
    Digest,
    Failure,
    Finding,
    Hand,
    Kind,
    Known,
    State,
    Test,
    Trunk,
    Word,
    cannot_break,
    changed_words,
    digest,
    find,
    greens_needed,
    masked,
    omitted_signature,
    rank,
    step,
    suite_test,
)
from bot.core.types import Level, Outcome
from bot.core.validation import ManifestCheck, Report, Subject, TestOutcome, TestResult

ORDER = [f"{n:040x}" for n in range(30)]
NOW = datetime(2026, 11, 29, tzinfo=UTC)
T, U = Test("unit", "t"), Test("unit", "u")


def run(at: int, *, red: dict[str, str] | None = None, green: Sequence[str] = (), **more: object) -> Digest:
    """A judged run of `unit`: tests that failed, by their cause, and tests that passed."""
    failures = tuple(Failure(test, cause, "code", f"cause {cause}") for test, cause in (red or {}).items())
    whole = {suite_test("unit")} if failures or green else set()
    given = Digest(f"r{at}", ORDER[at], Level.L1, "unit", failures, frozenset({*green, *whole}))
    return replace(given, **more)  # type: ignore[arg-type]


def history(words: str, test: str = "t", cause: str = "A", start: int = 0) -> list[Digest]:
    """One test along trunk: G passed, F failed by the cause, M both, - nothing known."""
    runs = []
    for at, word in enumerate(words, start):
        if word in "GM":
            runs.append(run(at, green=[test]))
        if word in "FM":
            runs.append(run(at, red={test: cause}))
        if word == "-":
            runs.append(run(at, green=[]))
    return runs


def read(words: str, known: Known | None = None) -> Finding:
    return find(Trunk(ORDER, history(words)), "A", known)


@pytest.mark.parametrize(
    ("words", "kind", "first", "after"),
    [
        ("GGF", Kind.REGRESSION, 2, 1),
        ("GG--FF", Kind.REGRESSION, 4, 1),
        ("F", Kind.INELIGIBLE, 0, None),
        ("-F", Kind.INELIGIBLE, 1, None),
        ("GGFG", Kind.FIXED, 2, 1),
        ("GF-", Kind.REGRESSION, 1, 0),
        ("GFGF", Kind.REGRESSION, 3, 2),
        ("GFGFGF", Kind.FLAKY, 5, 4),
        ("GM", Kind.FLAKY, 1, 0),
        ("GMFFF", Kind.FLAKY, 1, 0),
        ("GFGFGFFF", Kind.FLAKY, 5, 4),
        ("GFGFGFFFFF", Kind.REGRESSION, 5, 4),
        ("GFGFGFG", Kind.FLAKY, 5, 4),
        ("GFGFG" + "G" * 20, Kind.FIXED, 3, 2),
    ],
)
def test_what_a_history_comes_to(words: str, kind: Kind, first: int, after: int | None) -> None:
    found = read(words)
    assert found.kind is kind, found.why
    assert found.first_red == ORDER[first]
    assert found.after == (ORDER[after] if after is not None else None)


def test_a_flapping_one_ends_after_enough_greens_for_its_rate() -> None:
    assert read("GFGFGF" + "G" * 4).kind is Kind.FLAKY
    assert read("GFGFGF" + "G" * 20).kind is Kind.FIXED
    assert greens_needed(1, 99) == 60
    assert greens_needed(1, 1) == 10


def test_unknown_base_is_said_and_never_called_flaky() -> None:
    found = read("F")
    assert found.why == "cannot classify: no earlier run of it is known"
    assert step(before=None, finding=found).state is State.OPEN


def test_a_test_red_from_birth_was_brought_by_the_commit_that_adds_it() -> None:
    trunk = Trunk(ORDER, [run(3, green=["u"]), run(5, green=["u"], red={"t": "A"})])
    found = find(trunk, "A")
    assert found.born
    assert (found.last_green, found.after, found.kind) == (None, ORDER[3], Kind.REGRESSION)
    skipped = Trunk(ORDER, [run(3, green=["u"], silent=frozenset({"t"})), run(5, red={"t": "A"})])
    assert find(skipped, "A").kind is Kind.INELIGIBLE, "it was skipped there, so it was born before"


def test_an_omitted_or_skipped_test_closes_nothing() -> None:
    runs = [run(0, green=["t", "u"]), run(1, red={"t": "A", "u": "A"})]
    half = [*runs, run(2, green=["u"], silent=frozenset({"t"}))]
    found = find(Trunk(ORDER, half), "A")
    assert found.red == (T,)
    assert found.unseen == (T,)
    assert find(Trunk(ORDER, [*half, run(3, green=["t"])]), "A").kind is Kind.FIXED, "each of them passed by now"


def test_last_green_is_of_the_test_and_not_of_its_suite() -> None:
    """T is red for long, U breaks today: U's suspects are today's, and what T hid is seen when T is mended."""
    runs = [run(0, green=["t", "u"])] + [run(at, red={"t": "A"}, green=["u"]) for at in range(1, 20)]
    runs.append(run(20, red={"t": "A", "u": "B"}))
    found = find(Trunk(ORDER, runs), "B")
    assert (found.after, found.first_red) == (ORDER[19], ORDER[20])
    assert find(Trunk(ORDER, runs), "A").after == ORDER[0]


def test_a_second_cause_hidden_behind_a_first_has_the_commits_of_both_and_the_change_as_evidence() -> None:
    runs = [run(0, green=["t"]), run(1, red={"t": "A"}), run(4, red={"t": "A"}), run(6, red={"t": "B"})]
    trunk = Trunk(ORDER, runs)
    behind, before = find(trunk, "B"), find(trunk, "A")
    assert (behind.after, behind.changed_after, behind.first_red) == (ORDER[0], ORDER[4], ORDER[6])
    assert before.elsewhere == ((T, "B"),)
    assert before.red == (T,), "the first is not mended by the second one's failing"
    assert masked(trunk, [before, behind]) == {"B": (T,)}
    mended = Trunk(ORDER, [*runs, run(8, green=["t"])])
    assert {find(mended, cause).kind for cause in "AB"} == {Kind.FIXED}


def test_what_a_crashed_suite_did_not_run_is_masked_by_it() -> None:
    crash = run(2, red={suite_test("unit"): "C"}, crashed=True, passed=frozenset(), silent=frozenset({"u"}))
    trunk = Trunk(ORDER, [run(1, green=["t", "u"]), crash])
    assert masked(trunk, [find(trunk, "C")]) == {"C": (T, U, Test("unit", suite_test("unit")))[:2]}


def test_what_lies_before_the_window_is_remembered() -> None:
    known = Known("A", frozenset({T}), first_red="f" * 40, last_green="e" * 40)
    found = read("FFF", known)
    assert (found.kind, found.first_red, found.after) == (Kind.REGRESSION, "f" * 40, "e" * 40)
    assert read("---", known).unseen == (T,)
    assert read("--G", known).kind is Kind.FIXED


def test_a_run_off_trunk_says_nothing() -> None:
    stray = replace(run(1, green=["t"]), sha="d" * 40)
    assert find(Trunk(ORDER, [*history("GF"), stray]), "A").red == (T,)


@pytest.mark.parametrize(
    ("before", "words", "hand", "newer", "state", "change"),
    [
        (None, "GF", Hand.NOTHING, True, State.OPEN, Change.OPENED),
        (None, "GFG", Hand.NOTHING, True, None, Change.NONE),
        (State.OPEN, "GFF", Hand.NOTHING, True, State.OPEN, Change.NONE),
        (State.BISECTING, "GFF", Hand.NOTHING, True, State.BISECTING, Change.NONE),
        (State.CULPRIT_KNOWN, "GFG", Hand.NOTHING, True, State.FIXED, Change.FIXED),
        (State.OPEN, "GM", Hand.NOTHING, True, State.FLAKY, Change.BECAME_FLAKY),
        (State.FLAKY, "GMGFFFFF", Hand.NOTHING, True, State.OPEN, Change.BECAME_STEADY),
        (State.FIXED, "GFGF", Hand.NOTHING, True, State.OPEN, Change.REOPENED),
        (State.FIXED, "GFGF", Hand.NOTHING, False, State.FIXED, Change.NONE),
        (State.FIXED, "GFG", Hand.NOTHING, True, State.FIXED, Change.NONE),
        (State.OPEN, "GF", Hand.DISMISSED, True, State.DISMISSED, Change.DISMISSED),
        (State.DISMISSED, "GFGF", Hand.NOTHING, True, State.DISMISSED, Change.NONE),
        (State.DISMISSED, "GF", Hand.REOPENED, True, State.OPEN, Change.REOPENED),
        (State.OPEN, "GF", Hand.CLOSED, True, State.OPEN, Change.UNPROVED),
        (State.CULPRIT_KNOWN, "GF", Hand.CLOSED, True, State.CULPRIT_KNOWN, Change.UNPROVED),
        (State.FLAKY, "GMG", Hand.CLOSED, True, State.FLAKY, Change.UNPROVED),
        (State.OPEN, "GFG", Hand.CLOSED, True, State.FIXED, Change.FIXED),
        (State.FIXED, "GF", Hand.REOPENED, False, State.OPEN, Change.REOPENED),
        (State.OPEN, "GF", Hand.DELETED, True, State.DISMISSED, Change.DISMISSED),
        (State.OPEN, "GFG", Hand.DELETED, True, State.FIXED, Change.FIXED),
        (State.DISMISSED, "GF", Hand.DELETED, False, State.DISMISSED, Change.NONE),
        (State.DISMISSED, "GFGF", Hand.DELETED, True, State.OPEN, Change.OPENED),
        (State.DISMISSED, "GMGM", Hand.DELETED, True, State.FLAKY, Change.OPENED),
        (State.DISMISSED, "GFG", Hand.DELETED, True, State.DISMISSED, Change.NONE),
    ],
)
def test_a_breakage_lives(
    before: State | None, words: str, hand: Hand, newer: bool, state: State | None, change: Change
) -> None:
    took = step(before=before, finding=read(words), hand=hand, newer_red=newer)
    assert (took.state, took.change) == (state, change)


words_ = st.text(alphabet="GFM-", min_size=1, max_size=25)


@given(words_, st.randoms())
@settings(max_examples=150, deadline=None)
def test_reports_in_any_order_and_twice_say_the_same(words: str, random: object) -> None:
    runs = history(words)
    shuffled = runs + runs[: len(runs) // 2]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert find(Trunk(ORDER, shuffled), "A") == find(Trunk(ORDER, runs), "A")


@given(words_)
@settings(max_examples=150, deadline=None)
def test_it_is_over_only_where_the_test_passed_after_its_last_red(words: str) -> None:
    found = read(words)
    reds = [at for at, word in enumerate(words) if word in "FM"]
    if not reds:
        assert found.kind is Kind.INELIGIBLE
        return
    mended = "G" in words[reds[-1] + 1 :]
    assert bool(found.red) is not mended
    assert found.kind is not Kind.FIXED or mended
    if found.after is not None:
        assert ORDER.index(found.after) < ORDER.index(found.first_red or "")


@given(words_, words_)
@settings(max_examples=100, deadline=None)
def test_other_tests_and_causes_change_nothing(words: str, other: str) -> None:
    both = find(Trunk(ORDER, [*history(words), *history(other, "u", "B")]), "A")
    alone = find(Trunk(ORDER, history(words)), "A")
    assert (both.kind, both.red, both.first_red, both.last_green) == (
        alone.kind if both.ineligible is alone.ineligible else both.kind,
        alone.red,
        alone.first_red,
        alone.last_green,
    )


def report(**more: object) -> Report:
    given: dict[str, object] = {
        "run_id": "r",
        "subject": Subject(repository="o/n", commit=ORDER[0]),
        "level": Level.L1,
        "suite": "unit",
        "harness": "pytest",
        "started_at": NOW,
        "finished_at": NOW,
        "outcome": Outcome.FAILED,
    }
    return Report.model_validate(given | more)


def told(report: Report | None, outcome: Outcome) -> Digest:
    return digest(run="r", sha=ORDER[0], level=Level.L1, suite="unit", outcome=outcome, report=report)


def results(**outcomes: str) -> tuple[TestResult, ...]:
    return tuple(
        TestResult(id=name, outcome=TestOutcome(word.split(":")[0]), message=word.partition(":")[2])
        for name, word in outcomes.items()
    )


def test_a_run_as_triage_reads_it() -> None:
    one = told(report(tests=results(a="passed", b="failed:ValueError: no such layout", c="skipped")), Outcome.FAILED)
    assert one.passed == {"a", suite_test("unit")}
    assert [(f.test, f.cls) for f in one.failures] == [("b", "code")]
    assert one.silent == {"c"}


def test_the_machines_failures_are_no_ones_breakage_but_are_told() -> None:
    busy = "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"
    one = told(report(tests=results(a="passed", b=f"failed:{busy}")), Outcome.FAILED)
    assert one.failures == ()
    assert one.silent == {"b"}
    assert "busy or unavailable" in one.infra[0]
    ended = told(report(outcome=Outcome.INFRA, reason="no GPU answered"), Outcome.INFRA)
    assert (ended.judged, ended.infra) == (False, ("no GPU answered",))
    assert told(None, Outcome.INFRA).infra == ("no report by its deadline",)
    fetch = told(report(log_tail="error: RPC failed; curl 92 HTTP/2 stream 0 was not closed cleanly"), Outcome.FAILED)
    assert (fetch.judged, fetch.failures) == (False, ())


@pytest.mark.parametrize("text", ["an illegal memory access was encountered", "out of memory"])
def test_what_only_code_does_is_a_breakage(text: str) -> None:
    one = told(report(tests=results(b=f"failed:RuntimeError: CUDA error: {text}")), Outcome.FAILED)
    assert [f.test for f in one.failures] == ["b"]


def test_a_missing_test_is_a_failure_of_its_own_and_what_a_crash_kept_from_running_is_not() -> None:
    gone = ManifestCheck(expected=2, reported=1, missing=("z",))
    omitted = told(report(outcome=Outcome.OMITTED, tests=results(a="passed"), manifest=gone), Outcome.OMITTED)
    assert [(f.test, f.signature) for f in omitted.failures] == [("z", omitted_signature("unit"))]
    build = told(
        report(manifest=gone, exit_code=2, log_tail="/src/a.cpp:3:5: error: use of undeclared identifier 'foo'"),
        Outcome.FAILED,
    )
    assert [f.test for f in build.failures] == [suite_test("unit")]
    assert (build.whole, build.silent) == (True, frozenset({"z"}))
    crash = told(
        report(tests=results(a="error:Fatal Python error: Segmentation fault"), manifest=gone, exit_code=-11),
        Outcome.FAILED,
    )
    assert [f.test for f in crash.failures] == ["a"]
    assert crash.silent == {"z"}


def test_a_burst_is_signed_once_for_each_text_and_function() -> None:
    calls: list[str | None] = []

    def sign(text: str, test: str | None) -> Signature:
        calls.append(test)
        return Signature("k", "code", text)

    tests = tuple(TestResult(id=f"t.py::test_a[{n}]", outcome=TestOutcome.FAILED, message="boom") for n in range(2_000))
    made = digest(
        run="r", sha="s", level=Level.L1, suite="unit", outcome=Outcome.FAILED,
        report=report(tests=tests), sign=sign,
    )  # fmt: skip
    assert len(calls) == 1
    assert {f.signature for f in made.failures} == {"k"}


DIFF = """\
@@ -1,3 +1,3 @@ def compute_layout_bases(self):
-    return swizzle_vector(x)
+    return swizzle_vector(y)
 context_only_name
"""


def test_suspects_are_ranked_with_what_speaks_against_them() -> None:
    candidates = [
        Candidate("a", "docs", files=("docs/x.md",)),
        Candidate("b", "layout", files=("lib/Layout.cpp", "py/layout.py"), words=changed_words(DIFF)),
        Candidate("c", "bundle", files=("lib/Other.cpp",), carries=("1", "2", "3"), number=7),
        Candidate("d", "other", files=("lib/Thing.cpp",)),
    ]
    text = 'File "/ci/build/py/layout.py", line 3, in compute_layout_bases\nswizzle_vector(x)\nValueError: bad'
    ranked = rank(candidates=candidates, tests=["py/test_layout.py::test_a[1]"], texts=[text], newest=())
    assert [suspect.sha for suspect in ranked] == ["b", "c", "d"]
    assert ranked[0].evidence == (
        "it changes py/layout.py, which the failure names",
        "it changes lines with compute_layout_bases, swizzle_vector, as in the failure",
    )
    assert ranked[1].evidence == ("it takes in 3 upstream commits",)
    assert sum(suspect.share for suspect in ranked) == pytest.approx(1, abs=0.001)
    newest = rank(candidates=candidates[2:], tests=[], texts=[], newest=["d"])
    assert newest[0].sha == "d"
    assert "context_only_name" not in changed_words(DIFF)
    (only,) = rank(candidates=candidates[3:], tests=[], texts=[])
    assert only.evidence == ("it is the only commit between last green and first red",)


@pytest.mark.parametrize(
    ("files", "said"),
    [(["docs/a.md", "README.md"], True), (["docs/a.md", "a.py"], False), ([], False), (["third_party/x/OWNERS"], True)],
)
def test_documents_break_nothing(files: list[str], said: bool) -> None:
    assert cannot_break(files) is said


def test_words_of_a_look() -> None:
    trunk = Trunk(ORDER, history("GMF-"))
    assert [look.word for look in trunk.looks(T)] == [Word.SUCCESSFUL, Word.MIXED, Word.FAILED]
    assert trunk.look(T, 3).word is Word.UNKNOWN
