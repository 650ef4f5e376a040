"""What goes with a run under way: the word to stop it, and its output on its way to the bot and to a file."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from bot.core.validation import RunRequest
from runners.protocol import Bot, RefusedError, UnreachableError

_LOG_PIECE = 512 * 1024
_LOG_KEPT = 256 * 1024 * 1024


class Stop:
    """Why a run has to end before its time: the bot's word, or the runner's own end."""

    def __init__(self, all_runs: asyncio.Event) -> None:
        self.event = asyncio.Event()
        self.why = ""
        self.lost = False
        self._watch = asyncio.create_task(self._follow(all_runs))

    def end(self, why: str) -> None:
        """The bot wants no report of it any more."""
        self.why, self.lost = why, True
        self.event.set()

    def close(self) -> None:
        """Listen no longer."""
        self._watch.cancel()

    async def _follow(self, all_runs: asyncio.Event) -> None:
        await all_runs.wait()
        self.why = "the runner ends"
        self.event.set()


class LogFile:
    """The whole output, for the artifacts, on its way to the bot."""

    def __init__(self, path: Path, onward: Callable[[str], None]) -> None:
        self._path, self._onward, self._left = path, onward, _LOG_KEPT
        self._file = path.open("w", encoding="utf-8", errors="replace")

    def add(self, text: str) -> None:
        """Take a piece of it."""
        self._onward(text)
        if self._left > 0:
            with contextlib.suppress(OSError):  # a full disk: the bot has it still
                self._file.write(text[: self._left])
            self._left -= len(text)

    def move(self, target: Path) -> None:
        """Put the file among the artifacts."""
        with contextlib.suppress(OSError):  # the suite has done away with its folder
            self._path.replace(target)

    def __enter__(self) -> LogFile:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._file.close()


class LogStream:
    """The output on its way to the bot, in order; what can't be sent now is sent with the next piece."""

    def __init__(self, bot: Bot, request: RunRequest) -> None:
        self._bot, self._request = bot, request
        self._held = bytearray()
        self._sent = 0
        self._closed = False

    def add(self, text: str) -> None:
        """Take a piece of it, to be sent by the next `flush`."""
        if not self._closed:
            self._held += text.encode("utf-8", "replace")

    async def flush(self) -> None:
        """Send what is there, as far as the bot takes it."""
        while self._held and not self._closed:
            piece = bytes(self._held[:_LOG_PIECE])
            try:
                size = await self._bot.log(self._request, self._sent, piece)
            except UnreachableError:
                return
            except RefusedError:
                self._closed = True
                return
            if size <= self._sent:
                self._closed = True  # the bot has kept as much as it keeps
                return
            del self._held[: size - self._sent]
            self._sent = size
