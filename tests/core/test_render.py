"""What people read on GitHub, as golden texts, and what programs read back from it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.core.batches import Batch, BatchState
from bot.core.decisions import PASSED_OVER
from bot.core.decisions import read_decisions as read_lines
from bot.core.failure_class import FailureClass, FailureKind, KnownCause
from bot.core.gate import GateReason, GateResult, ReasonCode
from bot.core.render.answers import Said, answer_body, read_answer, read_decisions
from bot.core.render.breakage import BreakageFacts, breakage_body, breakage_title
from bot.core.render.dashboard import BreakageNote, DashboardFacts, WaitingNote, clicks, dashboard_body
from bot.core.render.explain import explain_commit
from bot.core.render.gate import gate_check
from bot.core.render.pull import ConflictNote, Dropped, PullFacts, batch_from, pull_body, pull_title, read_batch
from bot.core.render.results import SuiteState, check_text, outcome_of, results_comment
from bot.core.render.text import BODY_LIMIT, CHECK_LIMIT, TITLE_LIMIT, read_block
from bot.core.types import (
    BatchKind,
    Bundle,
    Chain,
    Decision,
    Disposition,
    Grade,
    Hole,
    Ledger,
    LedgerEntry,
    Level,
    Metrics,
    Mode,
    Outcome,
    Plan,
    PlannedCommit,
    Reason,
    ReasonKind,
    Verdict,
)
from bot.core.validation import ManifestCheck, Report, Subject, TestOutcome, TestResult
from tests.golden import same_as_golden

A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
NASTY = "Fixes #8592 | `x` <b> @user\n--> ![](x)"
CLEAN = Reason(ReasonKind.INDEPENDENT, "clean, and nothing of the fork's own near")
USED = Reason(ReasonKind.CHANGES_USED_SYMBOL, "changes what TLX calls", ("lib/Layout.cpp", "inferLayout"), 0.8)
ONE = PlannedCommit(A, "Fold constants (#101)", Verdict.SAFE, (CLEAN,), pr=101, areas=("core",))
TWO = PlannedCommit(B, NASTY, Verdict.WATCH, (USED, CLEAN), pr=None, waits_for=(A,))
BUNDLE = Batch("k3f9q2ab", BatchKind.BUNDLE, (A, B), "graft/bundle/k3f9q2ab", Grade.WATCH, head=C, base=D, number=7)
CHAIN = Batch(
    "zz22yy33", BatchKind.CHAIN, (B,), "graft/chain/zz22yy33/2", chain=(A, B), position=2, head=C, base=D, number=9
)
LINK = Batch("zz22yy33", BatchKind.CONFLICT, (A,), "graft/chain/zz22yy33/1", chain=(A, B), head=C, base=D, number=8)


def pull_facts(batch: Batch = BUNDLE) -> PullFacts:
    return PullFacts(
        batch=batch,
        commits=[ONE, TWO] if batch is BUNDLE else [TWO] if batch is CHAIN else [ONE],
        upstream="acme/tilec",
        fork="acme-fork/tilec",
        base_branch="main",
        base_sha=D,
        pin=A,
        pin_after=B,
        dropped=[Dropped(C, "Move the pass (#103)", "conflicts on the present base", ("lib/a|b.cpp",))],
        empty=[Dropped(D, "Backport (#104)", "its change is already there")],
        links={
            LINK.kind: [(ONE, "**this pull request**"), (TWO, "opens when the one before has landed")],
            CHAIN.kind: [(ONE, "picked"), (TWO, "**this pull request**")],
        }.get(batch.kind, []),
        conflicts=[ConflictNote("lib/a.cpp", "contents, api", "a person decides: …")] if batch is LINK else [],
        holes=[LedgerEntry(C, Disposition.DEFERRED, "Later", reason="needs the new LLVM", owner="mia")],
        upstream_url="https://github.com/acme/tilec.git",
    )


@pytest.mark.parametrize(("name", "batch"), [("bundle", BUNDLE), ("chain", CHAIN), ("conflict", LINK)])
def test_a_pull_request_reads_well_and_is_read_back(name: str, batch: Batch) -> None:
    body = pull_body(pull_facts(batch))
    same_as_golden(f"pull_{name}.md", f"{pull_title(batch, [ONE])}\n\n{body}")
    data = read_batch(body)
    assert data is not None
    again = batch_from(data, number=batch.number or 0, branch=batch.branch, head=C, state=BatchState.OPEN)
    assert again == replace(batch, state=BatchState.OPEN)
    assert "@user" not in body and "#8592" not in body


def test_a_body_keeps_its_parts_whatever_was_passed_over() -> None:
    """Thousands of commits left in chains: what a reviewer needs comes first, then what fits of them, oldest first."""
    reason = "in chain abcdefgh: " + "changes what the fork changed too " * 8
    entries = [LedgerEntry(f"{i:040x}", Disposition.DEFERRED, by=PASSED_OVER, reason=reason) for i in range(2_000)]
    body = pull_body(replace(pull_facts(), passed_over=entries))
    assert len(body) <= BODY_LIMIT and read_batch(body) is not None
    assert "### How to review" in body and "GitHub takes no longer text" not in body
    told = [entry.sha for entry in read_lines(body, by="#7")]
    assert 500 < len(told) < 2_000 and told == [entry.sha for entry in entries[: len(told)]]
    assert f"the first {len(told)} of them" in body
    few = pull_body(replace(pull_facts(), passed_over=entries[:3]))
    assert [entry.reason for entry in read_lines(few, by="#7")] == [reason.strip()] * 3


def test_titles_keep_githubs_limit_whatever_the_subject() -> None:
    long = replace(ONE, subject="x" * 500 + " (#1)")
    for batch in (BUNDLE, LINK, replace(BUNDLE, commits=(A,))):
        assert len(pull_title(batch, [long])) < TITLE_LIMIT


def test_a_bundle_of_hundreds_keeps_its_block() -> None:
    commits = [replace(TWO, sha=f"{i:040x}", subject=NASTY * 8) for i in range(400)]
    batch = replace(BUNDLE, commits=tuple(c.sha for c in commits))
    body = pull_body(replace(pull_facts(), batch=batch, commits=commits))
    assert len(body) <= BODY_LIMIT
    data = read_batch(body)
    assert data is not None and len(data["commits"]) == 400


def test_a_body_that_is_not_ours_is_no_batch() -> None:
    assert read_batch("hello") is None
    assert read_batch('<!-- graft:batch {"commits":"no list"} -->') is None
    with pytest.raises(ValueError, match="#3 lacks"):
        batch_from({"commits": []}, number=3, branch="b", head=A, state=BatchState.OPEN)


def report(
    outcome: Outcome, tests: list[TestResult], missing: tuple[str, ...] = (), *, canary: bool | None = True
) -> Report:
    return Report(
        run_id="r1", subject=Subject(repository="acme-fork/tilec", commit=A), level=Level.L1, suite="unit",
        harness="pytest", started_at=NOW, finished_at=NOW.replace(second=42), outcome=outcome, tests=tuple(tests),
        manifest=ManifestCheck(
            expected=len(tests) + len(missing), reported=len(tests), missing=missing, canary=canary
        ),
        repeat="graft run l1 --suite unit",
    )  # fmt: skip


def failing(index: int, signature: str, message: str = "E   assert 1 == 2") -> TestResult:
    return TestResult(
        id=f"tests/test_a.py::test_{index}", outcome=TestOutcome.FAILED, message=message, signature=signature,
        file="tests/test_a.py", line=index + 1,
    )  # fmt: skip


def state(suite: str, outcome: Outcome | None, made: Report | None = None, level: Level = Level.L1) -> SuiteState:
    return SuiteState(level, suite, "core", ("mia",), "gpu", outcome=outcome, report=made)


def test_the_results_comment_reads_well() -> None:
    tests = [
        TestResult(id="tests/test_a.py::test_ok", outcome=TestOutcome.PASSED),
        failing(1, "s1"),
        failing(2, "s1"),
        failing(3, "s2", "```\n@user Fixes #1\n::error::injected\n\x1b[31mred\x1b[0m"),
    ]
    classes = {
        "s1": FailureClass(FailureKind.NEW, "passed at its base bbbbbbbbbb"),
        "s2": FailureClass(FailureKind.UNKNOWN, "there is no run of trunk at its base bbbbbbbbbb to compare with"),
    }
    unit = state("unit", Outcome.FAILED, report(Outcome.FAILED, tests, ("tests/test_b.py::test_gone",)))
    states = [
        replace(unit, classes=classes, known={"s2": KnownCause("#7", flaky=False, held=False).text}),
        state("kernels", Outcome.PASSED, report(Outcome.PASSED, tests[:1])),
        state("ninja-check", Outcome.PASSED, report(Outcome.PASSED, tests[:1], canary=None)),
        state("gemm", None, level=Level.L2),
    ]
    text = results_comment(head=A, states=states)
    same_as_golden("results.md", text)
    data = read_block("report", text)
    assert data is not None and data["suites"][0]["failed"] == [t.id for t in tests[1:]]


def test_two_capacities_that_disagree_are_told_apart_from_a_failure() -> None:
    ok = [TestResult(id=f"tests/test_a.py::test_{i}", outcome=TestOutcome.PASSED) for i in range(3)]
    bad = [failing(1, "s1"), *ok[1:]]
    first = state(
        "unit",
        Outcome.PASSED,
        report(Outcome.PASSED, [bad[0].model_copy(update={"outcome": TestOutcome.PASSED}), *ok[1:]]),
    )
    there = report(Outcome.FAILED, bad)
    there = there.model_copy(
        update={"environment": there.environment.model_copy(update={"runner": "mi-1", "gpus": ()})}
    )
    second = replace(state("unit", Outcome.FAILED, there), label="mi350", again=True)
    states = [replace(first, second=second), state("kernels", Outcome.PASSED, report(Outcome.PASSED, ok))]
    text = results_comment(head=A, states=states)
    same_as_golden("results_disagreed.md", text)
    assert outcome_of(states) is Outcome.DISAGREED
    data = read_block("report", text)
    assert data is not None
    told = data["suites"][0]
    assert (told["outcome"], told["first"], told["second"]) == ("disagreed", "passed", "failed")
    assert told["disagreed"] == [[bad[0].id, "passed", "failed"]]
    check = check_text(Level.L1, states)
    assert (check.conclusion, check.title) == ("failure", "L1 disagreed")
    waiting = [replace(first, second=replace(second, outcome=None, report=None, running=True))]
    assert outcome_of(waiting) is None
    assert check_text(Level.L1, waiting).title == "L1: 0 of 1 suite done"


def test_two_thousand_failures_fit_the_comment_and_the_check() -> None:
    tests = [failing(i, f"s{i % 40}", "E   boom\n" * 60) for i in range(2_000)]
    states = [state("unit", Outcome.FAILED, report(Outcome.FAILED, tests))]
    comment, check = results_comment(head=A, states=states), check_text(Level.L1, states)
    assert len(comment) <= BODY_LIMIT and read_block("report", comment) is not None
    assert max(len(check.summary.encode()), len(check.text.encode())) <= CHECK_LIMIT
    assert check.conclusion == "failure" and check.annotations


@pytest.mark.parametrize(
    ("outcomes", "conclusion"),
    [
        ([Outcome.PASSED], "success"),
        ([Outcome.PASSED, Outcome.WAIVED], "success"),
        ([Outcome.PASSED, Outcome.OMITTED], "failure"),
        ([Outcome.INFRA], "failure"),
        ([Outcome.NOT_RUN], "failure"),
        ([Outcome.TIMED_OUT, Outcome.PASSED], "timed_out"),
        ([Outcome.CANCELLED], "cancelled"),
        ([Outcome.PASSED, None], None),
        ([], None),
    ],
)
def test_a_check_is_green_only_where_every_suite_passed(outcomes: list[Outcome | None], conclusion: str | None) -> None:
    states = [state(f"s{i}", outcome) for i, outcome in enumerate(outcomes)]
    assert check_text(Level.L1, states).conclusion == conclusion
    if None in outcomes:
        assert outcome_of(states) is None


def gate_result(decision: Decision) -> GateResult:
    leaf = GateReason(
        ReasonCode.SIGNOFF, "core", decision, "core: not signed off", ("mia", "acme/compiler"), "/signoff l3 core ne=…"
    )
    fine = GateReason(ReasonCode.LEVEL, "l1", Decision.ALLOW, "L1 passed on this commit")
    tree = GateReason(ReasonCode.ROOT, "root", decision, "the gate", children=(leaf, fine))
    return GateResult(decision, A, tree, (Level.L1,), ("core",))


@pytest.mark.parametrize("decision", list(Decision))
def test_the_gates_page_says_what_is_missing_who_can_and_how(decision: Decision) -> None:
    text = gate_check(gate_result(decision))
    same_as_golden(
        f"gate_{decision.value}.md", f"{text.status} {text.conclusion}\n{text.title}\n\n{text.summary}\n\n{text.text}"
    )
    assert (text.conclusion == "success") == (decision is Decision.ALLOW)


def plan() -> Plan:
    entries = (
        LedgerEntry(A, Disposition.PICKED),
        LedgerEntry(B, Disposition.DEFERRED, NASTY, reason="later", owner="mia"),
    )
    hole = Hole(B, NASTY, 12.4, "later", "mia")
    ledger = Ledger(entries, A, B, Metrics(3.25, 1), (hole,))
    bundle, chain = Bundle("k3f9q2ab", Grade.SAFE, (ONE,)), Chain("zz22yy33", False, (TWO,))
    return Plan(D, C, A, (bundle,), (chain,), (), (), ledger)


def dashboard_facts() -> DashboardFacts:
    return DashboardFacts(
        upstream="acme/tilec",
        mode=Mode.ACT,
        now=NOW,
        plan=plan(),
        batches=[BUNDLE, replace(LINK, state=BatchState.DRAFT)],
        waiting=[WaitingNote((A, B), "the day's cap is reached")],
        breakages=[BreakageNote(NASTY, 9, "core", "open", NOW)],
        good_at=NOW,
        error="403: rate limited",
        halted_by="#4, labelled by mia",
    )


def test_the_dashboard_reads_well_and_its_boxes_are_read_back() -> None:
    body = dashboard_body(dashboard_facts())
    same_as_golden("dashboard.md", body)
    assert clicks(body) == []
    ticked = body.replace("- [ ]", "- [x]").replace("\n", "\r\n")
    assert [(c.verb, c.sha) for c in clicks(ticked)] == [("ingest", None), ("pick", B)]


def test_the_dashboard_says_broken_configuration_before_all() -> None:
    body = dashboard_body(DashboardFacts("acme/tilec", Mode.OBSERVE, NOW, config_problems=["line 3: unknown key"]))
    assert "is broken" in body.split("\n\n")[1]


def test_an_answer_keeps_its_commit_and_its_decisions() -> None:
    entry = LedgerEntry(B, Disposition.WONT_PORT, by="mia", reason="replaced --> by TLX", owner=None)
    said = [Said("/wont-port bbbbbbb", True, "done", entry), Said("/validate 12", False, "did you mean l2?")]
    body = answer_body(comment=5, url="https://example.com/c/5", author="mia", head=A, said=said)
    same_as_golden("answer.md", body)
    bound = read_answer(body)
    assert bound is not None and (bound.comment, bound.sha) == (5, A)
    assert read_decisions(body) == [entry]
    assert read_answer("someone's comment") is None and read_decisions("someone's comment") == []


def test_a_breakage_reads_well_and_mentions_only_whom_it_is_given() -> None:
    facts = BreakageFacts(
        key="abcd2345", title=NASTY, level="l1", suite="unit", area="core", tests=["t::a", "t::b"], message=NASTY,
        first_bad=A, last_good=B, first_seen=NOW, owners=("mia",), mentions=("mia",), repeat="graft run l1",
        warnings=("old-owner is not known to this fork, so is not asked",),
    )  # fmt: skip
    body = breakage_body(facts)
    same_as_golden("breakage.md", f"{breakage_title(facts)}\n\n{body}")
    assert len(breakage_title(replace(facts, title="x" * 900))) < TITLE_LIMIT


def test_an_explanation_shows_place_reasons_and_what_it_waits_for() -> None:
    same_as_golden("explain.md", explain_commit(plan(), B))
    assert "in no plan" in explain_commit(plan(), C)
