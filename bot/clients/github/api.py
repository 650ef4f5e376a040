"""What the parts of a repository's client share: its address, reading with pages, the writer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from bot.clients.github.models import AppInfo
from bot.clients.github.transport import Answer, Params, Transport, Writer

PER_PAGE = 100


class Api:
    """A repository as one installation sees it."""

    def __init__(
        self,
        transport: Transport,
        installation: int,
        full_name: str,
        *,
        git_base: str,
        identity: Callable[[], Awaitable[AppInfo]],
    ) -> None:
        self.transport = transport
        self.installation = installation
        self.full_name = full_name
        self.identity = identity
        self.owner, _, self.name = full_name.partition("/")
        self.git_url = f"{git_base.rstrip('/')}/{full_name}.git"
        self._root = f"/repos/{quote(self.owner, safe='')}/{quote(self.name, safe='')}"

    async def _get(self, path: str, params: Params | None = None) -> Any:
        return (await self.transport.get(self._root + path, self.installation, params)).json

    async def _list(self, path: str, params: Params | None = None, *, key: str = "", limit: int = 5000) -> list[Any]:
        found: list[Any] = []
        async for page in pages(self.transport, self._root + path, self.installation, params):
            found += page.json[key] if key else page.json
            if len(found) >= limit:
                break
        return found[:limit]

    def _writer(self) -> AbstractAsyncContextManager[Writer]:
        return self.transport.writer(self.installation)


async def pages(
    transport: Transport, path: str, installation: int, params: Params | None = None
) -> AsyncIterator[Answer]:
    """The answers of all pages, in order; follows `page` and `cursor` of the Link header."""
    asked: dict[str, str | int] = {"per_page": PER_PAGE, **(params or {})}
    while True:
        answer = await transport.get(path, installation, asked)
        yield answer
        if answer.next_page is None:
            return
        following = parse_qs(urlsplit(answer.next_page).query)
        asked |= {name: following[name][0] for name in ("page", "cursor") if name in following}


def segment(text: str) -> str:
    """A text as one segment of a path."""
    return quote(text, safe="")


def path_of(text: str) -> str:
    """A text as a path whose slashes stand, as GitHub takes branches and files."""
    return quote(text, safe="/")
