from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.comments import CommentFact, malformed
from bot.core.config import Config
from bot.core.owners import People
from bot.core.types import Level, Outcome
from bot.core.waivers import (
    Failure,
    JudgedWaiver,
    ScopeKind,
    Waiver,
    WaiverFileError,
    WaiverState,
    add_to_file,
    asks,
    from_comments,
    judge,
    kind_of,
    read_file,
    scope_problem,
    write_file,
)

L1, L2, L3 = Level
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
HEAD = "a" * 40
CONFIG = Config.of({
    "upstream": {"repository": "a/b"},
    "areas": {
        "core": {"paths": ["lib/**", "tests/**"], "owners": ["olga"]},
        "recsys": {"owners": ["rita"]},
        "tlx": {"paths": ["tlx/**"], "owners": ["tim"], "suites": ["tlx"]},
    },
    "validation": {
        "l1": [{"suite": "unit", "area": "core"}, {"suite": "tlx"}],
        "l2": [{"suite": "gemm-sweep", "harness": "bench", "area": "core"}],
        "l3": [{"suite": "ranking", "area": "recsys", "metrics": ["ne", "qps"], "manual": True}],
    },
})  # fmt: skip
PEOPLE = People.of({"max": "maintain", "ada": "admin", "wanda": "write", "bo": "maintain"})


def waiver(scope: str = "unit::test_dot", until: date = date(2026, 12, 31), **more: object) -> Waiver:
    plain = Waiver(scope, until, "olga", "driver", "new driver", by=("max",), head=HEAD)
    return replace(plain, **more)  # type: ignore[arg-type]


def comment(author: str, scope: str = "unit::test_dot", until: str = "2026-12-31", **more: object) -> CommentFact:
    body = f'/waive "{scope}" until={until} owner=@olga reason="driver" plan="new driver"'
    plain = CommentFact(1, author, body, NOW - timedelta(hours=1), HEAD)
    return replace(plain, **more)  # type: ignore[arg-type]


def judged(*comments: CommentFact, now: datetime = NOW) -> tuple[JudgedWaiver, ...]:
    return from_comments(comments=comments, people=PEOPLE, head=HEAD, pull=7, config=CONFIG, now=now)


def failed_test(name: str = "test_dot", suite: str = "unit", level: Level = L1) -> Failure:
    return Failure(level, suite, Outcome.FAILED, test=name)


COVERS: list[tuple[str, Failure, bool]] = [
    ("unit::test_dot", failed_test(), True),
    ("unit::test_dot", failed_test("test_dot[fp16]"), True),
    ("unit::test_dot[fp16]", failed_test("test_dot[fp16]"), True),
    ("unit::test_dot[fp16]", failed_test("test_dot[fp32]"), False),
    ("unit::test_dot", failed_test("test_dot2"), False),
    ("unit::test_dot", failed_test(suite="other"), False),
    ("tests/t.py::test_a", failed_test("tests/t.py::test_a"), True),
    ("tests/t.py::test_a", failed_test("tests/t.py::test_a[x::y]"), True),
    ("tests/t.py::test_a", failed_test("tests/t.py::test_ab"), False),
    ("tests/t.py::TestA::test_a", failed_test("tests/t.py::TestA::test_a"), True),
    ("unit::tests/t.py::test_a", failed_test("tests/t.py::test_a"), True),
    ("unit", failed_test(), True),
    ("unit", Failure(L1, "unit", Outcome.OMITTED), True),
    ("unit::test_dot", Failure(L1, "unit", Outcome.OMITTED), False),
    ("test_dot", failed_test(), True),
    ("ranking#ne", Failure(L3, "ranking", Outcome.FAILED, metric="ne"), True),
    ("ranking#ne", Failure(L3, "ranking", Outcome.FAILED, metric="qps"), False),
    ("gemm-sweep#fa_fwd/p95", Failure(L2, "gemm-sweep", Outcome.FAILED, metric="p95", kernel="fa_fwd"), True),
    ("gemm-sweep#p95", Failure(L2, "gemm-sweep", Outcome.FAILED, metric="p95", kernel="fa_fwd"), True),
    ("gemm-sweep#fa_bwd/p95", Failure(L2, "gemm-sweep", Outcome.FAILED, metric="p95", kernel="fa_fwd"), False),
    ("gemm-sweep", Failure(L2, "gemm-sweep", Outcome.FAILED, metric="p95", kernel="fa_fwd"), True),
    ("unit#p95", failed_test(), False),
]


