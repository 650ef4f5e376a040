"""The Context: everything a handler may reach, its first argument. No globals, no service locator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.clients.git import FetchError, FileChange, Git, GitError, ObjectMissing, PickResult, PushRejected
    from bot.clients.git.patches import Section
    from bot.clients.github import (
        Annotation,
        CheckRun,
        Comment,
        Conflict,
        Forbidden,
        GitHubApp,
        GitHubError,
        Gone,
        HookDelivery,
        Issue,
        NotFound,
        Pull,
        RateLimited,
        Repository,
        Review,
        TooLarge,
        Unauthorized,
        Unavailable,
        Validation,
        WorkflowArtifact,
        WorkflowRun,
    )
    from bot.clients.queue import Queue, QueueUnavailable
    from bot.clients.store import AuditRow, Delivery, Job, Queued, Runner, Store, Transaction
    from bot.clients.store.models import Batch, Breakage, CommandRecord, Run, RunState, Scope
    from bot.clients.symbols import SymbolCache
    from bot.settings import Settings

__all__ = [
    "Annotation",
    "AuditRow",
    "Batch",
    "Breakage",
    "CheckRun",
    "CommandRecord",
    "Comment",
    "Conflict",
    "Context",
    "Delivery",
    "FetchError",
    "FileChange",
    "Forbidden",
    "Git",
    "GitError",
    "GitHubApp",
    "GitHubError",
    "Gone",
    "HookDelivery",
    "Issue",
    "Job",
    "NotFound",
    "ObjectMissing",
    "PickResult",
    "Pull",
    "PushRejected",
    "Queue",
    "QueueUnavailable",
    "Queued",
    "RateLimited",
    "Repository",
    "Review",
    "Run",
    "RunState",
    "Runner",
    "Scope",
    "Section",
    "Store",
    "SymbolCache",
    "TooLarge",
    "Transaction",
    "Unauthorized",
    "Unavailable",
    "Validation",
    "WorkflowArtifact",
    "WorkflowRun",
    "open_context",
]

# what handlers may know of the clients: values, errors, and the clients themselves for their types. Loaded on first
# use, so that `graft plan`, which needs git alone, does not pay for the rest.
_FROM: dict[str, tuple[str, ...]] = {
    "bot.clients.git": (
        "FetchError",
        "FileChange",
        "Git",
        "GitError",
        "ObjectMissing",
        "PickResult",
        "PushRejected",
    ),
    "bot.clients.git.patches": ("Section",),
    "bot.clients.github": (
        "Annotation",
        "CheckRun",
        "Comment",
        "Conflict",
        "Forbidden",
        "GitHubApp",
        "GitHubError",
        "Gone",
        "HookDelivery",
        "Issue",
        "NotFound",
        "Pull",
        "RateLimited",
        "Repository",
        "Review",
        "TooLarge",
        "Unauthorized",
        "Unavailable",
        "Validation",
        "WorkflowArtifact",
        "WorkflowRun",
    ),
    "bot.clients.queue": (
        "Queue",
        "QueueUnavailable",
    ),
    "bot.clients.store": (
        "AuditRow",
        "Delivery",
        "Job",
        "Queued",
        "Runner",
        "Store",
        "Transaction",
    ),
    "bot.clients.store.models": (
        "Batch",
        "Breakage",
        "CommandRecord",
        "Run",
        "RunState",
        "Scope",
    ),
    "bot.clients.symbols": ("SymbolCache",),
}
_HOMES = {name: module for module, names in _FROM.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


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
    store = await Store.open(settings.store_url, migrate=migrate)
    queue = Queue(settings.redis_url.get_secret_value())

    def alone(installation: int) -> AbstractAsyncContextManager[None]:
        return store.alone(f"writer of {installation}")

    def mirror(repository: str) -> Git:
        return Git.open_mirror(settings.mirrors / f"{repository}.git")

    try:
        async with GitHubApp(
            settings.app_id,
            settings.private_key.get_secret_value(),
            settings.github_api,
            git_base=settings.github_git,
            max_wait=settings.rate_limit_wait_seconds,
            write_pause=settings.write_pause_seconds,
            alone=alone,
        ) as github:
            yield Context(github, store, queue, settings, lambda: datetime.now(UTC), mirror, log)
    finally:
        await queue.close()
        await store.close()
