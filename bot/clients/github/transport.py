"""One way to GitHub: tokens with a single flight, limits waited out, reads repeated, writes never blindly."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Self, TypeVar

import httpx
from githubkit import GitHub, Response
from githubkit.auth import AppAuthStrategy, UnauthAuthStrategy
from githubkit.cache import MemCacheStrategy
from githubkit.exception import RequestError, RequestFailed

from bot.clients.github.errors import GitHubError, RateLimited, TooLarge, Unauthorized, Unavailable
from bot.clients.github.sorting import Wait, limit_wait, sort_error

Value = TypeVar("Value")
Params = Mapping[str, str | int]
Alone = Callable[[int], AbstractAsyncContextManager[None]]
_TOKEN_MARGIN = timedelta(minutes=5)
_READ_TRIES = 4
_CREATE_TRIES = 3
_CACHED = 1000
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


@dataclass(frozen=True, slots=True)
class Answer:
    """What GitHub answered: the JSON (None where there is none) and whether another page follows."""

    status: int
    json: Any
    next_page: str | None = None
    etag: str | None = None
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    params: Params | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None  # bytes: the answer is a file, read as it is

    def signed(self, token: str) -> _Request:
        return replace(self, headers={**self.headers, "Authorization": f"token {token}"})


@dataclass(slots=True)
class _Token:
    text: str
    expires_at: datetime


@dataclass(slots=True)
class _Lane:
    """What requests of one installation share (0: the App itself)."""

    writer: asyncio.Lock = field(default_factory=asyncio.Lock)
    minting: asyncio.Lock = field(default_factory=asyncio.Lock)
    token: _Token | None = None
    blocked_until: datetime | None = None
    wrote_at: datetime | None = None


class Client(GitHub[Any]):
    """githubkit's client with one connection pool for all tasks.

    githubkit keeps its pool in a context variable; a web server's requests run in contexts of their own and would
    each build another (33 ms).
    """

    _pool: httpx.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        self._pool = await self._create_async_client()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._pool is not None:
            await self._pool.aclose()
            self._pool = None

    @asynccontextmanager
    async def get_async_client(self) -> AsyncGenerator[httpx.AsyncClient, None]:
        """The one pool; RuntimeError outside of `async with`."""
        if self._pool is None:
            raise RuntimeError("GitHub is called outside of `async with GitHubApp(...)`")
        yield self._pool


class Transport:
    """Sends requests as the App (installation 0) or as an installation.

    `alone` holds an installation against the writers of other processes, while this one writes.
    """

    def __init__(
        self,
        app_id: int,
        private_key: str,
        base_url: str,
        *,
        now: Callable[[], datetime] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        max_wait: float = 90,
        write_pause: float = 0,
        alone: Alone = lambda _: nullcontext(),
        timeout: float = 30,
    ) -> None:
        common: dict[str, Any] = {
            "base_url": base_url,
            "http_cache": False,
            "auto_retry": False,
            "timeout": timeout,
            "user_agent": "graft",
            "cache_strategy": MemCacheStrategy(),
        }
        self.now = now or (lambda: datetime.now(UTC))
        self.sleep = sleep
        self._app = Client(AppAuthStrategy(app_id, private_key), **common)
        self._client = Client(UnauthAuthStrategy(), **common)
        self._max_wait = max_wait
        self._write_pause = timedelta(seconds=write_pause)
        self._alone = alone
        self._lanes: dict[int, _Lane] = {}
        self._cache: OrderedDict[tuple[int, str, tuple[tuple[str, str | int], ...]], Answer] = OrderedDict()

    async def __aenter__(self) -> Self:
        await self._app.__aenter__()
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()
        await self._app.__aexit__()

    def lane(self, installation: int) -> _Lane:
        """What the installation's requests share."""
        return self._lanes.setdefault(installation, _Lane())

    async def token(self, installation: int, *, instead_of: str | None = None) -> str:
        """A token good for five minutes at least, minted once however many ask; never the one named."""
        lane = self.lane(installation)
        async with lane.minting:
            held = lane.token
            if held and held.text != instead_of and held.expires_at - self.now() > _TOKEN_MARGIN:
                return held.text
            path = f"/app/installations/{installation}/access_tokens"
            for attempt in range(_CREATE_TRIES):  # a second token does no harm
                try:
                    minted = (await self._send(_Request("POST", path, body={}), 0)).json
                    break
                except Unavailable:
                    if attempt == _CREATE_TRIES - 1:
                        raise
                    await self.sleep(2**attempt)
            lane.token = _Token(minted["token"], datetime.fromisoformat(minted["expires_at"]))
            return lane.token.text

    async def get(
        self, path: str, installation: int, params: Params | None = None, *, fixed: bool = False
    ) -> Answer:  # fmt: skip
        """Read; asks only whether it changed where an earlier answer is held, and not even that of what is `fixed`: it
        never changes, as what git names by its content.
        """
        key = (installation, path, tuple(sorted((params or {}).items())))
        held = self._cache.get(key)
        if held is not None and fixed:
            self._cache.move_to_end(key)
            return held
        headers = {"If-None-Match": held.etag} if held and held.etag else {}
        answer = await self.request("GET", path, installation, params=params, headers=headers)
        if answer.status == 304 and held is not None:
            self._cache.move_to_end(key)
            return held
        if fixed or (answer.etag and not _may_grow(answer, params or {})):
            self._cache[key] = answer
            self._cache.move_to_end(key)
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        return answer

    async def request(
        self,
        method: str,
        path: str,
        installation: int,
        *,
        params: Params | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        repeat: bool | None = None,
    ) -> Answer:
        """Send with the right token. Repeats after 5xx or silence only where `repeat` (by default all but POST)."""
        repeat = method != "POST" if repeat is None else repeat
        return await self._request(_Request(method, path, params, body, headers or {}), installation, repeat=repeat)

    async def download(self, path: str, installation: int, *, limit: int) -> bytes:
        """The file that a path leads to; raises TooLarge once more than `limit` bytes came.

        Where GitHub sends on to another host the token stays behind.
        """
        return (await self._request(_Request("GET", path, limit=limit), installation, repeat=True)).content

    async def _request(self, sent: _Request, installation: int, *, repeat: bool) -> Answer:
        attempt = 0
        while True:
            try:
                return await self._send_authorized(sent, installation)
            except Unavailable as error:
                attempt += 1
                never_sent = isinstance(error.__cause__, RequestError) and isinstance(error.__cause__.exc, _NEVER_SENT)
                if not (repeat or never_sent) or attempt >= _READ_TRIES:
                    raise
                await self.sleep(0.5 * 2 ** (attempt - 1))

    @asynccontextmanager
    async def writer(self, installation: int) -> AsyncIterator[Writer]:
        """The one writer of the installation: others wait. What must be read before it is written is read inside."""
        async with self.lane(installation).writer, self._alone(installation):
            yield Writer(self, installation)

    async def pause_before_write(self, installation: int) -> None:
        """Keep the least time between two writes of an installation."""
        lane = self.lane(installation)
        if lane.wrote_at is not None and (left := lane.wrote_at + self._write_pause - self.now()) > timedelta():
            await self.sleep(left.total_seconds())
        lane.wrote_at = self.now()

    async def _send_authorized(self, request: _Request, installation: int) -> Answer:
        if not installation:
            return await self._send(request, 0)
        token = await self.token(installation)
        try:
            return await self._send(request.signed(token), installation)
        except Unauthorized:
            token = await self.token(installation, instead_of=token)
            return await self._send(request.signed(token), installation)

    async def _send(self, request: _Request, installation: int) -> Answer:
        client = self._client if installation else self._app
        lane = self.lane(installation)
        budget = self._max_wait
        wait = Wait(timedelta(), True, "held back by a limit that was hit before")
        while True:
            if lane.blocked_until is not None:
                budget = await self._wait_until(lane.blocked_until, budget, wait, request)
            try:
                if request.limit is not None:
                    return await _file(client, request, request.limit)
                response = await client.arequest(
                    request.method,
                    request.path,
                    params=dict(request.params) if request.params else None,
                    json=request.body,
                    headers=dict(request.headers),
                )
            except RequestFailed as error:
                limit = limit_wait(error, self.now())
                if limit is None:
                    raise sort_error(error, request.method, request.path) from error
                wait = limit
                lane.blocked_until = max(self.now() + wait.time, lane.blocked_until or self.now())
            except RequestError as error:
                raise Unavailable(repr(error.exc), method=request.method, url=request.path) from error
            else:
                return _answer(response.raw_response)

    async def _wait_until(self, until: datetime, budget: float, wait: Wait, request: _Request) -> float:
        seconds = (until - self.now()).total_seconds()
        if seconds <= 0:
            return budget
        if seconds > budget:
            raise RateLimited(
                wait.message,
                retry_at=until,
                secondary=wait.secondary,
                method=request.method,
                url=request.path,
                status=403,
            )
        await self.sleep(seconds)
        return budget - seconds


