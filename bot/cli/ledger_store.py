"""The ledger of a running deployment: read back from GitHub and git after a loss, or held against them."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bot.clients.store import Scope
    from bot.context import Context
    from bot.core.types import Ledger
    from bot.settings import Settings
    from handlers.fork import Fork


@dataclass(frozen=True, slots=True)
class Reread:
    """One fork's ledger as git and GitHub alone tell it, and how many batches and decisions stood there."""

    repository: str
    batches: int
    decisions: int
    ledger: Ledger


async def rebuild(settings: Settings, log: Any, only: str | None) -> list[Reread]:
    """Bring back into the store what GitHub and git hold of each fork (or of one), and plan anew."""
    from bot.context import open_context
    from handlers.batches import restore
    from handlers.fork import open_fork
    from handlers.plans import plan_now

    found = []
    async with open_context(settings, log) as context:
        for scope in await _scopes(context, only):
            fork = await open_fork(context, scope)
            restored = await restore(fork)
            await fork.fetch_fork()
            await fork.fetch_upstream()
            plan = await plan_now(fork)
            found.append(Reread(scope.repository, restored.batches, restored.decisions, plan.ledger))
    return found


async def compare(settings: Settings, log: Any, only: str | None) -> dict[str, list[str]]:
    """What the store says and git with GitHub do not, by fork; nothing is changed."""
    from bot.clients.store import Store
    from bot.context import open_context
    from handlers.batches import restore
    from handlers.fork import open_fork

    problems = {}
    async with open_context(settings, log) as context:
        for scope in await _scopes(context, only):
            fork = await open_fork(context, scope)
            await fork.fetch_fork()
            await fork.fetch_upstream()
            kept = await _ledger(fork)
            with tempfile.TemporaryDirectory() as folder:
                store = await Store.open(f"sqlite:///{Path(folder) / 'graft.db'}")
                try:
                    afresh = await open_fork(replace(context, store=store), scope)
                    await restore(afresh)
                    told = await _ledger(afresh, plan_from=fork)
                finally:
                    await store.close()
            problems[scope.repository] = differences(kept, told)
    return problems


def differences(kept: Ledger, told: Ledger) -> list[str]:
    """One line for each commit, and each pin, of which the two do not say the same."""
    before = {entry.sha: entry.disposition.value for entry in kept.entries}
    after = {entry.sha: entry.disposition.value for entry in told.entries}
    found = [
        f"{sha[:12]} is {before.get(sha, 'unknown')} in the store and {after.get(sha, 'unknown')} by git and GitHub"
        for sha in dict.fromkeys([*before, *after])
        if before.get(sha) != after.get(sha)
    ]
    for name in ("pin", "frontier"):
        one, other = getattr(kept, name), getattr(told, name)
        if one != other:
            found.append(
                f"the {name} is {(one or 'none')[:12]} by the store and {(other or 'none')[:12]} by git and GitHub"
            )
    return found


async def _ledger(fork: Fork, *, plan_from: Fork | None = None) -> Ledger:
    from handlers.batches import landed_pull_requests
    from handlers.fork import FORK, UPSTREAM
    from handlers.planning import read_ledger
    from handlers.plans import stored_plan

    plan = await stored_plan(plan_from or fork)
    return await asyncio.to_thread(
        read_ledger,
        fork.git,
        upstream=await fork.tip(UPSTREAM),
        fork=await fork.tip(FORK),
        config=fork.config,
        pull_requests=landed_pull_requests(await fork.ctx.store.batches(fork.name)),
        decisions=await fork.ctx.store.decisions(fork.name),
        now=int(fork.now.timestamp()),
        plan=plan,
        repository=fork.name,
    )


async def _scopes(context: Context, only: str | None) -> list[Scope]:
    """The forks that the store knows, or after its loss those in which GitHub says that the App is installed.

    Raises ValueError where there is none.
    """
    from bot.clients.github import NotFound
    from handlers.fork import CONFIG_PATH
    from handlers.register import register

    known = await context.store.repositories()
    if not known or (only and only not in {scope.repository for scope in known}):
        now = context.now()
        job = await context.store.enqueue("register", "everywhere", {}, installation=0, repository="", now=now)
        await register(context, job)
        known = await context.store.repositories()
    forks = []
    for scope in (scope for scope in known if only in (None, scope.repository)):
        try:
            held = await context.github.repository(scope.installation, scope.repository).file(CONFIG_PATH, None)
        except NotFound:
            continue
        if held is not None:
            forks.append(scope)
    if not forks:
        what = f"{only} is not among" if only else "there is no fork with a .github/graft.yml among"
        raise ValueError(f"{what} the {len(known)} repositories in which the App is installed: install it there first")
    return forks
