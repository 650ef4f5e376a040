"""The whole path of a run: queue, lease, checkout, suite, report; through cancelling, restarts and strange runners."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from bot.clients.store import Run, RunState, Store
from bot.core.config import Suite
from bot.core.types import Outcome
from bot.core.validation import Report
from tests.runners.world import REPOSITORY, TOKEN, World, commit, world

TESTS = """
import os
def test_good(): pass
def test_no_secret():
    assert not [name for name in os.environ if "TOKEN" in name or "REDIS" in name]
def test_says_a_secret(): print("ghp_" + "a" * 36)
"""
UNIT = Suite.model_validate(
    {
        "suite": "unit",
        "run": ["python", "-m", "pytest", "-s", "t"],
        "timeout": "60s",
        "env": {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    }
)
SLEEP = Suite.model_validate({"suite": "sleep", "harness": "command", "run": ["sleep", "600"], "timeout": "10m"})
IDS = ("t/test_a.py::test_good", "t/test_a.py::test_no_secret", "t/test_a.py::test_says_a_secret")


@pytest.fixture
async def bot(tmp_path: Path, sqlite_store: Store) -> AsyncIterator[World]:
    async with world(tmp_path, sqlite_store, tokens=f"one={TOKEN},two=token-of-the-second") as made:
        yield made


@pytest.fixture
def sha(bot: World, tmp_path: Path) -> str:
    made = commit(tmp_path / "fork", {"t/test_a.py": TESTS})
    bot.publish(tmp_path / "fork")
    return made


def report_of(run: Run) -> Report:
    return Report.model_validate(run.report)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - what is waited for is in another program
            await asyncio.sleep(0.05)


async def leased(bot: World, run_id: str) -> None:
    await bot.until(run_id, lambda run: run.state is RunState.LEASED)


async def test_a_run_goes_from_the_queue_to_its_report(bot: World, sha: str, tmp_path: Path) -> None:
    bot.runner()
    run_id = await bot.offer(sha, UNIT, expected=IDS)
    run = await bot.done(run_id)
    report = report_of(run)
    assert run.outcome == Outcome.PASSED, report
    assert tuple(test.id for test in report.tests) == IDS
    assert report.manifest.canary is True
    assert report.subject.commit == sha
    log = (bot.context.settings.data / "runs" / run_id / "1.log").read_text()
    assert log.startswith("$ python -m pytest")
    assert "ghp_" not in log
    assert "***" in log
    assert not list((tmp_path / "runner-one" / "trees").iterdir())
    woken = await bot.store.lease(datetime.now(UTC), 5, "worker")
    assert woken is not None
    assert (woken.kind, woken.payload["sha"]) == ("results", sha)


async def test_what_has_to_run_and_did_not_is_omitted_whatever_the_runner_says(bot: World, sha: str) -> None:
    bot.runner()
    run = await bot.done(await bot.offer(sha, UNIT, expected=(*IDS, "t/test_b.py::test_gone")))
    assert run.outcome == Outcome.OMITTED
    assert report_of(run).manifest.missing == ("t/test_b.py::test_gone",)


async def test_a_cancelled_run_ends_at_once_and_leaves_no_process(bot: World, sha: str) -> None:
    service = bot.runner()
    run_id = await bot.offer(sha, SLEEP)
    await leased(bot, run_id)
    await bot.store.finish_run(run_id, outcome="cancelled", report=None, now=datetime.now(UTC))
    await until(lambda: not service._active)
    assert (await bot.done(run_id)).outcome == Outcome.CANCELLED
    assert not _marked(run_id)


async def test_a_drained_runner_finishes_what_it_has_and_takes_no_more(bot: World, sha: str) -> None:
    service = bot.runner()
    first = await bot.offer(sha, UNIT)
    await leased(bot, first)
    service.drain()
    second = await bot.offer(sha, UNIT)
    await bot.stop(service)
    assert (await bot.done(first)).outcome == Outcome.PASSED
    waiting = await bot.store.run(second)
    assert waiting is not None
    assert waiting.state is RunState.QUEUED


async def test_a_runner_that_is_told_twice_gives_its_run_back(bot: World, sha: str) -> None:
    service = bot.runner()
    run_id = await bot.offer(sha, SLEEP)
    await leased(bot, run_id)
    service.drain()
    service.drain()
    await bot.stop(service)
    run = await bot.store.run(run_id)
    assert run is not None
    assert (run.state, run.attempt) == (RunState.QUEUED, 2)


async def test_labels_decide_who_takes_a_run(bot: World, sha: str) -> None:
    bot.runner("h100")
    both = UNIT.model_copy(update={"runner": ("gpu", "h100")})
    run_id = await bot.offer(sha, both)
    await asyncio.sleep(1)
    waiting = await bot.store.run(run_id)
    assert waiting is not None
    assert waiting.state is RunState.QUEUED
    bot.runner("h100", "gpu", token="token-of-the-second", name="two")
    assert (await bot.done(run_id)).runner == "two"


async def test_trouble_with_the_machine_is_tried_on_another(bot: World, sha: str) -> None:
    missing = Suite.model_validate(
        {"suite": "x", "harness": "command", "run": ["no-such-program"], "timeout": "10s", "retries": 1}
    )
    bot.runner()
    bot.runner(token="token-of-the-second", name="two")
    await asyncio.sleep(0.5)
    run = await bot.done(await bot.offer(sha, missing))
    assert run.outcome == Outcome.INFRA
    assert run.attempt == 2
    assert "no-such-program" in report_of(run).reason
    note = await bot.store.note(1, REPOSITORY, f"infra:{run.id}")
    assert {note["runner"], run.runner} == {"one", "two"}


async def test_a_dead_runner_s_run_goes_to_another_and_its_report_comes_too_late(bot: World, sha: str) -> None:
    environment = {"PATH": os.environ["PATH"], "GRAFT_RUNNER_TOKEN": TOKEN, "HOME": str(bot.root)}
    process = subprocess.Popen(  # noqa: ASYNC220 - it is killed, not waited for
        [sys.executable, "-m", "bot.cli", "runner", "--bot", bot.url, "--redis", bot.redis, "--name", "one",
         "--work", str(bot.root / "killed"), "--poll", "0.05"],
        env=environment, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        run_id = await bot.offer(sha, SLEEP)
        await leased(bot, run_id)
        process.send_signal(signal.SIGKILL)
        process.wait()
        later = datetime.now(UTC) + timedelta(seconds=10)
        expired = await bot.store.expire(later)
        assert [run.id for run in expired.requeued] == [run_id]
        async with httpx.AsyncClient(base_url=bot.url, headers=_bearer()) as http:
            late = await http.post(f"/runner/runs/{run_id}/report?attempt=1", content=b"{}")
        assert late.status_code == 409
    finally:
        process.kill()
        process.wait()
        for pid in _marked(run_id):
            os.kill(pid, signal.SIGKILL)


async def test_a_restart_of_the_bot_loses_no_report(tmp_path: Path, sqlite_store: Store) -> None:
    async with world(tmp_path, sqlite_store) as bot:
        made = commit(tmp_path / "fork", {"t/test_a.py": TESTS})
        bot.publish(tmp_path / "fork")
        away = bot.runner()
        gone = "http://127.0.0.1:9"
        run_id = await bot.offer(made, UNIT)
        await leased(bot, run_id)
        away.bot._http.base_url = httpx.URL(gone)
        await until(lambda: bool(list((tmp_path / "runner-one" / "reports").glob("*.json"))))
        away.bot._http.base_url = httpx.URL(bot.url)
        assert (await bot.done(run_id)).outcome == Outcome.PASSED


async def test_a_report_left_on_disk_is_handed_in_by_the_next_start(bot: World, sha: str, tmp_path: Path) -> None:
    first = bot.runner(report_for=0.0)
    run_id = await bot.offer(sha, UNIT)
    await leased(bot, run_id)
    first.bot._http.base_url = httpx.URL("http://127.0.0.1:9")
    await until(lambda: bool(list((tmp_path / "runner-one" / "reports").glob("*.json"))))
    await bot.stop(first)
    bot.runner()
    assert (await bot.done(run_id)).outcome == Outcome.PASSED
    assert not list((tmp_path / "runner-one" / "reports").glob("*.json"))


async def test_a_restart_of_redis_is_outlived(bot: World, sha: str) -> None:
    bot.runner()
    await bot.done(await bot.offer(sha, UNIT))
    bot.restart_redis()
    assert (await bot.done(await bot.offer(sha, UNIT))).outcome == Outcome.PASSED


async def test_a_build_is_made_once_for_a_commit_and_the_tree_is_clean_each_time(bot: World, tmp_path: Path) -> None:
    files = {
        "t/test_a.py": (
            "from pathlib import Path\n"
            "def test_clean():\n"
            "    assert not Path('dirt').exists()\n"
            "    Path('dirt').write_text('x')\n"
            "def test_built():\n"
            "    assert Path('built').read_text() == 'once\\n'\n"
        )
    }
    made = commit(tmp_path / "fork", files)
    bot.publish(tmp_path / "fork")
    suite = UNIT.model_copy(update={"build": ("sh", "-c", f"echo once >> built; echo x >> {tmp_path}/builds-made")})
    bot.runner()
    for _ in range(2):
        run = await bot.done(await bot.offer(made, suite))
        assert run.outcome == Outcome.PASSED, report_of(run)
    assert (tmp_path / "builds-made").read_text() == "x\n"


async def test_a_failed_build_is_a_failure_and_is_not_kept(bot: World, sha: str) -> None:
    suite = UNIT.model_copy(update={"build": ("sh", "-c", "echo 'undefined reference to foo'; exit 3")})
    bot.runner()
    run = await bot.done(await bot.offer(sha, suite))
    assert run.outcome == Outcome.FAILED
    assert "the build failed with exit status 3" in report_of(run).reason


async def test_two_runners_on_one_queue_do_every_run_once(bot: World, sha: str) -> None:
    quick = Suite.model_validate({"suite": "q", "harness": "command", "run": ["true"], "timeout": "10s"})
    bot.runner(gpus=(None, None))
    bot.runner(token="token-of-the-second", name="two")
    ids = [await bot.offer(sha, quick) for _ in range(12)]
    runs = [await bot.done(run_id) for run_id in ids]
    assert {run.outcome for run in runs} == {"passed"}
    assert {run.attempt for run in runs} == {1}


# --- the endpoint, to whoever asks


def _bearer(token: str = TOKEN) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _marked(run_id: str) -> list[int]:
    """The processes of a run's first attempt."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                if f"GRAFT_RUN_MARK={run_id}-1-".encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
    return found


