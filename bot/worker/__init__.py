"""Works off the store's jobs: woken by Redis or by looking, each lease renewed while its handler runs.

A failing handler stops nobody else; it is tried again later, and parked in the end. Killed at any point, a worker
loses nothing: its leases run out and another takes them over.
"""

from __future__ import annotations

import asyncio
import os
import socket
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bot.clients.github import Gone, RateLimited
from bot.clients.queue import listen
from bot.clients.store import DISPATCH, Job, StoreUnavailable
from bot.context import Context
from bot.worker.backoff import retry_delay
from bot.worker.dispatch import dispatch
from bot.worker.sweep import enqueue_due
from handlers import CRONS, JOBS, TRIGGERS, Cron, Trigger

Handler = Callable[[Context, Job], Awaitable[None]]
_GRACE_SECONDS = 3.0
_AT_ONCE = 100


class LeaseLost(Exception):
    """The lease ran out while the handler ran, and another worker took the job."""


class UnknownKind(Exception):
    """No handler is known for the job's kind."""


_HOPELESS = (Gone, UnknownKind)  # trying again changes nothing


class Worker:
    """One worker process's loop."""

    def __init__(
        self,
        context: Context,
        *,
        jobs: Mapping[str, Handler] = JOBS,
        triggers: Sequence[Trigger] = TRIGGERS,
        crons: Sequence[Cron] = CRONS,
    ) -> None:
        self.context = context
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self._settings = context.settings
        self._jobs = jobs
        self._triggers = triggers
        self._crons = crons
        self._bell = asyncio.Event()
        self._stopping = False
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Work until `stop` is called or the task is cancelled."""
        url = self._settings.redis_url.get_secret_value()
        helpers = [asyncio.create_task(listen(url, self.wake)), asyncio.create_task(self._sweep_for_ever())]
        try:
            await self._work_for_ever()
            if self._running:
                await asyncio.wait(self._running, timeout=_GRACE_SECONDS)
        finally:
            for task in (*helpers, *self._running):
                task.cancel()
            await asyncio.gather(*helpers, *self._running, return_exceptions=True)

    async def wake(self) -> None:
        """Look for jobs at once."""
        self._bell.set()

    def stop(self) -> None:
        """End soon: what is under way may end within three seconds, or goes back to the queue."""
        self._stopping = True
        self._bell.set()

    async def work_off(self) -> int:
        """Run all that is due now and what comes of it, then return how many jobs ran; for tests and one-shots."""
        ran = 0
        while True:
            started = await self._fill()
            ran += started
            if self._running:
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            elif not started:
                return ran

    async def _work_for_ever(self) -> None:
        while not self._stopping:
            self._bell.clear()
            try:
                await self._fill()
            except StoreUnavailable as error:
                self.context.log.error("the store is away", error=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), self._settings.poll_seconds)

    async def _fill(self) -> int:
        started = await self._dispatch_due()
        while len(self._running) < self._settings.workers and not self._stopping:
            job = await self.context.store.lease(
                self.context.now(),
                self._settings.job_lease_seconds,
                self.name,
                per_repository=self._settings.workers_per_repository,
            )
            if job is None:
                break
            self._start(job)
            started += 1
        return started

    async def _dispatch_due(self) -> int:
        """Turn the deliveries that came in into jobs, many at once; where that fails, one by one like other jobs."""
        store, seconds = self.context.store, self._settings.job_lease_seconds
        done = 0
        while leased := await store.lease_all(DISPATCH, self.context.now(), seconds, self.name, limit=_AT_ONCE):
            fresh = [job for job in leased if job.attempts == 1]
            try:
                await dispatch(self.context, fresh, self._triggers, self._crons)
            except StoreUnavailable:
                raise
            except Exception as error:  # one bad delivery must not hold up the others
                self.context.log.warning("deliveries are dispatched one by one", error=repr(error))
                fresh = []
            for job in leased:
                if job not in fresh:
                    self._start(job)
            done += len(leased)
        return done

    def _start(self, job: Job) -> None:
        task = asyncio.create_task(self._attend(job))
        self._running.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._bell.set()

    async def _attend(self, job: Job) -> None:
        log = self.context.log.bind(job=job.id, kind=job.kind, key=job.key, repository=job.repository)
        try:
            if job.attempts > self._settings.job_attempts:
                why = job.last_error or f"its worker died {job.attempts - 1} times"
                await self.context.store.park(job, why, self.context.now())
                return
            await self._settle(job, log, await self._run_handler(job))
        except StoreUnavailable as error:  # the lease runs out, and the job comes again
            log.error("the end of a job was not noted", error=str(error))

    async def _run_handler(self, job: Job) -> BaseException | None:
        work = asyncio.create_task(self._handle(job))
        keeper = asyncio.create_task(self._keep_lease(job))
        try:
            await asyncio.wait({work, keeper}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return LeaseLost()
            return asyncio.CancelledError() if work.cancelled() else work.exception()
        except asyncio.CancelledError:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await self._give_back(job)
            raise
        finally:
            work.cancel()
            keeper.cancel()
            await asyncio.gather(work, keeper, return_exceptions=True)

    async def _handle(self, job: Job) -> None:
        if job.kind == DISPATCH:
            await dispatch(self.context, [job], self._triggers, self._crons)
            self._bell.set()
            return
        handler = self._jobs.get(job.kind)
        if handler is None:
            raise UnknownKind(f"no handler is known for jobs of kind {job.kind!r}")
        await handler(self.context, job)

    async def _keep_lease(self, job: Job) -> None:
        """Renew until the lease is lost: another worker has the job then, and two at once are worse than one late."""
        seconds = self._settings.job_lease_seconds
        held = True
        while held:
            await asyncio.sleep(seconds / 3)
            with suppress(StoreUnavailable):
                held = await self.context.store.renew(job, self.context.now(), seconds)

    async def _give_back(self, job: Job) -> None:
        now = self.context.now()
        with suppress(StoreUnavailable):
            await self.context.store.fail(job, "its worker was stopped", now, now, count_attempt=False)

    async def _settle(self, job: Job, log: Any, error: BaseException | None) -> None:
        store, now = self.context.store, self.context.now()
        if error is None:
            await store.complete(job, now)
        elif isinstance(error, LeaseLost):
            log.warning("the lease was lost, another worker goes on")
        elif isinstance(error, RateLimited):
            log.info("waits for a limit of GitHub's", until=error.retry_at.isoformat())
            await store.fail(job, str(error), error.retry_at, now, count_attempt=False)
        elif isinstance(error, _HOPELESS) or job.attempts >= self._settings.job_attempts:
            log.error("parked", error=repr(error))
            await store.park(job, describe(error), now)
        else:
            retry_at = now + retry_delay(job_id=job.id, attempt=job.attempts)
            log.warning("failed, again later", error=repr(error), retry_at=retry_at.isoformat())
            await store.fail(job, describe(error), retry_at, now)

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                if await enqueue_due(self.context, self._crons):
                    self._bell.set()
            except StoreUnavailable as error:
                self.context.log.error("the sweep could not look", error=str(error))
            await asyncio.sleep(self._settings.sweep_seconds)


def describe(error: BaseException) -> str:
    """The error with the last frames of where it came from."""
    where = "".join(traceback.format_tb(error.__traceback__)[-4:])
    return f"{type(error).__name__}: {error}\n{where}".strip()
