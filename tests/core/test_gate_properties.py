from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bot.core.config import Config
from bot.core.gate import GateFacts, PullFact, PullKind, ReviewState, RunState, SuiteResult, decide
from bot.core.owners import People
from bot.core.signoff import Void
from bot.core.types import Decision, Outcome
from bot.core.waivers import WaiverState
from tests.core.gate_world import (
    ALL,
    CONFIG,
    HEAD,
    NAMES,
    NOW,
    OLD,
    PEOPLE,
    RAW,
    config,
    failed,
    filed,
    ran,
    red,
    review,
    signed,
    waived,
)

SUITES = sorted(NAMES)
STRICT = config(require_signoff_from=["area"], keep_signoff_outside_area=True, levels=["l1", "l2", "l3"])
CONFIGS = st.sampled_from([CONFIG, STRICT, config(persons=False), Config.of(RAW | {"gate": {}})])
FILES = ("docs/a", "lib/a", "tlx/a", "rec/a", "heavy/a", "cmake/llvm-x", ".github/graft-waivers.yml")


def subset(values: Any, most: int = 4) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from(list(values)), max_size=most).map(tuple)


RESULTS = [ran(name, outcome, attempt=n, head=head) for name in SUITES for n in (1, 2) for head in (HEAD, OLD)
           for outcome in (Outcome.PASSED, Outcome.INFRA)]  # fmt: skip
RESULTS += [failed(name, "t") for name in SUITES] + [failed(name, "t", "u", attempt=2) for name in SUITES]
RESULTS += [ran(name, None, state=RunState.QUEUED) for name in SUITES]
SIGNED = [signed(area, by) for area, by in (("core", "olga"), ("tlx", "tim"), ("recsys", "rita"))]
SIGNED += [signed("core", "olga", Void.EDITED), signed("tlx", "tom", Void.OTHER_COMMIT)]
WAIVED = [waived(f"{name}::t") for name in SUITES] + [waived("unit::u", WaiverState.LAPSED), waived("tlx::u", head=OLD)]
FILED = [filed("unit::t"), filed("tlx::t", WaiverState.LAPSED, areas=("tlx",)), filed("gemm::u")]
REVIEWS = [review(by, state) for by in ("olga", "tim", "max", "rita") for state in ReviewState]
PULLS = st.builds(
    PullFact,
    number=st.just(7),
    author=st.sampled_from(["wanda", "olga", "graft[bot]"]),
    head=st.just(HEAD),
    kind=st.sampled_from(PullKind),
    draft=st.booleans(),
    files=st.one_of(st.none(), subset(FILES)),
    symbols=subset(["LinearLayout", "f"], 1),
    labels=subset(["risk:heavy", "other"], 2),
    risks=st.one_of(st.none(), subset(["layouts", "gone"], 2)),
    toolchain=st.booleans(),
    fixes=subset(["t1"], 1),
    conflict_markers=st.one_of(st.none(), st.just(()), st.just(("a",))),
    open_findings=st.one_of(st.just(()), st.just(("lost",))),
)
FACTS = st.builds(
    GateFacts,
    pull=PULLS,
    results=st.one_of(st.just(ALL), subset(RESULTS, 8)),
    sign_offs=st.one_of(st.just(tuple(SIGNED)), subset(SIGNED)),
    waivers=subset(WAIVED),
    file_waivers=st.one_of(st.none(), subset(FILED)),
    reviews=st.one_of(st.none(), subset(REVIEWS)),
    breakages=st.one_of(st.none(), subset([red("core"), red("tlx", "t2")], 2)),
    halted=st.sampled_from([False, False, False, True, None]),
    people=st.just(PEOPLE),
    forced=subset([NAMES["gemm"]], 1),
)


def calm(facts: GateFacts) -> GateFacts:
    """The same without what would shut nearly every example."""
    pull = replace(facts.pull, draft=False, conflict_markers=(), open_findings=(), risks=facts.pull.risks or ())
    pull = replace(pull, files=pull.files or (), toolchain=False)
    reviews = tuple(r for r in facts.reviews or () if r.state is not ReviewState.CHANGES_REQUESTED)
    return replace(facts, pull=pull, halted=False, reviews=reviews, breakages=(), file_waivers=facts.file_waivers or ())


ANY = st.one_of(FACTS, FACTS.map(calm), FACTS.map(calm).map(lambda facts: replace(facts, results=ALL)))


def opens(facts: GateFacts, file: Config | None = CONFIG) -> bool:
    return decide(config=file, facts=facts, now=NOW).decision is Decision.ALLOW


def pull(facts: GateFacts, **more: Any) -> GateFacts:
    return replace(facts, pull=replace(facts.pull, **more))


def result(facts: GateFacts, more: SuiteResult) -> GateFacts:
    return replace(facts, results=(*facts.results, more))


def without(facts: GateFacts, suite: str) -> GateFacts:
    return replace(facts, results=tuple(known for known in facts.results if known.suite != suite))


WORSE: list[Callable[[GateFacts], GateFacts]] = [
    *(
        lambda facts, name=name, attempt=attempt: result(facts, failed(name, "new", attempt=attempt))
        for name in SUITES
        for attempt in (1, 2, 3)
    ),
    *(
        lambda facts, name=name, outcome=outcome: result(facts, ran(name, outcome, attempt=9))
        for name in SUITES
        for outcome in Outcome
        if outcome is not Outcome.PASSED
    ),
    *(lambda facts, name=name: result(facts, ran(name, truncated=True, attempt=9)) for name in SUITES),
    lambda facts: replace(facts, reviews=(*(facts.reviews or ()), review("olga", ReviewState.CHANGES_REQUESTED))),
    lambda facts: replace(facts, breakages=facts.breakages and (*facts.breakages, red("core", "new"))),
    lambda facts: replace(facts, halted=True),
    lambda facts: pull(facts, draft=True),
    lambda facts: pull(facts, conflict_markers=("x",)),
    lambda facts: pull(facts, open_findings=("x",)),
    lambda facts: pull(facts, labels=(*facts.pull.labels, "risk:llvm-bump")),
    lambda facts: pull(facts, toolchain=True),
    lambda facts: pull(facts, files=(*facts.pull.files, "tlx/new")) if facts.pull.files is not None else facts,
    lambda facts: replace(facts, sign_offs=(*facts.sign_offs, signed("core", "olga", Void.OVER_BUDGET))),
]  # fmt: skip

