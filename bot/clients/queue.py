"""Redis through arq, as a bell and nothing more: it wakes workers and runners; what is to be done stands in the store.

JSON on both sides, never pickle: machines that run foreign code share these queues.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from arq import Worker as ArqWorker
from arq import func
from arq.connections import ArqRedis, RedisSettings
from redis.exceptions import RedisError

WAKE_QUEUE = "graft:wake"
WAKE = "wake"
RUN = "run"
_KEEP_MS = 24 * 3600 * 1000
_PAUSE = 0.5
_log = logging.getLogger(__name__)


class QueueUnavailable(Exception):
    """Redis did not take the message; the sweep makes up for it."""


def dumps(value: dict[str, Any]) -> bytes:
    """A job of arq's as JSON."""
    return json.dumps(value, default=str).encode()


def loads(data: bytes) -> dict[str, Any]:
    """A job of arq's from JSON; ValueError where it is none."""
    found: dict[str, Any] = json.loads(data)
    return found


def runner_queue(label: str) -> str:
    """The queue of a runner label."""
    return f"graft:runner:{label}"


class Queue:
    """The sending side; a lost or restarted Redis costs time, never work."""

    def __init__(self, url: str, *, timeout: float = 2) -> None:
        self._redis = _connect(url, timeout)

    async def wake(self) -> None:
        """Tell the workers that there is something to do, best effort."""
        try:
            # no id of its own: arq refuses one whose old result is still kept
            await self._redis.enqueue_job(WAKE, _queue_name=WAKE_QUEUE, _expires=60)
        except (RedisError, OSError) as error:
            _log.warning("no worker was woken, the sweep will: %s", error)

    async def push_run(
        self, label: str, run_id: str, repository: str, commit: str, suite: str, *, attempt: int = 1, again: str = ""
    ) -> bool:
        """Offer a run to the runners of a label; False where this attempt is offered already (with the same `again`).

        Raises QueueUnavailable; the run stays queued in the store and is offered again by the sweep.
        """
        try:
            job = await self._redis.enqueue_job(
                RUN,
                run=run_id,
                repository=repository,
                commit=commit,
                suite=suite,
                # below the queue's own name, so that a runner's Redis user can be kept to what is below it
                _job_id=f"{runner_queue(label)}:{run_id}:{attempt}{again and f':{again}'}",
                _queue_name=runner_queue(label),
            )
        except (RedisError, OSError) as error:
            raise QueueUnavailable(f"the run was not offered: {error}") from error
        return job is not None

    async def ping(self) -> None:
        """Raises QueueUnavailable where Redis does not answer."""
        try:
            await self._redis.ping()
        except (RedisError, OSError) as error:
            raise QueueUnavailable(f"Redis does not answer: {error}") from error

    async def lengths(self, labels: list[str]) -> dict[str, int]:
        """How many messages wait: for the workers under "wake", for each label under its name."""
        try:
            names = {"wake": WAKE_QUEUE} | {label: runner_queue(label) for label in labels}
            return {name: int(await self._redis.zcard(queue)) for name, queue in names.items()}
        except (RedisError, OSError) as error:
            raise QueueUnavailable(f"Redis does not answer: {error}") from error

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()


async def listen(url: str, on_wake: Callable[[], Awaitable[None]], *, poll_seconds: float = 0.02) -> None:
    """Call `on_wake` for every wake-up, for ever. arq's worker ends when Redis restarts: it is started again."""
    while True:
        redis = _connect(url, 5)
        worker = _worker(redis, on_wake, poll_seconds)
        try:
            await redis.ping()
            await worker.async_run()
        except (RedisError, OSError) as error:
            _log.warning("Redis is away, work is found by looking: %s", error)
        finally:
            for task in worker.tasks.values():
                task.cancel()
            await asyncio.gather(*worker.tasks.values(), return_exceptions=True)
            await redis.aclose(close_connection_pool=True)
        await asyncio.sleep(_PAUSE)


def _connect(url: str, timeout: float) -> ArqRedis:
    settings = RedisSettings.from_dsn(url)
    return ArqRedis(
        host=str(settings.host),
        port=settings.port,
        db=settings.database,
        username=settings.username,
        password=settings.password,
        ssl=settings.ssl,
        unix_socket_path=settings.unix_socket_path,
        socket_connect_timeout=timeout,
        socket_timeout=timeout,
        encoding="utf8",
        job_serializer=dumps,
        job_deserializer=loads,
        expires_extra_ms=_KEEP_MS,
    )


def _worker(redis: ArqRedis, on_wake: Callable[[], Awaitable[None]], poll_seconds: float) -> ArqWorker:
    async def wake(_: dict[Any, Any]) -> None:
        await on_wake()

    return ArqWorker(
        functions=[func(wake, name=WAKE, keep_result=0, max_tries=1, timeout=10)],
        redis_pool=redis,
        queue_name=WAKE_QUEUE,
        handle_signals=False,
        poll_delay=poll_seconds,
        job_serializer=dumps,
        job_deserializer=loads,
        max_jobs=4,
        health_check_interval=3600,
        health_check_key=f"{WAKE_QUEUE}:health:{uuid.uuid4().hex[:8]}",
        log_results=False,
    )
