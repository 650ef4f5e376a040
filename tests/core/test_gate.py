from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from bot.core.command import Command, parse
from bot.core.config import Config
from bot.core.gate import GateFacts, PullKind, ReasonCode, ReviewState, RunState, decide, decide_group, may_start
from bot.core.signoff import Void
from bot.core.types import Decision, Level, Outcome
from bot.core.waivers import Failure, WaiverState
from tests.core.gate_world import (
    ALL,
    ALL_L1,
    ALL_L2,
    CONFIG,
    GEMM,
    HEAD,
    NOW,
    OLD,
    PEOPLE,
    RAW,
    SOAK,
    TLX,
    UNIT,
    config,
    conflict,
    facts,
    failed,
    filed,
    ran,
    red,
    review,
    signed,
    waived,
)

ALLOW, PENDING, BLOCK = Decision
L1, L2, L3 = Level
BUNDLE: dict[str, Any] = {"kind": PullKind.BUNDLE, "author": "graft[bot]"}
TLX_FILE: dict[str, Any] = {"files": ("tlx/a.py",)}
LLVM: dict[str, Any] = {"files": ("cmake/llvm-hash.txt",)}
HEAVY: dict[str, Any] = {"files": ("heavy/a.py",)}
TIM = (signed("tlx", "tim"),)
OLGA = (signed("core", "olga"),)
LAPSED = filed("unit::t", WaiverState.LAPSED, areas=("core",))
EVERY_AREA = config(require_signoff_from=["area"])
ONE_AREA = config(require_signoff_from=["tlx"])
NO_PERSONS = config(persons=False)
NOTHING = config(levels=[], rules=[])
NO_SUITES = Config.of({"upstream": {"repository": "a/b"}})
L3_ALONE = Config.of(
    RAW | {"validation": {"l1": RAW["validation"]["l1"]}, "areas": {}, "ingest": {}, "gate": {"levels": ["l1", "l3"]}}
)
TLX_INFRA = Failure(L1, "tlx", Outcome.INFRA)
ADA_TOO: dict[str, Any] = {"by": ("max", "ada")}
FAILED_SOAK: dict[str, Any] = {"sign_offs": OLGA, **HEAVY}

