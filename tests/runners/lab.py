"""A lab on loopback: the other side of docs/lab-protocol.md, and every way in which it can go wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from bot.sandbox.processes import free_port

PASS: dict[str, Any] = {"id": "model::converges", "outcome": "passed", "duration": 1.5}
CANARY: dict[str, Any] = {"id": "graft::canary", "outcome": "failed", "message": "it has to"}
TOKEN = "token-that-only-the-lab-sees"


@dataclass
class Lab:
    """What it was asked, and how it answers; `twist` may replace an answer (by what is asked: post, get, delete)."""

    url: str
    port: int
    answers: dict[str, Any] = field(default_factory=lambda: {"report": {"outcome": "passed", "tests": [PASS]}})
    looks_until_done: int = 2
    token: str | None = TOKEN
    twist: Callable[[str, int, dict[str, Any]], Response | None] = lambda _what, _count, _job: None
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def count(self, what: str) -> int:
        """How often it was asked."""
        return sum(one == what for one, _ in self.asked)

    async def until_asked(self, what: str) -> None:
        """Wait for a request of this kind."""
        async with asyncio.timeout(30):
            while not self.count(what):  # noqa: ASYNC110 - what is waited for is in another task
                await asyncio.sleep(0.01)

    async def submit(self, request: Request) -> Response:
        """POST /runs."""
        body = json.loads(await request.body())
        assert request.headers["idempotency-key"] == body["key"]
        self._note("post", request)
        if (refused := self._refused(request)) is not None:
            return refused
        job = self.jobs.setdefault(body["key"], {**body, "job": f"job-{len(self.jobs) + 1}", "looks": 0})
        return self.twist("post", self.count("post"), job) or JSONResponse(self.status(job), 202)

    async def look(self, request: Request) -> Response:
        """GET /runs/{job}."""
        self._note("get", request)
        if (refused := self._refused(request)) is not None:
            return refused
        job = self._job(request)
        if job is None:
            return JSONResponse({"error": "no such job"}, 404)
        job["looks"] += 1
        return self.twist("get", self.count("get"), job) or JSONResponse(self.status(job))

    async def call_off(self, request: Request) -> Response:
        """DELETE /runs/{job or key}."""
        self._note("delete", request)
        job = self._job(request)
        if job is not None:
            self.deleted.append(job["key"])
        return self.twist("delete", self.count("delete"), job or {}) or Response(status_code=204 if job else 404)

    def status(self, job: dict[str, Any], **more: Any) -> dict[str, Any]:
        """Where a job stands."""
        done = job["looks"] >= self.looks_until_done
        said = {"protocol": 1, "key": job["key"], "job": job["job"], "commit": job["commit"], "more": "is left alone"}
        return {**said, "state": "done" if done else "running", **(self.answers if done else {}), **more}

    def _job(self, request: Request) -> dict[str, Any] | None:
        name = request.path_params["job"]
        return next((job for job in self.jobs.values() if name in (job["job"], job["key"])), None)

    def _note(self, what: str, request: Request) -> None:
        self.asked.append((what, request.headers.get("authorization")))

    def _refused(self, request: Request) -> Response | None:
        if self.token is None or request.headers.get("authorization") == f"Bearer {self.token}":
            return None
        return JSONResponse({"error": "who are you?"}, 401)


@asynccontextmanager
async def lab() -> AsyncIterator[Lab]:
    """A lab on a port of its own, at /api; /moved/… leads to the same place."""
    port = free_port()
    made = Lab(f"http://127.0.0.1:{port}/api", port)

    async def moved(request: Request) -> Response:
        return RedirectResponse(f"/api/{request.path_params['rest']}", 307)

    routes = [
        Route("/api/runs", made.submit, methods=["POST"]),
        Route("/api/runs/{job}", made.look, methods=["GET"]),
        Route("/api/runs/{job}", made.call_off, methods=["DELETE"]),
        Route("/moved/{rest:path}", moved, methods=["GET", "POST", "DELETE"]),
    ]
    config = uvicorn.Config(Starlette(routes=routes), port=port, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn gives no event for it
        await asyncio.sleep(0.01)
    try:
        yield made
    finally:
        server.should_exit = True
        await task
