from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.command import MetricText
from bot.core.comments import CommentFact
from bot.core.config import Budget, Config
from bot.core.owners import People
from bot.core.signoff import Change, Fingerprint, SignOff, Void, declared, fingerprint, over_budget, sign_offs
from bot.core.waivers import judge, read_file

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
HEAD, OLD = "a" * 40, "b" * 40
RAW = {
    "upstream": {"repository": "a/b"},
    "areas": {
        "recsys": {"paths": ["recsys/**"], "owners": ["rita", "org/rec"]},
        "core": {"paths": ["lib/**"], "owners": ["olga"]},
        "named": {"symbols": ["*X*"], "owners": ["olga"]},
    },
    "validation": {
        "l3": [
            {
                "suite": "ranking",
                "area": "recsys",
                "metrics": ["ne", "qps"],
                "manual": True,
                "budget": {"kernels": {"qps": {"regression": "1%", "better": "higher"}, "ne": {"max": 0.81}}},
            }
        ]
    },
}
CONFIG = Config.of(RAW)
PEOPLE = People.of(
    {"rita": "write", "olga": "read", "stranger": "none", "rob": "read", "author": "write"},
    {"org/rec": ["rob", "author", "gone"]},
)
GOOD = "/signoff l3 recsys ne=0.8012 qps=+1.2%"


def say(by: str, body: str = GOOD, minute: int = 0, **more: object) -> CommentFact:
    plain = CommentFact(100 + minute, by, body, NOW + timedelta(minutes=minute), HEAD)
    return replace(plain, **more)  # type: ignore[arg-type]


def judged(*comments: CommentFact, config: Config = CONFIG, **more: object) -> tuple[SignOff, ...]:
    facts: dict[str, object] = {"people": PEOPLE, "author": "author", "head": HEAD} | more
    return sign_offs(config=config, comments=comments, **facts)  # type: ignore[arg-type]


SELF = Config.of(RAW | {"gate": {"self_signoff": True}})

TABLE: list[tuple[CommentFact, dict[str, object], Void | None]] = [
    (say("rita"), {}, None),
    (say("RITA"), {}, None),
    (say("rob"), {}, None),
    (say("rita", "/signoff l3 recsys NE=0.8 qps=0%"), {}, None),
    (say("rita", "/signoff l3 recsys ne=0.8 qps=+5% other=3"), {}, None),
    (say("rita", "thanks\r\n\r\n" + GOOD + "\r\n"), {}, None),
    (say("olga"), {}, Void.NOT_OWNER),
    (say("stranger"), {}, Void.NO_ACCESS),
    (say("nobody"), {}, Void.NO_ACCESS),
    (say("gone"), {}, Void.NO_ACCESS),
    (say("author"), {}, Void.OWN_CHANGE),
    (say("Author"), {}, Void.OWN_CHANGE),
    (say("author"), {"config": SELF}, None),
    (say("rita", "/signoff l3 nowhere ne=1"), {}, Void.UNKNOWN_AREA),
    (say("rita", edited=True), {}, Void.EDITED),
    (say("rita", deleted=True), {}, Void.DELETED),
    (say("rita", head=None), {}, Void.UNKNOWN_COMMIT),
    (say("rita", head=OLD), {}, Void.OTHER_COMMIT),
    (say("rita", GOOD + " run=r1"), {"runs": {"r1": HEAD}}, None),
    (say("rita", GOOD + " run=r1"), {"runs": {"r1": OLD}}, Void.OTHER_RUN),
    (say("rita", GOOD + " run=external-77"), {"runs": {"r1": OLD}}, None),
    (say("rita", "/signoff l3 recsys ne=0.8"), {}, Void.METRIC_MISSING),
    (say("rita", "/signoff l3 recsys"), {}, Void.METRIC_MISSING),
    (say("rita", "/signoff l3 recsys ne=0.8 qps=-1%"), {}, None),
    (say("rita", "/signoff l3 recsys ne=0.8 qps=-1.1%"), {}, Void.OVER_BUDGET),
    (say("rita", "/signoff l3 recsys ne=0.82 qps=+1%"), {}, Void.OVER_BUDGET),
    (say("rita", "/signoff l3 recsys ne=+0.1% qps=+1%"), {}, Void.OVER_BUDGET),
    (say("rita", "/signoff l3 recsys ne=+0.1% qps=+1%"), {"baselines": {"ne": 0.8}}, None),
    (say("rita", "/signoff l3 recsys ne=+2% qps=+1%"), {"baselines": {"ne": 0.8}}, Void.OVER_BUDGET),
    (say("rita", "/signoff l3 recsys ne=0.8 qps=100"), {}, Void.OVER_BUDGET),
    (say("rita", "/signoff l3 recsys ne=0.8 qps=100"), {"baselines": {"qps": 100.5}}, None),
    (say("rita", "/signoff l3 recsys ne=0.8 qps=98"), {"baselines": {"qps": 100.0}}, Void.OVER_BUDGET),
    (say("rita", "/signoff l3 recsys ne=0.8 qps=98"), {"baselines": {"qps": 0.0}}, Void.OVER_BUDGET),
]


