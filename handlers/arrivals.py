"""What a webhook asks to be looked at again: pushes, pull requests that moved or closed, issues, re-run requests."""

from __future__ import annotations

from datetime import UTC, datetime

from bot.context import Context, Job, NotFound
from bot.core.heads import OPENED, Seen
from bot.core.render.text import marker
from bot.core.turns import Turn
from bot.core.types import Level
from handlers.affording import affordable
from handlers.asked import see_head
from handlers.batches import batch_of
from handlers.fork import NotAFork, open_fork
from handlers.validate import start_level, stranger, target_of


async def pushed(ctx: Context, job: Job) -> None:
    """Job `pushed`: the fork's main branch moved: upstream's plan, trunk's tests and every open gate are looked at.

    A push to the upstream repository itself, where the App is installed there too, asks its forks to ingest.
    """
    try:
        fork = await open_fork(ctx, job.scope)
    except NotAFork:
        await _upstream_moved(ctx, job)
        return
    ref = str(job.payload.get("ref", ""))
    if ref == f"refs/heads/{fork.config.fork.branch}":
        await fork.enqueue("ingest", "repository")
        await fork.enqueue("validate_trunk", "trunk")
        await fork.enqueue("gate_all", "repository")


async def _upstream_moved(ctx: Context, job: Job) -> None:
    for scope in await ctx.store.repositories():
        if scope.repository == job.repository:
            continue
        try:
            fork = await open_fork(ctx, scope)
        except (NotAFork, NotFound):
            continue
        if fork.config.upstream.repository == job.repository:
            await fork.enqueue("ingest", "repository")


async def pull_moved(ctx: Context, job: Job) -> None:
    """Job `pull_moved`: a pull request was opened or pushed to; its head is kept for commands, with GitHub's time."""
    number = int(job.payload["number"])
    if (head := _head(job)) is not None:
        await see_head(ctx, job.scope, number, head)
    fork = await open_fork(ctx, job.scope)
    await fork.enqueue("validate", f"#{number}", {"number": number})
    await fork.enqueue("gate", f"#{number}", {"number": number})
    if job.payload.get("sender") != await fork.login() and await batch_of(fork, number) is not None:
        await fork.enqueue("ingest", "repository")  # a person pushed to a branch of Graft's, or opened it again


def _head(job: Job) -> Seen | None:
    """The head that the event speaks of, with GitHub's time of it; where that can't be read, ours, which is later."""
    sha = str(job.payload.get("sha", ""))
    if not sha:
        return None
    before = OPENED if job.payload.get("action") == "opened" else str(job.payload.get("before", ""))
    try:
        at = datetime.fromisoformat(str(job.payload.get("at")))
        return Seen(sha, at if at.tzinfo else at.replace(tzinfo=UTC), before)
    except ValueError:
        return Seen(sha, datetime.fromisoformat(job.payload["received_at"]), before)


async def pull_closed(ctx: Context, job: Job) -> None:
    """Job `pull_closed`: merged or given up: its runs end, and the plan is made anew."""
    number = int(job.payload["number"])
    fork = await open_fork(ctx, job.scope)
    await fork.enqueue("validate", f"#{number}", {"number": number})
    await fork.enqueue("ingest", "repository")


async def issue_moved(ctx: Context, job: Job) -> None:
    """Job `issue_moved`: an issue may halt Graft, or may have been the halt: every gate is looked at again."""
    fork = await open_fork(ctx, job.scope)
    await fork.enqueue("gate_all", "repository")
    await fork.enqueue("triage", "trunk")
    await fork.enqueue("dashboard", "repository")


async def rerun(ctx: Context, job: Job) -> None:
    """Job `rerun`: someone asked on a check's page that it runs again."""
    fork = await open_fork(ctx, job.scope)
    name = str(job.payload.get("check", ""))
    if not name.startswith("graft/"):
        return
    level = next((level for level in Level if name == f"graft/{level.value}"), None)
    for pull in await fork.github.pulls_of_commit(str(job.payload["sha"])):
        if pull.state != "open" or pull.head.sha != job.payload["sha"]:
            continue
        if level is not None and await stranger(fork, pull) is None:
            named = tuple(suite.suite for suite in fork.config.validation.of(level) if not suite.manual)
            allowed, refused = await affordable(fork, level, named)
            if refused:
                hidden = marker(f"gpu-budget {level.value}")
                await fork.github.upsert_comment(pull.number, hidden, f"{hidden}\nNot run again. {refused}")
            if allowed:
                await start_level(fork, target_of(pull), level, suites=allowed, again=True, turn=Turn.COMMAND)
        await fork.enqueue("results", f"#{pull.number}", {"number": pull.number})
