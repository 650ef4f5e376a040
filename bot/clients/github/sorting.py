"""What a failed answer of GitHub's means: a limit to wait out, or one of the typed errors."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from githubkit.exception import RequestFailed

from bot.clients.github.errors import (
    Conflict,
    Forbidden,
    GitHubError,
    Gone,
    NotFound,
    Unauthorized,
    Unavailable,
    Validation,
)

_SECONDARY_WAIT = timedelta(seconds=60)  # GitHub's advice where it names no time
_ABUSE = ("secondary rate limit", "abuse detection", "abuse")


@dataclass(frozen=True, slots=True)
class Wait:
    """How long to hold back, and for which limit."""

    time: timedelta
    secondary: bool
    message: str


def limit_wait(error: RequestFailed, now: datetime) -> Wait | None:
    """The wait that a primary or secondary limit asks for; None where the answer is no limit."""
    response = error.response.raw_response
    if response.status_code not in (403, 422, 429):
        return None
    message, codes, _ = _explain(response)
    retry_after = response.headers.get("retry-after", "")
    abuse = "abuse" in codes or any(word in message.lower() for word in _ABUSE)
    if response.status_code == 422 and not abuse:
        return None
    if retry_after.isdigit():
        return Wait(timedelta(seconds=int(retry_after)), True, message)
    if response.headers.get("x-ratelimit-remaining") == "0" and not abuse:
        reset = response.headers.get("x-ratelimit-reset", "")
        until = datetime.fromtimestamp(int(reset), UTC) if reset.isdigit() else now + _SECONDARY_WAIT
        # the header has whole seconds: one more, or the next request comes a moment too early
        return Wait(max(until - now, timedelta()) + timedelta(seconds=1), False, message)
    if abuse or response.status_code == 429:
        return Wait(_SECONDARY_WAIT, True, message)
    return None


def sort_error(error: RequestFailed, method: str, path: str) -> GitHubError:
    """The typed error of a failed answer."""
    response = error.response.raw_response
    status = response.status_code
    message, codes, errors = _explain(response)
    where: dict[str, Any] = {"method": method, "url": path, "status": status}
    if status >= 500 or status == 408:
        return Unavailable(message, **where)
    if status == 403 and "archived" in message.lower():
        return Gone(message, **where)
    if status == 403:
        return Forbidden(message, permission=response.headers.get("x-accepted-github-permissions", ""), **where)
    if status == 422:
        return Validation(message, errors=errors, codes=codes, **where)
    kinds: dict[int, type[GitHubError]] = {
        401: Unauthorized,
        404: NotFound,
        405: Conflict,
        409: Conflict,
        410: Gone,
        423: Gone,
        451: Gone,
    }
    return kinds.get(status, GitHubError)(message, **where)


def _explain(response: Any) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        return response.text[:200] or response.reason_phrase, (), ()
    listed = body.get("errors")
    errors = listed if isinstance(listed, list) else [listed] if listed else []
    codes = tuple(str(part["code"]) for part in errors if isinstance(part, dict) and part.get("code"))
    texts = tuple(_text(part) for part in errors)
    return str(body.get("message") or response.reason_phrase), codes, texts


def _text(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    return str(
        part.get("message") or " ".join(str(part[key]) for key in ("resource", "field", "code") if part.get(key))
    )
