"""A GitHub to run against on one machine: stateful, over real HTTP, with git smart HTTP on real repositories.

    async with Sandbox(root) as sandbox:
        sandbox.create_user("octocat")
        sandbox.create_repository("octocat", "fork", from_git=path)
        await sandbox.as_user("octocat").comment("octocat/fork", 1, "/validate l2")

Importing this package costs nothing: the names below are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.sandbox.driver import Sandbox
    from bot.sandbox.person import Refused, UserClient

__all__ = ["Refused", "Sandbox", "UserClient"]

_HOMES = {"Sandbox": "bot.sandbox.driver", "Refused": "bot.sandbox.person", "UserClient": "bot.sandbox.person"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
