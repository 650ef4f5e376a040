"""One child process group with limits of time and memory, its output as it comes, and nothing of it left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

_GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.25
_DISK_SECONDS = 1.0
TAIL_BYTES = 64_000
MARK = "GRAFT_RUN_MARK"


class Killed(StrEnum):
    """Why a child was ended from outside."""

    TIMEOUT = "timeout"
    MEMORY = "memory"
    CANCELLED = "cancelled"
    DISK = "disk"


@dataclass(frozen=True, slots=True)
class Captured:
    """How a program ended (negative: by a signal), and what it wrote."""

    exit_code: int
    output: str
    errors: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended. `exit_code` is negative for a signal; `tail` is the end of its output, already redacted."""

    exit_code: int
    seconds: float
    tail: str
    killed: Killed | None = None
    started: bool = True

    @property
    def crashed(self) -> bool:
        """Whether a signal of its own making ended it (segmentation fault, abort …), seen through a shell too."""
        if self.killed is not None:
            return False
        number = -self.exit_code if self.exit_code < 0 else self.exit_code - 128
        return number in {signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV}

    @property
    def signal_name(self) -> str:
        """The signal's name, empty where none ended it."""
        number = -self.exit_code if self.exit_code < 0 else self.exit_code - 128
        with contextlib.suppress(ValueError):
            return signal.Signals(number).name if number > 0 else ""
        return ""


async def run_group(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    memory_bytes: int | None = None,
    output: Callable[[str], None] = lambda _: None,
    redact: Callable[[str], str] = lambda text: text,
    cancelled: asyncio.Event | None = None,
    short: Callable[[], bool] | None = None,
    started: Callable[[int], None] = lambda _: None,
) -> Ended:
    """Run it in a session of its own; at its end, at the limit or when cancelled, all its descendants are killed.

    `seconds` is the limit; `short` says that the disk is all but full, which ends it too; `started` is told its process
    id. Never raises for what the child does; one that can't be started has `started` False.
    """
    began = time.monotonic()
    mark = env.get(MARK, "")
    async with _pipe() as (written, end):
        try:
            child = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=dict(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=end,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            text = f"can't start {argv[0]}: {error}\n"
            output(text)
            return Ended(127, time.monotonic() - began, text, started=False)
        finally:
            end.close()
        started(child.pid)
        tail = _Tail()
        reader = asyncio.create_task(_read(written, tail, output, redact))
        killed = None
        try:
            killed = await _watch(child, began + seconds, memory_bytes, cancelled, short)
        finally:
            if killed is not None or child.returncode is None:
                await _end(child, mark)
            kill_marked(mark, child.pid)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(reader, _GRACE_SECONDS)
    code = child.returncode if child.returncode is not None else -signal.SIGKILL
    return Ended(code, time.monotonic() - began, tail.text(), killed)


@contextlib.asynccontextmanager
async def _pipe() -> AsyncIterator[tuple[asyncio.StreamReader, BinaryIO]]:
    """A pipe of our own: what is written into it, and the end for a child to write into.

    With asyncio's own pipes Python 3.11 takes a child for running while anything of its children holds the pipe.
    """
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    with os.fdopen(reading, "rb", 0) as source, os.fdopen(writing, "wb", 0) as end:
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        try:
            yield reader, end
        finally:
            transport.close()


async def captured(*argv: str, seconds: float | None = None, env: Mapping[str, str] | None = None) -> Captured:
    """Run it to its end in a session of its own, and give what it wrote.

    Killed where it takes longer than `seconds`, which raises TimeoutError, or where the caller is cancelled; one that
    no signal ends (stuck inside a driver) is left behind. Raises OSError where it can't be started.
    """
    # files, not asyncio's pipes: see _pipe
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = await asyncio.create_subprocess_exec(
            *argv, env=env, stdin=asyncio.subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
        )
        try:
            code = await asyncio.wait_for(child.wait(), seconds)
        except BaseException:
            _signal_group(child.pid, signal.SIGKILL)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(child.wait(), _GRACE_SECONDS)
            raise
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return Captured(code, *texts)


class _Tail:
    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0

    def add(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        if self._size > 4 * TAIL_BYTES:
            joined = "".join(self._parts)[-TAIL_BYTES:]
            self._parts, self._size = [joined], len(joined)

    def text(self) -> str:
        return "".join(self._parts)[-TAIL_BYTES:]


async def _read(
    written: asyncio.StreamReader, tail: _Tail, output: Callable[[str], None], redact: Callable[[str], str]
) -> None:
    held = b""
    while chunk := await written.read(65536):
        held += chunk
        # a secret may lie across two chunks: only whole lines are let out, or a part of a huge one
        cut = held.rfind(b"\n") + 1
        if cut == 0 and len(held) < 1_000_000:
            continue
        whole, held = (held[:cut], held[cut:]) if cut else (held, b"")
        text = redact(whole.decode("utf-8", "replace"))
        tail.add(text)
        output(text)
    if held:
        text = redact(held.decode("utf-8", "replace"))
        tail.add(text)
        output(text)


async def _watch(
    child: asyncio.subprocess.Process,
    deadline: float,
    memory: int | None,
    cancelled: asyncio.Event | None,
    short: Callable[[], bool] | None,
) -> Killed | None:
    ended = asyncio.create_task(child.wait())
    stop = asyncio.create_task(cancelled.wait()) if cancelled is not None else None
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return Killed.TIMEOUT
            pause = min(
                left, _POLL_SECONDS if memory is not None else left, _DISK_SECONDS if short is not None else left
            )
            waiting = {ended} if stop is None else {ended, stop}
            done, _ = await asyncio.wait(waiting, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if ended in done:
                return None
            if stop is not None and stop in done:
                return Killed.CANCELLED
            if memory is not None and session_bytes(child.pid) > memory:
                return Killed.MEMORY
            if short is not None and short():
                return Killed.DISK
    finally:
        for task in (ended, stop):
            if task is not None and not task.done():
                task.cancel()


async def _end(child: asyncio.subprocess.Process, mark: str) -> None:
    _signal_group(child.pid, signal.SIGTERM)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(child.wait(), _GRACE_SECONDS)
    kill_marked(mark, child.pid)
    with contextlib.suppress(asyncio.TimeoutError):
        await asyncio.wait_for(child.wait(), _GRACE_SECONDS)


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def kill_marked(mark: str, group: int) -> None:
    """Kill the group, and every process that carries the run's mark though it left the group (by a double fork)."""
    _signal_group(group, signal.SIGKILL)
    if not mark:
        return
    wanted = f"{MARK}={mark}".encode()
    for process in _processes():
        try:
            if wanted in (process / "environ").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except (OSError, ValueError):
            continue


def session_bytes(session: int) -> int:
    """Resident bytes of all processes of one session."""
    page = os.sysconf("SC_PAGE_SIZE")
    total = 0
    for process in _processes():
        try:
            fields = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int(fields[21]) * page
        except (OSError, ValueError, IndexError):
            continue
    return total


def _processes() -> list[Path]:
    proc = Path("/proc")
    return [entry for entry in proc.iterdir() if entry.name.isdigit()] if proc.is_dir() else []
