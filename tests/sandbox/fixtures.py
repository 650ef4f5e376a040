"""Fixtures of the sandbox: import `sandbox`, `listener`, `checkout` (and `world`) into a test module by name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.sandbox.accounts import App
from bot.sandbox.driver import Sandbox
from bot.sandbox.testing import Checkout, Listener, listening, served

PERMISSIONS = {
    "metadata": "read",
    "contents": "write",
    "pull_requests": "write",
    "issues": "write",
    "checks": "write",
    "statuses": "write",
    "members": "read",
    "actions": "write",
    "administration": "read",
}
EVENTS = [
    "push",
    "pull_request",
    "pull_request_review",
    "issues",
    "issue_comment",
    "check_run",
    "check_suite",
    "merge_group",
    "create",
    "delete",
    "label",
    "status",
    "workflow_run",
    "repository_dispatch",
]
REPO = "acme/fork"


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    """A served sandbox without anything in it."""
    async with served(tmp_path / "sandbox") as served_one:
        yield served_one


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    """A webhook endpoint."""
    async with listening() as one:
        yield one


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """A work tree with one commit on main, and a branch `topic` with one more."""
    work = Checkout(tmp_path / "work")
    work.commit("Begin", {"README.md": "hello\n", "lib/core.py": "def one():\n    return 1\n"})
    work.branch("topic")
    work.commit("Add two", {"lib/core.py": "def one():\n    return 1\n\n\ndef two():\n    return 2\n"})
    work.git("checkout", "-q", "main")
    return work


@dataclass
class Scene:
    """acme/fork with an owner, a developer, a stranger, and an installed App that listens."""

    sandbox: Sandbox
    listener: Listener
    checkout: Checkout
    app: App
    installation: int

    def token(self) -> str:
        """A fresh installation token."""
        world = self.sandbox.state
        return world.mint(self.app.bot, world.installations[self.installation]).value


@pytest.fixture
async def scene(sandbox: Sandbox, listener: Listener, checkout: Checkout) -> Scene:
    """The usual cast: org acme (owner olga), dev with write, stan with nothing, App graft."""
    for login in ("olga", "dev", "stan"):
        sandbox.create_user(login, email=f"{login}@example.com")
    sandbox.create_org("acme", owners=["olga"], members=["dev"])
    sandbox.create_repository("acme", "fork", from_git=checkout.path)
    sandbox.set_permission(REPO, "dev", "write")
    app = sandbox.create_app("graft", PERMISSIONS, EVENTS, listener.url)
    installation = sandbox.install(app, [REPO])
    return Scene(sandbox, listener, checkout, app, installation)
