"""A run handed to an outside lab: posted once, looked after until it is done, called off when nobody wants it any more.

The lab's side is described in docs/lab-protocol.md. What it says is data to be judged; whatever it fails to say is
trouble with the lab (`infra`), never a pass.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx

from bot.core.config import Lab
from bot.core.types import Outcome
from bot.core.validation import RunRequest
from runners.harnesses import Collected, HarnessError, Place, Start
from runners.harnesses.lab_answers import CANARY, Answer, LabError, Status, collected, retry_after, status_of
from runners.labs import Credential, origin
from runners.process import Ended

_REQUEST_SECONDS = 30.0
_LARGEST = 64 * 1024 * 1024
_LONGEST_PAUSE = 60.0
_FORGOTTEN = 3  # so many answers that it knows no such job: not only a replica that lags behind
_CALL_OFF_SECONDS = 10.0
_REDIRECTS = 5
_ANY_METHOD = frozenset({307, 308})
_GET_ONLY = frozenset({301, 302, 303})
_LATER = frozenset({408, 425, 429})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Order:
    """One run for a lab: the request, what the runner may show, and who listens."""

    request: RunRequest
    credentials: dict[str, Credential] = field(default_factory=dict)
    output: Callable[[str], None] = field(default=lambda _: None)
    redact: Callable[[str], str] = field(default=lambda text: text)
    cancelled: asyncio.Event | None = None


class Http:
    """Hands a run over; there is no process here."""

    reads = ()

    def start(self, place: Place) -> Start:
        """Raises HarnessError: nothing is started on this machine."""
        raise HarnessError(f"suite {place.suite.suite} runs in a lab, not here")

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Raises HarnessError: there is nothing on this machine to read."""
        raise HarnessError(f"suite {place.suite.suite} runs in a lab, not here")

    async def hand_over(self, order: Order) -> Collected:
        """Have the lab run it; ends with its result, with `infra`, at the suite's time limit, or when cancelled.

        Raises HarnessError where the suite or this runner is not set up for the lab.
        """
        suite = order.request.suite
        lab = suite.lab
        if lab is None:
            raise HarnessError(f"suite {suite.suite}: the http harness needs `lab: {{url: https://…}}`")
        talk = _Talk(order, lab, _shown(lab, order.credentials))
        task = asyncio.create_task(talk.result())
        try:
            return await self._until(task, talk, order)
        except LabError as error:
            await talk.call_off()
            return Collected(Outcome.INFRA, order.redact(f"the lab: {error}"))
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await talk.close()

    async def _until(self, task: asyncio.Task[Collected], talk: _Talk, order: Order) -> Collected:
        """The task's result, unless the time limit or the word to stop comes first: then the job is called off."""
        stop = asyncio.create_task((order.cancelled or asyncio.Event()).wait())
        limit = order.request.suite.timeout.total_seconds()
        try:
            done, _ = await asyncio.wait({task, stop}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if task in done:
                return task.result()
        except asyncio.CancelledError:
            await talk.call_off()
            raise
        finally:
            stopped = stop.done()
            stop.cancel()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        said = await talk.call_off()
        if stopped:
            return Collected(Outcome.CANCELLED, f"cancelled; {said}")
        return Collected(Outcome.TIMED_OUT, f"the lab had no result within {limit:.0f} s; {said}")


HARNESS = Http()


def _shown(lab: Lab, known: dict[str, Credential]) -> Credential | None:
    """The credential that the suite names. Raises HarnessError where it is not here, or is for another lab."""
    if lab.credential is None:
        return None
    found = known.get(lab.credential)
    variable = f"GRAFT_LAB_{lab.credential.upper().replace('-', '_')}"
    if found is None:
        raise HarnessError(f"this runner has no credential {lab.credential}: set {variable}_URL and {variable}_TOKEN")
    if found.origin != origin(lab.url):
        raise HarnessError(f"the credential {lab.credential} is for {found.origin}, the suite's lab is {lab.url}")
    return found


class _Talk:
    """One job's conversation with a lab."""

    def __init__(self, order: Order, lab: Lab, credential: Credential | None) -> None:
        self._order, self._lab, self._credential = order, lab, credential
        self._base = lab.url.rstrip("/")
        self._http = httpx.AsyncClient(timeout=_REQUEST_SECONDS, follow_redirects=False, trust_env=False)
        # of one attempt: a job that was lost with its lab must not be found again by the next one
        self.key = f"{order.request.run_id}-{order.request.attempt}"
        self._asked = False
        self._job: str | None = None
        self._over = False

    async def close(self) -> None:
        await self._http.aclose()

    async def result(self) -> Collected:
        """Submit, look until it is done, read. Raises LabError."""
        began = asyncio.get_running_loop().time()
        body = json.dumps(self._body()).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": self.key}
        self._asked = True
        said, wait = await self._until_usable(
            lambda: self._ask("POST", f"{self._base}/runs", body, headers), self._read
        )
        self._job = said.job
        self._say(f"{self._base}: job {said.job}, {said.state}")
        last = await self._last(said, wait)
        self._over = True
        seconds = asyncio.get_running_loop().time() - began
        return collected(last, self._order.request, redact=self._order.redact, seconds=seconds)

    async def _last(self, said: Status, wait: float | None) -> Status:
        """Look, at growing distances or when the lab says, until the job is over."""
        poll = self._lab.poll.total_seconds()
        pause, shown = poll, said.state
        while not said.over:
            await asyncio.sleep(wait if wait is not None else pause)
            pause = min(pause * 1.25, poll * 4)
            said, wait = await self._until_usable(
                lambda: self._ask("GET", f"{self._base}/runs/{self._job}"), self._read
            )
            if said.state != shown:
                shown = said.state
                self._say(f"job {said.job}: {said.state}")
        return said

    def _read(self, answer: Answer) -> tuple[Status, float | None]:
        status = status_of(answer, key=self.key, job=self._job, commit=self._order.request.commit)
        return status, retry_after(answer)

    async def call_off(self) -> str:
        """Tell the lab that nobody wants the result, for a short while; gives what came of it."""
        if not self._asked or self._over:
            return "no job was left behind"
        with contextlib.suppress(TimeoutError, LabError):
            async with asyncio.timeout(_CALL_OFF_SECONDS):
                await self._until_usable(
                    lambda: self._ask("DELETE", f"{self._base}/runs/{self._job or self.key}"), lambda _: None, gone=True
                )
                self._over = True
                return "the lab was told"
        return "the lab could not be told, its job may run on"

    async def _until_usable(
        self, ask: Callable[[], Awaitable[Answer]], read: Callable[[Answer], T], *, gone: bool = False
    ) -> T:
        """Ask until there is an answer to use, for as long as the lab may leave us without one. Raises LabError."""
        loop = asyncio.get_running_loop()
        patience = self._lab.unanswered.total_seconds()
        ends = loop.time() + patience
        pause, forgotten, trouble = min(self._lab.poll.total_seconds(), 1.0), 0, ""
        while True:
            asked_for = None
            try:
                async with asyncio.timeout_at(ends):
                    answer = await ask()
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                trouble = f"{type(error).__name__}: {error}"
            except TimeoutError:
                trouble = trouble or "no answer at all"
            else:
                if answer.status in (404, 410) and gone:
                    return read(answer)
                if answer.status < 300:
                    try:
                        return read(answer)
                    except json.JSONDecodeError as error:
                        trouble = f"its answer is cut off or no JSON: {error}"
                elif answer.status in (404, 410) and self._job is not None:
                    forgotten += 1
                    trouble = f"it knows no job {self._job} any more ({answer.status})"
                    if forgotten >= _FORGOTTEN:
                        raise LabError(trouble)
                elif answer.status >= 500 or answer.status in _LATER:
                    trouble, asked_for = f"{answer.status} {answer.text(200)}", retry_after(answer)
                else:
                    hint = "; is the credential right?" if answer.status in (401, 403) else ""
                    raise LabError(f"it refuses: {answer.status} {answer.text(200)}{hint}")
            left = ends - loop.time()
            if left <= 0:
                raise LabError(f"no usable answer for {patience:g} s, last: {trouble}")
            wait = asked_for if asked_for is not None else pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads a fleet
            await asyncio.sleep(min(wait, left))
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _ask(
        self, method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request; redirects are followed on the lab's own host only. Raises LabError and httpx.HTTPError."""
        home = origin(self._base)
        for _ in range(_REDIRECTS):
            shown = dict(headers or {})
            if self._credential is not None and origin(url) == self._credential.origin:
                shown["Authorization"] = f"Bearer {self._credential.token}"
            async with self._http.stream(method, url, content=body, headers=shown) as response:
                follow = response.status_code in _ANY_METHOD or (response.status_code in _GET_ONLY and method == "GET")
                if not follow:
                    return Answer(response.status_code, response.headers, await _content(response))
                url = str(response.url.join(response.headers.get("location", "")))
            if _origin(url) != home:
                raise LabError(f"it redirects to another host, which is not followed: {_origin(url) or url[:200]}")
        raise LabError(f"more than {_REDIRECTS} redirects")

    def _body(self) -> dict[str, Any]:
        request, suite = self._order.request, self._order.request.suite
        return {
            "protocol": 1,
            "key": self.key,
            "repository": request.repository,
            "commit": request.commit,
            "base": request.base,
            "level": request.level.value,
            "suite": suite.suite,
            "command": list(suite.run),
            "env": dict(suite.env),
            "metrics": list(suite.metrics),
            "canary": suite.canary,
            "add_canary": CANARY if suite.canary is None else None,
            "timeout_seconds": suite.timeout.total_seconds(),
            "expected": list(request.expected),
        }

    def _say(self, text: str) -> None:
        self._order.output(self._order.redact(text) + "\n")


def _origin(url: str) -> str:
    try:
        return origin(url)
    except ValueError:
        return ""


async def _content(response: httpx.Response) -> bytes:
    parts, size = [], 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > _LARGEST:
            raise LabError(f"its answer is larger than {_LARGEST} bytes")
        parts.append(part)
    return b"".join(parts)
