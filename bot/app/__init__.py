"""The web side: takes webhooks in, says how it fares, and mounts the runners' endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from bot.app.metrics import Metrics
from bot.app.runner import runner_routes
from bot.app.webhook import Waker, Webhook
from bot.clients.queue import QueueUnavailable
from bot.clients.store import StoreUnavailable
from bot.context import Context

_PROBE_SECONDS = 3


def create_app(context: Context) -> Starlette:
    """The application over an open context."""
    metrics = Metrics()
    waker = Waker(context.queue)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await waker.close()

    app = Starlette(
        routes=[
            Route("/webhook", Webhook(context, metrics, waker).receive, methods=["POST"]),
            Route("/health", health, methods=["GET"]),
            Route("/metrics", expose, methods=["GET"]),
            *runner_routes(context),
        ],
        lifespan=lifespan,
    )
    app.state.context = context
    app.state.metrics = metrics
    app.state.waker = waker
    return app


async def health(request: Request) -> Response:
    """Whether the process lives and is ready: 503 without the store. Without Redis it works on, only slower."""
    context: Context = request.app.state.context
    store, queue = await asyncio.gather(_probe(context.store), _probe(context.queue))
    body = {"live": True, "ready": store == "ok", "store": store, "redis": queue}
    return JSONResponse(body, status_code=200 if store == "ok" else 503)


async def expose(request: Request) -> Response:
    """The metrics in Prometheus's form; what the store knows is read when asked."""
    context: Context = request.app.state.context
    metrics: Metrics = request.app.state.metrics
    try:
        counts = await context.store.job_counts()
        newest = await context.store.last_delivery_at()
        metrics.deliveries.set(await context.store.delivery_count())
    except StoreUnavailable as error:
        context.log.warning("metrics without the store's", error=str(error))
    else:
        for state in ("waiting", "leased", "parked", "done"):
            metrics.jobs.labels(state).set(counts.get(state, 0))
        metrics.last_delivery.set(newest.timestamp() if newest else 0)
    return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)


async def _probe(part: Any) -> str:
    try:
        await asyncio.wait_for(part.ping(), _PROBE_SECONDS)
    except (StoreUnavailable, QueueUnavailable, TimeoutError) as error:
        return str(error) or "no answer in time"
    return "ok"