# facts, the file, the decision, and a word that the first leaf missing must say ("" where nothing is missing)
TABLE: list[tuple[GateFacts, Config | None, Decision, str]] = [
    # level 1
    (facts(*ALL_L1), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, **BUNDLE), CONFIG, ALLOW, ""),
    (facts(), CONFIG, PENDING, "starts by itself"),
    (facts(UNIT), CONFIG, PENDING, "tlx has not run"),
    (facts(UNIT, ran("tlx", None, state=RunState.QUEUED)), CONFIG, PENDING, "queued"),
    (facts(UNIT, ran("tlx", None, state=RunState.RUNNING)), CONFIG, PENDING, "running"),
    (facts(UNIT, ran("tlx", head=OLD)), CONFIG, PENDING, "void"),
    (facts(UNIT, failed("tlx", "t")), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t"), draft=True), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx")), CONFIG, BLOCK, "tlx failed"),
    (facts(UNIT, ran("tlx", Outcome.OMITTED)), CONFIG, BLOCK, "left out"),
    (facts(UNIT, failed("tlx", "t", outcome=Outcome.OMITTED)), CONFIG, BLOCK, "left out"),
    (facts(UNIT, ran("tlx", Outcome.NOT_RUN)), CONFIG, BLOCK, "not_run"),
    (facts(UNIT, ran("tlx", Outcome.INFRA)), CONFIG, BLOCK, "infra"),
    (facts(UNIT, ran("tlx", Outcome.TIMED_OUT)), CONFIG, BLOCK, "timed_out"),
    (facts(UNIT, ran("tlx", Outcome.INFRA, failures=(TLX_INFRA,)), waivers=(waived("tlx"),)), CONFIG, BLOCK, "infra"),
    (facts(UNIT, failed("tlx", "t", outcome=Outcome.INFRA)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t", outcome=Outcome.TIMED_OUT), waivers=(waived("tlx::t"),)), CONFIG, ALLOW, ""),
    (facts(UNIT, ran("tlx", Outcome.CANCELLED)), CONFIG, BLOCK, "cancelled"),
    (facts(UNIT, ran("tlx", Outcome.WAIVED)), CONFIG, BLOCK, "tlx"),
    (facts(UNIT, ran("tlx", None)), CONFIG, BLOCK, "without an outcome"),
    (facts(UNIT, ran("tlx", truncated=True)), CONFIG, BLOCK, "is cut"),
    (facts(UNIT, failed("tlx", "t", outcome=Outcome.PASSED)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t"), ran("tlx", attempt=2)), CONFIG, ALLOW, ""),
    (facts(UNIT, TLX, failed("tlx", "t", attempt=2)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, TLX, failed("tlx", "t")), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, TLX, ran("tlx", None, attempt=2, state=RunState.QUEUED)), CONFIG, PENDING, "attempt 2"),
    (facts(UNIT, TLX, ran("tlx", None, state=RunState.RUNNING)), CONFIG, PENDING, "running"),
    (facts(*ALL_L1, GEMM, failed("soak", "t")), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, failed("gemm", "t")), CONFIG, ALLOW, ""),
    (facts(*ALL_L1), NO_SUITES, BLOCK, "names no suite"),
    (facts(), NOTHING, ALLOW, ""),
    # the file, the halt, what can't be read
    (facts(*ALL_L1), None, BLOCK, "could not be read"),
    (facts(*ALL_L1, config_problems=("line 3: bad",)), None, BLOCK, "line 3: bad"),
    (facts(*ALL_L1, halted=True, halted_by="ada"), CONFIG, BLOCK, "halted by ada"),
    (facts(*ALL_L1, halted=None), CONFIG, BLOCK, "whether Graft is halted is unknown"),
    (facts(*ALL_L1, files=None), CONFIG, BLOCK, "changed files is cut"),
    (facts(*ALL_L1, files=()), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, risks=None, **BUNDLE), CONFIG, BLOCK, "plan of this batch"),
    (facts(*ALL_L1, draft=True), CONFIG, PENDING, "draft"),
    (facts(*ALL_L1, conflict_markers=("a.py",)), CONFIG, BLOCK, "a.py"),
    (facts(*ALL_L1, conflict_markers=tuple(f"{n}.py" for n in range(9))), CONFIG, BLOCK, "and 4 more"),
    (facts(*ALL_L1, conflict_markers=None), CONFIG, BLOCK, "not known whether conflict markers"),
    (facts(*ALL_L1, open_findings=("lost call of f",)), CONFIG, BLOCK, "lost call of f"),
    (facts(*ALL_L1, open_findings=None), CONFIG, BLOCK, "not checked"),
    # people's pull requests
    (facts(), NO_PERSONS, ALLOW, ""),
    (facts(UNIT, failed("tlx", "t")), NO_PERSONS, ALLOW, ""),
    (facts(halted=True), NO_PERSONS, BLOCK, "halted"),
    (facts(halted=None), NO_PERSONS, BLOCK, "unknown"),
    (facts(**BUNDLE), NO_PERSONS, PENDING, "has not run"),
    # level 2 by a rule for paths
    (facts(*ALL_L2, sign_offs=TIM, **TLX_FILE), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, sign_offs=TIM, **TLX_FILE), CONFIG, BLOCK, "gemm has not run"),
    (facts(UNIT, GEMM, sign_offs=TIM, **TLX_FILE), CONFIG, PENDING, "tlx has not run"),
    (facts(UNIT, sign_offs=TIM, **TLX_FILE), CONFIG, PENDING, "tlx has not run"),
    (facts(*ALL_L1, failed("gemm", "k"), sign_offs=TIM, **TLX_FILE), CONFIG, BLOCK, "gemm::k"),
    (facts(*ALL_L1, ran("gemm", head=OLD), sign_offs=TIM, **TLX_FILE), CONFIG, BLOCK, "void"),
    (facts(*ALL_L1, ran("gemm", None, state=RunState.RUNNING), sign_offs=TIM, **TLX_FILE), CONFIG, PENDING, "running"),
    # sign-offs
    (facts(*ALL_L2, **TLX_FILE), CONFIG, BLOCK, "tlx: not signed off"),
    (facts(*ALL_L2, sign_offs=OLGA, **TLX_FILE), CONFIG, BLOCK, "tlx: not signed off"),
    (facts(*ALL_L2, sign_offs=(signed("tlx", "tim", Void.OTHER_COMMIT),), **TLX_FILE), CONFIG, BLOCK, "other_commit"),
    (facts(*ALL_L2, sign_offs=(signed("tlx", "tim", Void.EDITED),), **TLX_FILE), CONFIG, BLOCK, "edited"),
    (facts(*ALL_L2, sign_offs=(signed("tlx", "tim", Void.WITHDRAWN), *TIM), **TLX_FILE), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, files=("lib/a.py",)), EVERY_AREA, BLOCK, "core: not signed off"),
    (facts(*ALL_L1, files=("lib/a.py",), sign_offs=OLGA), EVERY_AREA, ALLOW, ""),
    (facts(*ALL_L1, files=("lib/a.py", "rec/b"), sign_offs=OLGA), EVERY_AREA, BLOCK, "recsys: not signed off"),
    (facts(*ALL_L1), EVERY_AREA, ALLOW, ""),
    (facts(*ALL_L1, files=("lib/a.py",)), ONE_AREA, ALLOW, ""),
    (facts(*ALL_L2, **TLX_FILE), ONE_AREA, BLOCK, "tlx: not signed off"),
    (facts(*ALL_L1, files=("lib/old.py", "tlx/new.py")), CONFIG, BLOCK, "gemm has not run"),
    # risk rules: by path, symbol, label, the plan
    (facts(*ALL, sign_offs=OLGA, **LLVM), CONFIG, ALLOW, ""),
    (facts(*ALL, **LLVM), CONFIG, BLOCK, "core: not signed off, required by risk rule llvm-bump"),
    (facts(*ALL_L2, sign_offs=OLGA, **LLVM), CONFIG, BLOCK, "soak has not run"),
    (facts(*ALL_L1, SOAK, sign_offs=OLGA, **LLVM), CONFIG, BLOCK, "gemm has not run"),
    (facts(*ALL_L1, sign_offs=OLGA, **LLVM), CONFIG, BLOCK, "gemm has not run"),
    (facts(*ALL_L1, symbols=("toLinearLayout",)), CONFIG, BLOCK, "gemm has not run"),
    (facts(*ALL_L2, symbols=("toLinearLayout",), sign_offs=TIM), CONFIG, ALLOW, ""),
    (facts(*ALL_L2, symbols=("other",)), CONFIG, ALLOW, ""),
    (facts(*ALL_L2, labels=("risk:layouts",)), CONFIG, BLOCK, "risk rule layouts"),
    (facts(*ALL_L2, labels=("risk:unknown",)), CONFIG, ALLOW, ""),
    (facts(*ALL_L2, risks=("layouts",), **BUNDLE), CONFIG, BLOCK, "risk rule layouts"),
    (facts(*ALL_L2, risks=("layouts",), sign_offs=TIM, **BUNDLE), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, toolchain=True, **BUNDLE), CONFIG, BLOCK, "gemm has not run"),
    (facts(*ALL, toolchain=True, **BUNDLE), CONFIG, BLOCK, "not signed off, required by L3"),
    (facts(*ALL, toolchain=True, sign_offs=(*OLGA, signed("recsys", "rita")), **BUNDLE), CONFIG, ALLOW, ""),
    # level 3
    (facts(*ALL, sign_offs=OLGA, **HEAVY), CONFIG, ALLOW, ""),
    (facts(*ALL, **HEAVY), CONFIG, BLOCK, "core: not signed off"),
    (facts(*ALL_L2, sign_offs=OLGA, **HEAVY), CONFIG, BLOCK, "soak has not run"),
    (facts(*ALL_L2, failed("soak", "t"), sign_offs=OLGA, **HEAVY), CONFIG, BLOCK, "soak::t"),
    (facts(*ALL_L2, SOAK, sign_offs=OLGA, files=("heavy/a", "rec/b")), CONFIG, BLOCK, "recsys: not signed off"),
    (facts(UNIT, sign_offs=OLGA, **HEAVY), CONFIG, PENDING, "tlx has not run"),
    (facts(*ALL_L1, SOAK, sign_offs=OLGA, **HEAVY), CONFIG, BLOCK, "gemm has not run"),
    (facts(*ALL_L1), L3_ALONE, BLOCK, "names no suite"),
    # waivers in the pull request
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t"),)), CONFIG, ALLOW, ""),
    (facts(UNIT, failed("tlx", "t[1]", "t[2]"), waivers=(waived("tlx::t"),)), CONFIG, ALLOW, ""),
    (facts(UNIT, failed("tlx", "t", "u"), waivers=(waived("tlx::t"),)), CONFIG, BLOCK, "tlx::u"),
    (facts(UNIT, failed("tlx", "t", "u"), waivers=(waived("tlx::t"), waived("tlx::u"))), CONFIG, ALLOW, ""),
    (facts(UNIT, failed("tlx", "t", "u"), waivers=(waived("tlx"),)), CONFIG, ALLOW, ""),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("unit::t"),)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t", truncated=True), waivers=(waived("tlx::t"),)), CONFIG, BLOCK, "is cut"),
    (facts(UNIT, failed("tlx", "t", truncated=True), waivers=(waived("tlx"),)), CONFIG, ALLOW, ""),
    (facts(UNIT, ran("tlx", Outcome.OMITTED), waivers=(waived("tlx"),)), CONFIG, ALLOW, ""),
    (facts(UNIT, ran("tlx", Outcome.OMITTED), waivers=(waived("tlx::t"),)), CONFIG, BLOCK, "left out"),
    (facts(UNIT, failed("tlx", "t", outcome=Outcome.OMITTED), waivers=(waived("tlx::t"),)), CONFIG, ALLOW, ""),
    (facts(UNIT, ran("tlx", Outcome.INFRA), waivers=(waived("tlx"),)), CONFIG, BLOCK, "infra"),
    (facts(UNIT, ran("tlx", None, state=RunState.QUEUED), waivers=(waived("tlx"),)), CONFIG, PENDING, "queued"),
    (facts(UNIT, waivers=(waived("tlx"),)), CONFIG, PENDING, "has not run"),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t", WaiverState.NEAR_EXPIRY),)), CONFIG, ALLOW, ""),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t", WaiverState.LAPSED),)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t", WaiverState.NEEDS_SECOND),)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t", WaiverState.REVOKED),)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t", WaiverState.NOT_ALLOWED),)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t", WaiverState.TOO_LONG),)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t", head=OLD),)), CONFIG, BLOCK, "tlx::t"),
    (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t", until=date(2026, 11, 28)),)), CONFIG, BLOCK, "tlx::t"),
    (facts(*ALL_L2, failed("soak", "t"), waivers=(waived("soak::t"),), **FAILED_SOAK), CONFIG, BLOCK, "soak::t"),
    (facts(*ALL_L2, failed("soak", "t"), waivers=(waived("soak::t", **ADA_TOO),), **FAILED_SOAK), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, failed("gemm", "k"), waivers=(waived("gemm::k"),), sign_offs=TIM, **TLX_FILE), CONFIG, ALLOW, ""),
    # waivers in the fork's file
    (facts(failed("unit", "t"), TLX, file_waivers=(filed("unit::t"),)), CONFIG, ALLOW, ""),
    (facts(failed("unit", "t", "u"), TLX, file_waivers=(filed("unit::t"),)), CONFIG, BLOCK, "unit::u"),
    (facts(*ALL_L1, file_waivers=None), CONFIG, BLOCK, "graft-waivers.yml is broken"),
    (facts(*ALL_L1, file_waivers=(LAPSED,)), CONFIG, ALLOW, ""),  # C63: a bystander
    (facts(failed("unit", "t"), TLX, file_waivers=(LAPSED,)), CONFIG, ALLOW, ""),
    (facts(failed("unit", "u"), TLX, file_waivers=(LAPSED,)), CONFIG, BLOCK, "unit::u"),
    (facts(*ALL_L1, file_waivers=(LAPSED,), files=("lib/a.py",)), CONFIG, BLOCK, "the waiver of unit::t"),
    (facts(failed("unit", "t"), TLX, file_waivers=(LAPSED,), files=("lib/a.py",)), CONFIG, BLOCK, "unit::t"),
    (facts(*ALL_L1, file_waivers=(LAPSED,), author="Olga"), CONFIG, BLOCK, "the waiver of unit::t"),
    (facts(failed("unit", "t"), TLX, file_waivers=(LAPSED,), author="olga"), CONFIG, BLOCK, "unit::t"),
    (
        facts(*ALL_L1, file_waivers=(LAPSED,), author="olga", files=(".github/graft-waivers.yml", "lib/a.py")),
        CONFIG, ALLOW, "",
    ),
    (
        facts(failed("unit", "t"), TLX, file_waivers=(LAPSED,), author="olga", files=(".github/graft-waivers.yml",)),
        CONFIG, BLOCK, "unit::t",
    ),
    (facts(*ALL_L1, file_waivers=(filed("unit::t", until=date(2026, 11, 28)),), author="olga"), CONFIG, BLOCK, "t"),
    (facts(*ALL_L1, author="tom", file_waivers=(filed("x", WaiverState.LAPSED, owner="org/tlx"),)), CONFIG, BLOCK, "x"),
    # reviews
    (facts(*ALL_L1, reviews=None), CONFIG, BLOCK, "reviews can't be read"),
    (facts(*ALL_L1, reviews=(review("olga", ReviewState.CHANGES_REQUESTED),)), CONFIG, BLOCK, "olga asked for changes"),
    (facts(*ALL_L1, reviews=(review("olga", ReviewState.CHANGES_REQUESTED, OLD),)), CONFIG, BLOCK, "olga asked"),
    (facts(*ALL_L1, reviews=(review("rita", ReviewState.CHANGES_REQUESTED),)), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, reviews=(review("olga", ReviewState.OTHER),)), CONFIG, ALLOW, ""),
    # a resolved conflict
    (conflict(*ALL_L1), CONFIG, BLOCK, "needs an approval of core"),
    (conflict(*ALL_L1, reviews=(review("olga"),)), CONFIG, ALLOW, ""),
    (conflict(*ALL_L1, reviews=(review("OLGA"),)), CONFIG, ALLOW, ""),
    (conflict(*ALL_L1, reviews=(review("tim"),)), CONFIG, BLOCK, "of core"),
    (conflict(*ALL_L1, reviews=(review("max"),)), CONFIG, BLOCK, "of core"),
    (conflict(*ALL_L1, reviews=(review("olga", head=OLD),)), CONFIG, BLOCK, "on this commit"),
    (conflict(*ALL_L1, reviews=(review("olga", ReviewState.OTHER),)), CONFIG, BLOCK, "of core"),
    (conflict(*ALL_L1, reviews=(review("olga"),), author="olga"), CONFIG, BLOCK, "of core"),
    (conflict(*ALL_L1, reviews=(review("rita"),), files=("rec/a",)), CONFIG, BLOCK, "of recsys"),
    (conflict(*ALL_L1, reviews=(review("max"),), files=("docs/a",)), CONFIG, ALLOW, ""),
    (conflict(*ALL_L1, reviews=(review("olga"),), files=("docs/a",)), CONFIG, BLOCK, "by a maintainer"),
    (conflict(*ALL_L1, reviews=(review("olga"),), draft=True), CONFIG, PENDING, "draft"),
    (conflict(*ALL_L1, reviews=(review("olga"),), conflict_markers=("a",)), CONFIG, BLOCK, "markers"),
    (conflict(*ALL_L2, reviews=(review("olga"),), files=("lib/a", "tlx/b"), sign_offs=TIM), CONFIG, BLOCK, "of tlx"),
    # trunk
    (facts(*ALL_L1, breakages=(red("core"),), files=("lib/a",)), CONFIG, BLOCK, "trunk is red in core: t1 (#5)"),
    (facts(*ALL_L1, breakages=(red("core"),)), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, breakages=(red("tlx"),), files=("lib/a",)), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, breakages=(red(None),), files=("lib/a",)), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, breakages=(red("core"),), files=("lib/a",), fixes=("t1",)), CONFIG, ALLOW, ""),
    (facts(*ALL_L1, breakages=(red("core"), red("core", "t2")), files=("lib/a",), fixes=("t1",)), CONFIG, BLOCK, "t2"),
    (facts(*ALL_L1, breakages=None, files=("lib/a",)), CONFIG, BLOCK, "state of trunk"),
    (facts(*ALL_L1, breakages=None), CONFIG, ALLOW, ""),
    # people who are not known
    (facts(*ALL_L1, reviews=(review("who", ReviewState.CHANGES_REQUESTED),)), CONFIG, BLOCK, "who asked for changes"),
    (facts(*ALL_L1, file_waivers=(filed("x", WaiverState.LAPSED, owner="org/gone"),)), CONFIG, BLOCK, "waiver of x"),
]  # fmt: skip