@pytest.mark.parametrize(("scope", "failure", "hit"), COVERS)
def test_what_a_scope_covers(scope: str, failure: Failure, hit: bool) -> None:
    assert waiver(scope).covers(failure) is hit


@pytest.mark.parametrize("failure", [row[1] for row in COVERS])
def test_the_name_of_a_failure_covers_it(failure: Failure) -> None:
    assert waiver(failure.name).covers(failure)


@pytest.mark.parametrize(
    ("scope", "kind"),
    [
        ("unit", ScopeKind.SUITE),
        ("unit::test", ScopeKind.TEST),
        ("ranking#ne", ScopeKind.METRIC),
        ("nowhere#ne", None),
        ("nowhere", None),
        ("tests/t.py", None),
    ],
)
def test_kinds(scope: str, kind: ScopeKind | None) -> None:
    assert kind_of(scope, CONFIG) is kind


STATES: list[tuple[str, datetime, WaiverState]] = [
    ("2026-12-31", NOW, WaiverState.STANDING),
    ("2026-12-31", datetime(2026, 12, 29, 23, tzinfo=UTC), WaiverState.NEAR_EXPIRY),
    ("2026-12-31", datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), WaiverState.NEAR_EXPIRY),
    ("2026-12-31", datetime(2027, 1, 1, tzinfo=UTC), WaiverState.LAPSED),  # C63
    ("2026-11-28", NOW, WaiverState.LAPSED),
    ("2027-11-28", NOW, WaiverState.TOO_LONG),
]


@pytest.mark.parametrize(("until", "now", "state"), STATES)
def test_until_the_end_of_the_day_and_not_longer(until: str, now: datetime, state: WaiverState) -> None:
    (found,) = judged(comment("max", until=until), now=now)
    assert found.state is state
    assert found.holds is (state in (WaiverState.STANDING, WaiverState.NEAR_EXPIRY))


def test_the_day_is_utc_wherever_now_is_told() -> None:
    from datetime import timezone

    tokyo = timezone(timedelta(hours=9))
    last = datetime(2027, 1, 1, 8, 59, tzinfo=tokyo)  # 23:59 UTC on the last day
    assert judged(comment("max"), now=last)[0].holds
    assert not judged(comment("max"), now=last + timedelta(minutes=1))[0].holds


@pytest.mark.parametrize(
    ("given", "state"),
    [
        (comment("wanda"), WaiverState.NOT_ALLOWED),
        (comment("stranger"), WaiverState.NOT_ALLOWED),
        (comment("max", edited=True), WaiverState.REVOKED),
        (comment("max", deleted=True), WaiverState.REVOKED),
        (comment("max", head="b" * 40), WaiverState.OTHER_COMMIT),
        (comment("max", head=None), WaiverState.OTHER_COMMIT),
        (comment("max", scope="ranking#ne"), WaiverState.NEEDS_SECOND),
    ],
)
def test_what_does_not_count(given: CommentFact, state: WaiverState) -> None:
    (found,) = judged(given)
    assert found.state is state
    assert not found.holds
    assert found.text


def test_bots_and_broken_lines_waive_nothing() -> None:
    assert judged(comment("max", is_bot=True)) == ()
    broken = comment("max", body="/waive unit")
    assert judged(broken) == ()
    assert [one.name for _, one in malformed([broken])] == ["waive"]