LESS: list[Callable[[GateFacts], GateFacts]] = [
    lambda facts: pull(facts, files=None),
    lambda facts: pull(facts, risks=None),
    lambda facts: pull(facts, conflict_markers=None),
    lambda facts: pull(facts, open_findings=None),
    lambda facts: pull(facts, fixes=()),
    lambda facts: replace(facts, results=()),
    lambda facts: replace(facts, sign_offs=()),
    lambda facts: replace(facts, waivers=()),
    lambda facts: replace(facts, file_waivers=None),
    lambda facts: replace(facts, reviews=None),
    lambda facts: replace(facts, breakages=None),
    lambda facts: replace(facts, halted=None),
    lambda facts: replace(facts, people=People()),
    *(lambda facts, n=n: replace(facts, sign_offs=facts.sign_offs[:n] + facts.sign_offs[n + 1 :]) for n in range(4)),
    *(lambda facts, n=n: replace(facts, waivers=facts.waivers[:n] + facts.waivers[n + 1 :]) for n in range(4)),
    *(lambda facts, name=name: without(facts, name) for name in SUITES),
    lambda facts: replace(facts, reviews=tuple(r for r in facts.reviews or () if r.state is not ReviewState.APPROVED))
    if facts.reviews is not None
    else facts,
    lambda facts: replace(
        facts, results=tuple(replace(r, failures=(), truncated=True) if r.failures else r for r in facts.results)
    ),
]  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(ANY, CONFIGS, st.sampled_from(WORSE))
def test_adding_a_failure_never_opens(facts: GateFacts, file: Config, worse: Callable[[GateFacts], GateFacts]) -> None:
    assert opens(facts, file) or not opens(worse(facts), file)


@settings(max_examples=250, deadline=None)
@given(ANY, CONFIGS, st.sampled_from(LESS))
def test_losing_a_fact_never_opens(facts: GateFacts, file: Config, less: Callable[[GateFacts], GateFacts]) -> None:
    assert opens(facts, file) or not opens(less(facts), file)
    assert not opens(facts, None)


@settings(max_examples=120, deadline=None)
@given(ANY, CONFIGS, st.randoms(use_true_random=False))
def test_order_and_repetition_mean_nothing(facts: GateFacts, file: Config, chance: random.Random) -> None:
    def mix(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if not values:
            return values
        twice = [*values, *chance.choices(values, k=2)]
        chance.shuffle(twice)
        return tuple(twice)

    names = ("results", "sign_offs", "waivers", "file_waivers", "reviews", "breakages")
    fields: dict[str, Any] = {name: mix(getattr(facts, name)) for name in names}
    mixed = replace(facts, **fields)
    one, other = (decide(config=file, facts=known, now=NOW) for known in (facts, mixed))
    assert one.decision is other.decision
    assert one.missing == other.missing


@settings(max_examples=120, deadline=None)
@given(ANY, CONFIGS)
def test_the_tree_says_the_worst_of_its_leaves(facts: GateFacts, file: Config) -> None:
    result = decide(config=file, facts=facts, now=NOW)
    said = {leaf.decision for leaf in result.tree.leaves}
    worst = next(d for d in (Decision.BLOCK, Decision.PENDING, Decision.ALLOW) if d in said)
    assert result.decision is worst
    assert (result.missing == ()) is (result.decision is Decision.ALLOW)
    assert len(result.summary) <= 200


@settings(max_examples=120, deadline=None)
@given(FACTS.map(calm).map(lambda facts: replace(facts, results=ALL, sign_offs=tuple(SIGNED))))
def test_what_opens_has_all_that_is_asked(facts: GateFacts) -> None:
    """An open gate, held against the requirement told anew in the plainest words."""
    assume(opens(facts, STRICT))
    known = facts.pull
    assert known.files is not None
    assert not known.draft
    assert facts.halted is False
    for name, level in NAMES.items():
        area = {"unit": "core", "tlx": "tlx", "gemm": "core", "soak": "core"}[name]
        if name != "soak" or area in decide(config=STRICT, facts=facts, now=NOW).areas:
            mine = [r for r in facts.results if (r.suite, r.level, r.head) == (name, level, HEAD)]
            assert any(r.state is RunState.DONE and r.outcome in (Outcome.PASSED, Outcome.FAILED) for r in mine)
    stands = {s.area for s in facts.sign_offs if s.stands}
    touched = {area for area, start in (("core", "lib/"), ("core", "heavy/"), ("tlx", "tlx/"), ("recsys", "rec/"))
               if any(path.startswith(start) for path in known.files)}  # fmt: skip
    assert touched <= stands


def test_the_examples_do_open_sometimes() -> None:
    """The properties above would be hollow if the gate were always shut."""
    plain = GateFacts(PullFact(7, "wanda", HEAD, files=("lib/a",)), results=ALL, sign_offs=tuple(SIGNED), people=PEOPLE)
    assert opens(plain, STRICT)
    assert opens(plain)
    assert all(opens(change(plain)) or not opens(change(plain)) for change in (*WORSE, *LESS))
