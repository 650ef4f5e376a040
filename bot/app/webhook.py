"""POST /webhook: a delivery is accepted only once it is durable, and never acted upon here.

Answers: 202 stored (or known), 200 ping, 401 no or bad signature, 413 too large, 400 not JSON, 503 not stored.
"""

from __future__ import annotations

import asyncio
import json
import time
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from bot.app.metrics import Metrics
from bot.app.signature import signed
from bot.clients.queue import Queue
from bot.clients.store import Delivery, Store, StoreUnavailable
from bot.context import Context
from bot.core import events

_KNOWN = frozenset(
    {
        *("check_run", "check_suite", "installation", "installation_repositories", "issue_comment", "issues", "label"),
        *("member", "membership", "merge_group", "ping", "pull_request", "pull_request_review", "push", "repository"),
        *("pull_request_review_comment", "status", "workflow_run"),
    }
)


class TooLarge(Exception):
    """The body goes on beyond the limit; reading stopped there."""


class Waker:
    """Rings for the workers without making anyone wait; while one ring is under way, all others become one more."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._again = False
        self._task: asyncio.Task[None] | None = None

    def ring(self) -> None:
        """Wake the workers soon, best effort."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._ring())

    async def close(self) -> None:
        """Let the ring that is under way end."""
        if self._task is not None:
            await self._task

    async def _ring(self) -> None:
        while self._again:
            self._again = False
            await self._queue.wake()


class Webhook:
    """The endpoint with what it needs."""

    def __init__(self, context: Context, metrics: Metrics, waker: Waker) -> None:
        self._store: Store = context.store
        self._now = context.now
        self._log = context.log
        self._secret = context.settings.webhook_secret.get_secret_value().encode()
        self._limit = context.settings.webhook_max_bytes
        self._metrics = metrics
        self._waker = waker

    async def receive(self, request: Request) -> Response:
        """Take a delivery in."""
        started = time.perf_counter()
        event = request.headers.get("x-github-event", "")
        try:
            outcome, response = await self._take(request, event)
        except ClientDisconnect:
            outcome, response = "disconnected", Response(status_code=400)
        self._metrics.webhooks.labels(event if event in _KNOWN else "other", outcome).inc()
        self._metrics.webhook_seconds.observe(time.perf_counter() - started)
        return response

    async def _take(self, request: Request, event: str) -> tuple[str, Response]:
        signature = request.headers.get("x-hub-signature-256", "")
        if not signature:
            return "unsigned", _refuse(401, "no X-Hub-Signature-256 header: set the webhook's secret on GitHub")
        try:
            body = await read_body(request, self._limit)
        except TooLarge:
            return "too_large", _refuse(413, f"the body is larger than {self._limit} bytes")
        if not signed(self._secret, body, signature):
            return "bad_signature", _refuse(401, "the signature does not match: the secrets on both sides differ")
        guid = request.headers.get("x-github-delivery", "").strip()
        if not guid or not event:
            return "bad_headers", _refuse(400, "X-GitHub-Delivery or X-GitHub-Event is missing")
        try:
            text, payload = decode(body, request.headers.get("content-type", ""))
        except ValueError as error:
            return "not_json", _refuse(400, f"the payload is no JSON object: {error}")
        if event == "ping":
            return "ping", JSONResponse({"pong": payload.get("zen")})
        return await self._keep(_delivery(guid, event, text, payload, self._now()))

    async def _keep(self, delivery: Delivery) -> tuple[str, Response]:
        try:
            new = await self._store.record_delivery(delivery)
        except Exception as error:  # whatever the reason: what is not stored is not accepted
            known = isinstance(error, StoreUnavailable)
            self._log.error("a delivery was not stored", guid=delivery.guid, error=str(error), exc_info=not known)
            return "not_stored", _refuse(503, "the delivery could not be stored: deliver it again")
        if new:
            self._waker.ring()
        return ("stored" if new else "known"), JSONResponse({"stored": delivery.guid, "new": new}, status_code=202)


async def read_body(request: Request, limit: int) -> bytes:
    """The raw body; TooLarge as soon as it is known to be larger, without reading on."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise TooLarge
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise TooLarge
        parts.append(part)
    return b"".join(parts)


def decode(body: bytes, content_type: str) -> tuple[bytes, dict[str, Any]]:
    """The payload as JSON bytes and as an object, from a JSON or a form-encoded body; ValueError where it is none."""
    if content_type.split(";", 1)[0].strip().lower() == "application/x-www-form-urlencoded":
        fields = parse_qs(body.decode("utf-8"), strict_parsing=True, max_num_fields=16)
        if "payload" not in fields:
            raise ValueError("the form has no field `payload`")
        body = fields["payload"][0].encode("utf-8")
    try:
        payload = json.loads(body)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(payload, dict):
        raise ValueError(f"it is a {type(payload).__name__}")
    return body, payload


def _delivery(guid: str, event: str, text: bytes, payload: dict[str, Any], now: datetime) -> Delivery:
    facts = events.parse(event, payload)
    return Delivery(
        guid=_plain(guid, 100),
        event=_plain(event, 100),
        action=_plain(facts.action, 100),
        installation=facts.installation,
        repository=_plain(facts.repository, 200),
        sender=_plain(facts.sender.login, 100),
        payload=text,
        received_at=now,
    )


def _plain(text: str, limit: int) -> str:
    return text.replace("\x00", "")[:limit]


def _refuse(status: int, why: str) -> Response:
    return JSONResponse({"error": why}, status_code=status)
