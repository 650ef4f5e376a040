"""What a route is: a call with its actor, an answer, an error in GitHub's words, a page of a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.sandbox.auth import Actor
from bot.sandbox.model import Issue, Repository
from bot.sandbox.world import World

DOCUMENTATION = "https://docs.github.com/rest"


class ApiError(Exception):
    """An answer that says no."""

    def __init__(
        self, status: int, message: str, errors: Sequence[Any] | None = None, headers: Mapping[str, str] | None = None
    ):
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """The JSON that GitHub sends with it."""
        body: dict[str, Any] = {"message": self.message}
        if self.errors is not None:
            body["errors"] = list(self.errors)
        return {**body, "documentation_url": DOCUMENTATION, "status": str(self.status)}


def not_found() -> ApiError:
    """404, also for what may not be seen."""
    return ApiError(404, "Not Found")


def invalid(resource: str, name: str, code: str = "invalid", message: str | None = None) -> ApiError:
    """422 with one error in GitHub's form."""
    error = {"resource": resource, "field": name, "code": code}
    if message is not None:
        error["message"] = message
    return ApiError(422, "Validation Failed", [error])


@dataclass(slots=True)
class Reply:
    """An answer: a JSON value, or None for an empty one; or raw bytes with their type."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    media_type: str = "application/json; charset=utf-8"


@dataclass(slots=True)
class Listing:
    """A list to be cut to the page that was asked for; `wrap` puts it into an object with its total."""

    items: Sequence[Any]
    render: Callable[[Any], Any]
    wrap: Callable[[list[Any], int], Any] | None = None


@dataclass(slots=True)
class Call:
    """One request after authentication."""

    world: World
    actor: Actor
    method: str
    path: str
    params: dict[str, Any]
    query: dict[str, str]
    body: Any
    headers: Mapping[str, str]
    repository: Repository | None = None

    @property
    def repo(self) -> Repository:
        """The repository of the path."""
        assert self.repository is not None
        return self.repository

    @property
    def login(self) -> str:
        """Under which name the actor acts."""
        if self.actor.login is None:
            raise ApiError(401, "Requires authentication")
        return self.actor.login

    def issue(self, name: str = "issue_number") -> Issue:
        """The issue or pull request of the path."""
        number = int(self.params[name])
        if number in self.repo.deleted_issues:
            raise ApiError(410, "This issue was deleted")
        found = self.repo.issues.get(number)
        if found is None:
            raise not_found()
        if found.pull is None and not self.repo.has_issues:
            raise ApiError(410, "Issues are disabled for this repo")
        return found

    def pull(self) -> Issue:
        """The pull request of the path."""
        found = self.issue("pull_number")
        if found.pull is None:
            raise not_found()
        return found

    def page(self) -> tuple[int, int]:
        """Page and page size, as GitHub cuts them."""
        try:
            size = int(self.query.get("per_page", "30"))
            number = int(self.query.get("page", "1"))
        except ValueError as error:
            raise ApiError(422, "page and per_page must be numbers") from error
        return max(number, 1), min(size, 100) if size > 0 else 30


Handler = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Operation:
    """A route: what serves it and who may call it.

    `app`: the permission that an installation needs, as `name:level`, alternatives by `|` (one after `pull:` counts on
    pull requests only), or `jwt` for the App itself. `role`: what a user needs in the repository.
    """

    method: str
    path: str
    handler: Handler
    app: str
    role: str


OPERATIONS: list[Operation] = []


def route(
    method: str, path: str, *, app: str = "metadata:read", role: str | None = None
) -> Callable[[Handler], Handler]:
    """Serve a method and a path in GitHub's notation by the function below."""

    def register(handler: Handler) -> Handler:
        needed = role if role is not None else ("read" if method == "GET" else "write")
        OPERATIONS.append(Operation(method, path, handler, app, needed))
        return handler

    return register