async def test_strangers_get_nothing(bot: World, sha: str) -> None:
    run_id = await bot.offer(sha, UNIT)
    async with httpx.AsyncClient(base_url=bot.url) as http:
        for headers in ({}, _bearer("wrong"), {"Authorization": "Basic x"}):
            for path in ("/runner/hello", f"/runner/runs/{run_id}/lease", f"/runner/runs/{run_id}/report?attempt=1"):
                assert (await http.post(path, headers=headers, json={})).status_code == 401
            refs = f"/runner/git/{REPOSITORY}.git/info/refs?service=git-upload-pack"
            assert (await http.get(refs, headers=headers)).status_code == 401
        # a runner without a run of this repository reads nothing of it, and nobody pushes
        await http.post("/runner/hello", headers=_bearer(), json={"protocol": 1, "labels": ["default"]})
        assert (await http.get(refs, headers=_bearer())).status_code == 403
        push = f"/runner/git/{REPOSITORY}.git/info/refs?service=git-receive-pack"
        assert (await http.get(push, headers=_bearer())).status_code == 403


async def test_the_protocol_is_versioned_and_says_what_is_wrong(bot: World, sha: str) -> None:
    run_id = await bot.offer(sha, UNIT)
    async with httpx.AsyncClient(base_url=bot.url, headers=_bearer()) as http:
        hello = {"protocol": 1, "labels": ["default"]}
        assert (await http.post("/runner/hello", json={**hello, "protocol": 2})).status_code == 426
        assert (await http.post("/runner/hello", content=b"nonsense")).status_code == 400
        assert (await http.post("/runner/hello", json={"protocol": 1, "labels": "x"})).status_code == 400
        assert (await http.post("/runner/hello", json=hello)).status_code == 200
        assert (await http.post("/runner/runs/nope/lease", json=hello)).status_code == 404
        assert (await http.post(f"/runner/runs/{run_id}/lease", json={"protocol": 0})).status_code == 426
        assert (await http.post(f"/runner/runs/{run_id}/lease", json=hello)).status_code == 200
        other = await http.post(f"/runner/runs/{run_id}/lease", json=hello, headers=_bearer("token-of-the-second"))
        assert other.status_code == 403
        bad_gzip = {"Content-Encoding": "gzip"}
        path = f"/runner/runs/{run_id}/report?attempt=1"
        assert (await http.post(path, content=b"no gzip", headers=bad_gzip)).status_code == 400
        assert (await http.post(f"/runner/runs/{run_id}/report", content=b"{}")).status_code == 400
        assert (await http.post(f"/runner/runs/{run_id}/log?attempt=1&offset=0", content=b"abc")).json() == {"size": 3}
        assert (await http.post(f"/runner/runs/{run_id}/log?attempt=1&offset=1", content=b"bcd")).json() == {"size": 4}
        assert (await http.post(f"/runner/runs/{run_id}/log?attempt=2&offset=0", content=b"x")).status_code == 409


