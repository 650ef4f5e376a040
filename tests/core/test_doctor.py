from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.core.doctor import BudgetFact, Facts, FindingKind, IngestFact, JobFact, RunFact, diagnose, suite_costs

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
JOB = JobFact(7, "gate", "#12", "o/r", 6, "Boom: x\n  in file", NOW - HOUR)
INGEST = IngestFact("o/r", NOW - HOUR, None, None)


@pytest.mark.parametrize(
    ("facts", "kinds"),
    [
        (Facts(), []),
        (Facts(store="gone"), [FindingKind.STORE]),
        (Facts(redis="gone", github="401"), [FindingKind.REDIS, FindingKind.GITHUB]),
        (Facts(parked=(JOB,)), [FindingKind.PARKED]),
        (Facts(stale=(JOB,)), [FindingKind.STALE_LEASE]),
        (Facts(stale=(replace(JOB, since=NOW - MINUTE),)), []),
        (Facts(waiting_since=NOW - HOUR), [FindingKind.NO_WORKER]),
        (Facts(waiting_since=NOW + HOUR), []),
        (Facts(ingests=(INGEST,)), []),
        (Facts(ingests=(replace(INGEST, good_at=NOW - 25 * HOUR),)), [FindingKind.INGEST]),
        (Facts(ingests=(IngestFact("o/r", None, NOW - 25 * HOUR, "403"),)), [FindingKind.INGEST]),
        (Facts(ingests=(IngestFact("o/r", None, None, None),)), []),
        (Facts(unanswered=("o/r#1",)), [FindingKind.UNANSWERED]),
        (Facts(gpu_budgets=(BudgetFact("o/r", "core", "1.0 of 2", False),)), []),
        (Facts(gpu_budgets=(BudgetFact("o/r", "core", "2.0 of 2", True),)), [FindingKind.GPU_BUDGET]),
        (Facts(waiting_labels={"gpu": NOW - HOUR}), [FindingKind.NO_RUNNER]),
        (Facts(waiting_labels={"gpu": NOW - HOUR}, seen_labels={"gpu": NOW - MINUTE}), []),
        (Facts(waiting_labels={"gpu": NOW - HOUR}, seen_labels={"gpu": NOW - HOUR}), [FindingKind.NO_RUNNER]),
        (Facts(waiting_labels={"gpu": NOW - MINUTE}), []),
        (Facts(sick_runners={"one": "the disk is nearly full"}), [FindingKind.SICK_RUNNER]),
    ],
)
def test_diagnose(facts: Facts, kinds: list[FindingKind]) -> None:
    found = diagnose(facts=facts, now=NOW, ingest_after=24 * HOUR)
    assert [one.kind for one in found] == kinds
    assert all(one.where and one.text and one.mend for one in found)


def test_a_parked_job_tells_how_to_run_it_again() -> None:
    (found,) = diagnose(facts=Facts(parked=(JOB,)), now=NOW, ingest_after=HOUR)
    assert found.where == "gate o/r #12"
    assert found.text == "given up after 6 tries: Boom: x"
    assert "--retry 7" in found.mend


def ran(suite: str, commit: str, outcome: str, *, trunk: bool = False, gpu: float = 3600, level: str = "l1") -> RunFact:
    return RunFact("o/r", level, suite, trunk, commit, outcome, gpu, 7200)


def test_what_a_suite_cost_and_caught() -> None:
    runs = [
        ran("unit", "a", "passed", gpu=0),
        ran("unit", "b", "failed", gpu=0),
        ran("unit", "b", "failed", gpu=0),  # again: the commit counts once
        ran("unit", "c", "omitted", gpu=0),
        ran("gemm", "b", "timed_out", level="l2"),
        ran("gemm", "t", "failed", trunk=True, level="l2"),
        ran("gemm", "d", "infra", level="l2"),
        ran("idle", "a", "passed", gpu=1800),
    ]
    gemm, idle, unit = suite_costs(runs)
    assert (gemm.suite, gemm.runs, gemm.gpu_hours, gemm.hours) == ("gemm", 3, 3.0, 6.0)
    assert (gemm.caught, gemm.only, gemm.escaped, gemm.wasted, gemm.per_catch) == (1, 0, 1, 1, 1.5)
    assert (unit.caught, unit.only, unit.escaped, unit.per_catch) == (2, 1, 0, 4.0)  # without a GPU: machine hours
    assert (idle.suite, idle.caught, idle.per_catch) == ("idle", 0, None)
    assert suite_costs([]) == ()