@pytest.mark.parametrize(("comment", "facts", "void"), TABLE)
def test_one_sign_off(comment: CommentFact, facts: dict[str, object], void: Void | None) -> None:
    (found,) = judged(comment, **facts)  # type: ignore[arg-type]
    assert found.void is void, found.text
    assert found.stands is (void is None)
    assert found.text


@pytest.mark.parametrize("body", ["> " + GOOD, f"`{GOOD}`", "hello", "/signoff l3", "/signoff l3 recsys ne=nan qps=1"])
def test_what_is_no_sign_off(body: str) -> None:
    assert judged(say("rita", body)) == ()
    assert judged(say("rita", is_bot=True)) == ()


BAD = "/signoff l3 recsys ne=0.9 qps=0%"

STORIES: list[tuple[list[CommentFact], list[Void | None]]] = [
    ([say("rita"), say("rita", "/unsign l3 recsys", 1)], [Void.WITHDRAWN]),
    ([say("rita"), say("rita", "/unsign", 1)], [Void.WITHDRAWN]),
    ([say("rita"), say("rob", "/unsign l3 recsys", 1)], [Void.WITHDRAWN]),
    ([say("rita"), say("rob", "/unsign", 1)], [None]),
    ([say("rita"), say("olga", "/unsign l3 recsys", 1)], [None]),
    ([say("rita"), say("rita", "/unsign l3 core", 1)], [None]),
    ([say("rita", "/unsign", 0), say("rita", minute=1)], [None]),
    ([say("rita", GOOD + "\n/unsign")], [Void.WITHDRAWN]),
    ([say("rita", "/unsign\n" + GOOD)], [None]),
    ([say("rita"), say("rita", "/unsign", 1, deleted=True)], [None]),
    ([say("rita"), say("rita", "/unsign", 1, edited=True)], [Void.WITHDRAWN]),
    ([say("rita"), say("rita", minute=1)], [Void.REPLACED, None]),
    ([say("rita"), say("rita", BAD, 1)], [Void.REPLACED, Void.OVER_BUDGET]),
    ([say("rita", BAD), say("rita", GOOD, 1)], [Void.OVER_BUDGET, None]),
    ([say("rita"), say("rita", BAD, 1, deleted=True)], [None, Void.DELETED]),
    ([say("rita"), say("rob", BAD, 1)], [None, Void.OVER_BUDGET]),
    ([say("rita", head=OLD), say("rita", minute=1)], [Void.OTHER_COMMIT, None]),
]


@pytest.mark.parametrize(("story", "voids"), STORIES)
def test_several_comments_in_any_order(story: list[CommentFact], voids: list[Void | None]) -> None:
    for order in itertools.permutations(story):
        assert [found.void for found in judged(*order)] == voids


def test_two_readings_of_one_comment_count_as_the_lesser() -> None:
    (found,) = judged(say("rita"), say("rita", edited=True), say("rita"))
    assert found.void is Void.EDITED


def test_lost_membership_revokes() -> None:
    assert judged(say("rob"))[0].stands
    without = People.of({"rob": "read"}, {"org/rec": []})
    assert judged(say("rob"), people=without)[0].void is Void.NOT_OWNER
    assert judged(say("rob"), people=People.of({}, {"org/rec": ["rob"]}))[0].void is Void.NO_ACCESS


def test_a_waiver_of_two_people_stands_in_for_a_number() -> None:
    entry = "{scope: 'ranking#qps', until: 2026-12-31, owner: rita, reason: r, plan: p, by: [max, ada]}"
    (filed,) = read_file(f"waivers: [{entry}]")
    (alone,) = read_file(f"waivers: [{entry.replace(', ada', '')}]")
    missing = say("rita", "/signoff l3 recsys ne=0.8")
    worse = say("rita", "/signoff l3 recsys ne=0.8 qps=-50%")
    for comment in (missing, worse):
        assert judged(comment, waivers=[judge(filed, config=CONFIG, now=NOW)])[0].stands
        assert not judged(comment, waivers=[judge(alone, config=CONFIG, now=NOW)])[0].stands
        late = judge(filed, config=CONFIG, now=datetime(2027, 1, 1, tzinfo=UTC))
        assert not judged(comment, waivers=[late])[0].stands


