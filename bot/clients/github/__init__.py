"""GitHub as the App sees it: `async with GitHubApp(...) as github`, then `github.repository(installation, name)`.

All writes are upserts or look before they are repeated; one writer an installation; limits are waited out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from datetime import datetime
from typing import Any, Self

from bot.clients.github.actions import Actions
from bot.clients.github.api import pages
from bot.clients.github.checks import Checks
from bot.clients.github.comments import Issues, Labels
from bot.clients.github.contents import PERMISSIONS, Contents
from bot.clients.github.errors import (
    Conflict,
    Forbidden,
    GitHubError,
    Gone,
    NotFound,
    RateLimited,
    TooLarge,
    Unauthorized,
    Unavailable,
    Validation,
)
from bot.clients.github.models import (
    Annotation,
    AppInfo,
    Branch,
    CheckRun,
    Comment,
    HookDelivery,
    Installation,
    Issue,
    Label,
    Protection,
    Pull,
    PullCommit,
    PullFile,
    RepositoryInfo,
    Review,
    User,
    WorkflowArtifact,
    WorkflowJob,
    WorkflowRun,
)
from bot.clients.github.pulls import Pulls
from bot.clients.github.transport import Alone, Transport

__all__ = [
    "PERMISSIONS",
    "Annotation",
    "AppInfo",
    "Branch",
    "CheckRun",
    "Comment",
    "Conflict",
    "Forbidden",
    "GitHubApp",
    "GitHubError",
    "Gone",
    "HookDelivery",
    "Installation",
    "Issue",
    "Label",
    "NotFound",
    "Protection",
    "Pull",
    "PullCommit",
    "PullFile",
    "RateLimited",
    "Repository",
    "RepositoryInfo",
    "Review",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "User",
    "Validation",
    "WorkflowArtifact",
    "WorkflowJob",
    "WorkflowRun",
]


class Repository(Pulls, Issues, Labels, Checks, Contents, Actions):
    """A repository as one installation sees it."""


class GitHubApp:
    """The App. Use inside `async with`; `repository(...)` gives a client of one repository.

    `alone(installation)` keeps the writers of other processes off while this one writes; without it this process is
    the only one.
    """

    def __init__(
        self,
        app_id: int,
        private_key: str,
        base_url: str = "https://api.github.com",
        *,
        git_base: str = "https://github.com",
        now: Callable[[], datetime] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        max_wait: float = 90,
        write_pause: float = 0,
        timeout: float = 30,
        alone: Alone = lambda _: nullcontext(),
    ) -> None:
        self.app_id = app_id
        self._git_base = git_base
        self._info: AppInfo | None = None
        self.transport = Transport(
            app_id,
            private_key,
            base_url,
            now=now,
            sleep=sleep,
            max_wait=max_wait,
            write_pause=write_pause,
            timeout=timeout,
            alone=alone,
        )

    async def __aenter__(self) -> Self:
        await self.transport.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.transport.__aexit__()

    async def info(self) -> AppInfo:
        """The App itself; asked once."""
        if self._info is None:
            self._info = AppInfo.model_validate((await self.transport.get("/app", 0)).json)
        return self._info

    def repository(self, installation: int, full_name: str) -> Repository:
        """A client of "owner/name" with the installation's token."""
        return Repository(self.transport, installation, full_name, git_base=self._git_base, identity=self.info)

    async def installations(self) -> list[Installation]:
        """All installations of the App."""
        return [Installation.model_validate(raw) for raw in await self._all("/app/installations", 0)]

    async def installation_repositories(self, installation: int) -> list[RepositoryInfo]:
        """The repositories that an installation gives access to."""
        found: list[Any] = []
        async for page in pages(self.transport, "/installation/repositories", installation):
            found += page.json["repositories"]
        return [RepositoryInfo.model_validate(raw) for raw in found]

    async def deliveries(self, since: datetime, *, limit: int = 1000) -> list[HookDelivery]:
        """The App's webhook deliveries after `since`, newest first (GitHub keeps three days)."""
        found: list[HookDelivery] = []
        async for page in pages(self.transport, "/app/hook/deliveries", 0):
            found += [HookDelivery.model_validate(raw) for raw in page.json]
            if len(found) >= limit or (found and found[-1].delivered_at and found[-1].delivered_at < since):
                break
        return [one for one in found[:limit] if one.delivered_at is None or one.delivered_at >= since]

    async def delivery_payload(self, delivery_id: int) -> dict[str, Any]:
        """The payload of a delivery, by GitHub's own id of it."""
        raw = (await self.transport.get(f"/app/hook/deliveries/{delivery_id}", 0)).json
        payload: dict[str, Any] = (raw.get("request") or {}).get("payload") or {}
        return payload

    async def redeliver(self, delivery_id: int) -> None:
        """Ask GitHub to deliver again."""
        async with self.transport.writer(0) as write:
            await write.send("POST", f"/app/hook/deliveries/{delivery_id}/attempts", repeat=True)

    async def _all(self, path: str, installation: int) -> list[Any]:
        return [raw async for page in pages(self.transport, path, installation) for raw in page.json]
