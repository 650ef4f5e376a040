"""One fork as a handler needs it: its configuration from the default branch, its mirror, its GitHub."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Self

from bot.context import Context, FetchError, Git, Repository, Scope
from bot.core.config import Config, ConfigError, load
from bot.core.types import Mode

FOLDER = ".github"
CONFIG_PATH = f"{FOLDER}/graft.yml"
HALT_LABEL = "graft:halt"
UPSTREAM = "refs/graft/upstream"
FORK = "refs/graft/fork"


class NotAFork(Exception):
    """The repository has no file of Graft's: nothing is done there."""


class BrokenConfig(Exception):
    """The fork's file can't be read: acting stops, and the dashboard issue says so."""

    def __init__(self, error: ConfigError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True)
class Files:
    """The files beside Graft's own on the default branch, as they were when the job began: one list tells which there
    are, so that one that is not there costs no request of its own (GitHub counts each of its 404s).
    """

    github: Repository
    listed: Mapping[str, str] | None

    @classmethod
    async def of(cls, github: Repository) -> Self:
        """Look which there are."""
        return cls(github, await github.folder(FOLDER))

    async def read(self, path: str) -> bytes | None:
        """A file in the folder of Graft's own; None where there is none."""
        folder, _, name = path.rpartition("/")
        assert folder == FOLDER
        if self.listed is None:
            return await self.github.file(path)
        if name not in self.listed:
            return None
        if not self.listed[name]:  # a link, or no file at all
            return await self.github.file(path)
        return await self.github.blob(self.listed[name])


@dataclass(frozen=True, slots=True)
class Fork:
    """A fork with all that is needed to look and to act."""

    ctx: Context
    scope: Scope
    github: Repository
    config: Config
    git: Git
    files: Files

    @property
    def name(self) -> str:
        """The fork as `owner/name`."""
        return self.scope.repository

    async def login(self) -> str:
        """The login under which Graft writes."""
        return (await self.ctx.github.info()).login

    @property
    def now(self) -> datetime:
        """The present instant, aware."""
        return self.ctx.now()

    async def note(self, key: str) -> Any:
        """A small value kept for this fork, or None."""
        return await self.ctx.store.note(self.scope.installation, self.name, key)

    async def put_note(self, key: str, value: Any) -> None:
        """Keep a small JSON value for this fork."""
        await self.ctx.store.put_note(self.scope.installation, self.name, key, value, self.now)

    async def change_note(self, key: str, change: Callable[[Any], Any]) -> Any:
        """Keep what `change` makes of a small JSON value (None: there is none yet); nothing comes in between."""
        return await self.ctx.store.change_note(self.scope.installation, self.name, key, change, self.now)

    async def enqueue(self, kind: str, key: str, payload: dict[str, Any] | None = None) -> None:
        """Ask for a job of this fork and wake a worker."""
        await self.ctx.store.enqueue(
            kind, key, payload or {}, installation=self.scope.installation, repository=self.name, now=self.now
        )
        await self.ctx.queue.wake()

    def upstream_url(self) -> str:
        """Where upstream is fetched from."""
        configured = self.config.upstream
        return configured.url or clone_url(self.ctx, configured.repository)

    async def fetch_fork(self, *numbers: int) -> str:
        """Bring the fork's main branch, Graft's branches and the given pull requests' heads; gives main's tip.

        Raises FetchError.
        """
        token = await self.github.token()
        refs = [f"+refs/heads/{self.config.fork.branch}:{FORK}", "+refs/heads/graft/*:refs/graft/branches/*"]
        refs += [f"+refs/pull/{number}/head:refs/graft/pull/{number}" for number in numbers]
        await asyncio.to_thread(self.git.fetch, self.github.git_url, refs, token=token, prune=True)
        return await self.tip(FORK)

    async def fetch_upstream(self) -> str:
        """Bring upstream's main branch; gives its tip. Raises FetchError."""
        # without a plus: a rewritten upstream is an error to be looked at, not a new truth
        refs = [f"refs/heads/{self.config.upstream.branch}:{UPSTREAM}"]
        await asyncio.to_thread(self.git.fetch, self.upstream_url(), refs)
        return await self.tip(UPSTREAM)

    async def tip(self, ref: str) -> str:
        """The commit that a ref of the mirror names; FetchError where there is none."""
        sha = await asyncio.to_thread(self.git.resolve, ref)
        if sha is None:
            raise FetchError("missing", f"{ref} is not in the mirror of {self.name}")
        return sha

    async def halted(self) -> str | None:
        """Who halted Graft here and where, or None. Only a label set by someone with write access counts."""
        for issue in await self.github.issues(labels=(HALT_LABEL,), state="open"):
            for login in await self.github.who_labelled(issue.number, HALT_LABEL):
                if await self.github.permission(login) in ("write", "maintain", "admin"):
                    return f"#{issue.number}, labelled by {login}"
        return None

    async def may_open(self) -> bool:
        """True where the mode lets Graft open pull requests and nobody halted it."""
        return self.config.mode is not Mode.OBSERVE and await self.halted() is None


def clone_url(ctx: Context, repository: str) -> str:
    """Where git finds "owner/name" on the GitHub that this deployment talks to."""
    return f"{ctx.settings.github_git.rstrip('/')}/{repository}.git"


# each job reads the file anew from GitHub, and it is nearly always the same
_config = lru_cache(maxsize=64)(load)


async def open_fork(ctx: Context, scope: Scope) -> Fork:
    """The fork, with its file as the default branch holds it. Raises NotAFork and BrokenConfig."""
    github = ctx.github.repository(scope.installation, scope.repository)
    files = await Files.of(github)
    raw = await files.read(CONFIG_PATH)
    if raw is None:
        raise NotAFork(f"{scope.repository} has no {CONFIG_PATH}")
    try:
        config = _config(raw.decode("utf-8", errors="replace"))
    except ConfigError as error:
        raise BrokenConfig(error) from error
    return Fork(ctx, scope, github, config, ctx.mirror(scope.repository), files)
