"""What tests of all parts share: a served sandbox, a small repository, and a listener for webhooks."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

from bot.sandbox.bare import environment
from bot.sandbox.driver import Sandbox


@contextlib.asynccontextmanager
async def served(root: Path) -> AsyncIterator[Sandbox]:
    """A sandbox that is served, and that has sent no answer against GitHub's description when it ends."""
    async with Sandbox(root) as sandbox:
        yield sandbox
    if sandbox.state.violations:
        raise AssertionError(
            "the sandbox answered against GitHub's description: " + "; ".join(sandbox.state.violations)
        )


class Checkout:
    """A work tree on disk, to make commits in."""

    def __init__(self, path: Path):
        self.path = path
        self._second = 0
        if not (path / ".git").exists():
            path.mkdir(parents=True, exist_ok=True)
            self.git("init", "-q", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Run git here and give its output."""
        # each commit has a second of its own, so that shas depend on the content and its place alone
        when = f"2026-01-01T00:{self._second // 60 % 60:02d}:{self._second % 60:02d}+00:00"
        people = {
            f"GIT_{role}_{name}": value
            for role in ("AUTHOR", "COMMITTER")
            for name, value in (("NAME", "Mona"), ("EMAIL", "mona@example.com"), ("DATE", when))
        }
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            capture_output=True,
            check=False,
            env=environment(people),
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"git {arguments[0]} exited with {done.returncode}: {done.stderr or done.stdout}")
        return done.stdout.strip()

    def commit(self, message: str, files: dict[str, str | None]) -> str:
        """Write files (None deletes one) and commit; gives the commit."""
        for name, content in files.items():
            target = self.path / name
            if content is None:
                target.unlink()
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content)
        self._second += 1
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str, start: str = "main") -> None:
        """Go to a new branch."""
        self.git("checkout", "-q", "-b", name, start)


@dataclass
class Received:
    """One webhook request."""

    event: str
    delivery: str
    payload: dict[str, Any]
    signed: bool
    headers: dict[str, str]

    @property
    def name(self) -> str:
        """`event.action`, or the event alone."""
        action = self.payload.get("action")
        return f"{self.event}.{action}" if action else self.event


@dataclass
class Listener:
    """A webhook endpoint that keeps what it gets and answers with `status`."""

    secret: str
    url: str = ""
    status: int = 202
    received: list[Received] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take one request."""
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        expected = "sha256=" + hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        signed = hmac.compare_digest(expected, headers.get("x-hub-signature-256", ""))
        self.received.append(
            Received(headers["x-github-event"], headers["x-github-delivery"], json.loads(body), signed, headers)
        )
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b"stored"})

    def names(self) -> list[str]:
        """What came, in order."""
        return [one.name for one in self.received]

    def of(self, name: str) -> list[Received]:
        """All that came under one `event.action`."""
        return [one for one in self.received if one.name == name]


@contextlib.asynccontextmanager
async def listening(secret: str = "sandbox-secret") -> AsyncIterator[Listener]:  # noqa: S107 - a secret of tests
    """A served `Listener`."""
    listener = Listener(secret)
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.bind(("127.0.0.1", 0))
    listener.url = f"http://127.0.0.1:{door.getsockname()[1]}/webhook"

    class Quiet(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    server = Quiet(
        uvicorn.Config(listener, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1)
    )
    task = asyncio.create_task(server.serve(sockets=[door]))
    while not server.started:  # noqa: ASYNC110 - uvicorn offers no event
        await asyncio.sleep(0.002)
    try:
        yield listener
    finally:
        server.should_exit = True
        await task
