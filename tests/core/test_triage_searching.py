"""What a run tells a search for a culprit: only the cause itself is bad."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.core.bisect import Ask, Culprit, Inconclusive, Missing, NoCulprit, Seen, next_step
from bot.core.triage import Digest, Failure
from bot.core.triage.searching import Hunt, Standing, seen_of
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
