"""git's way to the source without the runner's token: git asks the runner, and the runner asks the bot.

Whatever a program is given (variables, arguments, files, open descriptors) others of the same user can read while it
runs. So git is given an address on this machine, made up for one fetch, where nothing but that repository can be read.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

_SECONDS = 900.0
_LARGEST = 64 * 1024 * 1024  # of what git asks: which commits are here
# git sends what is shorter in one piece, with its length
GIT_OPTIONS = ("-c", f"http.postBuffer={_LARGEST}")
_ASKED = ("accept", "accept-encoding", "content-encoding", "content-type", "git-protocol", "user-agent")
_ANSWERED = ("content-encoding", "content-type")
_PATHS = {"GET": "/info/refs?service=git-upload-pack", "POST": "/git-upload-pack"}


class Relay:
    """The way to one repository: `url` is where git asks, `trouble` what kept the bot from answering."""

    def __init__(self, bot: httpx.AsyncClient, source: str) -> None:
        self.url = ""
        self.trouble = ""
        self._bot, self._source = bot, source.rstrip("/")
        self._path = f"/{secrets.token_urlsafe(24)}"
        self._busy: set[asyncio.Task[None]] = set()

    async def listen(self) -> asyncio.Server:
        """Begin to answer on a port of loopback."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{self._path}"
        return server

    async def stop(self) -> None:
        """End what is under way."""
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._answer(reader, writer))
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, one answer."""
        try:
            method, path, headers = _head(await reader.readuntil(b"\r\n\r\n"))
            if path != self._path + _PATHS.get(method, " "):
                _begin(writer, 404, {})
                return
            body = await reader.readexactly(min(int(headers.get("content-length", "0")), _LARGEST))
            asked = {name: headers[name] for name in _ASKED if name in headers}
            await self._ask(writer, method, {"accept-encoding": "identity", **asked}, body)
        except httpx.HTTPError as error:
            self.trouble = f"{type(error).__name__}: {error}"
            if not writer.is_closing():
                _begin(writer, 502, {})
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # git went away, or it is none of git's
        finally:
            writer.close()

    async def _ask(self, writer: asyncio.StreamWriter, method: str, headers: Mapping[str, str], body: bytes) -> None:
        """Pass the bot's answer on as it comes; one that breaks off is broken off here too."""
        async with self._bot.stream(
            method, self._source + _PATHS[method], headers=headers, content=body or None
        ) as answer:
            if not answer.is_success:
                await answer.aread()
                told = answer.headers.get("location", "") if answer.is_redirect else answer.text
                self.trouble = f"the bot answers {answer.status_code} {' '.join(told.split())[:200]}".strip()
                _begin(writer, 502, {})  # git would ask somebody for a password, or follow to where it leads
                return
            passed = {name: answer.headers[name] for name in _ANSWERED if name in answer.headers}
            _begin(writer, answer.status_code, {**passed, "transfer-encoding": "chunked"})
            try:
                async for part in answer.aiter_raw():
                    writer.write(b"%x\r\n%b\r\n" % (len(part), part))
                    await writer.drain()
            except httpx.HTTPError as error:
                self.trouble = f"{type(error).__name__}: {error}"
                writer.close()
                return
            writer.write(b"0\r\n\r\n")
            await writer.drain()


@asynccontextmanager
async def relay(source: str, token: str) -> AsyncIterator[Relay]:
    """A way to the repository at `source`, of the bot's, that ends with the context."""
    async with httpx.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=_SECONDS, follow_redirects=False, trust_env=False
    ) as bot:
        made = Relay(bot, source)
        server = await made.listen()
        try:
            yield made
        finally:
            server.close()
            await made.stop()


def _head(data: bytes) -> tuple[str, str, dict[str, str]]:
    """Method, path and headers of a request; raises ValueError."""
    first, *rest = data.decode("latin-1").split("\r\n")
    method, path, version = first.split(" ")
    if version != "HTTP/1.1":
        raise ValueError(version)
    pairs = (line.partition(":") for line in rest if line)
    return method, path, {name.strip().lower(): value.strip() for name, _, value in pairs}


def _begin(writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str]) -> None:
    lines = [f"HTTP/1.1 {status} -", "connection: close", *(f"{name}: {value}" for name, value in headers.items())]
    if "transfer-encoding" not in headers:
        lines.append("content-length: 0")
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
