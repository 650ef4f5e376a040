from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.core.doctor import Facts, FindingKind, IngestFact, JobFact, diagnose

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
        (Facts(waiting_labels={"gpu": NOW - HOUR}), [FindingKind.NO_RUNNER]),
        (Facts(waiting_labels={"gpu": NOW - HOUR}, seen_labels={"gpu": NOW - MINUTE}), []),
        (Facts(waiting_labels={"gpu": NOW - HOUR}, seen_labels={"gpu": NOW - HOUR}), [FindingKind.NO_RUNNER]),
        (Facts(waiting_labels={"gpu": NOW - MINUTE}), []),
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
