"""One table lists every trigger: event and action, command, schedule; another says who handles which job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bot.clients.store import Job
    from bot.context import Context


@dataclass(frozen=True, slots=True)
class Trigger:
    """A webhook event with the actions that count (none given: all) and the kind of job that it asks for.

    `per` says what the job is about: its key, under which several triggers become one job. "subject": the pull request
    or issue, else the commit, else the repository; "repository"; "event": one job for each delivery, in order and one
    at a time within its subject.
    """

    event: str
    actions: tuple[str, ...]
    kind: str
    per: Literal["subject", "repository", "event"] = "subject"


@dataclass(frozen=True, slots=True)
class Cron:
    """A kind of job that the schedule asks for, in each repository or (`per_repository` False) once."""

    kind: str
    every: timedelta
    per_repository: bool = True


TRIGGERS: Sequence[Trigger] = ()
CRONS: Sequence[Cron] = ()
COMMANDS: Mapping[str, str] = {}
JOBS: Mapping[str, Callable[[Context, Job], Awaitable[None]]] = {}