class Writer:
    """Proof that the installation's writer lock is held; writes go through it."""

    def __init__(self, transport: Transport, installation: int) -> None:
        self._transport = transport
        self._installation = installation

    async def send(self, method: str, path: str, body: Any = None, *, repeat: bool | None = None) -> Any:
        """Write and give back the JSON."""
        await self._transport.pause_before_write(self._installation)
        return (await self._transport.request(method, path, self._installation, body=body, repeat=repeat)).json

    async def create(
        self,
        path: str,
        body: Any,
        *,
        find: Callable[[], Awaitable[Value | None]],
        parse: Callable[[Any], Value],
        method: str = "POST",
    ) -> Value:
        """POST what must exist once: after a failure of unknown effect `find` looks before it is sent again."""
        for attempt in range(_CREATE_TRIES):
            try:
                return parse(await self.send(method, path, body, repeat=False))
            except Unavailable:
                await self._transport.sleep(2**attempt)
                found = await find()
                if found is not None:
                    return found
                if attempt == _CREATE_TRIES - 1:
                    raise
        raise GitHubError("unreachable")  # pragma: no cover


async def _file(client: Client, request: _Request, limit: int) -> Answer:
    """A file, read piece by piece so that no more than `limit` bytes are ever held."""
    async with client.get_async_client() as http:
        try:
            headers = {**request.headers, "Accept-Encoding": "identity"}
            async with http.stream(request.method, request.path, headers=headers) as response:
                content = bytearray()
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > limit:
                        raise TooLarge(f"it has more than {limit} bytes", method=request.method, url=request.path)
        except httpx.HTTPError as error:
            raise RequestError(error) from error
    if response.is_error:
        plain = {name: value for name, value in response.headers.items() if name != "content-encoding"}
        whole = httpx.Response(response.status_code, headers=plain, content=bytes(content), request=response.request)
        raise RequestFailed(Response(whole, Any))
    return Answer(response.status_code, None, content=bytes(content))


def _may_grow(answer: Answer, params: Params) -> bool:
    """True for a full last page: the next entry changes its Link, not its body, and so not its ETag."""
    lists = answer.json.values() if isinstance(answer.json, dict) else [answer.json]
    full = any(isinstance(one, list) and len(one) >= int(params.get("per_page", 30)) for one in lists)
    return full and answer.next_page is None


def _answer(response: httpx.Response) -> Answer:
    link = response.links.get("next", {}).get("url")
    has_json = response.content and "json" in response.headers.get("content-type", "")
    return Answer(response.status_code, response.json() if has_json else None, link, response.headers.get("etag"))
