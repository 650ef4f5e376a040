"""Errors of GitHub's, sorted in one place: what a handler may branch on, and what the worker makes of the rest."""

from __future__ import annotations

from datetime import datetime
from typing import Any


class GitHubError(Exception):
    """GitHub refused a request. `status` is 0 where no answer came."""

    def __init__(self, message: str, *, method: str = "", url: str = "", status: int = 0) -> None:
        super().__init__(f"{method} {url}: {status or 'no answer'}: {message}" if method else message)
        self.message = message
        self.method = method
        self.url = url
        self.status = status


class NotFound(GitHubError):
    """404: it does not exist, or the installation may not see it."""


class Unauthorized(GitHubError):
    """401 again with a fresh token: the key, the App id or the clock is wrong, or the App was removed."""


class Forbidden(GitHubError):
    """403 that no waiting helps: `permission` names what the App lacks (GitHub's words), where GitHub says so."""

    def __init__(self, message: str, *, permission: str = "", **where: Any) -> None:
        super().__init__(f"{message} (needs {permission})" if permission else message, **where)
        self.permission = permission


class Validation(GitHubError):
    """422: what was sent is not acceptable; `codes` are GitHub's error codes, `errors` its explanations."""

    def __init__(
        self, message: str, *, errors: tuple[str, ...] = (), codes: tuple[str, ...] = (), **where: Any
    ) -> None:
        super().__init__(": ".join([message, *errors]), **where)
        self.errors = errors
        self.codes = codes


class Conflict(GitHubError):
    """405 or 409: the state does not allow it now (not mergeable, head moved)."""


class Gone(GitHubError):
    """410, 423 or an archived repository: it is closed to writing; trying again is of no use."""

    @property
    def archived(self) -> bool:
        """The whole repository is closed, not one thing of it gone."""
        return self.status == 403


class TooLarge(GitHubError):
    """What was to be downloaded is larger than the limit: what came of it was dropped."""


class RateLimited(GitHubError):
    """A limit was hit and the wait is too long to sit out: try again at `retry_at`. `secondary` says which limit."""

    def __init__(self, message: str, *, retry_at: datetime, secondary: bool, **where: Any) -> None:
        super().__init__(f"{message}; again at {retry_at:%H:%M:%S} UTC", **where)
        self.retry_at = retry_at
        self.secondary = secondary


class Unavailable(GitHubError):
    """5xx, a timeout or no connection, after the tries that are safe; whether a write happened is not known."""
