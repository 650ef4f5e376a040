"""Who there is in the sandbox, as plain records: people, organizations, teams, Apps and where they are, tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

ROLES = ("none", "read", "triage", "write", "maintain", "admin")
LEVELS = ("none", "read", "write", "admin")


def at_least(role: str, needed: str) -> bool:
    """True where `role` includes `needed`, both words of ROLES."""
    return ROLES.index(role) >= ROLES.index(needed)


@dataclass(slots=True)
class User:
    """A person, an organization or an App's bot."""

    id: int
    login: str
    type: str = "User"
    name: str | None = None
    email: str | None = None
    created_at: datetime | None = None
    members: dict[str, str] = field(default_factory=dict)  # of an organization: login -> member|admin


@dataclass(slots=True)
class Team:
    """A team of an organization with the roles it has in repositories."""

    id: int
    org: str
    slug: str
    name: str
    members: dict[str, str] = field(default_factory=dict)  # login -> member|maintainer
    repositories: dict[str, str] = field(default_factory=dict)  # full name -> role


@dataclass(slots=True)
class App:
    """A GitHub App; `private_key` is its PEM, as its owner downloads it once."""

    id: int
    slug: str
    name: str
    owner: str
    client_id: str
    private_key: str
    public_key: str
    permissions: dict[str, str]
    events: list[str]
    webhook_url: str | None
    webhook_secret: str
    created_at: datetime

    @property
    def bot(self) -> str:
        """The login under which the App acts."""
        return f"{self.slug}[bot]"


@dataclass(slots=True)
class Installation:
    """An App in an account, for some or (None) all of its repositories."""

    id: int
    app_id: int
    account: str
    permissions: dict[str, str]
    events: list[str]
    repositories: list[str] | None
    created_at: datetime
    suspended_at: datetime | None = None


@dataclass(slots=True)
class Token:
    """What a request shows: of a user, or of an installation (narrowed to some repositories and permissions)."""

    value: str
    login: str
    expires_at: datetime | None = None
    installation_id: int | None = None
    permissions: dict[str, str] = field(default_factory=dict)
    repositories: list[str] | None = None
    used: int = 0
    window_ends: datetime | None = None
