"""Sends deliveries to the Apps' webhooks: signed, once, in order of the event, unless a fault is switched on."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import time
from collections.abc import Coroutine
from typing import Any

import httpx

from bot.sandbox.accounts import App
from bot.sandbox.model import Delivery
from bot.sandbox.person import LOOPBACK
from bot.sandbox.world import World

TIMEOUT = 10.0  # seconds, as GitHub waits
MAX_ANSWER = 10_000  # characters of an answer that are kept


class Outbox:
    """One task an App, so that a slow App holds up nobody else."""

    def __init__(self, world: World):
        self.world = world
        self._queues: dict[int, asyncio.Queue[Delivery]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: dict[int, list[Delivery]] = {}
        self._client = httpx.AsyncClient(timeout=TIMEOUT, trust_env=False, verify=LOOPBACK)
        self._open = 0
        self._loop = asyncio.get_running_loop()
        world.outbox = self.put
        for delivery in list(world.deliveries.values()):
            if delivery.status == "PENDING":
                self.put(delivery)

    def put(self, delivery: Delivery) -> None:
        """Take a delivery to be sent; to be called on the server's event loop."""
        app = self.world.apps[delivery.app_id]
        self._open += 1
        if app.id not in self._queues:
            self._queues[app.id] = asyncio.Queue()
            self._start(self._work(app))
        self._queues[app.id].put_nowait(delivery)

    @property
    def idle(self) -> bool:
        """True where everything has been sent (or lost on purpose), delayed ones too."""
        return self._open == 0

    async def close(self) -> None:
        """Stop sending; what waits is left unsent."""
        self.world.outbox = lambda delivery: None
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.aclose()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, app: App) -> None:
        while True:
            delivery = await self._queues[app.id].get()
            fault = self.world.faults.delivery(delivery.event, delivery.action) if not delivery.redelivery else None
            if fault is None:
                await self._send(app, delivery)
                continue
            kind, seconds, last = fault
            if kind == "drop":
                self._done(delivery, "failed to connect to host", 0)
            elif kind == "duplicate":
                self._open += 1
                await self._send(app, delivery)
                await self._send(app, delivery)
            elif kind == "delay":
                self._start(self._later(app, delivery, seconds))
            elif kind == "reorder":
                held = self._held.setdefault(app.id, [])
                held.append(delivery)
                if last:
                    for one in reversed(self._held.pop(app.id)):
                        await self._send(app, one)

    async def _later(self, app: App, delivery: Delivery, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._send(app, delivery)

    async def _send(self, app: App, delivery: Delivery) -> None:
        assert app.webhook_url is not None
        signature = hmac.new(app.webhook_secret.encode(), delivery.payload, hashlib.sha256).hexdigest()
        old = hmac.new(app.webhook_secret.encode(), delivery.payload, hashlib.sha1).hexdigest()
        delivery.request_headers = {
            "Accept": "*/*",
            "Content-Type": "application/json",
            "User-Agent": "GitHub-Hookshot/sandbox",
            "X-GitHub-Delivery": delivery.guid,
            "X-GitHub-Event": delivery.event,
            "X-GitHub-Hook-ID": str(app.id),
            "X-GitHub-Hook-Installation-Target-ID": str(app.id),
            "X-GitHub-Hook-Installation-Target-Type": "integration",
            "X-Hub-Signature": f"sha1={old}",
            "X-Hub-Signature-256": f"sha256={signature}",
        }
        begun = time.monotonic()
        try:
            answer = await self._client.post(
                app.webhook_url, content=delivery.payload, headers=delivery.request_headers
            )
        except httpx.TimeoutException:
            self._done(delivery, "timed out", 0, time.monotonic() - begun)
        except httpx.HTTPError:
            self._done(delivery, "failed to connect to host", 0, time.monotonic() - begun)
        else:
            delivery.response_headers = dict(answer.headers)
            delivery.response_body = answer.text[:MAX_ANSWER]
            word = "OK" if answer.is_success else f"Invalid HTTP Response: {answer.status_code}"
            self._done(delivery, word, answer.status_code, time.monotonic() - begun)

    def _done(self, delivery: Delivery, status: str, code: int, seconds: float = 0.0) -> None:
        delivery.status, delivery.status_code, delivery.duration = status, code, round(seconds, 3)
        delivery.delivered_at = self.world.now()
        self._open -= 1


async def settle(outbox: Outbox, timeout: float) -> None:  # noqa: ASYNC109 - the caller's deadline, told in an error
    """Wait until everything has been sent; TimeoutError after `timeout` seconds."""
    async with asyncio.timeout(timeout):
        while not outbox.idle:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.sleep(0.01)
