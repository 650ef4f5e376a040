"""The Context: everything a handler may reach, its first argument. No globals, no service locator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.clients.git import Git
    from bot.clients.github import GitHubApp
    from bot.clients.queue import Queue
    from bot.clients.store import Store
    from bot.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    """What handlers work with. `now` gives aware UTC datetimes; `mirror` opens the bare mirror of "owner/name"."""

    github: GitHubApp
    store: Store
    queue: Queue
    settings: Settings
    now: Callable[[], datetime]
    mirror: Callable[[str], Git]
    log: Any


@asynccontextmanager
async def open_context(settings: Settings, log: Any, *, migrate: bool = True) -> AsyncIterator[Context]:
    """A Context over real parts, closed at the end. Raises StoreUnavailable, and SettingsError without an App."""
    from bot.clients.git import Git
    from bot.clients.github import GitHubApp
    from bot.clients.queue import Queue
    from bot.clients.store import Store

    settings.require_app()
    github = GitHubApp(
        settings.app_id,
        settings.private_key.get_secret_value(),
        settings.github_api,
        git_base=settings.github_git,
        max_wait=settings.rate_limit_wait_seconds,
        write_pause=settings.write_pause_seconds,
    )
    store = await Store.open(settings.store_url, migrate=migrate)
    queue = Queue(settings.redis_url.get_secret_value())

    def mirror(repository: str) -> Git:
        return Git.open_mirror(settings.mirrors / f"{repository}.git")

    try:
        async with github:
            yield Context(github, store, queue, settings, lambda: datetime.now(UTC), mirror, log)
    finally:
        await queue.close()
        await store.close()
