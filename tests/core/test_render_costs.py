from __future__ import annotations

from datetime import UTC, datetime

from bot.core.doctor import RunFact, suite_costs
from bot.core.render.dashboard import DashboardFacts, dashboard_body
from bot.core.types import Level, Mode
from tests.core.test_render import plan
from tests.golden import same_as_golden

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def ran(
    suite: str, outcome: str, commit: str, *, gpu: float = 0.0, trunk: bool = False, level: Level = Level.L1
) -> RunFact:
    return RunFact("acme/tilec", level.value, suite, trunk, commit, outcome, gpu, 3600.0)


def costs_of(*runs: RunFact) -> str:
    body = dashboard_body(DashboardFacts("up/tilec", Mode.ACT, NOW, plan(), costs=suite_costs(runs)))
    _, title, rest = body.partition("### What each suite cost")
    return title + rest.partition("### Do")[0] if title else ""


def test_value_against_cost_is_on_the_dashboard() -> None:
    text = costs_of(
        ran("unit", "failed", "a"),
        ran("unit", "passed", "b"),
        ran("unit", "infra", "c"),
        ran("gemm", "failed", "a", gpu=7200, level=Level.L2),
        ran("gemm", "failed", "t", gpu=7200, trunk=True, level=Level.L2),
        ran("docs", "passed", "a", gpu=90_000),
    )
    same_as_golden("dashboard_costs.md", text)


def test_it_says_nothing_of_nothing_and_is_cut_where_there_are_many() -> None:
    assert costs_of() == ""
    text = costs_of(*(ran(f"s{n}", "passed", "a", gpu=float(n)) for n in range(40)))
    assert "And 20 cheaper suites" in text
    assert "`s39`" in text and "`s1`" not in text
