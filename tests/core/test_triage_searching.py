"""What a run tells a search for a culprit: only the cause itself is bad."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.bisect import Ask, Culprit, Inconclusive, Missing, NoCulprit, Record, Seen, next_step
from bot.core.triage import Digest, Failure
from bot.core.triage.searching import RECORDED, Hunt, Standing, record_of, seen_of
from bot.core.types import Level

SHAS = tuple(f"{n:040x}" for n in range(9))
HUNT = Hunt(
    signature="A", suite="unit", level="l1", shas=SHAS, probes=("t",), by="mia", started="2026-11-29", before=("old",)
)


def run(place: int, name: str = "r", *, red: dict[str, str] | None = None, green: tuple[str, ...] = ()) -> Digest:
    failures = tuple(Failure(test, cause, "code", cause) for test, cause in (red or {}).items())
    return Digest(name, SHAS[place], Level.L1, "unit", failures, frozenset(green))


@pytest.mark.parametrize(
    ("digest", "seen"),
    [
        (run(1, red={"t": "A"}), Seen.FAIL),
        (run(1, red={"u": "A"}, green=("t",)), Seen.FAIL),
        (run(1, green=("t",)), Seen.PASS),
        (run(1, red={"t": "B"}), Seen.SKIP),
        (run(1, red={"the whole suite": "C"}), Seen.SKIP),
        (replace(run(1, red={"the whole suite": "C"}), crashed=True), Seen.SKIP),
        (replace(run(1, green=("u",)), silent=frozenset({"t"})), Seen.SKIP),
        (run(1, green=("u",)), Seen.ABSENT),
        (replace(run(1), judged=False), None),
        (replace(run(1, green=("u",)), silent=frozenset({"t"}), infra=("connection reset",)), None),
        (replace(run(1, red={"t": "B"}), infra=("connection reset",)), Seen.SKIP),
        (replace(run(1, red={"v": "A"}), silent=frozenset({"t"}), infra=("connection reset",)), Seen.FAIL),
    ],
)
def test_what_a_run_shows(digest: Digest, seen: Seen | None) -> None:
    assert seen_of(digest, signature="A", probes=("t",)) is seen


def green(*tests: str) -> Digest:
    return run(0, green=tests or ("t",))


@pytest.mark.parametrize(
    ("newest_first", "record"),
    [
        ([], Record()),
        ([green(), green(), run(0, red={"t": "A"}), green()], Record(fails=1, passes=3)),
        # what proves nothing is not counted: the machine's, another failure, a test that is not there
        ([green(), replace(run(0), judged=False), run(0, red={"t": "B"}), green("u")], Record(passes=1)),
        # broken before, and mended: no flake
        ([green(), green(), *[run(0, red={"t": "A"})] * 3, green()], Record(passes=2)),
        ([green()] * 50, Record(passes=RECORDED)),
    ],
)
def test_what_trunk_told_before_is_a_record(newest_first: list[Digest], record: Record) -> None:
    assert record_of(newest_first, signature="A", probes=("t",)) == record


def test_a_record_saves_runs_and_is_kept_with_the_search() -> None:
    def ran(hunt: Hunt) -> int:
        told: list[Digest] = []
        while isinstance(step := next_step(search=hunt.search(), runs=hunt.runs(told)), Ask):
            told += [_by_the_truth(at, f"r{len(told)}") for at in step.positions]
        assert isinstance(step, Culprit)
        assert step.positions == (5,)
        return len(told)

    known = HUNT.model_copy(update={"record": Record(passes=20)})
    assert ran(known) < ran(HUNT)
    assert Hunt.model_validate_json(known.model_dump_json()) == known


def _by_the_truth(place: int, name: str) -> Digest:
    return run(place, name, red={"t": "A"}) if place >= 5 else run(place, name, green=("t",))


@pytest.mark.parametrize(
    ("digest", "seen"),
    [
        (run(1, red={"t": "B"}, green=("v",)), Seen.PASS),
        (replace(run(1, green=("v",)), silent=frozenset({"t"}), infra=("connection reset",)), Seen.PASS),
        (replace(run(1, red={"the whole suite": "C"}, green=("v",)), crashed=True, silent=frozenset({"t"})), Seen.PASS),
        (run(1, red={"t": "B", "v": "A"}), Seen.FAIL),
        (run(1, red={"v": "A"}, green=("t",)), Seen.FAIL),
        (run(1, red={"t": "B", "v": "C"}), Seen.SKIP),
        (run(1, red={"t": "B"}, green=("u",)), Seen.SKIP),
    ],
)
def test_one_probe_that_passes_clears_a_commit_whatever_masks_the_others(digest: Digest, seen: Seen) -> None:
    assert seen_of(digest, signature="A", probes=("t", "v")) is seen


def test_only_runs_that_the_search_asked_for_count() -> None:
    other_suite = replace(run(2, green=("t",)), suite="side")
    elsewhere = replace(run(2, green=("t",)), sha="f" * 40)
    told = [run(0, green=("t",)), run(8, "old", red={"t": "A"}), other_suite, elsewhere]
    assert [(one.position, one.seen) for one in HUNT.runs(told)] == [(0, Seen.PASS)]


def test_a_search_by_the_truth_ends_at_the_culprit() -> None:
    digests: list[Digest] = []
    for _ in range(40):
        step = next_step(search=HUNT.search(), runs=HUNT.runs(digests))
        if not isinstance(step, Ask):
            break
        digests += [
            run(place, f"r{len(digests)}", red={"t": "A"}) if place >= 5 else run(place, green=("t",))
            for place in step.positions
        ]
    ended = HUNT.ended(step)
    assert (ended.standing, ended.culprits) == (Standing.CULPRIT, (SHAS[5],))
    assert Hunt.of({"hunt": ended.model_dump(mode="json")}) == ended


def test_a_good_end_that_fails_accuses_nobody() -> None:
    digests = [run(place, f"r{n}{place}", red={"t": "A"}) for n in range(12) for place in (0, 8)]
    step = next_step(search=HUNT.search(), runs=HUNT.runs(digests))
    assert not isinstance(step, Culprit)
    ended = HUNT.ended(Inconclusive(Missing.GOOD_END))
    assert (ended.standing, ended.said) == (Standing.INCONCLUSIVE, Missing.GOOD_END.value)
    assert "as good as the good one" in HUNT.ended(NoCulprit(0.99)).said
