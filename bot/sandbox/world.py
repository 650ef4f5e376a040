"""The state of the sandbox: tables, look-ups, identifiers and its clock. Nothing here sends or serves."""

from __future__ import annotations

import itertools
import secrets
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bot.sandbox.accounts import ROLES, App, Installation, Team, Token, User
from bot.sandbox.bare import Bare
from bot.sandbox.faults import Faults
from bot.sandbox.model import Comment, Delivery, Issue, Protection, Repository

TOKEN_LIFE = timedelta(hours=1)


class World:
    """All that this GitHub knows. Requests are handled one after the other on one event loop, so nothing is locked."""

    def __init__(self, root: Path):
        self.root = root
        self.url = "http://127.0.0.1:0"
        self.offset = timedelta()
        self.users: dict[str, User] = {}
        self.teams: dict[tuple[str, str], Team] = {}
        self.repositories: dict[str, Repository] = {}
        self.apps: dict[int, App] = {}
        self.installations: dict[int, Installation] = {}
        self.tokens: dict[str, Token] = {}
        self.deliveries: dict[int, Delivery] = {}
        self.faults = Faults()
        self.violations: list[str] = []
        self.requests: deque[tuple[str, str, int]] = deque(maxlen=10_000)
        self.lazy_mergeability = False
        self.search_lag: timedelta | None = None
        self.rate_limit = 5000
        self.writes_per_minute: int | None = None
        self.writes: dict[str, deque[datetime]] = {}
        self.user_rate_limit = 5000
        self.changes: dict[tuple[str, str, str], Any] = {}
        self.manifest_codes: dict[str, int] = {}
        self._ids = itertools.count(1001)
        self._stores: dict[str, Bare] = {}
        self.outbox: Callable[[Delivery], None] = lambda delivery: None

    def now(self) -> datetime:
        """The time here: the real one, moved by `offset`, cut to seconds as GitHub shows it."""
        return (datetime.now(UTC) + self.offset).replace(microsecond=0)

    def new_id(self) -> int:
        """A number that nothing else here has."""
        return next(self._ids)

    def store(self, repository: Repository) -> Bare:
        """The git objects of a repository."""
        if repository.full_name not in self._stores:
            self._stores[repository.full_name] = Bare(repository.path)
        return self._stores[repository.full_name]

    def user(self, login: str) -> User | None:
        """The account of that name, whatever the letters' case."""
        return self.users.get(login.lower())

    def known_user(self, login: str) -> User:
        """The account of that name; LookupError where there is none."""
        found = self.user(login)
        if found is None:
            raise LookupError(f"the sandbox has no account {login!r}: create it first (create_user, create_org)")
        return found

    def user_of_email(self, email: str) -> User | None:
        """The account that commits under this address."""
        return next((user for user in self.users.values() if user.email == email), None)

    def repository(self, full_name: str) -> Repository | None:
        """The repository of that name, whatever the letters' case."""
        return self.repositories.get(full_name.lower())

    def known_repository(self, full_name: str) -> Repository:
        """The repository of that name; LookupError where there is none."""
        found = self.repository(full_name)
        if found is None:
            names = ", ".join(sorted(repository.full_name for repository in self.repositories.values())) or "none"
            raise LookupError(f"the sandbox has no repository {full_name!r}; there are: {names}")
        return found

    def role(self, login: str | None, repository: Repository) -> str:
        """What a user may do in a repository: the greatest of owner, organization, teams, collaborator, public."""
        roles = ["none" if repository.private else "read"]
        if login is not None:
            owner = self.users[repository.owner.lower()]
            if owner.login.lower() == login.lower() or owner.members.get(login) == "admin":
                roles.append("admin")
            elif login in owner.members and not repository.private:
                roles.append("read")
            roles.append(repository.collaborators.get(login, "none"))
            roles += [
                team.repositories[repository.full_name]
                for team in self.teams.values()
                if login in team.members and repository.full_name in team.repositories
            ]
        return max(roles, key=ROLES.index)

    def explicit_role(self, login: str, repository: Repository) -> str:
        """The role without what everyone has in a public repository."""
        role = self.role(login, repository)
        user = self.user(login)
        public = not repository.private and role == "read"
        named = user is not None and (
            login in repository.collaborators
            or any(login in team.members and repository.full_name in team.repositories for team in self.teams.values())
        )
        return "none" if public and not named else role

    def covers(self, installation: Installation, repository: Repository) -> bool:
        """True where the installation includes the repository."""
        return installation.account == repository.owner and (
            installation.repositories is None or repository.full_name in installation.repositories
        )

    def installations_of(self, repository: Repository) -> Iterator[tuple[App, Installation]]:
        """The Apps that are installed on a repository and not suspended."""
        for installation in self.installations.values():
            if installation.suspended_at is None and self.covers(installation, repository):
                yield self.apps[installation.app_id], installation

    def protection(self, repository: Repository, branch: str) -> Protection | None:
        """The protection of a branch: an exact name first, then patterns."""
        exact = [rule for rule in repository.protections if rule.branch == branch]
        matching = [rule for rule in repository.protections if fnmatchcase(branch, rule.branch)]
        return next(iter(exact or matching), None)

    def comment(self, repository: Repository, comment_id: int) -> tuple[Issue, Comment] | None:
        """A comment and the issue that it stands on."""
        for issue in repository.issues.values():
            for comment in issue.comments:
                if comment.id == comment_id:
                    return issue, comment
        return None

    def mint(self, login: str, installation: Installation | None = None) -> Token:
        """A new token: of a user without an end, of an installation for one hour."""
        prefix = "ghp_" if installation is None else "ghs_"
        token = Token(prefix + secrets.token_hex(20), login)
        if installation is not None:
            token.installation_id = installation.id
            token.expires_at = self.now() + TOKEN_LIFE
            token.permissions = dict(installation.permissions)
        self.tokens[token.value] = token
        return token

    def user_token(self, login: str) -> Token:
        """The standing token of a user; made on first use."""
        for token in self.tokens.values():
            if token.login == login and token.installation_id is None and token.expires_at is None:
                return token
        return self.mint(login)
