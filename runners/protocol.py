"""The runner's side of the protocol: HTTP to the bot, repeated until it is answered, harmless when repeated."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Collection
from typing import Any

import httpx

from bot.core.validation import PROTOCOL, Report, RunRequest

_SECONDS = 30.0


class RefusedError(Exception):
    """The bot's answer is no; `status` is that of HTTP."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class UnreachableError(Exception):
    """The bot did not answer in time."""


class Bot:
    """The bot as a runner sees it; `url` without a path at its end."""

    def __init__(self, url: str, token: str, *, pause: float = 0.5) -> None:
        self.url = url.rstrip("/")
        self._pause = pause
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=_SECONDS,
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def hello(self, labels: tuple[str, ...], facts: dict[str, Any]) -> dict[str, Any]:
        """Say who this runner is; gives what the bot knows. Raises RefusedError and UnreachableError."""
        return await self._post("/runner/hello", {"protocol": PROTOCOL, "labels": list(labels), "facts": facts})

    async def lease(self, run_id: str, *, active: Collection[str]) -> RunRequest:
        """Ask for a run; the bot may give another whose turn it is. `active` are those under way here.

        Raises RefusedError (403, 404, 409, 410: not for us) and UnreachableError.
        """
        said = {"protocol": PROTOCOL, "active": sorted(active)}
        return RunRequest.model_validate(await self._post(f"/runner/runs/{run_id}/lease", said))

    async def heartbeat(self, request: RunRequest) -> str | None:
        """Hold the lease; gives why to stop, or None."""
        said = await self._post(f"/runner/runs/{request.run_id}/heartbeat", {"attempt": request.attempt}, tries=1)
        stop = said.get("stop")
        return None if stop is None else str(stop)

    async def log(self, request: RunRequest, offset: int, data: bytes) -> int:
        """Send a piece of output; gives how many bytes the bot has."""
        path = f"/runner/runs/{request.run_id}/log?attempt={request.attempt}&offset={offset}"
        return int((await self._send(path, data, {}, tries=1)).get("size", 0))

    async def report(self, report: Report, *, seconds: float) -> dict[str, Any]:
        """Hand in the report; tried for `seconds`, through a restart of the bot. Raises as the others."""
        path = f"/runner/runs/{report.run_id}/report?attempt={report.attempt}"
        body = gzip.compress(report.model_dump_json().encode(), 3)
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return await self._send(path, body, headers, seconds=seconds)

    async def _post(self, path: str, content: dict[str, Any], *, tries: int = 4) -> dict[str, Any]:
        import json

        return await self._send(path, json.dumps(content).encode(), {"Content-Type": "application/json"}, tries=tries)

    async def _send(
        self, path: str, body: bytes, headers: dict[str, str], *, tries: int | None = None, seconds: float | None = None
    ) -> dict[str, Any]:
        """Post until there is an answer: `tries` times, or for `seconds`. 5xx and a cut line are no answer."""
        loop = asyncio.get_running_loop()
        began, attempt, trouble = loop.time(), 0, ""
        while True:
            attempt += 1
            try:
                answer = await self._http.post(path, content=body, headers=headers)
            except httpx.HTTPError as error:
                trouble = f"{type(error).__name__}: {error}"
            else:
                if answer.status_code < 300:
                    found: dict[str, Any] = answer.json()
                    return found
                if answer.status_code < 500 and answer.status_code != 429:
                    raise RefusedError(answer.status_code, _reason(answer))
                trouble = f"{answer.status_code} {_reason(answer)}"
            over = attempt >= tries if tries is not None else loop.time() - began > (seconds or 0)
            if over:
                raise UnreachableError(f"{self.url}: {trouble}")
            # spread out, so that a fleet does not come back all at once
            await asyncio.sleep(min(15.0, self._pause * 2 ** min(attempt, 6)) * random.uniform(0.5, 1.0))  # noqa: S311


def _reason(answer: httpx.Response) -> str:
    try:
        return str(answer.json()["error"])[:500]
    except (ValueError, KeyError, TypeError):
        return answer.text[:300]
