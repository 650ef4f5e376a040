"""GPU hours by area and month: what is counted, what is refused, and what the file may say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bot.core.config import Config, ConfigError, load
from bot.core.gpubudget import GpuRun, Raise, area_of, counts, month_budgets, month_key, month_start, over_budget
from bot.core.types import Level

L1, L2, L3 = Level.L1, Level.L2, Level.L3
FILE = """
upstream: {repository: a/b}
areas:
  recsys: {owners: [olga], gpu_hours_per_month: 10}
  core: {paths: [lib/**], suites: [shared], gpu_hours_per_month: 0.5}
  free: {paths: [docs/**]}
validation:
  l1: [{suite: unit, area: recsys}]
  l2: [{suite: sweep, area: recsys}, {suite: shared}]
  l3: [{suite: model, area: recsys}, {suite: loose}, {suite: text, area: free}]
"""


def config() -> Config:
    return load(FILE)


def hours(level: Level, suite: str, number: float | None, *, trunk: bool = False) -> GpuRun:
    return GpuRun(level, suite, trunk, None if number is None else number * 3600)


@pytest.mark.parametrize(
    ("runs", "raises", "area", "used", "waiting", "allowed", "spent"),
    [
        ([], [], "recsys", 0, 0, 10, False),
        ([hours(L3, "model", 9.5)], [], "recsys", 9.5, 0, 10, False),
        ([hours(L3, "model", 10)], [], "recsys", 10, 0, 10, True),
        ([hours(L3, "model", 12)], [Raise("recsys", 5, "max")], "recsys", 12, 0, 15, False),
        ([hours(L3, "model", 12)], [Raise("core", 5, "max")], "recsys", 12, 0, 10, True),
        ([hours(L3, "model", 4)], [Raise("recsys", -7, "max")], "recsys", 4, 0, 3, True),
        # L2 on demand counts, L1 and trunk's L2 do not; trunk's L3 does
        ([hours(L2, "sweep", 6), hours(L3, "model", 5)], [], "recsys", 11, 0, 10, True),
        ([hours(L2, "sweep", 60, trunk=True), hours(L1, "unit", 60)], [], "recsys", 0, 0, 10, False),
        ([hours(L3, "model", 11, trunk=True)], [], "recsys", 11, 0, 10, True),
        # what is on its way takes what its suite took last
        ([hours(L3, "model", None), hours(L3, "model", 4), hours(L3, "model", 1)], [], "recsys", 5, 4, 10, False),
        ([hours(L3, "model", None)] * 2 + [hours(L3, "model", 4)], [], "recsys", 4, 8, 10, True),
        ([hours(L3, "model", None)] * 9, [], "recsys", 0, 0, 10, False),
        # an area that names a suite pays for it; suites of nobody, and of an area without a budget, are free
        ([hours(L2, "shared", 0.5)], [], "core", 0.5, 0, 0.5, True),
        ([hours(L3, "loose", 100), hours(L3, "text", 100), hours(L3, "gone", 100)], [], "core", 0, 0, 0.5, False),
    ],
)
def test_what_is_counted(
    runs: list[GpuRun], raises: list[Raise], area: str, used: float, waiting: float, allowed: float, spent: bool
) -> None:
    found = month_budgets(config=config(), runs=runs, raises=raises)
    assert set(found) == {"recsys", "core"}
    one = found[area]
    assert [one.used, one.waiting, one.allowed] == pytest.approx([used, waiting, allowed])
    assert one.spent is spent
    assert f"{used:.1f} of {allowed:g} GPU hours" in one.text


def test_what_is_refused() -> None:
    budgets = month_budgets(config=config(), runs=[hours(L3, "model", 11)], raises=[Raise("recsys", 1, "max")])
    assert "(+1 by max)" in budgets["recsys"].text

    def refused(level: Level, *suites: str) -> list[str]:
        return list(over_budget(config=config(), budgets=budgets, level=level, suites=suites))

    assert refused(L3, "model", "loose", "text") == ["model"]
    assert refused(L2, "sweep", "shared") == ["sweep"]
    assert refused(L1, "unit") == []
    assert area_of(config(), L2, "shared") == "core"
    assert area_of(config(), L3, "loose") is None
    assert not counts(L2, trunk=True)


def test_the_month_is_a_calendar_month_in_utc() -> None:
    now = datetime(2026, 11, 29, 19, 30, 5, 7, tzinfo=UTC)
    assert month_start(now) == datetime(2026, 11, 1, tzinfo=UTC)
    assert month_key(now) == "2026-11"


@pytest.mark.parametrize(
    ("old", "new", "line", "text"),
    [
        ("gpu_hours_per_month: 10", "gpu_hours_per_month: -1", 4, "greater than or equal to 0"),
        ("gpu_hours_per_month: 10", "gpu_hours_per_month: much", 4, "number"),
        ("gpu_hours_per_month: 10", "gpu_hours_per_month: .inf", 4, "finite"),
        ("gpu_hours_per_month: 10", "gpu_hours_a_month: 10", 4, "gpu_hours_per_month"),
        ("paths: [docs/**]", "paths: [docs/**], gpu_hours_per_month: 3", 6, ""),
        ("{paths: [lib/**], suites: [shared]", "{paths: [lib/**]", 5, "no suite of l2 or l3 that runs belongs to core"),
    ],
)
def test_what_the_file_may_not_say(old: str, new: str, line: int, text: str) -> None:
    changed = FILE.replace(old, new)
    assert changed != FILE
    if not text:
        load(changed)
        return
    with pytest.raises(ConfigError) as error:
        load(changed)
    assert [problem.line for problem in error.value.problems] == [line]
    assert text in str(error.value)