@pytest.mark.parametrize(("known", "file", "decision", "says"), TABLE, ids=range(len(TABLE)))
def test_the_table(known: GateFacts, file: Config | None, decision: Decision, says: str) -> None:
    result = decide(config=file, facts=known, now=NOW)
    assert result.decision is decision, result.missing
    assert result.head == HEAD
    if not says:
        assert result.missing == ()
        return
    assert says in result.missing[0].text
    assert result.missing[0].text in result.summary or len(result.missing[0].text) > 150
    for leaf in result.missing:
        assert leaf.text, leaf
        assert leaf.who or leaf.command or leaf.decision is PENDING, leaf


def test_the_table_is_long_enough() -> None:
    assert len(TABLE) >= 120
    assert len({repr(row[:2]) for row in TABLE}) == len(TABLE)


def test_each_leaf_says_the_very_command() -> None:
    """What the tree tells people to type is a command that is understood, once its gaps are filled."""
    for known, file, _, _ in TABLE:
        for leaf in decide(config=file, facts=known, now=NOW).tree.leaves:
            for piece in (leaf.command or "").split(": "):
                if piece.startswith("/"):
                    typed = piece.replace("YYYY-MM-DD", "2026-12-31").replace("@…", "@x").replace("=…", "=1")
                    (command,) = parse(typed)
                    assert isinstance(command, Command), command


