from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import httpx
import pytest
import structlog
from pydantic import SecretStr
from starlette.applications import Starlette

from bot.app import create_app
from bot.app.signature import sign, signed
from bot.clients.queue import Queue, QueueUnavailable
from bot.clients.store import Store, StoreUnavailable
from bot.context import Context
from bot.settings import Settings
from tests.conftest import NOW
from tests.core.test_events import examples

SECRET = b"a secret"


@dataclass
class Bell:
    """A queue that counts its wakes, or is away."""

    wakes: int = 0
    away: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def wake(self) -> None:
        self.wakes += 1
        await self.gate.wait()

    async def ping(self) -> None:
        if self.away:
            raise QueueUnavailable("Redis does not answer")


def context(store: Store, bell: Bell, tmp_path: Path) -> Context:
    settings = Settings(data=tmp_path, webhook_secret=SecretStr(SECRET.decode()), webhook_max_bytes=65536)
    nothing = cast(Any, None)
    return Context(nothing, store, cast(Queue, bell), settings, lambda: NOW, nothing, structlog.get_logger())


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def app(sqlite_store: Store, bell: Bell, tmp_path: Path) -> Starlette:
    return create_app(context(sqlite_store, bell, tmp_path))


@pytest.fixture
async def web(app: Starlette, bell: Bell) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://graft") as client:
        yield client
    bell.gate.set()
    await app.state.waker.close()


def headers(body: bytes, guid: str = "g1", event: str = "push", **more: str) -> dict[str, str]:
    return {
        "X-GitHub-Delivery": guid, "X-GitHub-Event": event, "X-Hub-Signature-256": sign(SECRET, body),
        "Content-Type": "application/json", **more,
    }  # fmt: skip


async def post(web: httpx.AsyncClient, body: bytes, **more: str) -> httpx.Response:
    return await web.post("/webhook", content=body, headers=headers(body, **more))


async def test_a_delivery_is_stored_once_and_the_worker_woken(
    web: httpx.AsyncClient, sqlite_store: Store, bell: Bell
) -> None:
    body = json.dumps({"repository": {"full_name": "o/r"}, "installation": {"id": 5}, "action": "x"}).encode()
    first, second = await post(web, body), await post(web, body)
    assert (first.status_code, first.json()) == (202, {"stored": "g1", "new": True})
    assert (second.status_code, second.json()) == (202, {"stored": "g1", "new": False})
    kept = await sqlite_store.delivery("g1")
    assert kept is not None
    assert (kept.payload, kept.repository, kept.installation, kept.received_at) == (body, "o/r", 5, NOW)
    assert bell.wakes == 1


async def test_rings_join_while_one_is_under_way(web: httpx.AsyncClient, bell: Bell, app: Starlette) -> None:
    for n in range(9):
        await post(web, b"{}", guid=f"g{n}")
    bell.gate.set()
    await app.state.waker.close()
    assert bell.wakes == 2


async def test_form_encoding(web: httpx.AsyncClient, sqlite_store: Store) -> None:
    body = urlencode({"payload": '{"action": "ü"}'}).encode()
    assert (await post(web, body, **{"Content-Type": "application/x-www-form-urlencoded"})).status_code == 202
    kept = await sqlite_store.delivery("g1")
    assert kept is not None
    assert (json.loads(kept.payload), kept.action) == ({"action": "ü"}, "ü")


async def test_ping_and_unknown_events(web: httpx.AsyncClient, sqlite_store: Store) -> None:
    pong = await post(web, b'{"zen": "Keep it logically awesome."}', event="ping")
    assert (pong.status_code, pong.json()) == (200, {"pong": "Keep it logically awesome."})
    assert (await post(web, b"{}", event="quantum_leap")).status_code == 202
    assert await sqlite_store.delivery_count() == 1


