"""Git over HTTP: who may read and push, what a push may move, and what follows it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.clients.git_http import WRITE, GitHttpBackend
from bot.sandbox import auth, changes, guard
from bot.sandbox.model import ZERO, Repository
from bot.sandbox.world import World

_HOOK = """#!{python} -IS
import json, os, socket, sys
address = os.environ.get("SANDBOX_GATE")
if address:
    names = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH")
    question = dict(push=os.environ["SANDBOX_PUSH"], ref=sys.argv[1], old=sys.argv[2], new=sys.argv[3],
                    env={{name: os.environ[name] for name in names if name in os.environ}})
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as line:
        line.sendall((json.dumps(question) + "\\n").encode())
        answer = line.makefile("r", encoding="utf-8").read()
    if answer:
        print(answer, file=sys.stderr)
        sys.exit(1)
"""


class GitSide:
    """The git endpoint of the sandbox, with the gate that its `update` hooks ask."""

    def __init__(self, world: World):
        self.world = world
        self.hooks = world.root / "hooks"
        self.backend = GitHttpBackend(
            world.root / "git",
            receive=True,
            authorize=self._authorize,
            after_receive=self._received,
            environment=self._environment,
        )
        self._actors: dict[str, tuple[auth.Actor, Repository]] = {}
        self._approved: dict[str, list[tuple[str, str, str]]] = {}
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Open the gate's door and lay the hook."""
        self._server = await asyncio.start_server(self._ask, "127.0.0.1", 0)
        self.lay_hook()

    def lay_hook(self) -> None:
        """Write the hook that all repositories share."""
        self.hooks.mkdir(parents=True, exist_ok=True)
        hook = self.hooks / "update"
        hook.write_text(_HOOK.format(python=sys.executable))
        hook.chmod(0o755)

    async def stop(self) -> None:
        """Close the door."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _authorize(self, request: Request, name: str, service: str) -> Response | None:
        challenge = {"WWW-Authenticate": 'Basic realm="GitHub"'}
        try:
            actor = auth.authenticate(self.world, request.headers.get("authorization"))
        except auth.Unauthorized:
            return PlainTextResponse("Invalid username or token.\n", 401, challenge)
        fault = self.world.faults.request(request.method, f"/git/{name}/{service}")
        if fault is not None:
            status = {"secondary": 403, "forbidden": 403, "abuse": 422, "bad_gateway": 502}.get(fault.kind, 500)
            return PlainTextResponse(f"{fault.kind}\n", status)
        repo = self.world.repository(name)
        suspended = actor.installation is not None and actor.installation.suspended_at is not None
        if repo is None or not auth.may_see(self.world, actor, repo) or suspended or self._blind(actor, repo):
            if actor.login is None:
                return PlainTextResponse("Repository not found.\n", 401, challenge)
            return PlainTextResponse("Repository not found.\n", 404)
        if service == WRITE:
            if actor.login is None:
                return PlainTextResponse("Authentication required.\n", 401, challenge)
            if not auth.may_push(self.world, actor, repo):
                return PlainTextResponse(f"Permission to {name}.git denied to {actor.login}.\n", 403)
            push = secrets.token_hex(8)
            request.state.push = push
            self._actors[push] = (actor, repo)
            self._approved[push] = []
        # names are found whatever the letters' case, folders only as they are
        request.state.repository = repo.full_name
        return None

    def _blind(self, actor: auth.Actor, repo: Repository) -> bool:
        if actor.installation is None or not repo.private:
            return False
        return not auth.permits(actor, "contents:read")

    def _environment(self, request: Request, name: str) -> Mapping[str, str]:
        push = getattr(request.state, "push", None)
        if push is None or self._server is None:
            return {}
        host, port = self._server.sockets[0].getsockname()[:2]
        return {"SANDBOX_GATE": f"{host}:{port}", "SANDBOX_PUSH": push}

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, ValueError, KeyError):
            question = json.loads(await reader.readline())
            actor, repo = self._actors[question["push"]]
            ref, old, new = question["ref"], question["old"], question["new"]
            # the quarantine is named relative to the repository in which the hook runs
            env = {name: _absolute(repo.path, value) for name, value in question["env"].items()}
            refusal = guard.refusal(self.world, repo, actor, ref, old, new, env)
            if refusal is None:
                self._approved[question["push"]].append((ref, old, new))
            else:
                lines = refusal.message.splitlines()
                writer.write("\n".join(["error: " + lines[0], *(f"error: - {line}" for line in lines[1:])]).encode())
            await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _received(self, request: Request, name: str) -> None:
        push = request.state.push
        actor, repo = self._actors.pop(push)
        store = self.world.store(repo)
        for ref, old, new in self._approved.pop(push):
            if (store.ref(ref) or ZERO) == new:
                assert actor.login is not None
                changes.moved(self.world, repo, ref, old, new, login=actor.login)


def _absolute(base: Path, value: str) -> str:
    return ":".join(part if Path(part).is_absolute() else str(base / part) for part in value.split(":"))
