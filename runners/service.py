"""The runner as a service: woken by its queues, it leases a run, works on it, reports; drains when told to end.

Redis only wakes it up. What counts stands with the bot: the lease, the deadline, the report. So a restart of Redis or
of the bot costs time and loses nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import shutil
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from arq.connections import RedisSettings
from arq.worker import Retry, Worker, func
from redis.exceptions import RedisError

from bot.core.types import Outcome
from bot.core.validation import Report, RunRequest
from runners.artifacts import Keeper, keep
from runners.disk import Bounds, Janitor
from runners.environment import describe, probe, version_of
from runners.execute import Machine, Work, execute, needs_no_source
from runners.following import LogFile, LogStream, Stop
from runners.labs import Credential
from runners.protocol import Bot, RefusedError, UnreachableError
from runners.redact import redactor
from runners.workspace import SourceError, Workspace

QUEUE_PREFIX = "graft:runner:"
_JOB = "run"
_FOR_OTHERS = frozenset({403, 423})  # a label is lacking, or the run's trouble was on this machine
_LOG_SECONDS = 2.0
_LOG_NAME = "graft-run.log"
log = logging.getLogger("graft.runner")


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """What a runner has to know; times in seconds. Each entry of `gpus` is a slot: a run at a time with these GPUs."""

    bot: str
    token: str
    redis: str
    name: str
    labels: tuple[str, ...]
    work: Path
    gpus: tuple[str | None, ...] = (None,)
    keep_env: tuple[str, ...] = ()
    report_for: float = 6 * 3600.0
    drain_for: float = 3600.0
    bounds: Bounds = field(default_factory=Bounds)
    poll: float = 0.2
    secrets: tuple[str, ...] = field(default=(), repr=False)
    labs: Mapping[str, Credential] = field(default_factory=dict, repr=False)
    artifacts: Keeper | None = None


class Service:
    """Listens on the queue of each of its labels and works on one run for each slot."""

    def __init__(self, settings: RunnerSettings) -> None:
        self.settings = settings
        self.bot = Bot(settings.bot, settings.token)
        self.workspace = Workspace(settings.work)
        self.janitor = Janitor(self.workspace, settings.bounds)
        self._commits: Counter[str] = Counter()
        shown = (credential.token for credential in settings.labs.values())
        self.redact = redactor((settings.token, settings.redis, *settings.secrets, *shown))
        self._free: list[str | None] = list(settings.gpus)
        self._active: set[asyncio.Task[None]] = set()
        self._runs: set[str] = set()
        self._draining = asyncio.Event()
        self._stop_runs = asyncio.Event()

    @property
    def busy(self) -> bool:
        """True while every slot has a run."""
        return not self._free

    @property
    def draining(self) -> bool:
        """True once it takes no further run."""
        return self._draining.is_set()

    def drain(self) -> None:
        """Take no further run; those under way end by themselves, a second call cancels them."""
        if self._draining.is_set():
            self._stop_runs.set()
        self._draining.set()

    async def run(self) -> None:
        """Work until drained."""
        await self._hello()
        await self._send_left_reports()
        listeners = [asyncio.create_task(self._listen(label)) for label in self.settings.labels]
        greeter = asyncio.create_task(self._greet())
        try:
            await self._draining.wait()
        finally:
            for task in (*listeners, greeter):
                task.cancel()
            await asyncio.gather(*listeners, greeter, return_exceptions=True)
            if self._active:
                log.info("draining: %d run(s) under way", len(self._active))
                await self._finish_active()
            await self.bot.close()

    async def _finish_active(self) -> None:
        tasks = list(self._active)
        _, late = await asyncio.wait(tasks, timeout=self.settings.drain_for)
        if late:
            self._stop_runs.set()
            await asyncio.wait(late, timeout=60)

    async def _hello(self) -> None:
        """Tell the bot of this runner, until it answers; raises RefusedError where it does not want it."""
        health = await probe(visible=_visible(self.settings))
        low = self.janitor.low()
        facts = {
            "health": f"{health.text}; {low}" if low else health.text,
            "healthy": health.ok is not False and not low,
            "disk": self.janitor.facts(),
            "gpus": [gpu.model for gpu in health.gpus],
            "torch": version_of("torch"),
            "triton": version_of("triton"),
            "slots": len(self.settings.gpus),
        }
        while True:
            try:
                await self.bot.hello(self.settings.labels, facts)
            except UnreachableError as error:
                log.warning("the bot does not answer, trying on: %s", error)
                await asyncio.sleep(2)
            else:
                return

    async def _greet(self) -> None:
        while True:
            await asyncio.sleep(60)
            if self.janitor.low():
                await self._tidy()
            with contextlib.suppress(RefusedError):
                await self._hello()

    async def _listen(self, label: str) -> None:
        """Take wake-ups of one label; arq's worker ends when Redis restarts, so it is started again."""
        pause = 0.2
        while True:
            worker = self._worker(label)
            try:
                await worker.async_run()
            except (RedisError, OSError) as error:
                log.warning("Redis is away (%s), listening again", error)
            finally:
                await _close(worker)
            await asyncio.sleep(pause)
            pause = min(pause * 2, 10.0)

    def _worker(self, label: str) -> Worker:
        service = self

        class OneAtATime(Worker):  # type: ignore[misc]  # arq's types are not followed
            """Leaves messages to other runners while every slot is taken."""

            async def _poll_iteration(self) -> None:
                if not service.busy and not service.draining:
                    await super()._poll_iteration()

        async def run(_: dict[Any, Any], *, run: str, **_more: Any) -> None:
            await service.offered(run)

        return OneAtATime(
            functions=[func(run, name=_JOB, keep_result=0, max_tries=10_000, timeout=300)],
            redis_settings=RedisSettings.from_dsn(self.settings.redis),
            queue_name=QUEUE_PREFIX + label,
            handle_signals=False,
            poll_delay=self.settings.poll,
            queue_read_limit=1,
            max_jobs=1,
            job_serializer=lambda value: json.dumps(value, default=str).encode(),
            job_deserializer=_loads,
            keep_result=0,  # of a message that has expired neither: nobody reads it, and a runner may not write it
            health_check_interval=3600,
            health_check_key=f"{QUEUE_PREFIX}{label}:health:{uuid.uuid4().hex[:8]}",
            log_results=False,
        )

    async def offered(self, run_id: str) -> None:
        """A run is offered: lease it, or another whose turn it is, and begin. Ends once a run has begun.

        Raises Retry where another runner, or this one later, should be offered it.
        """
        if not self._free:
            raise Retry(defer=1)
        low = self.janitor.low()
        if low:
            log.warning("no run is taken: %s", low)
            raise Retry(defer=10)
        slot = self._free.pop()
        answer: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        # a task of its own from the first request on: a drain in the middle of it must not lose the lease
        task = asyncio.create_task(self._take(run_id, slot, answer))
        self._active.add(task)
        task.add_done_callback(lambda task: self._ended(task, slot))
        error = await asyncio.shield(answer)
        if isinstance(error, UnreachableError) or (isinstance(error, RefusedError) and error.status in _FOR_OTHERS):
            raise Retry(defer=2)

    async def _take(self, run_id: str, slot: str | None, answer: asyncio.Future[Exception | None]) -> None:
        try:
            request = await self.bot.lease(run_id, active=self._runs)
            if request.run_id in self._runs:  # two of ours asked at once, and the first has it
                raise UnreachableError(f"{request.run_id} is under way here")
        except (RefusedError, UnreachableError, ValueError) as error:
            log.info("run %s is not ours: %s", run_id, error)
            answer.set_result(error)
            return
        self._runs.add(request.run_id)
        answer.set_result(None)
        try:
            await self._work(request, slot)
        finally:
            self._runs.discard(request.run_id)

    def _ended(self, task: asyncio.Task[None], slot: str | None) -> None:
        self._active.discard(task)
        self._free.append(slot)

    async def _work(self, request: RunRequest, slot: str | None) -> None:
        log.info("run %s: %s %s at %s", request.run_id, request.level, request.suite.suite, request.commit[:12])
        stop = Stop(self._stop_runs)
        stream = LogStream(self.bot, request)
        beats = asyncio.create_task(self._beat(request, stop, stream))
        folder = self.workspace.run_path(request)
        self._commits[request.commit] += 1
        try:
            await asyncio.to_thread(self.workspace.run_folder, request)
            if self.settings.artifacts is None:
                report = await self._report(request, slot, folder, stop.event, stream.add)
            else:
                with LogFile(folder / "log.txt", stream.add) as said:
                    report = await self._report(request, slot, folder, stop.event, said.add)
                if not stop.event.is_set():
                    said.move(folder / "results" / _LOG_NAME)
                    report = await self._kept(report, folder, self.settings.artifacts)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # the runner's own fault: the run must not wait for its lease
            log.exception("run %s broke", request.run_id)
            report = await self._broken(request, f"the runner failed: {type(error).__name__}: {error}")
        finally:
            beats.cancel()
            await asyncio.gather(beats, return_exceptions=True)
            stop.close()
        await stream.flush()
        if stop.lost:
            log.info("run %s: %s, no report", request.run_id, stop.why)
        else:
            await self._hand_in(report)
        await asyncio.to_thread(shutil.rmtree, folder, True)
        self._commits[request.commit] -= 1
        await self._tidy()

    async def _tidy(self) -> None:
        try:
            await self.janitor.tidy(+self._commits)
        except (SourceError, OSError) as error:
            log.warning("the work folder was not tidied: %s", error)

    async def _report(
        self, request: RunRequest, slot: str | None, folder: Path, stop: asyncio.Event, output: Callable[[str], None]
    ) -> Report:
        work = Work(
            request=request,
            source=folder,
            folder=folder,
            cache=self.workspace.cache_folder(request),
            machine=Machine(
                self.settings.name, self.settings.labels, slot, self.settings.keep_env, labs=self.settings.labs
            ),
            output=output,
            redact=self.redact,
            cancelled=stop,
            short=self.janitor.out_of_room,
        )
        if needs_no_source(request.suite):
            return await execute(work)
        url = self.settings.bot.rstrip("/") + request.git_path
        keep: Callable[[Path], Awaitable[None]] = lambda place: self.workspace.keep_build(request, place)  # noqa: E731
        try:
            bare = await self.workspace.fetch(request, url=url, token=self.settings.token)
            async with self.workspace.tree(request, bare) as (source, built):
                work = replace(work, source=source, built=built, keep_build=keep if request.suite.build else None)
                return await execute(work)
        except SourceError as error:
            return await self._broken(request, self.redact(str(error)))

    async def _kept(self, report: Report, folder: Path, keeper: Keeper) -> Report:
        """The report with its artifacts kept; whatever goes wrong with them, it is the same report."""
        try:
            return await keep(report, folder / "results", keeper, redact=self.redact)
        except Exception as error:  # a report without them is worth more than none
            log.warning("run %s: no artifact was kept", report.run_id, exc_info=True)
            what = f"no artifact was kept: {type(error).__name__}: {error}"
            reason = "; ".join(part for part in (report.reason, what) if part)
            return report.model_copy(update={"reason": self.redact(reason)[:2000], "artifacts": ()})

    async def _beat(self, request: RunRequest, stop: Stop, stream: LogStream) -> None:
        """Hold the lease and send the log; the bot's word that the run is over ends it."""
        loop = asyncio.get_running_loop()
        next_beat = loop.time()
        held_until = loop.time() + request.lease_seconds
        while True:
            await stream.flush()
            if loop.time() >= next_beat:
                next_beat = loop.time() + request.heartbeat_seconds
                try:
                    why = await self.bot.heartbeat(request)
                    held_until = loop.time() + request.lease_seconds
                except (RefusedError, UnreachableError) as error:
                    # the report is still worth handing in: the bot says whether it comes too late
                    log.warning("run %s: no heartbeat for %.0f s: %s", request.run_id, loop.time() - held_until, error)
                    why = None
                if why is not None:
                    stop.end(why)
                    return
            await asyncio.sleep(min(_LOG_SECONDS, request.heartbeat_seconds))

    async def _hand_in(self, report: Report) -> None:
        """Send the report; kept on disk until the bot has it, so that not even a restart of the runner loses it."""
        kept = self.settings.work / "reports" / f"{report.run_id}-{report.attempt}.json"
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(kept.write_text, report.model_dump_json(), "utf-8")
        except OSError as error:  # a full disk: it is sent all the same
            log.warning("run %s: the report can't be kept on disk: %s", report.run_id, error)
        try:
            answer = await self.bot.report(report, seconds=self.settings.report_for)
            log.info("run %s: %s %s", report.run_id, report.outcome.value, answer)
        except RefusedError as error:
            log.warning("run %s: the report comes too late: %s", report.run_id, error)
        except UnreachableError as error:
            log.error("run %s: the report was not taken, it stays in %s: %s", report.run_id, kept, error)
            return
        kept.unlink(missing_ok=True)

    async def _send_left_reports(self) -> None:
        for kept in sorted((self.settings.work / "reports").glob("*.json")):
            try:
                report = Report.model_validate_json(await asyncio.to_thread(kept.read_text, "utf-8"))
            except (OSError, ValueError) as error:
                log.warning("%s: cut off, dropped: %s", kept, error)
                kept.unlink(missing_ok=True)
            else:
                await self._hand_in(report)

    async def _broken(self, request: RunRequest, reason: str) -> Report:
        now = datetime.now(UTC)
        health = await probe(visible=_visible(self.settings))
        return request.report(
            environment=describe(runner=self.settings.name, labels=self.settings.labels, before=health),
            started_at=now,
            finished_at=now,
            outcome=Outcome.INFRA,
            reason=reason[:2000],
        )


async def _close(worker: Worker) -> None:
    """End arq's worker with its connections; its own `close` calls what redis has deprecated, and waits for Redis."""
    tasks = [task for task in (worker.main_task, *worker.tasks.values()) if task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    if worker._pool is not None:
        with contextlib.suppress(RedisError, OSError):
            await worker._pool.aclose(close_connection_pool=True)


def _visible(settings: RunnerSettings) -> str | None:
    named = [gpu for gpu in settings.gpus if gpu is not None]
    return ",".join(named) if named else None


def _loads(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data)
    return found