@pytest.mark.parametrize("body", [b"{}", b"", b"\x00", b'{"protocol": 9}', b"[1, 2"])
async def test_an_invalid_report_is_infra_with_its_reason(bot: World, sha: str, body: bytes) -> None:
    suite = UNIT.model_copy(update={"retries": 0})
    run_id = await bot.offer(sha, suite)
    async with httpx.AsyncClient(base_url=bot.url, headers=_bearer()) as http:
        hello = {"protocol": 1, "labels": ["default"]}
        await http.post("/runner/hello", json=hello)
        await http.post(f"/runner/runs/{run_id}/lease", json=hello)
        path = f"/runner/runs/{run_id}/report?attempt=1"
        assert (await http.post(path, content=body)).json() == {"recorded": True, "outcome": "infra"}
        assert (await http.post(path, content=body)).json() == {"recorded": False, "outcome": "infra"}
    run = await bot.done(run_id)
    assert report_of(run).reason.startswith("the report is not valid")


async def test_a_report_that_flatters_itself_counts_as_what_it_is(bot: World, sha: str) -> None:
    async with httpx.AsyncClient(base_url=bot.url, headers=_bearer()) as http:
        hello = {"protocol": 1, "labels": ["default"]}
        await http.post("/runner/hello", json=hello)
        said = {
            "subject": {"repository": REPOSITORY, "commit": sha}, "level": "l1", "suite": "unit", "harness": "pytest",
            "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:01Z", "outcome": "passed",
        }  # fmt: skip
        good = [{"id": one, "outcome": "passed"} for one in IDS]
        seen = {"canary": True}
        for more, outcome in (
            ({"tests": good, "manifest": seen}, "passed"),
            ({"tests": good}, "infra"),  # no canary
            ({"tests": good[:2], "manifest": seen}, "omitted"),
            ({"tests": [], "manifest": seen}, "omitted"),
            ({"tests": [*good[:2], {"id": IDS[2], "outcome": "failed"}], "manifest": seen}, "failed"),
            ({"tests": [*good[:2], {"id": IDS[2], "outcome": "skipped"}], "manifest": seen}, "omitted"),
            ({"tests": good, "manifest": seen, "subject": {"repository": REPOSITORY, "commit": "0" * 40}}, "infra"),
        ):
            run_id = await bot.offer(sha, UNIT.model_copy(update={"retries": 0}), expected=IDS)
            await http.post(f"/runner/runs/{run_id}/lease", json=hello)
            answer = await http.post(f"/runner/runs/{run_id}/report?attempt=1", json={**said, "run_id": run_id, **more})
            assert answer.json() == {"recorded": True, "outcome": outcome}, (more, (await bot.done(run_id)).report)
