"""One writer of an installation among all processes on a store, and nobody waits for a dead one."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from bot.clients.store import Store

ROOT = Path(__file__).parents[2]
HOLDER = """
import asyncio, sys
from bot.clients.store import Store

async def main():
    store = await Store.open(sys.argv[1], migrate=False)
    async with store.alone("writer of 7"):
        print("held", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def holder(url: str) -> subprocess.Popen[str]:
    """Another process that holds the name, once it says so."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, url], cwd=ROOT, env=dict(os.environ), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


async def test_others_wait_and_a_dead_holder_holds_nothing(store: Store, store_url: str) -> None:
    other = await asyncio.to_thread(holder, store_url)
    try:
        got = asyncio.Event()

        async def wait() -> None:
            async with store.alone("writer of 7"):
                got.set()

        waiting = asyncio.create_task(wait())
        async with store.alone("writer of 8"):  # another name is another matter
            pass
        assert not got.is_set()
        other.kill()
        await waiting
        assert got.is_set()
    finally:
        other.kill()
        other.wait()
        assert other.stdout is not None
        other.stdout.close()


async def test_never_two_at_once(store: Store, store_url: str) -> None:
    second = await Store.open(store_url, migrate=False)
    inside, most = 0, 0

    async def write(on: Store) -> None:
        nonlocal inside, most
        async with on.alone("writer of 7"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(write(on) for _ in range(5) for on in (store, second)))
    assert most == 1
    await second.close()


async def test_given_up_on_an_error_and_when_called_off(store: Store, store_url: str) -> None:
    second = await Store.open(store_url, migrate=False)
    try:
        async with store.alone("writer of 7"):
            raise LookupError
    except LookupError:
        pass
    async with second.alone("writer of 7"):
        task = asyncio.create_task(store.alone("writer of 7").__aenter__())
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    async with store.alone("writer of 7"), store.alone("writer of 8"):
        pass
    await second.close()