def test_the_tree_says_who_and_how() -> None:
    result = decide(config=CONFIG, facts=facts(*ALL_L2, **TLX_FILE), now=NOW)
    (leaf,) = result.missing
    assert (leaf.code, leaf.key, leaf.who, leaf.command) == (
        ReasonCode.SIGNOFF, "tlx", ("tim", "org/tlx"), "/signoff l3 tlx",
    )  # fmt: skip
    assert result.levels == (L1, L2)
    assert result.areas == ("tlx",)
    recsys = decide(config=EVERY_AREA, facts=facts(*ALL_L1, files=("rec/a",)), now=NOW)
    assert recsys.missing[0].command == "/signoff l3 recsys ne=… qps=…"
    nobody = Config.of(RAW | {"default_owner": None, "areas": {"core": {"paths": ["lib/**"]}}, "ingest": {}, "gate": {
        "require_signoff_from": ["core"]}, "validation": {"l1": [{"suite": "unit"}]}})  # fmt: skip
    blocked = decide(config=nobody, facts=facts(UNIT, files=("lib/a",)), now=NOW)
    assert "nobody can sign off" in blocked.missing[0].text


def test_now_needs_a_time_zone() -> None:
    with pytest.raises(ValueError, match="time zone"):
        decide(config=CONFIG, facts=facts(), now=datetime(2026, 1, 1))