@pytest.mark.parametrize(
    ("status", "body", "changed"),
    [
        (401, b"{}", {"X-Hub-Signature-256": ""}),
        (401, b"{}", {"X-Hub-Signature-256": sign(b"other", b"{}")}),
        (401, b"{}", {"X-Hub-Signature-256": "sha1=" + "0" * 40}),
        (401, b"{}", {"X-Hub-Signature-256": "sha256=\u00fc"}),
        (400, b"{", {}),
        (400, b"[]", {}),
        (400, b"\xff\xfe", {}),
        (400, b"[" * 30000, {}),
        (400, b"{}", {"Content-Type": "application/x-www-form-urlencoded"}),
        (400, b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}),
        (400, b"{}", {"X-GitHub-Delivery": ""}),
        (400, b"{}", {"X-GitHub-Event": ""}),
        (413, b" " * 65537, {}),
        (405, b"", {"method": "GET"}),
    ],
)
async def test_what_is_refused_is_not_stored(
    web: httpx.AsyncClient, sqlite_store: Store, status: int, body: bytes, changed: dict[str, str]
) -> None:
    method = changed.pop("method", "POST") if "method" in changed else "POST"
    sent = {**headers(body), **changed}
    raw = [(name.encode(), value.encode()) for name, value in sent.items() if value]
    answer = await web.request(method, "/webhook", content=body, headers=raw)
    assert answer.status_code == status
    assert await sqlite_store.delivery_count() == 0


async def test_a_body_without_a_length_is_cut_where_the_limit_is(app: Starlette, sqlite_store: Store) -> None:
    taken = 0

    async def endless() -> AsyncGenerator[bytes, None]:
        nonlocal taken
        while True:
            taken += 1
            yield b" " * 16384

    sent: list[dict[str, Any]] = []
    stream = endless()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": await anext(stream), "more_body": True}

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers(b"x").items()]
    scope = {"type": "http", "method": "POST", "path": "/webhook", "headers": raw, "query_string": b"", "app": app}
    await app(scope, receive, send)
    await stream.aclose()
    assert sent[0]["status"] == 413
    assert taken == 5


async def test_without_the_store_nothing_is_accepted(
    web: httpx.AsyncClient, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> bool:
        raise StoreUnavailable("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_store, "record_delivery", away)
        assert (await post(web, b"{}")).status_code == 503

    async def broken(*_: object) -> bool:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite_store, "record_delivery", broken)
        assert (await post(web, b"{}")).status_code == 503
    assert (await post(web, b"{}")).status_code == 202


async def test_health_needs_the_store_and_only_tells_of_redis(
    web: httpx.AsyncClient, bell: Bell, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await web.get("/health")).json() == {"live": True, "ready": True, "store": "ok", "redis": "ok"}
    bell.away = True
    answer = await web.get("/health")
    assert (answer.status_code, answer.json()["redis"]) == (200, "Redis does not answer")

    async def away() -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(sqlite_store, "ping", away)
    answer = await web.get("/health")
    assert (answer.status_code, answer.json()["ready"], answer.json()["store"]) == (503, False, "gone")


async def test_metrics(web: httpx.AsyncClient) -> None:
    await post(web, b"{}")
    await post(web, b"{}", event="made_up")
    await web.post("/webhook", content=b"{}")
    text = (await web.get("/metrics")).text
    assert 'graft_webhooks_total{event="push",outcome="stored"} 1.0' in text
    assert 'graft_webhooks_total{event="other",outcome="known"} 1.0' in text
    assert 'graft_webhooks_total{event="other",outcome="unsigned"} 1.0' in text
    assert 'graft_jobs{state="waiting"} 1.0' in text
    assert "graft_deliveries 1.0" in text


async def test_all_examples_of_github_are_taken_in(web: httpx.AsyncClient, sqlite_store: Store) -> None:
    answers = await asyncio.gather(
        *(
            post(web, json.dumps(payload).encode(), guid=f"g{n}", event=event)
            for n, (event, payload) in enumerate(examples())
        )
    )
    pings = sum(event == "ping" for event, _ in examples())
    assert [answer.status_code for answer in answers].count(202) == 329 - pings
    assert await sqlite_store.delivery_count() == 329 - pings


def test_signatures() -> None:
    # the example in GitHub's documentation
    assert signed(
        b"It's a Secret to Everybody",
        b"Hello, World!",
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    )
    assert not signed(b"", b"x", sign(b"", b"x"))
