"""A small pair of repositories on the sandbox, and the whole bot looking after the fork: fast, and made to measure."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import structlog
import uvicorn
from pydantic import SecretStr

from bot.app import create_app
from bot.clients.store import JobState, Scope
from bot.context import Context, open_context
from bot.core.batches import Batch
from bot.core.render.pull import read_batch
from bot.core.types import LedgerEntry, Plan
from bot.sandbox.accounts import App
from bot.sandbox.driver import Sandbox
from bot.sandbox.stage import read_manifest
from bot.settings import Settings
from handlers.batches import load_batches
from handlers.fork import open_fork
from handlers.plans import stored_plan
from tests.world import ROOT, SECRET, Clock, _Quiet, settle

UPSTREAM, FORK = "up/pkg", "acme/pkg"
CONFIG = "upstream: {repository: up/pkg}\nmode: act\n"
PEOPLE = {"maria": "maintain", "walter": "write", "rita": "read"}
Files = Mapping[str, str | None]


class Clone:
    """A work tree on disk; each commit an hour after the one before, by a given author."""

    def __init__(self, path: Path, clone_of: Path | None = None, *, start: int = 1_790_000_000) -> None:
        self.path, self.time = path, start
        if clone_of is None:
            path.mkdir(parents=True)
            self.git("init", "-q", "-b", "main")
        else:
            subprocess.run(["git", "clone", "-q", str(clone_of), str(path)], check=True)

    def git(self, *arguments: str, author: str = "Uma <uma@up.example>") -> str:
        name, _, email = author.rstrip(">").partition(" <")
        identity = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": f"{self.time} +0530"}
        identity |= {"GIT_COMMITTER_NAME": "Merger", "GIT_COMMITTER_EMAIL": "merger@up.example"}
        identity |= {"GIT_COMMITTER_DATE": f"{self.time} +0000"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, env=os.environ | identity, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, message: str, files: Files, *, author: str = "Uma <uma@up.example>") -> str:
        """Write files (None deletes one) and commit; gives the commit."""
        self.time += 3600
        for name, content in files.items():
            target = self.path / name
            if content is None:
                target.unlink()
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message, author=author)
        return self.git("rev-parse", "HEAD")

    def get(self, source: Path | str, branch: str) -> None:
        """Stand on a branch as another repository on this machine has it now."""
        self.git("fetch", "-q", str(source), branch)
        self.git("checkout", "-q", "-B", branch, "FETCH_HEAD")


def lines(*changed: tuple[int, str]) -> str:
    """Thirty lines of text, some of them changed."""
    text = [f"line {n}" for n in range(1, 31)]
    for number, new in changed:
        text[number - 1] = new
    return "\n".join(text) + "\n"


@dataclass
class Pair:
    """The sandbox with both repositories, their clones to commit in, and the bot."""

    sandbox: Sandbox
    app: App
    context: Context
    clock: Clock
    upstream: Clone
    fork: Clone
    shas: dict[str, str] = field(default_factory=dict)
    installation: int = 0
    fork_name: str = FORK
    failing: bool = False  # the test makes jobs fail

    @property
    def scope(self) -> Scope:
        return Scope(self.installation, self.fork_name)

    @property
    def repository(self) -> Any:
        return self.sandbox.state.known_repository(self.fork_name)

    def install(self) -> None:
        self.installation = self.sandbox.install(self.app, [self.fork_name])

    def upstream_commits(self, role: str, message: str, files: Files) -> str:
        """A new commit on upstream's main branch."""
        self.shas[role] = sha = self.upstream.commit(message, files)
        self.sandbox.push_ref(UPSTREAM, "main", source=self.upstream.path)
        return sha

    def fork_commits(self, message: str, files: Files, *, login: str = "maria") -> str:
        """A person's commit on the fork's main branch."""
        self.fork.get(str(self.repository.path), "main")
        sha = self.fork.commit(message, files, author=f"{login} <{login}@acme.example>")
        self.sandbox.push_ref(self.fork_name, "main", source=self.fork.path, login=login)
        return sha

    def person_pushes(self, branch: str, message: str, files: Files, *, login: str = "walter") -> str:
        """A person's commit on top of any branch of the fork."""
        self.sandbox.advance(1)  # GitHub tells seconds: what comes within one has no order
        self.fork.get(str(self.repository.path), branch)
        sha = self.fork.commit(message, files, author=f"{login} <{login}@acme.example>")
        self.sandbox.push_ref(self.fork_name, branch, source=self.fork.path, login=login)
        return sha

    async def settle(self, rounds: int = 60) -> None:
        """Until no delivery is under way and no job is due; an error where one failed and waits to be tried again."""
        await settle(self.sandbox, self.context, rounds=rounds, failing=self.failing)

    async def ingest(self) -> None:
        """Look at both sides again, now, and settle."""
        await self.ask("ingest")
        await self.settle()

    async def ask(self, kind: str, key: str = "repository", payload: dict[str, Any] | None = None) -> None:
        store, now = self.context.store, self.context.now()
        await store.enqueue(
            kind, key, payload or {}, installation=self.installation, repository=self.fork_name, now=now
        )

    async def failures(self) -> list[str]:
        """What went wrong, of all jobs that are not done."""
        jobs = await self.context.store.jobs_in([JobState.WAITING, JobState.PARKED])
        return [f"{job.kind} {job.key}: {job.last_error}" for job in jobs if job.last_error]

    async def says(self, login: str, number: int, text: str) -> str:
        """A person's comment; gives Graft's answer to it once all is settled."""
        self.sandbox.advance(1)
        comment = await self.sandbox.as_user(login).comment(self.fork_name, number, text)
        await self.settle()
        answers = [body for body in self.comments(number) if f"answer-to {comment['id']} " in body]
        assert len(answers) == 1, f"{text!r} got {len(answers)} answers"
        return answers[0]

    def pulls(self, state: str | None = "open") -> list[Any]:
        found = [issue for issue in self.repository.issues.values() if issue.pull is not None]
        return [issue for issue in found if state is None or issue.state == state]

    def pull_with(self, sha: str, state: str | None = "open") -> Any:
        """The newest pull request whose batch carries an upstream commit."""
        return [issue for issue in self.pulls(state) if sha in _carried(issue.body)][-1]

    def carrying(self, sha: str, state: str | None = "open") -> list[int]:
        """The numbers of the pull requests whose batch carries an upstream commit."""
        return [issue.number for issue in self.pulls(state) if sha in _carried(issue.body)]

    def comments(self, number: int) -> list[str]:
        return [comment.body for comment in self.repository.issues[number].comments]

    def dashboard(self) -> Any:
        """The dashboard issue."""
        (found,) = [i for i in self.repository.issues.values() if i.pull is None and "graft:dashboard" in i.body]
        return found

    def git(self, *arguments: str) -> str:
        """git in the fork on the server."""
        done = subprocess.run(
            ["git", "-C", str(self.repository.path), *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    async def batches(self) -> list[Batch]:
        return await load_batches(await open_fork(self.context, self.scope))

    async def plan(self) -> Plan:
        plan = await stored_plan(await open_fork(self.context, self.scope))
        assert plan is not None
        return plan

    async def entry(self, sha: str) -> LedgerEntry:
        """What the ledger says of an upstream commit."""
        return next(entry for entry in (await self.plan()).ledger.entries if entry.sha == sha)

    async def merge(self, number: int, method: str = "merge", *, login: str = "maria") -> None:
        await self.sandbox.as_user(login).merge_pull(self.fork_name, number, method)
        await self.settle()


def _carried(body: str) -> list[str]:
    """The upstream commits that a pull request says it carries."""
    return list((read_batch(body) or {}).get("commits", ()))


Make = Callable[[Clone, Clone, dict[str, str]], None]


def make_usual(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
    """Two independent commits, one that the fork's own change meets, one that waits for it, one that conflicts."""
    fork.commit("Our own line", {"forked.txt": lines((5, "ours")), "clash.txt": lines((15, "ours"))})
    shas["one"] = upstream.commit("Add one (#11)", {"one.txt": "one\n"})
    shas["two"] = upstream.commit(
        "Add two for @someone (#12)\n\nFixes #8592\n\nCo-authored-by: Bo <bo@up.example>", {"two.txt": "two\n"}
    )
    shas["link1"] = upstream.commit("Start the chain (#13)", {"chain.txt": lines((10, "first"))})
    shas["link2"] = upstream.commit("Go on with the chain (#14)", {"chain.txt": lines((10, "second"))})
    shas["clash"] = upstream.commit("Change what the fork changed (#15)", {"clash.txt": lines((15, "theirs"))})


RISK = """
ingest:
  risk:
    - {name: chained, paths: [chain.txt]}
"""


@asynccontextmanager
async def pair(
    root: Path,
    *,
    make: Make = make_usual,
    config: str = CONFIG + RISK,
    people: Mapping[str, str] = PEOPLE,
    **settings: Any,
) -> AsyncIterator[Pair]:
    """The pair, served, with the bot; the App is not installed yet."""
    upstream = Clone(root / "upstream")
    start = {name: lines() for name in ("forked.txt", "chain.txt", "clash.txt")}
    upstream.commit("Start", start)
    fork = Clone(root / "fork", upstream.path, start=upstream.time)
    fork.commit("Set Graft up", {".github/graft.yml": config})
    upstream.time = fork.time
    shas: dict[str, str] = {}
    make(upstream, fork, shas)
    async with Sandbox(root / "sandbox") as sandbox:
        for login in ("uma", *people):
            sandbox.create_user(login)
        sandbox.create_org("up", owners=["uma"])
        sandbox.create_org("acme")
        for name, clone in ((UPSTREAM, upstream), (FORK, fork)):
            sandbox.create_repository(*name.split("/"), from_git=clone.path / ".git")
        for login, role in people.items():
            sandbox.set_permission(FORK, login, role)
        manifest = read_manifest(ROOT / "app.yml")
        app = sandbox.create_app(
            "graft", manifest["default_permissions"], manifest["default_events"], None, SECRET, owner="maria"
        )
        async with bot(root / "data", sandbox, app, **settings) as (context, clock):
            yield Pair(sandbox, app, context, clock, upstream, fork, shas)


@asynccontextmanager
async def bot(data: Path, sandbox: Sandbox, app: App, **changes: Any) -> AsyncIterator[tuple[Context, Clock]]:
    """Graft for that App, its web side served; started again elsewhere it takes the webhooks over."""
    door = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    door.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{door.getsockname()[1]}"
    app.webhook_url = f"{url}/webhook"
    settings = Settings(
        app_id=app.id,
        private_key=SecretStr(app.private_key),
        webhook_secret=SecretStr(SECRET),
        github_api=sandbox.api_url,
        github_git=sandbox.url,
        data=data,
        redis_url=SecretStr("redis://127.0.0.1:1/0"),
        public_url=url,
        **changes,
    )
    clock = Clock()
    async with open_context(settings, structlog.get_logger()) as opened:
        context = replace(opened, now=clock)
        server = _Quiet(
            uvicorn.Config(create_app(context), log_level="critical", ws="none", timeout_graceful_shutdown=1)
        )
        serving = asyncio.create_task(server.serve(sockets=[door]))
        while not server.started:  # noqa: ASYNC110 - uvicorn offers no event
            await asyncio.sleep(0.005)
        try:
            yield context, clock
        finally:
            server.should_exit = True
            await serving
            with contextlib.suppress(OSError):
                door.close()


def numbers(issues: Sequence[Any]) -> list[int]:
    """The numbers of some pull requests."""
    return [issue.number for issue in issues]
