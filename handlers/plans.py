"""The plan of a fork: made on what the mirror holds, kept for those who ask about it."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import TypeAdapter

from bot.context import Context, Scope, SymbolCache
from bot.core.types import Plan
from handlers.batches import landed_pull_requests, load_batches
from handlers.fork import FORK, UPSTREAM, Fork
from handlers.planning import make_plan

PLAN = TypeAdapter(Plan)


async def plan_now(fork: Fork) -> Plan:
    """Plan on what the mirror holds, and keep the plan for the commands that ask about it."""
    await load_batches(fork)
    rows = await fork.ctx.store.batches(fork.name)
    decisions = await fork.ctx.store.decisions(fork.name)
    upstream, tip = await fork.tip(UPSTREAM), await fork.tip(FORK)

    def work() -> Plan:
        # what each blob holds is read once, for all forks of this deployment
        with SymbolCache(fork.ctx.settings.data / "symbols.db") as cache:
            return make_plan(
                fork.git,
                upstream=upstream,
                fork=tip,
                config=fork.config,
                pull_requests=landed_pull_requests(rows),
                decisions=decisions,
                now=int(fork.now.timestamp()),
                cache=cache,
                repository=fork.name,
            )

    plan = await asyncio.to_thread(work)
    await fork.put_note("plan", _dump(plan))
    return plan


async def stored_plan(fork: Fork) -> Plan | None:
    """The last plan made for this fork, or None before the first."""
    return await plan_of(fork.ctx, fork.scope)


async def plan_of(ctx: Context, scope: Scope) -> Plan | None:
    """The same where the fork's file can't be read."""
    data = await ctx.store.note(scope.installation, scope.repository, "plan")
    return PLAN.validate_python(data) if data else None


def _dump(plan: Plan) -> Any:
    return PLAN.dump_python(plan, mode="json")
