"""Serves bare repositories by git's own smart HTTP: an ASGI bridge to `git http-backend`.

The caller says who may read or push; git does the rest. Bodies are streamed both ways, so that a clone of any size
takes no memory here. Paths are `/<owner>/<name>.git/…` below `root`; nothing outside `root` can be reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

Authorize = Callable[[Request, str, str], Awaitable[Response | None]]
AfterReceive = Callable[[Request, str], Awaitable[None]]
Environment = Callable[[Request, str], Mapping[str, str]]

READ, WRITE = "git-upload-pack", "git-receive-pack"
_PATH = re.compile(
    r"/(?P<repository>[A-Za-z0-9][\w.-]*/[A-Za-z0-9._-]+?)\.git"
    r"(?P<tail>/info/refs|/git-upload-pack|/git-receive-pack|/HEAD|/objects/[\w./-]+)"
)
_CHUNK = 64 * 1024


class GitHttpBackend:
    """An ASGI application for the repositories below `root` (`<owner>/<name>.git`).

    `authorize(request, "owner/name", service)` returns None to let the request pass, or the response to give instead;
    service is `git-upload-pack` (reading) or `git-receive-pack` (pushing). With `receive=False` every push is refused
    before anybody is asked. `after_receive(request, "owner/name")` runs when a push has been handled, before its answer
    ends. `environment` adds variables that hooks see.
    """

    def __init__(
        self,
        root: Path,
        *,
        receive: bool,
        authorize: Authorize,
        after_receive: AfterReceive | None = None,
        environment: Environment | None = None,
    ):
        self.root = root
        self.receive = receive
        self.authorize = authorize
        self.after_receive = after_receive
        self.environment = environment

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        response = await self._respond(request)
        await response(scope, receive, send)

    async def _respond(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        found = _PATH.fullmatch(path)
        if found is None or ".." in path or request.method not in ("GET", "POST"):
            return PlainTextResponse("Not Found\n", 404)
        repository, tail = found["repository"], found["tail"]
        service = _service(request, tail)
        if service is None:
            return PlainTextResponse("Only git's smart protocol is served: upgrade git\n", 403)
        if service == WRITE and not self.receive:
            return PlainTextResponse("This repository is read-only\n", 403)
        refusal = await self.authorize(request, repository, service)
        if refusal is not None:
            return refusal
        if not (self.root / f"{repository}.git" / "HEAD").is_file():
            return PlainTextResponse("Repository not found\n", 404)
        return await self._backend(request, repository, tail, service)

    async def _backend(self, request: Request, repository: str, tail: str, service: str) -> Response:
        process = await asyncio.create_subprocess_exec(
            "git",
            "http-backend",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self._environment(request, repository, tail, service),
            limit=2**20,
        )
        feeding = asyncio.create_task(_feed(request, process))
        try:
            status, headers = await _head(process)
        except BaseException:
            await _end(process, feeding)
            raise
        landed = tail == f"/{WRITE}" and self.after_receive is not None

        async def body() -> AsyncIterator[bytes]:
            assert process.stdout is not None
            try:
                while chunk := await process.stdout.read(_CHUNK):
                    yield chunk
                await process.wait()
                if landed and self.after_receive is not None:
                    await self.after_receive(request, repository)
            finally:
                await _end(process, feeding)

        return _Answer(body(), status, headers, feeding)

    def _environment(self, request: Request, repository: str, tail: str, service: str) -> dict[str, str]:
        environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "TMPDIR") if name in os.environ}
        environment |= {
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{repository}.git{tail}",
            "REQUEST_METHOD": request.method,
            "QUERY_STRING": request.url.query,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "REMOTE_ADDR": "127.0.0.1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "HOME": str(self.root),
        }
        # directories of the service's own user only: git's ownership check has nothing to add
        settings = [("safe.directory", "*")]
        if service == WRITE:
            environment["REMOTE_USER"] = "authorized"
            settings.append(("http.receivepack", "true"))
        environment["GIT_CONFIG_COUNT"] = str(len(settings))
        for at, (name, value) in enumerate(settings):
            environment |= {f"GIT_CONFIG_KEY_{at}": name, f"GIT_CONFIG_VALUE_{at}": value}
        protocol = request.headers.get("git-protocol", "")
        if re.fullmatch(r"[\w=:.-]{1,100}", protocol):
            environment["GIT_PROTOCOL"] = protocol
        if self.environment is not None:
            environment |= self.environment(request, repository)
        return environment


class _Answer(StreamingResponse):
    """Looks for the client's end only once its whole request is read: git answers before, and to look is to read."""

    def __init__(
        self, body: AsyncIterator[bytes], status: int, headers: dict[str, str], feeding: asyncio.Task[None]
    ) -> None:
        super().__init__(body, status, headers)
        self._feeding = feeding

    async def listen_for_disconnect(self, receive: Receive) -> None:
        """Wait until the client is gone."""
        await asyncio.wait([self._feeding])
        await super().listen_for_disconnect(receive)


def _service(request: Request, tail: str) -> str | None:
    if tail == "/info/refs":
        name = request.query_params.get("service")
        return name if request.method == "GET" and name in (READ, WRITE) else None
    name = tail.removeprefix("/")
    return name if request.method == "POST" and name in (READ, WRITE) else None


async def _feed(request: Request, process: asyncio.subprocess.Process) -> None:
    """Give the request's body to git, unpacked where it came packed."""
    assert process.stdin is not None
    unpack = zlib.decompressobj(31) if request.headers.get("content-encoding") in ("gzip", "x-gzip") else None
    with contextlib.suppress(ConnectionError, ClientDisconnect, zlib.error):
        async for chunk in request.stream():
            process.stdin.write(unpack.decompress(chunk) if unpack else chunk)
            await process.stdin.drain()
    with contextlib.suppress(ConnectionError):
        process.stdin.close()


async def _head(process: asyncio.subprocess.Process) -> tuple[int, dict[str, str]]:
    """Status and headers of a CGI answer; 500 where git died before one."""
    assert process.stdout is not None
    status, headers = 200, {}
    seen = False
    while line := (await process.stdout.readline()).strip():
        seen = True
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() == "status":
            status = int(value.split()[0])
        else:
            headers[name] = value.strip()
    return (status, headers) if seen else (500, {"Content-Type": "text/plain"})


async def _end(process: asyncio.subprocess.Process, feeding: asyncio.Task[None]) -> None:
    feeding.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await feeding
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