def test_l3_takes_two_people() -> None:
    ne = Failure(L3, "ranking", Outcome.FAILED, metric="ne")
    one = comment("max", "ranking#ne", "2026-12-31")
    again = replace(one, id=2, created_at=NOW)
    other = replace(one, id=3, author="Ada", body=one.body.replace("12-31", "12-20"))
    assert not judged(one, again)[0].exempts(ne, head=HEAD)
    (both,) = judged(one, other)
    assert both.exempts(ne, head=HEAD)
    assert not both.exempts(ne, head="b" * 40)
    assert both.waiver.until == date(2026, 12, 20)
    assert both.waiver.by == ("max", "Ada")
    assert not judged(one, replace(other, edited=True))[0].exempts(ne, head=HEAD)
    (unit,) = judged(comment("max"))
    assert not unit.exempts(Failure(L3, "unit", Outcome.FAILED, test="test_dot"), head=HEAD)


def test_the_later_word_of_one_person_counts() -> None:
    first = comment("max", until="2026-12-31")
    second = comment("max", until="2026-12-01", id=2, created_at=NOW)
    assert judged(first, second)[0].waiver.until == date(2026, 12, 1)
    assert judged(second, first) == judged(first, second)


def test_the_areas_that_go_red() -> None:
    assert judge(waiver("unit", owner="nobody"), config=CONFIG, now=NOW).areas == ("core",)
    assert judge(waiver("ranking#ne", owner="nobody"), config=CONFIG, now=NOW).areas == ("recsys",)
    assert judge(waiver("tlx/t.py::a", owner="nobody"), config=CONFIG, now=NOW).areas == ("tlx",)
    assert judge(waiver("tlx", owner="@Olga"), config=CONFIG, now=NOW).areas == ("core", "tlx")


FAILED = [failed_test(), failed_test("test_exp")]
PASSED = [Failure(L1, "unit", Outcome.PASSED, test="test_ok")]


@pytest.mark.parametrize(
    ("scope", "failures", "known", "problem"),
    [
        ("unit::test_dot", FAILED, [], None),
        ("unit::test_ok", FAILED, PASSED, "names nothing that failed"),
        ("unit::test_dot", [], [], "what failed: nothing"),
        ("unit", FAILED, PASSED, "too much"),
        ("unit", FAILED, [], None),
        ("unit", [Failure(L1, "unit", Outcome.OMITTED)], PASSED, None),
        ("unit::test_*", FAILED, [], "wildcards"),
        ("*", FAILED, [], "wildcards"),
        ("nowhere", FAILED, [], "the suites are: unit, tlx, gemm-sweep, ranking"),
        ("t.py::test", [failed_test(f"t.py::test[{n}]") for n in range(51)], [], "too much"),
        ("t.py::test", [failed_test(f"t.py::test[{n}]") for n in range(50)], [], None),
        ("t.py::test[*]", [failed_test("t.py::test[*]")], [], None),
    ],
)
def test_nothing_and_too_much_are_errors(
    scope: str, failures: list[Failure], known: list[Failure], problem: str | None
) -> None:
    said = scope_problem(scope, config=CONFIG, failures=failures, known=known)
    assert (said is None) is (problem is None), said
    assert (problem or "") in (said or "")


# -- the fork's file ----------------------------------------------------------------------------------------------

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).filter(str.strip)
SCOPES = st.sampled_from(
    ["unit", "unit::test_a", "unit::test_a[x: 'y' # z]", "t/é.py::test[- ☃]", "ranking#ne", "a#b/c"]
)
WAIVERS = st.builds(
    Waiver,
    scope=SCOPES,
    until=st.dates(),
    owner=NAMES,
    reason=TEXTS,
    plan=TEXTS,
    by=st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    pull=st.one_of(st.none(), st.integers(1, 9999)),
    given_at=st.one_of(st.none(), st.dates().map(lambda day: datetime(day.year, day.month, day.day, tzinfo=UTC))),
)  # fmt: skip


