"""A child and all that it leaves: ended with it, whatever of its children holds on to its output."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from runners.process import Ended, Killed, captured, run_group


async def run(place: Path, script: str, seconds: float = 250) -> Ended:
    return await run_group(["sh", "-c", script], cwd=place, env=dict(os.environ), seconds=seconds)


def gone(pid: int) -> bool:
    """Whether it ends: one killed still closes its files for a moment."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        deadline = time.monotonic() + 60
        while process.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
    return True


async def test_what_a_suite_leaves_in_the_background_is_no_hang(tmp_path: Path) -> None:
    ended = await run(tmp_path, "sleep 1000 & echo $! > pid; echo done; exit 3")
    assert (ended.exit_code, ended.killed, ended.tail) == (3, None, "done\n")
    assert gone(int((tmp_path / "pid").read_text()))


async def test_one_that_goes_on_is_ended_at_its_limit(tmp_path: Path) -> None:
    ended = await run(tmp_path, "echo begun; sleep 1000", seconds=0.5)
    assert (ended.killed, ended.tail) == (Killed.TIMEOUT, "begun\n")


async def test_one_that_can_not_be_started_says_so(tmp_path: Path) -> None:
    ended = await run_group(["/no/such/program"], cwd=tmp_path, env={}, seconds=9)
    assert (ended.started, ended.exit_code) == (False, 127)
    with pytest.raises(OSError, match="no/such"):
        await captured("/no/such/program")


async def test_what_was_written_is_given_apart() -> None:
    ended = await captured("sh", "-c", "echo out; echo err >&2; exit 4")
    assert (ended.exit_code, ended.output, ended.errors) == (4, "out\n", "err\n")
    many = await captured("sh", "-c", "yes x | head -c 300000; yes y | head -c 300000 >&2")
    assert (many.output, many.errors) == ("x\n" * 150_000, "y\n" * 150_000)


async def test_one_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with pytest.raises(TimeoutError):
        await captured("sh", "-c", f"sleep 1000 & echo $! > {pid}; wait", seconds=1)
    assert gone(int(pid.read_text()))


@pytest.mark.parametrize(
    "work",
    [
        lambda place: captured("sleep", "1000"),
        lambda place: run(place, "sleep 1000"),
    ],
    ids=["captured", "run_group"],
)
async def test_it_may_be_called_off_at_any_moment_of_its_start(
    tmp_path: Path, work: Callable[[Path], Awaitable[object]]
) -> None:
    before = set(psutil.Process().children())
    for moments in range(40):
        task = asyncio.ensure_future(work(tmp_path))
        for _ in range(moments):
            await asyncio.sleep(0)
        task.cancel()
        _, pending = await asyncio.wait([task], timeout=60)
        assert not pending, f"never ended when called off after {moments} turns of the loop"
        assert task.cancelled()
    left = [child for child in psutil.Process().children() if child not in before]
    assert not [child for child in left if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
