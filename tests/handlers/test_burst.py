"""A trunk that breaks in many ways at once: no more issues than causes, and no more requests than GitHub takes."""

from __future__ import annotations

from benchmarks.trunk_sandbox import CREATED, POINTS, burst
from handlers.triage import ISSUES_A_DAY


async def test_two_thousand_failures_of_many_causes_stay_under_the_secondary_limits() -> None:
    told = await burst(2_000, ISSUES_A_DAY + 20)
    assert told["issues"] == ISSUES_A_DAY
    assert told["refused by a limit"] == 0
    # all that a burst may write comes within one minute where nothing holds it up
    assert told["points in the worst minute"] <= POINTS
    assert told["new things in the worst minute"] <= CREATED
    assert told["reads"] + 5 * told["writes"] <= POINTS
