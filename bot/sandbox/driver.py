"""The sandbox as a test or a demo drives it: `Sandbox` sets the world up, `as_user` acts in it as a person would."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn

from bot.sandbox import events, webhooks
from bot.sandbox.cast import Cast
from bot.sandbox.faults import Faults
from bot.sandbox.gitside import GitSide
from bot.sandbox.person import UserClient
from bot.sandbox.site import site
from bot.sandbox.world import World


class Sandbox(Cast):
    """A GitHub on loopback: git repositories below `root`, everything else in memory.

    `start` serves it (API at `<url>/api`, git at `<url>/<owner>/<name>.git`, pages at `<url>/<owner>/<name>`), `stop`
    ends it; `async with Sandbox(root) as sandbox` does both. Methods that set things up are plain calls and work before
    `start`, too; they must be called on the thread of the event loop that serves.
    """

    def __init__(self, root: Path):
        root.mkdir(parents=True, exist_ok=True)
        super().__init__(World(root.resolve()))
        self.faults: Faults = self.state.faults
        self.faults.expire = self._expire
        self.faults.limit = self._limit
        self.faults.limit_of_writes = self._limit_writes
        self._git = GitSide(self.state)
        self._git.lay_hook()
        self._server: uvicorn.Server | None = None
        self._serving: asyncio.Task[None] | None = None
        self._outbox: webhooks.Outbox | None = None
        self._people: dict[str, UserClient] = {}

    # --- serving

    @property
    def url(self) -> str:
        """Where it is served, without a slash at the end."""
        return self.state.url

    @property
    def api_url(self) -> str:
        """The base of the REST API."""
        return f"{self.state.url}/api"

    async def start(self, port: int = 0) -> None:
        """Serve on 127.0.0.1; port 0 takes a free one. OSError where the port is taken."""
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        self.state.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        await self._git.start()
        self._outbox = webhooks.Outbox(self.state)
        config = uvicorn.Config(
            site(self, self._git.backend),
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)
        self._serving = asyncio.create_task(self._server.serve(sockets=[listening]))
        while not self._server.started:
            if self._serving.done():
                await self._serving
            await asyncio.sleep(0.002)

    async def stop(self) -> None:
        """Stop serving; the state stays to be looked at."""
        for person in self._people.values():
            await person.aclose()
        self._people.clear()
        if self._outbox is not None:
            await self._outbox.close()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = True
            await self._serving
        await self._git.stop()

    async def __aenter__(self) -> Sandbox:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    # --- acting and waiting

    def as_user(self, login: str) -> UserClient:
        """The person: acts over the same HTTP API, with a token of their own."""
        user = self.state.known_user(login)
        if user.login not in self._people:
            self._people[user.login] = UserClient(self.state, user.login)
        return self._people[user.login]

    def as_app(self, installation: int) -> UserClient:
        """An App's bot with a fresh token of an installation: what the bot itself sees and may."""
        record = self.state.installations[installation]
        bot = self.state.apps[record.app_id].bot
        client = UserClient(self.state, bot, self.state.mint(bot, record).value)
        self._people[f"{bot} {len(self._people)}"] = client
        return client

    def advance(self, seconds: float) -> None:
        """Move the clock here."""
        self.state.offset += timedelta(seconds=seconds)

    def redeliver_failed(self) -> int:
        """Send every delivery again that was not answered well; gives how many."""
        good = {item.guid for item in self.state.deliveries.values() if 200 <= item.status_code < 300}
        failed = [
            item
            for item in list(self.state.deliveries.values())
            if item.status != "PENDING" and item.guid not in good and not item.redelivery
        ]
        for item in failed:
            events.redeliver(self.state, item)
        return len(failed)

    async def settle(self, timeout: float = 10.0) -> None:  # noqa: ASYNC109 - the caller's deadline
        """Wait until all deliveries are sent."""
        if self._outbox is not None:
            await webhooks.settle(self._outbox, timeout)

    async def wait_for(
        self,
        predicate: Callable[[], Any],
        what: str = "it",
        timeout: float = 15.0,  # noqa: ASYNC109 - the caller's deadline
    ) -> Any:
        """Wait until `predicate` (plain or async) gives something true, and give that; TimeoutError names `what`."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    value = predicate()
                    if inspect.isawaitable(value):
                        value = await value
                    if value:
                        return value
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise TimeoutError(
                f"waited {timeout:g} s for {what} in vain; requests refused or failed: {self._trouble()}"
            ) from None

    def _trouble(self) -> str:
        bad = [f"{method} {path} {status}" for method, path, status in self.state.requests if status >= 400][-8:]
        return "; ".join(bad + self.state.violations[-3:]) or "none"

    def _expire(self) -> None:
        for token in self.state.tokens.values():
            if token.installation_id is not None:
                token.expires_at = self.state.now() - timedelta(seconds=1)

    def _limit_writes(self, per_minute: int | None) -> None:
        self.state.writes_per_minute = per_minute

    def _limit(self, remaining: int) -> None:
        for token in self.state.tokens.values():
            if token.installation_id is not None:
                token.used = self.state.rate_limit - remaining
                token.window_ends = self.state.now() + timedelta(hours=1)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the program that we run in."""
        yield
