"""One table lists every trigger: event and action, command, schedule; another says who handles which job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bot.context import Context, Job


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


Handler = Callable[["Context", "Job"], Awaitable[None]]


def _handler(module: str, name: str) -> Handler:
    """The handler, its module loaded when the first such job comes: `graft plan` needs none of them.

    In a repository without Graft's file nothing is done. Where the file is broken acting stops, the dashboard says so,
    and every gate is shut.
    """

    async def run(context: Context, job: Job) -> None:
        fork = import_module("handlers.fork")
        try:
            await getattr(import_module(f"handlers.{module}"), name)(context, job)
        except fork.NotAFork as nothing:
            context.log.debug("nothing to do", kind=job.kind, why=str(nothing))
        except fork.BrokenConfig as broken:
            context.log.warning("the fork's file is broken", kind=job.kind, repository=job.repository, why=str(broken))
            for kind in ("dashboard", "gate_all"):
                await context.store.enqueue(
                    kind,
                    "repository",
                    {},
                    installation=job.installation,
                    repository=job.repository,
                    now=context.now(),
                )

    run.__name__ = name
    run.__qualname__ = f"{module}.{name}"
    return run


TRIGGERS: Sequence[Trigger] = (
    Trigger("installation", (), "register", "repository"),
    Trigger("installation_repositories", (), "register", "repository"),
    Trigger("push", (), "pushed", "event"),
    Trigger("pull_request", ("opened", "synchronize", "reopened", "ready_for_review"), "pull_moved", "event"),
    Trigger("pull_request", ("closed",), "pull_closed"),
    Trigger("pull_request", ("edited", "labeled", "unlabeled", "converted_to_draft"), "gate"),
    Trigger("pull_request_review", (), "gate"),
    Trigger("issue_comment", ("created", "edited", "deleted"), "comment", "event"),
    Trigger("issues", ("edited",), "ticked", "event"),
    Trigger("issues", ("labeled", "unlabeled", "closed", "reopened", "deleted", "transferred"), "issue_moved"),
    Trigger("check_run", ("rerequested",), "rerun", "event"),
    Trigger("check_run", ("completed",), "other_ci"),
    Trigger("check_suite", ("completed",), "other_ci"),
    Trigger("workflow_run", ("completed",), "other_ci"),
    Trigger("workflow_run", ("completed",), "elsewhere", "repository"),
    Trigger("merge_group", ("checks_requested", "destroyed"), "gate_group", "event"),
    Trigger("membership", (), "gate_all", "event"),
)

CRONS: Sequence[Cron] = (
    Cron("sweep", timedelta(minutes=5)),
    Cron("expire_runs", timedelta(seconds=30), per_repository=False),
    Cron("elsewhere", timedelta(minutes=1)),
    Cron("redeliver", timedelta(minutes=1), per_repository=False),
    Cron("register", timedelta(hours=1), per_repository=False),
    Cron("prune", timedelta(hours=12), per_repository=False),
    Cron("waivers", timedelta(hours=6)),
    Cron("witness", timedelta(days=1)),
    Cron("unanswered", timedelta(minutes=10), per_repository=False),
)

JOBS: Mapping[str, Handler] = {
    "register": _handler("register", "register"),
    "pushed": _handler("arrivals", "pushed"),
    "pull_moved": _handler("arrivals", "pull_moved"),
    "pull_closed": _handler("arrivals", "pull_closed"),
    "issue_moved": _handler("arrivals", "issue_moved"),
    "rerun": _handler("arrivals", "rerun"),
    "comment": _handler("command", "comment"),
    "ingest": _handler("ingest", "ingest"),
    "validate": _handler("validate", "validate"),
    "validate_trunk": _handler("validate", "validate_trunk"),
    "results": _handler("results", "results"),
    "elsewhere": _handler("elsewhere", "elsewhere"),
    "gate": _handler("gate", "gate"),
    "gate_all": _handler("gate", "gate_all"),
    "gate_group": _handler("gate", "gate_group"),
    "triage": _handler("triage", "triage"),
    "other_ci": _handler("other_ci", "other_ci"),
    "dashboard": _handler("dashboard", "dashboard"),
    "ticked": _handler("dashboard", "ticked"),
    "sweep": _handler("sweep", "sweep"),
    "expire_runs": _handler("sweep", "expire_runs"),
    "waivers": _handler("waivers", "waivers"),
    "witness": _handler("auditing", "post_witness"),
    "unanswered": _handler("command", "unanswered"),
    "redeliver": _handler("redeliver", "redeliver"),
    "prune": _handler("sweep", "prune"),
}