# -- bound to what it signed --------------------------------------------------------------------------------------

KEEP = Config.of(RAW | {"gate": {"keep_signoff_outside_area": True}})
REC = Change("recsys/a.py", "1", "2", "100644")
LIB = Change("lib/b.py", "3", "4", "100644")


@pytest.mark.parametrize(
    ("old", "new", "config", "stands"),
    [
        ([REC], [REC], CONFIG, True),  # only the base moved
        ([REC, LIB], [LIB, REC], CONFIG, True),
        ([REC], [REC, LIB], CONFIG, False),
        ([REC], [REC, LIB], KEEP, True),
        ([REC, LIB], [REC], KEEP, True),
        ([REC], [replace(REC, new_oid="9")], KEEP, False),
        ([REC], [replace(REC, old_oid="9")], KEEP, False),
        ([REC], [replace(REC, mode="100755")], KEEP, False),
        ([REC], [LIB], KEEP, False),
        ([LIB], [replace(LIB, new_oid="9")], KEEP, False),  # nothing of the area to compare
    ],
)
def test_what_a_push_leaves_standing(old: list[Change], new: list[Change], config: Config, stands: bool) -> None:
    prints = {OLD: fingerprint(old, config), HEAD: fingerprint(new, config)}
    (found,) = judged(say("rita", head=OLD), config=config, fingerprints=prints)
    assert found.stands is stands, found.text
    assert not judged(say("rita", head=OLD), config=config, fingerprints={OLD: prints[OLD]})[0].stands
    assert not judged(say("rita", head=OLD), config=config)[0].stands


def test_an_area_of_symbols_has_no_fingerprint_of_its_own() -> None:
    assert set(fingerprint([REC, LIB], CONFIG).areas) == {"recsys", "core"}
    assert fingerprint([], CONFIG) == Fingerprint(fingerprint([], CONFIG).whole)


def test_declared_metrics() -> None:
    assert [metric for _, metric in declared("recsys", CONFIG)] == ["ne", "qps"]
    assert declared("core", CONFIG) == declared("nowhere", CONFIG) == ()


# -- budgets ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "budget", "baseline", "keeps"),
    [
        (MetricText("m", 1.0, False, "1"), Budget(), None, True),
        (MetricText("m", -0.5, True, "-50%"), Budget(), None, True),
        (MetricText("m", 0.02, True, "+2%"), Budget(regression=0.01), None, False),
        (MetricText("m", -0.02, True, "-2%"), Budget(regression=0.01), None, False),
        (MetricText("m", 0.02, True, "+2%"), Budget(regression=0.01, better="higher"), None, True),
        (MetricText("m", 0.02, True, "+2%"), Budget(regression=0.01, better="lower"), None, False),
        (MetricText("m", 0.01, True, "+1%"), Budget(regression=0.01, better="lower"), None, True),
        (MetricText("m", -101.0, False, "-101"), Budget(regression=0.01, better="higher"), -100.0, True),
        (MetricText("m", -102.0, False, "-102"), Budget(regression=0.01, better="higher"), -100.0, False),
        (MetricText("m", 5.0, False, "5"), Budget(min=5, max=5), None, True),
        (MetricText("m", 4.9, False, "4.9"), Budget(min=5), None, False),
    ],
)
def test_budgets(metric: MetricText, budget: Budget, baseline: float | None, keeps: bool) -> None:
    said = over_budget(metric, budget, baseline)
    assert (said is None) is keeps, said


@given(st.floats(0, 0.5), st.floats(-0.5, 0.5), st.sampled_from(["higher", "lower", None]), st.floats(1, 1e6))
def test_a_value_and_its_change_are_judged_alike(
    allowed: float, change: float, better: str | None, base: float
) -> None:
    budget = Budget.model_validate({"regression": allowed, "better": better})
    relative = over_budget(MetricText("m", change, True, "x"), budget, None)
    absolute = over_budget(MetricText("m", base * (1 + change), False, "x"), budget, base)
    edge = abs(abs(change) - allowed) < 1e-9
    assert edge or (relative is None) is (absolute is None)


EVENTS: Sequence[CommentFact] = [
    say("rita"),
    say("rita", head=OLD, minute=1),
    say("rob", BAD, 2),
    say("rita", "/unsign", 3),
    say("rob", edited=True, minute=4),
    say("olga", minute=5),
    say("rita", minute=6),
]


@given(st.permutations(EVENTS), st.lists(st.sampled_from(EVENTS), max_size=4))
def test_order_and_repetition_mean_nothing(order: list[CommentFact], again: list[CommentFact]) -> None:
    assert judged(*order, *again) == judged(*EVENTS)
