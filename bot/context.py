"""The Context: everything a handler may reach, its first argument. No globals, no service locator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
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
