"""How many webhooks a second are taken in durably, against the same server without a store, in the same run.

    python benchmarks/intake.py [--seconds 4] [--rounds 3] [--connections 16] [--size 13000] [--json]

Both servers run in a process of their own on uvloop and httptools; a client sends signed deliveries over that many kept
connections. Baseline: signature checked, JSON parsed, 202. Durable: the real app, group commit, fsync.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

SECRET = b"benchmark"
SIDES = {"no store": False, "durable": True}


def serve(port: int, folder: str, durable: bool) -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    from bot.app.signature import signed
    from bot.app.webhook import decode, read_body

    async def accept(request: Request) -> Response:
        body = await read_body(request, 25_000_000)
        if not signed(SECRET, body, request.headers["x-hub-signature-256"]):
            return Response(status_code=401)
        decode(body, request.headers.get("content-type", ""))
        return JSONResponse({"stored": request.headers["x-github-delivery"], "new": True}, status_code=202)

    async def run(app: Any) -> None:
        config = uvicorn.Config(app, port=port, loop="uvloop", http="httptools", log_level="critical", access_log=False)
        await uvicorn.Server(config).serve()

    async def main() -> None:
        if not durable:
            await run(Starlette(routes=[Route("/webhook", accept, methods=["POST"])]))
            return
        await run(await _app(folder))

    import uvloop

    uvloop.run(main())


async def _app(folder: str) -> Any:
    import structlog
    from pydantic import SecretStr

    from bot.app import create_app
    from bot.clients.queue import Queue
    from bot.clients.store import Store
    from bot.context import Context
    from bot.settings import Settings

    class Bell:
        async def wake(self) -> None:
            await asyncio.sleep(0.001)

    settings = Settings(data=Path(folder), webhook_secret=SecretStr(SECRET.decode()))
    store = await Store.open(os.environ.get("GRAFT_DATABASE_URL") or settings.store_url)
    nothing = cast(Any, None)
    context = Context(
        nothing, store, cast(Queue, Bell()), settings, lambda: datetime.now(UTC), nothing, structlog.get_logger()
    )
    return create_app(context)


def payload(size: int) -> bytes:
    body = {
        "action": "opened", "number": 7, "installation": {"id": 1}, "repository": {"full_name": "o/r"},
        "sender": {"login": "octocat"}, "pull_request": {"number": 7, "head": {"sha": "a" * 40}},
    }  # fmt: skip
    words = " ".join(f"word{n} of{n * 7919 % 1000}" for n in range(size // 14))
    return json.dumps(body | {"text": words[: max(0, size - 300)]}).encode()


async def drive(port: int, seconds: float, connections: int, body: bytes) -> list[float]:
    from bot.app.signature import sign

    head = (
        "POST /webhook HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: pull_request\r\n"
        f"X-Hub-Signature-256: {sign(SECRET, body)}\r\nContent-Length: {len(body)}\r\nX-GitHub-Delivery: "
    ).encode()
    end = time.perf_counter() + seconds
    times: list[float] = []

    async def one(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = 0
        while (start := time.perf_counter()) < end:
            count += 1
            writer.write(head + f"{number}-{count}\r\n\r\n".encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            if not answer.startswith(b"HTTP/1.1 202"):
                raise RuntimeError(answer.decode())
            length = int(answer.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            times.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(one(number) for number in range(connections)))
    return times


def measure(durable: bool, seconds: float, connections: int, body: bytes) -> dict[str, float]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    with tempfile.TemporaryDirectory(prefix="graft-intake-") as folder:
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(port, folder, durable))
        server.start()
        try:
            _wait(port, server)
            times = asyncio.run(drive(port, seconds, connections, body))
        finally:
            server.kill()
            server.join()
    cuts = statistics.quantiles(times, n=100)
    return {"per_second": len(times) / seconds, "p50_ms": cuts[49] * 1000, "p99_ms": cuts[98] * 1000}


def _wait(port: int, server: Any) -> None:
    while server.is_alive():
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit("the server did not start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--size", type=int, default=13_000, help="bytes of one payload")
    parser.add_argument("--rounds", type=int, default=3, help="both sides take turns; the medians count")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    body = payload(given.size)
    rounds = [
        {name: measure(durable, given.seconds, given.connections, body) for name, durable in SIDES.items()}
        for _ in range(given.rounds)
    ]
    ratio = statistics.median(one["durable"]["per_second"] / one["no store"]["per_second"] for one in rounds)
    medians = {
        name: {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]} for name in SIDES
    }
    result = {"bytes": len(body), "connections": given.connections, "rounds": given.rounds, **medians}
    if given.json:
        print(json.dumps(result | {"ratio": ratio}))
        return
    print(f"{len(body)} bytes, {given.connections} connections, {os.cpu_count()} processors")
    for name, numbers in medians.items():
        print(
            f"{name:9} {numbers['per_second']:8.0f}/s  p50 {numbers['p50_ms']:6.2f} ms  p99 {numbers['p99_ms']:6.2f} ms"
        )
    print(f"durable / no store: {ratio:.2f}")


if __name__ == "__main__":
    main()
