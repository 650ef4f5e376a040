"""HTTP for the runners: hello, lease, heartbeat, log, report, and the source by git's own protocol, read-only."""

from __future__ import annotations

import json
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from bot.clients.git_http import GitHttpBackend
from bot.clients.store import Runner, StoreUnavailable
from bot.context import Context
from handlers import runner as handler
from handlers.runner import Refusal

_SMALL, _REPORT = 64 * 1024, 64 * 1024 * 1024
_CHUNK = 2 * 1024 * 1024
_Answer = Callable[[Request, Runner], Awaitable[dict[str, Any]]]


def runner_routes(context: Context) -> list[BaseRoute]:
    """The routes below /runner."""
    endpoint = _Endpoint(context)
    source = GitHttpBackend(context.settings.mirrors, receive=False, authorize=endpoint.may_read)
    return [
        Route("/runner/hello", endpoint.answer(endpoint.hello), methods=["POST"]),
        Route("/runner/runs/{run_id}/lease", endpoint.answer(endpoint.lease), methods=["POST"]),
        Route("/runner/runs/{run_id}/heartbeat", endpoint.answer(endpoint.heartbeat), methods=["POST"]),
        Route("/runner/runs/{run_id}/log", endpoint.answer(endpoint.log), methods=["POST"]),
        Route("/runner/runs/{run_id}/report", endpoint.answer(endpoint.report), methods=["POST"]),
        Mount("/runner/git", app=source),
    ]


class _Endpoint:
    def __init__(self, context: Context) -> None:
        self._context = context

    def answer(self, what: _Answer) -> Callable[[Request], Awaitable[Response]]:
        """A request answered as JSON, for runners only; a refusal says why."""

        async def respond(request: Request) -> Response:
            try:
                return JSONResponse(await what(request, await self._runner(request)))
            except Refusal as refusal:
                return JSONResponse({"error": refusal.reason}, status_code=refusal.status)
            except ClientDisconnect:
                return Response(status_code=400)  # the runner is gone; what it had to say, it says again
            except StoreUnavailable as error:
                return JSONResponse({"error": f"the store is away: {error}"}, status_code=503)

        return respond

    async def may_read(self, request: Request, repository: str, service: str) -> Response | None:
        """None where the runner may read the source now."""
        try:
            runner = await self._runner(request)
        except Refusal as refusal:
            return PlainTextResponse(refusal.reason + "\n", refusal.status)
        if not await handler.may_read(self._context, runner, repository):
            return PlainTextResponse(f"{runner.name} has no run of {repository} ({service})\n", 403)
        return None

    async def hello(self, request: Request, runner: Runner) -> dict[str, Any]:
        """A runner says who it is."""
        said = await _json(request)
        labels = said.get("labels")
        if not isinstance(labels, list) or not all(isinstance(label, str) and label for label in labels):
            raise Refusal(400, "labels: a list of names is needed")
        facts = said.get("facts")
        known = await handler.hello(
            self._context,
            runner,
            protocol=said.get("protocol"),
            labels=labels,
            facts=facts if isinstance(facts, dict) else {},
        )
        return {"name": known.name, "labels": list(known.labels)}

    async def lease(self, request: Request, runner: Runner) -> dict[str, Any]:
        """A runner asks for a run."""
        said = await _json(request)
        handler.check_protocol(said.get("protocol"))
        active = said.get("active")  # what an older runner does not say: it takes the run it asks for, or none
        if active is not None and not (isinstance(active, list) and all(isinstance(one, str) for one in active)):
            raise Refusal(400, "active: a list of run ids is needed")
        leased = await handler.lease(self._context, runner, request.path_params["run_id"], active=active)
        return leased.model_dump(mode="json", exclude={"canary_before"})

    async def heartbeat(self, request: Request, runner: Runner) -> dict[str, Any]:
        """A runner is still at it."""
        said = await _json(request)
        stop = await handler.heartbeat(
            self._context, runner, request.path_params["run_id"], _number(said.get("attempt"), "attempt")
        )
        return {"stop": stop}

    async def log(self, request: Request, runner: Runner) -> dict[str, Any]:
        """A piece of a run's output."""
        size = await handler.append_log(
            self._context,
            runner,
            request.path_params["run_id"],
            attempt=_number(request.query_params.get("attempt"), "attempt"),
            offset=_number(request.query_params.get("offset"), "offset"),
            data=await _body(request, _CHUNK),
        )
        return {"size": size}

    async def report(self, request: Request, runner: Runner) -> dict[str, Any]:
        """A run's report."""
        return await handler.report(
            self._context,
            runner,
            request.path_params["run_id"],
            await _body(request, _REPORT),
            attempt=_number(request.query_params.get("attempt"), "attempt"),
        )

    async def _runner(self, request: Request) -> Runner:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise Refusal(401, "no runner token: send Authorization: Bearer <token>")
        return await handler.authenticate(self._context, token.strip())


async def _body(request: Request, limit: int) -> bytes:
    """The body, unpacked where it came as gzip; Refusal(413) where it is larger than `limit` bytes."""
    unpack = zlib.decompressobj(31) if request.headers.get("content-encoding") == "gzip" else None
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        try:
            part = unpack.decompress(chunk, limit + 1) if unpack is not None else chunk
        except zlib.error as error:
            raise Refusal(400, f"the body is no gzip: {error}") from error
        size += len(part)
        if size > limit or (unpack is not None and unpack.unconsumed_tail):
            raise Refusal(413, f"more than {limit} bytes")
        parts.append(part)
    return b"".join(parts)


async def _json(request: Request) -> dict[str, Any]:
    try:
        said = json.loads(await _body(request, _SMALL) or b"{}")
    except ValueError as error:
        raise Refusal(400, f"not JSON: {error}") from error
    if not isinstance(said, dict):
        raise Refusal(400, "not a JSON object")
    return said


def _number(value: Any, name: str) -> int:
    if isinstance(value, str) and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise Refusal(400, f"{name}: a number is needed")
