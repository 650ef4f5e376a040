"""The bridge to git's smart HTTP on its own: read-only, streamed, and closed to what is no repository."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bot.clients.git_http import WRITE, GitHttpBackend
from bot.sandbox.testing import Checkout

ENVIRONMENT = {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_TERMINAL_PROMPT": "0"}


@contextlib.asynccontextmanager
async def served(app: GitHttpBackend) -> AsyncIterator[str]:
    class Quiet(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    server = Quiet(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[door]))
    while not server.started:  # noqa: ASYNC110 - uvicorn offers no event
        await asyncio.sleep(0.002)
    yield f"http://127.0.0.1:{door.getsockname()[1]}"
    server.should_exit = True
    await task


@pytest.fixture
def root(tmp_path: Path) -> Path:
    work = Checkout(tmp_path / "work")
    for at in range(3):
        work.commit(f"Commit {at}", {f"file{at}": f"{at}\n" * 1000})
    subprocess.run(["git", "clone", "-q", "--bare", str(work.path), str(tmp_path / "root/acme/fork.git")], check=True)
    return tmp_path / "root"


async def allow(request: Request, repository: str, service: str) -> Response | None:
    return None


async def git(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        "git", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=ENVIRONMENT
    )
    output = (await process.communicate())[0].decode()
    assert process.returncode is not None
    return process.returncode, output


async def test_reading_is_allowed_and_pushing_is_not(root: Path, tmp_path: Path) -> None:
    async with served(GitHttpBackend(root, receive=False, authorize=allow)) as url:
        code, said = await git("clone", "-q", f"{url}/acme/fork.git", str(tmp_path / "clone"))
        assert code == 0, said
        assert (tmp_path / "clone" / "file2").read_text() == "2\n" * 1000
        code, said = await git("-C", str(tmp_path / "clone"), "push", "origin", "HEAD:new")
        assert code != 0
        assert "403" in said


async def test_pushing_is_told_afterwards(root: Path, tmp_path: Path) -> None:
    told = []

    async def after(request: Request, repository: str) -> None:
        told.append((repository, (root / "acme/fork.git/refs/heads/new").exists()))

    async with served(GitHttpBackend(root, receive=True, authorize=allow, after_receive=after)) as url:
        await git("clone", "-q", f"{url}/acme/fork.git", str(tmp_path / "clone"))
        code, said = await git("-C", str(tmp_path / "clone"), "push", "origin", "HEAD:new")
        assert code == 0, said
    assert told == [("acme/fork", True)]


async def test_whoever_is_refused_is_refused(root: Path) -> None:
    asked = []

    async def judge(request: Request, repository: str, service: str) -> Response | None:
        asked.append((repository, service))
        if request.headers.get("authorization") == "Bearer good":
            return None
        return PlainTextResponse("no", 401, {"WWW-Authenticate": "Bearer"})

    async with served(GitHttpBackend(root, receive=True, authorize=judge)) as url:
        assert (await git("ls-remote", f"{url}/acme/fork.git"))[0] != 0
        code, said = await git("-c", "http.extraHeader=Authorization: Bearer good", "ls-remote", f"{url}/acme/fork.git")
        assert (code, said.count("refs/heads/main")) == (0, 1)
        async with httpx.AsyncClient(base_url=url, trust_env=False) as http:
            assert (await http.get("/acme/fork.git/info/refs?service=git-receive-pack")).status_code == 401
    assert asked[-1] == ("acme/fork", WRITE)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/acme/none.git/info/refs?service=git-upload-pack", 404),
        ("/acme/fork.git/config", 404),
        ("/acme/%2e%2e/acme/fork.git/info/refs?service=git-upload-pack", 404),
        ("/acme/fork.git/objects/../config", 404),
        ("/acme/fork.git/info/refs", 403),
        ("/acme/fork.git/info/refs?service=git-shell", 403),
        ("/fork.git/info/refs?service=git-upload-pack", 404),
        ("/acme/fork.git/info/refs?service=git-upload-pack", 200),
    ],
)
async def test_only_repositories_below_the_root_are_served(root: Path, path: str, status: int) -> None:
    async with served(GitHttpBackend(root, receive=False, authorize=allow)) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"GET {path} HTTP/1.0\r\nHost: x\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == str(status).encode()
        writer.close()


async def test_a_packed_body_is_unpacked(root: Path) -> None:
    _, head = await git("-C", str(root / "acme/fork.git"), "rev-parse", "HEAD")
    want = f"0032want {head.strip()}\n00000009done\n".encode()
    headers = {"content-type": "application/x-git-upload-pack-request", "content-encoding": "gzip"}
    async with (
        served(GitHttpBackend(root, receive=False, authorize=allow)) as url,
        httpx.AsyncClient(trust_env=False) as http,
    ):
        path = f"{url}/acme/fork.git/git-upload-pack"
        answer = await http.post(path, content=gzip.compress(want), headers=headers)
        assert (answer.status_code, answer.content[:8]) == (200, b"0008NAK\n")
        assert answer.content[8:12] == b"PACK"
        broken = await http.post(path, content=b"no gzip", headers=headers)
        assert b"PACK" not in broken.content


async def test_a_push_that_comes_in_many_pieces_arrives_whole(root: Path, tmp_path: Path) -> None:
    # git answers with its headers before it has read the pack: nothing may take a piece of it away meanwhile
    work = Checkout(tmp_path / "work")
    noise = "".join(f"{hash((at, 'x')):x}\n" for at in range(200_000))
    work.commit("Large", {f"large{at}": f"{at}{noise[at * 1000 :]}" for at in range(3)})
    async with served(GitHttpBackend(root, receive=True, authorize=allow)) as url:
        pushed = git("-C", str(work.path), "-c", "core.compression=0", "push", f"{url}/acme/fork.git", "HEAD:large")
        code, said = await asyncio.wait_for(pushed, 120)
    assert code == 0, said
    _, there = await git("-C", str(root / "acme/fork.git"), "rev-parse", "large")
    assert there.strip() == work.git("rev-parse", "HEAD")