@settings(max_examples=40)
@given(st.lists(WAIVERS, max_size=5, unique_by=lambda waiver: waiver.scope))
def test_what_is_written_is_read_again(waivers: list[Waiver]) -> None:
    text = write_file(waivers)
    assert read_file(text) == tuple(sorted(waivers, key=lambda waiver: waiver.scope))
    assert write_file(read_file(text)) == text


def test_one_of_the_same_scope_is_replaced() -> None:
    text = add_to_file("", waiver(given_at=NOW, pull=7))
    assert "given: 2026-11-29" in text
    text = add_to_file(text, waiver(until=date(2027, 1, 5)))
    (only,) = read_file(text)
    assert only.until == date(2027, 1, 5)
    assert only.head is None


ENTRY = "{scope: 'unit::a', until: 2026-12-31, owner: olga, reason: r, plan: p, by: [max]}"


@pytest.mark.parametrize("text", ["", "# nothing", "waivers: []", "waivers:"])
def test_files_without_waivers(text: str) -> None:
    assert read_file(text) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("waivers: {}", "holds one key"),
        ("other: []", "holds one key"),
        ("[]", "holds one key"),
        ("waivers: [x]", "a waiver is a mapping"),
        ("waivers: [", "no valid YAML"),
        (f"waivers:\n- {ENTRY}\n- {ENTRY}", "unit::a is waived twice"),
        (f"waivers:\n- {ENTRY}".replace("plan: p, ", ""), "line 2: plan is missing"),
        (f"waivers:\n- {ENTRY}".replace("reason: r", "reason: ''"), "line 2: reason is missing"),
        (f"waivers:\n- {ENTRY}".replace("reason: r", "raeson: r"), "did you mean reason?"),
        (f"waivers:\n- {ENTRY}".replace("2026-12-31", "soon"), "line 2: until is no date"),
        (f"waivers:\n- {ENTRY}".replace("2026-12-31", "2026-12-31 10:00:00"), "until is no date"),
        (f"waivers:\n- {ENTRY}".replace("owner: olga", "owner: 3"), "owner is no text"),
        (f"waivers:\n- {ENTRY}".replace("[max]", "max"), "by is a list"),
        (f"waivers:\n- {ENTRY}".replace("[max]", "[]"), "by is missing"),
        (f"waivers:\n- {ENTRY}".replace("by:", "pull: true, by:"), "number of a pull request"),
        ("waivers:\n" + "\n".join(f"- {ENTRY}" for _ in range(501)), "too many"),
    ],
)
def test_broken_files_are_told(text: str, says: str) -> None:
    with pytest.raises(WaiverFileError, match=says.replace("(", r"\(")):
        read_file(text)


@given(st.text(max_size=100))
def test_any_file_is_read_or_told(text: str) -> None:
    try:
        read_file(text)
    except WaiverFileError as error:
        assert error.problems


def test_waivers_of_the_file_bind_to_no_commit() -> None:
    (filed,) = read_file(f"waivers: [{ENTRY}]")
    standing = judge(filed, config=CONFIG, now=NOW)
    assert standing.exempts(failed_test("a"), head="b" * 40)
    assert judge(filed, config=CONFIG, now=datetime(2027, 1, 1, tzinfo=UTC)).state is WaiverState.LAPSED


def test_owners_are_asked_once_when_it_ends_and_when_it_has_ended() -> None:
    filed = waiver(head=None)
    days = [datetime(2026, 12, day, 12, tzinfo=UTC) for day in (20, 30, 31)] + [datetime(2027, 1, 2, tzinfo=UTC)]
    keys = [[ask.key for ask in asks([judge(filed, config=CONFIG, now=day)] * 2)] for day in days]
    assert keys[0] == []
    assert keys[1] == keys[2] == ["unit::test_dot 2026-12-31 near_expiry"]
    assert keys[3] == ["unit::test_dot 2026-12-31 lapsed"]
    (ask,) = asks([judge(filed, config=CONFIG, now=days[3])])
    assert (ask.owner, "lapsed at 2027-01-01 00:00 UTC" in ask.text) == ("olga", True)