def test_a_long_reason_is_cut_in_the_title() -> None:
    names = tuple("x" * 90 + str(n) for n in range(9))
    result = decide(config=CONFIG, facts=facts(failed("unit", *names), failed("tlx", *names)), now=NOW)
    assert len(result.summary) == 200
    assert result.summary.endswith("(and 1 more)")


# -- a cheaper level first ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "level", "starts"),
    [
        (facts(), L1, True),
        (facts(), L2, False),
        (facts(UNIT), L2, False),
        (facts(*ALL_L1), L2, True),
        (facts(*ALL_L1), L3, False),
        (facts(*ALL_L2), L3, True),
        (facts(GEMM), L3, False),
        (facts(), L3, False),
        (facts(forced=(L2,)), L2, True),
        (facts(forced=(L2,)), L3, False),
        (facts(UNIT, failed("tlx", "t")), L2, False),
        (facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t"),)), L2, True),
        (facts(UNIT, ran("tlx", head=OLD)), L2, False),
        (facts(*ALL_L1, files=None), L2, True),
    ],
)
def test_when_a_level_may_start(known: GateFacts, level: Level, starts: bool) -> None:
    why = may_start(config=CONFIG, facts=known, level=level)
    assert (why is None) is starts
    if why is not None:
        assert why.command == f"/validate {level.value} force=yes"


