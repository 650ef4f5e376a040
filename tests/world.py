"""The whole bot in one process against the sandbox: the web side served, the worker's jobs worked off when asked."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import structlog
import uvicorn
from pydantic import SecretStr

from bot.app import create_app
from bot.clients.store import Job, JobState
from bot.context import Context, open_context
from bot.sandbox.driver import Sandbox
from bot.sandbox.sample import Sample, build
from bot.sandbox.stage import Stage, read_manifest, set_up
from bot.settings import Settings
from bot.worker import Worker

ROOT = Path(__file__).parent.parent
SECRET = "the webhook's secret"
RUNNER_TOKEN = "the runner's token"


@dataclass
class Clock:
    """The bot's time: the real one, moved on by the test."""

    ahead: timedelta = field(default_factory=timedelta)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def forward(self, **by: float) -> None:
        self.ahead += timedelta(**by)


# what a busy machine may do to any job; the worker tries again, and so the test waits for it
_PASSING = ("Unavailable:", "RateLimited:", "StoreUnavailable:", "FetchError:", "its worker was stopped")


async def settle(sandbox: Sandbox, context: Context, *, rounds: int = 60, failing: bool = False) -> None:
    """Until no delivery is under way and no job is due or waits for its next attempt.

    A job that failed is an error with what it said, where neither the test makes jobs fail (`failing`) nor the reason
    is one that passes: the test would go on without it.
    """
    worker = Worker(context)
    for _ in range(rounds):
        await sandbox.settle()
        if await worker.work_off() or await context.store.due(context.now()):
            continue
        await sandbox.settle()
        if await context.store.due(context.now()):
            continue
        left = await context.store.jobs_in([JobState.WAITING, JobState.LEASED, JobState.PARKED])
        troubled = [job for job in left if job.last_error or job.state is JobState.LEASED]
        if failing or not troubled:
            return
        told = [f"{job.kind} {job.key} {job.state}, attempt {job.attempts}: {job.last_error}" for job in troubled]
        print("jobs that failed:", *told, sep="\n")
        if not all((job.last_error or "").startswith(_PASSING) and job.attempts < 4 for job in troubled):
            raise AssertionError("jobs that failed: " + "\n".join(told))
        await asyncio.sleep(1)
    raise AssertionError(f"never at rest: {await context.store.job_counts()}")


@dataclass
class World:
    """A sandbox with the sample pair, and the bot that looks after it.

    `failing`: the test makes jobs fail, so that one which waits for its next attempt is no surprise.
    """

    sandbox: Sandbox
    stage: Stage
    sample: Sample
    context: Context
    clock: Clock
    url: str
    failing: bool = False

    @property
    def fork(self) -> str:
        return self.sample.fork_name

    def install(self) -> None:
        self.stage.install()

    async def settle(self, rounds: int = 60) -> None:
        """Until no delivery is under way and no job is due; an error where one failed and waits to be tried again."""
        await settle(self.sandbox, self.context, rounds=rounds, failing=self.failing)

    async def jobs_failed(self) -> list[str]:
        """What went wrong, of all jobs that are not done."""
        jobs: list[Job] = await self.context.store.jobs_in([JobState.WAITING, JobState.PARKED])
        return [f"{job.kind} {job.key}: {job.last_error}" for job in jobs if job.last_error]

    def pulls(self, state: str | None = "open") -> list[Any]:
        issues = self.sandbox.state.known_repository(self.fork).issues.values()
        found = [i for i in issues if i.pull is not None]
        return [i for i in found if state is None or i.state == state]

    def comments(self, number: int) -> list[str]:
        return [c.body for c in self.sandbox.state.known_repository(self.fork).issues[number].comments]

    def checks(self, sha: str) -> dict[str, tuple[str, str | None]]:
        runs = self.sandbox.state.known_repository(self.fork).check_runs.values()
        return {r.name: (r.status, r.conclusion) for r in runs if r.head_sha == sha}


@asynccontextmanager
async def world(
    root: Path, *, stage: int = 0, redis: str = "redis://127.0.0.1:1/0", **changes: Any
) -> AsyncIterator[World]:
    """The world, served; `changes` go into the bot's settings."""
    sample = build(root / "sample", stage=stage)
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{door.getsockname()[1]}"
    async with Sandbox(root / "sandbox") as sandbox:
        staged = set_up(
            sandbox, sample, manifest=read_manifest(ROOT / "app.yml"), webhook_url=f"{url}/webhook", secret=SECRET
        )
        settings = Settings(
            app_id=staged.app.id,
            private_key=SecretStr(staged.app.private_key),
            webhook_secret=SecretStr(SECRET),
            runner_tokens=SecretStr(f"runner-1={RUNNER_TOKEN}"),
            github_api=sandbox.api_url,
            github_git=sandbox.url,
            data=root / "data",
            redis_url=SecretStr(redis),
            public_url=url,
            **changes,
        )
        clock = Clock()
        async with open_context(settings, structlog.get_logger()) as opened:
            context = replace(opened, now=clock)
            app = create_app(context)
            server = _Quiet(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
            serving = asyncio.create_task(server.serve(sockets=[door]))
            while not server.started:  # noqa: ASYNC110 - uvicorn tells it by a flag
                await asyncio.sleep(0.005)
            try:
                yield World(sandbox, staged, sample, context, clock, url)
            finally:
                server.should_exit = True
                await serving


class _Quiet(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
