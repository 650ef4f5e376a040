from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.core.turns import STEP, Line, Turn, Waiting, in_turn

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def waits(
    run: str, *, number: int | None = 1, turn: Turn = Turn.PULL, ago: float = 0, place: int, fork: str = "o/a"
) -> Waiting:
    return Waiting(run, fork, number, turn, NOW - ago * MINUTE, place)


def order(*waiting: Waiting, served: dict[Line, datetime] | None = None) -> list[str]:
    return [one.run for one in in_turn(waiting, served=served or {}, now=NOW)]


def test_what_is_asked_for_orders_what_came_at_once() -> None:
    assert order(
        waits("search", number=None, turn=Turn.SEARCH, place=1),
        waits("trunk", number=None, turn=Turn.TRUNK, place=2),
        waits("pull", place=3),
        waits("command", number=2, turn=Turn.COMMAND, place=4),
        waits("group", number=0, turn=Turn.GROUP, place=5),
    ) == ["group", "command", "pull", "trunk", "search"]


def test_forty_suites_do_not_starve_one() -> None:
    many = [waits(f"m{n}", number=1, ago=5, place=n) for n in range(40)]
    assert order(*many, waits("one", number=2, ago=1, place=99))[:3] == ["m0", "one", "m1"]


def test_runs_of_one_pull_request_keep_their_order_whatever_others_do() -> None:
    mixed = [waits(f"{n % 3}-{n}", number=n % 3 + 1, place=n) for n in range(12)]
    told = order(*mixed)
    for number in range(3):
        mine = [run for run in told if run.startswith(f"{number}-")]
        assert mine == [one.run for one in mixed if one.number == number + 1]


def test_who_was_served_last_comes_last() -> None:
    served = {Line("o/a", 1, Turn.PULL): NOW - MINUTE, Line("o/a", 2, Turn.PULL): NOW - 2 * MINUTE}
    assert order(
        waits("one", number=1, ago=30, place=1),
        waits("two", number=2, ago=30, place=2),
        waits("three", number=3, ago=3, place=3),
        served=served,
    ) == ["three", "two", "one"]


def test_a_newcomer_does_not_pass_those_who_wait() -> None:
    served = {Line("o/a", 1, Turn.PULL): NOW - 10 * MINUTE}
    assert order(waits("new", number=2, ago=1, place=9), waits("old", number=1, ago=30, place=1), served=served) == [
        "old",
        "new",
    ]


def test_repositories_take_turns_however_many_pull_requests_each_has() -> None:
    big = [waits(f"a{n}", number=n + 1, ago=5, place=n) for n in range(20)]
    told = order(*big, waits("b", fork="o/b", ago=1, place=50), waits("b2", fork="o/b", ago=1, place=51))
    assert told.index("b") == 1
    assert told.index("b2") == 3


def test_what_waited_long_without_a_turn_becomes_urgent() -> None:
    step = STEP / MINUTE
    long = waits("search", number=None, turn=Turn.SEARCH, ago=4 * step + 1, place=1)
    fresh = [waits(f"c{n}", number=n + 2, turn=Turn.COMMAND, ago=1, place=n + 2) for n in range(5)]
    assert order(long, *fresh)[0] == "search"
    # it had a turn a minute ago: the next of its runs waits anew
    served = {Line("o/a", None, Turn.SEARCH): NOW - MINUTE}
    assert order(long, *fresh, served=served)[-1] == "search"


def test_of_each_kind_of_runs_it_is_decided_whether_it_tells_of_trunk() -> None:
    assert [turn for turn in Turn if turn.tells_of_trunk] == [Turn.TRUNK]


LINES = st.tuples(st.sampled_from(["o/a", "o/b", "o/c"]), st.sampled_from([None, 0, 1, 2, 3]), st.sampled_from(Turn))
EVENTS = st.lists(st.one_of(st.tuples(LINES, st.integers(1, 9)), st.none()), max_size=60)


@settings(max_examples=200, deadline=None)
@given(EVENTS, st.integers(0, 20))
def test_nothing_is_lost_or_given_twice_and_nobody_starves(
    events: list[tuple[tuple[str, int | None, Turn], int] | None], minutes: int
) -> None:
    """Runs come and are leased in any order. Each is leased once and a line keeps its order. While a run is the oldest
    of its party in the most urgent class, others are passed before it at most once for each party and repository.
    """
    now, place = NOW, 0
    waiting: dict[str, Waiting] = {}
    given_out: list[str] = []
    served: dict[Line, datetime] = {}
    passed: dict[str, int] = {}
    parties = {Line(*line).party for line, _ in filter(None, events)}
    bound = (len({party[0] for party in parties})) * (len(parties) + 1)

    def most_urgent(one: Waiting) -> bool:
        since = max(one.since, served.get(one.line, one.since))
        return one.turn <= (now - since) // STEP

    def lease() -> None:
        one = next(in_turn(waiting.values(), served=served, now=now))
        assert one.place == min(other.place for other in waiting.values() if other.line == one.line)
        urgent = {other.run: other for other in waiting.values() if most_urgent(other)}
        oldest: dict[tuple[str, int | None, bool], Waiting] = {}
        for other in sorted(urgent.values(), key=lambda other: other.place):
            oldest.setdefault(other.line.party, other)
        if urgent:
            assert one.run in urgent
        for run in list(passed):
            if run not in {other.run for other in oldest.values()}:
                del passed[run]
        for other in oldest.values():
            passed[other.run] = passed.get(other.run, 0) + (other is not one)
            assert passed[other.run] <= bound, (other, bound)
        served[one.line] = now
        given_out.append(waiting.pop(one.run).run)

    for event in events:
        now += minutes * MINUTE + timedelta(seconds=1)
        if event is None:
            if waiting:
                lease()
            continue
        for _ in range(event[1]):
            place += 1
            waiting[f"r{place}"] = Waiting(f"r{place}", event[0][0], event[0][1], event[0][2], now, place)
    while waiting:
        now += minutes * MINUTE + timedelta(seconds=1)
        lease()
    assert sorted(given_out) == sorted(f"r{n}" for n in range(1, place + 1))
