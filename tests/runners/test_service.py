"""The whole path of a run: queue, lease, checkout, suite, report; through cancelling, restarts and strange runners."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.clients.store import Store
from bot.core.config import Suite
from bot.core.types import Outcome
from bot.core.validation import Report
from tests.runners.world import World, commit, world

TESTS = """
import os
def test_good(): pass
def test_no_secret():
    assert not [name for name in os.environ if "TOKEN" in name or "REDIS" in name]
"""
UNIT = Suite.model_validate({"suite": "unit", "run": ["python", "-m", "pytest", "-q", "t"], "timeout": "60s"})


@pytest.fixture
async def bot(tmp_path: Path, sqlite_store: Store) -> AsyncIterator[World]:
    async with world(tmp_path, sqlite_store) as made:
        yield made


async def test_a_run_goes_from_the_queue_to_its_report(bot: World, tmp_path: Path) -> None:
    sha = commit(tmp_path / "fork", {"t/test_a.py": TESTS})
    bot.publish(tmp_path / "fork")
    bot.runner()
    run_id = await bot.offer(sha, UNIT, expected=("t/test_a.py::test_good", "t/test_a.py::test_no_secret"))
    run = await bot.done(run_id)
    report = Report.model_validate(run.report)
    assert run.outcome == Outcome.PASSED, report
    assert [test.id for test in report.tests] == ["t/test_a.py::test_good", "t/test_a.py::test_no_secret"]
    assert report.manifest.canary is True
    assert report.subject.commit == sha
    assert (bot.context.settings.data / "runs" / run_id / "1.log").read_text().startswith("$ python -m pytest")
    jobs = await bot.store.jobs_of(kind="results") if hasattr(bot.store, "jobs_of") else None
    assert jobs is None or jobs
    assert not list((tmp_path / "runner-one" / "trees").iterdir())
