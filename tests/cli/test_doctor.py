from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from bot.cli.doctor import command
from bot.clients.store import Run, Runner, Store
from tests.conftest import NOW


def doctor(folder: Path, *arguments: str) -> tuple[int, Any, str]:
    """Exit status, JSON and standard error of `graft doctor --json`."""
    app = typer.Typer()
    app.command()(command)
    environment = {"GRAFT_DATA": str(folder), "GRAFT_REDIS_URL": "redis://127.0.0.1:1"}
    done = CliRunner().invoke(app, ["--json", *arguments], env=environment)
    return done.exit_code, json.loads(done.stdout or "null"), done.stderr


async def park(folder: Path, why: str) -> int:
    """A job that was given up; gives its number."""
    store = await Store.open(f"sqlite:///{folder / 'graft.db'}")
    await store.enqueue("gate", "#12", {}, installation=1, repository="o/r", now=NOW)
    job = await store.lease(NOW, 30, "w")
    assert job is not None
    await store.park(job, why, NOW)
    await store.close()
    return job.id


def test_a_parked_job_is_shown_and_runs_again(tmp_path: Path) -> None:
    number = asyncio.run(park(tmp_path, "ValueError: no such branch"))
    status, said, _ = doctor(tmp_path)
    assert status == 1
    assert {"parked", "redis", "github"} <= {one["kind"] for one in said["findings"]}
    parked = next(one for one in said["findings"] if one["kind"] == "parked")
    assert "no such branch" in parked["text"]
    status, said, _ = doctor(tmp_path, "--retry", str(number))
    assert said["facts"]["parked"] == []
    assert said["facts"]["jobs"] == {"waiting": 1}
    status, _, error = doctor(tmp_path, "--retry", "999")
    assert (status, "999" in error) == (2, True)


def test_a_runner_whose_probe_fails_is_shown(tmp_path: Path) -> None:
    async def fill() -> None:
        store = await Store.open(f"sqlite:///{tmp_path / 'graft.db'}")
        now = datetime.now(UTC)
        for name, healthy, seen in (
            ("full", False, now),
            ("well", True, now),
            ("gone", False, now - timedelta(days=9)),
        ):
            facts = {"healthy": healthy, "health": f"{name}: 0.1 GiB free"}
            await store.register_runner(Runner(name=name, token_hash=name, labels=("gpu",), facts=facts, seen_at=seen))
        await store.close()

    asyncio.run(fill())
    status, said, _ = doctor(tmp_path)
    sick = [(one["where"], one["text"]) for one in said["findings"] if one["kind"] == "sick_runner"]
    assert (status, sick) == (1, [("full", "full: 0.1 GiB free")])


def test_a_folder_that_can_not_be_used(tmp_path: Path) -> None:
    (tmp_path / "graft.db").mkdir()
    status, _, error = doctor(tmp_path)
    assert status == 2
    assert "the store can't be used" in error
    assert "Traceback" not in error


def test_what_suites_cost_is_shown(tmp_path: Path) -> None:
    async def fill() -> None:
        store = await Store.open(f"sqlite:///{tmp_path / 'graft.db'}")
        now = datetime.now(UTC)
        for index, (outcome, report) in enumerate(
            [("passed", {"gpu_seconds": 1800.0}), ("failed", {}), ("infra", None)]
        ):
            run = Run(
                id=f"r{index}", repository="o/r", installation=1, number=7, sha=f"{index}" * 40, base="b" * 40,
                level="l2", suite="gemm", label="gpu", request={}, deadline=now, queued_at=now,
                started_at=now - timedelta(hours=1),
            )  # fmt: skip
            await store.create_run(run)
            await store.finish_run(run.id, outcome=outcome, report=report, now=now)
        await store.close()

    asyncio.run(fill())
    _, said, _ = doctor(tmp_path)
    (cost,) = said["facts"]["costs"]
    assert (cost["suite"], cost["runs"], cost["gpu_hours"], cost["caught"], cost["wasted"]) == ("gemm", 3, 0.5, 1, 1)
    assert cost["hours"] == pytest.approx(3)
    _, said, _ = doctor(tmp_path, "--days", "0")
    assert said["facts"]["costs"] == []
    app = typer.Typer()
    app.command()(command)
    environment = {"GRAFT_DATA": str(tmp_path), "GRAFT_REDIS_URL": "redis://127.0.0.1:1", "COLUMNS": "200"}
    assert "o/r l2 gemm" in CliRunner().invoke(app, [], env=environment).stdout