def test_a_level_that_waits_is_pending_unless_a_maintainer_hurries_it() -> None:
    waiting = decide(config=CONFIG, facts=facts(UNIT, sign_offs=TIM, **TLX_FILE), now=NOW)
    assert {leaf.decision for leaf in waiting.missing} == {PENDING}
    forced = decide(config=CONFIG, facts=facts(UNIT, sign_offs=TIM, forced=(L2,), **TLX_FILE), now=NOW)
    assert forced.decision is BLOCK


# -- the merge queue ----------------------------------------------------------------------------------------------

GROUP = "c" * 40


@pytest.mark.parametrize(
    ("members", "results", "decision"),
    [
        ([facts(*ALL_L1)], [ran("unit", head=GROUP), ran("tlx", head=GROUP)], ALLOW),
        ([facts(*ALL_L1)], [ran("unit", head=GROUP)], PENDING),
        ([facts(*ALL_L1)], [UNIT, TLX], PENDING),
        ([facts(*ALL_L1)], [ran("unit", head=GROUP), failed("tlx", "t", head=GROUP)], BLOCK),
        ([facts(*ALL_L1), facts(*ALL_L1, number=8)], [ran("unit", head=GROUP), ran("tlx", head=GROUP)], ALLOW),
        ([facts(*ALL_L1), facts(UNIT, number=8)], [ran("unit", head=GROUP), ran("tlx", head=GROUP)], PENDING),
        ([facts(*ALL_L1), facts(files=None)], [ran("unit", head=GROUP), ran("tlx", head=GROUP)], BLOCK),
        ([facts(UNIT, failed("tlx", "t"), waivers=(waived("tlx::t"),))],
         [ran("unit", head=GROUP), failed("tlx", "t", head=GROUP)], BLOCK),
        ([facts(UNIT, failed("tlx", "t"), file_waivers=(filed("tlx::t"),))],
         [ran("unit", head=GROUP), failed("tlx", "t", head=GROUP)], ALLOW),
        ([], [ran("unit", head=GROUP), ran("tlx", head=GROUP)], BLOCK),
    ],
)  # fmt: skip
def test_a_group_needs_each_member_and_its_own_run(
    members: list[GateFacts], results: list[Any], decision: Decision
) -> None:
    result = decide_group(config=CONFIG, head=GROUP, members=members, results=results, now=NOW)
    assert result.decision is decision, result.missing
    assert result.head == GROUP
    broken = decide_group(config=None, head=GROUP, members=members, results=results, now=NOW)
    assert broken.decision is BLOCK


def test_a_failure_names_what_waives_it() -> None:
    """The name that the gate shows is one that a waiver accepts, with spaces too."""
    result = decide(config=CONFIG, facts=facts(UNIT, failed("tlx", "suite :: a b")), now=NOW)
    assert '/waive "suite :: a b" until=' in (result.missing[0].command or "")
    assert Failure(L1, "tlx", Outcome.FAILED, test="suite :: a b").name == "suite :: a b"


def test_people_are_known() -> None:
    assert PEOPLE.can_maintain("max")
    assert NOW.tzinfo is UTC
