"""The sample pair on the sandbox: people, teams, both repositories, the App, a main branch that the gate protects."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bot.sandbox.accounts import App
from bot.sandbox.driver import Sandbox
from bot.sandbox.sample import Sample

GATE = "graft/gate"


@dataclass(frozen=True, slots=True)
class Stage:
    """The world as set up: the sample on the sandbox, and the App with its secret, not yet installed."""

    sandbox: Sandbox
    sample: Sample
    app: App
    secret: str

    @property
    def fork(self) -> str:
        """The fork as `owner/name`."""
        return self.sample.fork_name

    def install(self) -> int:
        """Install the App on the fork; gives the installation's id."""
        return self.sandbox.install(self.app, [self.fork])


def set_up(
    sandbox: Sandbox, sample: Sample, *, manifest: dict[str, Any], webhook_url: str, secret: str, gate: bool = True
) -> Stage:
    """Fill the sandbox from a sample. `manifest` is the App manifest (app.yml): its permissions and events are used."""
    upstream_org, fork_org = sample.upstream_name.split("/")[0], sample.fork_name.split("/")[0]
    for login in dict.fromkeys(
        [*sample.users, *sample.upstream_people, *(m for t in sample.teams.values() for m in t)]
    ):
        sandbox.create_user(login)
    sandbox.create_org(upstream_org, owners=sample.upstream_people[:1])
    sandbox.create_org(fork_org, owners=[next(iter(sample.users))])
    for slug, members in sample.teams.items():
        sandbox.create_team(fork_org, slug.rsplit("/", 1)[-1], members)
    for full_name, path in ((sample.upstream_name, sample.upstream), (sample.fork_name, sample.fork)):
        owner, name = full_name.split("/")
        sandbox.create_repository(owner, name, from_git=path)
    for login, role in sample.users.items():
        sandbox.set_permission(sample.fork_name, login, role)
    app = sandbox.create_app(
        "graft",
        manifest["default_permissions"],
        manifest["default_events"],
        webhook_url,
        secret,
        owner=next(iter(sample.users)),
    )
    if gate:
        sandbox.protect(sample.fork_name, "main", {GATE: app.id})
    return Stage(sandbox, sample, app, secret)


def read_manifest(path: Path) -> dict[str, Any]:
    """The App manifest from its file."""
    manifest: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return manifest
