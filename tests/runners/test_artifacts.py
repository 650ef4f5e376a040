"""Artifacts in a folder and in an S3-compatible store over real HTTP; secrets, limits, failed uploads, links."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.clients.store import Store
from bot.core.config import Suite
from bot.core.render.results import SuiteState, results_comment
from bot.core.types import Level, Outcome
from bot.core.validation import Artifact, Report, Subject
from bot.sandbox.processes import free_port
from runners import artifacts
from runners.artifacts import Folder, artifacts_in, keep, keeper_of, redact_files, secrets_of
from runners.redact import redactor
from tests.runners.world import commit, world

KEYS = {"AWS_ACCESS_KEY_ID": "KEYIDKEYID", "AWS_SECRET_ACCESS_KEY": "the-secret-of-the-store"}
NOW = datetime(2026, 11, 29, tzinfo=UTC)
SUITE = Suite.model_validate(
    {
        "suite": "q",
        "harness": "command",
        "run": ["sh", "-c", 'echo said ghp_$(printf %036d 7); echo kept > "$(dirname "$GRAFT_RESULTS")/a b.txt"'],
        "timeout": "60s",
    }
)


@dataclass
class Front:
    """What stands before the store: notes who asks, and refuses as often as it is told to."""

    url: str
    folder: Path
    refuse: list[int] = field(default_factory=list)
    seen: list[tuple[str, str, str]] = field(default_factory=list)


@asynccontextmanager
async def store(folder: Path) -> AsyncIterator[Front]:
    """An S3-compatible store with the bucket `runs`."""
    (folder / "runs").mkdir(parents=True)
    behind, port = free_port(), free_port()
    program = subprocess.Popen(  # noqa: ASYNC220 - it is ended, not waited for
        [sys.executable, "-m", "localbucket", str(folder), "--port", str(behind)], stderr=subprocess.DEVNULL
    )
    front = Front(f"http://127.0.0.1:{port}", folder)

    async def forward(request: Request) -> Response:
        body = await request.body()
        front.seen.append((request.method, request.url.path, request.headers.get("authorization", "")))
        if front.refuse:
            return Response("<Error><Code>No</Code></Error>", front.refuse.pop(0))
        kept = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        url = f"http://127.0.0.1:{behind}{request.url.path}?{request.url.query}".rstrip("?")
        async with httpx.AsyncClient(trust_env=False) as http:
            answer = await http.request(request.method, url, content=body, headers=kept)
        return Response(answer.content, answer.status_code, {"etag": answer.headers.get("etag", "")})

    routes = [Route("/{path:path}", forward, methods=["GET", "PUT", "POST", "HEAD", "DELETE"])]
    server = uvicorn.Server(
        uvicorn.Config(Starlette(routes=routes), port=port, log_level="error", lifespan="off", ws="none")
    )
    task = asyncio.create_task(server.serve())
    try:
        async with asyncio.timeout(60), httpx.AsyncClient(trust_env=False) as http:
            while not server.started or not await _answers(http, behind):  # noqa: ASYNC110 - other programs
                await asyncio.sleep(0.02)
        yield front
    finally:
        server.should_exit = True
        await task
        program.kill()
        program.wait()


async def _answers(http: httpx.AsyncClient, port: int) -> bool:
    try:
        return (await http.get(f"http://127.0.0.1:{port}/")).status_code < 500
    except httpx.HTTPError:
        return False


def report(**more: object) -> Report:
    said = {
        "run_id": "r1", "attempt": 2, "subject": Subject(repository="acme/fork", commit="1" * 40), "level": Level.L1,
        "suite": "q", "harness": "command", "started_at": NOW, "finished_at": NOW, "outcome": Outcome.PASSED,
    }  # fmt: skip
    return Report.model_validate({**said, **more})


def results(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


async def test_a_run_s_files_lie_in_the_store_and_its_comment_links_them(tmp_path: Path, sqlite_store: Store) -> None:
    async with store(tmp_path / "s3") as front, world(tmp_path, sqlite_store) as bot:
        sha = commit(tmp_path / "fork", {"a": "b"})
        bot.publish(tmp_path / "fork")
        keeper = keeper_of("s3://runs/ci", endpoint=front.url, public="https://files.example.com/x/", environment=KEYS)
        front.refuse = [503, 500]
        bot.runner(artifacts=keeper)
        run = await bot.done(await bot.offer(sha, SUITE))
        made = Report.model_validate(run.report)
        assert (made.outcome, made.reason) == (Outcome.PASSED, ""), made
        place = f"acme/fork/{run.id}/1"
        assert {(one.name, one.url) for one in made.artifacts} == {
            ("a b.txt", f"https://files.example.com/x/{place}/a_b.txt"),
            ("graft-run.log", f"https://files.example.com/x/{place}/graft-run.log"),
        }
        there = front.folder / "runs" / "ci" / place
        assert (there / "a_b.txt").read_text() == "kept\n"
        assert "said ***" in (there / "graft-run.log").read_text()
        shown = [header for _, _, header in front.seen]
        assert all(
            "Credential=KEYIDKEYID/" in header and KEYS["AWS_SECRET_ACCESS_KEY"] not in header for header in shown
        )
        text = results_comment(
            head=sha, states=[SuiteState(Level.L1, "q", None, (), "x", outcome=made.outcome, report=made)]
        )
        assert f"](https://files.example.com/x/{place}/graft-run.log)" in text


async def test_what_the_store_refuses_is_said_and_loses_nothing_else(tmp_path: Path) -> None:
    folder = results(tmp_path / "r", **{"a.txt": "a", "b.txt": "b"})
    async with store(tmp_path / "s3") as front:
        keeper = keeper_of("s3://runs", endpoint=front.url, environment=KEYS)
        assert keeper is not None
        front.refuse = [403]
        made = await keep(report(), folder, keeper, redact=lambda text: text)
        assert [one.url for one in made.artifacts] == [None, f"{front.url}/runs/acme/fork/r1/2/b.txt"]
        assert made.reason.startswith("1 of 2 artifacts were not kept: ")
        assert made.outcome is Outcome.PASSED
        nowhere = keeper_of("s3://other", endpoint=front.url, environment=KEYS)
        assert nowhere is not None
        made = await keep(report(reason="so"), folder, nowhere, redact=redactor(["other"]))
        assert made.reason.startswith("so; 2 of 2 artifacts were not kept: ")


async def test_a_store_that_is_away_or_too_slow_costs_no_report(tmp_path: Path, sqlite_store: Store) -> None:
    class Slow:
        async def put(self, _key: str, _path: Path) -> str:
            await asyncio.sleep(3600)
            return ""

    folder = results(tmp_path / "r", **{"a.txt": "a"})
    made = await keep(report(), folder, Slow(), redact=lambda text: text, seconds=0.05)
    assert made.reason == "1 of 1 artifacts were not kept: not done within 0.05 s"
    (tmp_path / "file").write_text("in the way")
    async with world(tmp_path, sqlite_store) as bot:
        sha = commit(tmp_path / "fork", {"a": "b"})
        bot.publish(tmp_path / "fork")
        bot.runner(artifacts=Folder(tmp_path / "file"))
        run = await bot.done(await bot.offer(sha, SUITE))
        assert run.outcome == Outcome.PASSED
        assert "2 of 2 artifacts were not kept" in Report.model_validate(run.report).reason


async def test_a_folder_holds_whole_files_and_says_where(tmp_path: Path) -> None:
    folder = results(tmp_path / "r", **{"deep__x:y.log": "text", "deep__x;y.log": "other", "canary__c.xml": "x"})
    (folder / "link").symlink_to("/etc/passwd")
    made = await keep(report(), folder, Folder(tmp_path / "kept"), redact=lambda text: text)
    there = tmp_path / "kept" / "acme/fork/r1/2/deep"
    assert [(one.name, one.url) for one in made.artifacts] == [
        ("deep/x:y.log", str(there / "x_y.log")),
        ("deep/x;y.log", str(there / "x_y.log.2")),
    ]
    assert (there / "x_y.log.2").read_text() == "other"
    assert {path.name for path in (tmp_path / "kept").rglob("*") if path.is_file()} == {"x_y.log", "x_y.log.2"}
    state = SuiteState(Level.L1, "q", None, (), "x", outcome=made.outcome, report=made)
    text = results_comment(head="1" * 40, states=[state])
    assert f"at `{there}/x_y.log`" in text


def test_secrets_are_struck_out_of_files_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n"
    text = f"before my-secret\n{key}\xff after".encode("latin-1")
    files: dict[str, str | bytes] = {"a.txt": text, "deep__b.bin": b"\0\1my-secret", "c.log": "my-secret\n" * 50}
    folder = results(tmp_path / "r", **files)
    redact_files(folder, redactor(["my-secret"]))
    assert (folder / "a.txt").read_bytes() == b"before ***\n***\n\xff after"
    assert (folder / "deep/b.bin").read_bytes() == b"\0\1my-secret"
    assert b"secret" not in (folder / "c.log").read_bytes()
    monkeypatch.setattr(artifacts, "_WHOLE", 100)
    results(folder, **{"c.log": "line\nmy-secret\n" * 50})
    redact_files(folder, redactor(["my-secret"]))
    assert (folder / "c.log").read_text() == "line\n***\n" * 50


def test_too_many_and_too_large_are_left_out_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "LARGEST_FILE", 10)
    monkeypatch.setattr(artifacts, "LARGEST_RUN", 25)
    monkeypatch.setattr(artifacts, "MOST_FILES", 3)
    folder = results(tmp_path / "r", a="x" * 11, b="x" * 10, c="x" * 10, d="x" * 6, e="x" * 5, f="")
    found, left = artifacts_in(folder)
    assert [one.name for one, _ in found] == ["b", "c", "e"]
    assert left == "2 too large, 1 beyond the first 3"


@pytest.mark.parametrize(
    ("target", "options", "environment", "words"),
    [
        ("ftp://x/y", {}, {}, "write a folder, or s3://bucket/prefix"),
        ("s3://B", {}, KEYS, "in plain letters"),
        ("s3://runs/a b", {}, KEYS, "in plain letters"),
        ("s3://runs", {"endpoint": "http://store.example.com"}, KEYS, "write https://host"),
        ("s3://runs", {"public": "http://x"}, KEYS, "write https://host/path"),
        ("s3://runs", {}, {"AWS_ACCESS_KEY_ID": "x"}, "there is no key for it: set AWS"),
        ("s3://runs", {}, {"GRAFT_ARTIFACTS_KEY_FILE": "/nowhere"}, "can't be read"),
    ],
)
def test_settings_that_can_t_work_are_told(
    target: str, options: dict[str, str], environment: dict[str, str], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        keeper_of(target, environment=environment, **options)


def test_the_key_may_be_in_a_file_and_shows_nowhere(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("ID\nsecret-in-a-file\n")
    environment = {"GRAFT_ARTIFACTS_KEY_FILE": str(tmp_path / "key"), "AWS_SESSION_TOKEN": "of-another"}
    keeper = keeper_of("s3://runs", environment=environment)
    assert "secret" not in repr(keeper)
    assert secrets_of(environment) == ("secret-in-a-file", "of-another")
    assert secrets_of({}) == ()
    (tmp_path / "key").write_text("one line")
    with pytest.raises(ValueError, match="its two lines are"):
        keeper_of("s3://runs", environment=environment)
    assert keeper_of("") is None


@pytest.mark.parametrize("url", ["http://x/y", "javascript:alert(1)", "https://x/y) [z](https://e", "https://x/`y`"])
def test_no_other_address_becomes_a_link(url: str) -> None:
    made = report(artifacts=[Artifact(name="](https://evil) `x`", size=1, sha256="0", url=url)])
    state = SuiteState(Level.L1, "q", None, (), "x", outcome=made.outcome, report=made)
    text = results_comment(head="1" * 40, states=[state])
    outside_code = re.sub(r"(?<!\\)(`+)[^`].*?\1", "", text)
    assert not re.search(r"(?<!\\)\]\(", outside_code), text
