"""Which failures of a pull request are trunk's own: equal to an open breakage that its base already had."""

from __future__ import annotations

import asyncio

from bot.context import Git, GitError
from bot.core.failure_class import KnownCause
from bot.core.triage import State
from handlers.fork import Fork

_ALIVE = [state.value for state in State if state.alive]


async def known_causes(fork: Fork, base: str) -> dict[str, KnownCause]:
    """By signature, the open breakage with that cause, and whether the change's base has it."""
    found = {}
    for row in await fork.ctx.store.breakages(fork.name, _ALIVE):
        signature, first = row.data.get("signature"), row.data.get("first_bad")
        if not signature:
            continue
        name = f"#{row.number}" if row.number is not None else f"breakage {row.key}, which has no issue yet"
        held = await asyncio.to_thread(_holds, fork.git, base, first) if first else None
        found[signature] = KnownCause(name, row.state == State.FLAKY, held)
    return found


def _holds(git: Git, base: str, first_bad: str) -> bool | None:
    try:
        if any(git.resolve(f"{sha}^{{commit}}") is None for sha in (base, first_bad)):
            return None
        return git.is_ancestor(first_bad, base)
    except GitError:
        return None
