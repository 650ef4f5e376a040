"""The refs that Graft makes in its mirror of a fork, and what ends each: a ref keeps commits that nothing else names.

| ref | made for | ends |
|---|---|---|
| `refs/graft/upstream`, `refs/graft/fork` | the two main branches | never |
| `refs/graft/rewritten` | upstream rewritten, until it is followed or gone | with that (`rewritten`) |
| `refs/graft/branches/*` | branches of Graft's on GitHub | with the branch: a fetch prunes them |
| `refs/graft/pull/<n>` | the head of a pull request | once it is not open any more |
| `refs/graft/source/<sha>` | what a run needs, or a search made | once no open head, run or search has it |

They are told anew from what is open, at each sweep, so that a crash leaves nothing behind for long. Whoever needs one
that is gone fetches it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.context import GitError, Pull, RunState
from bot.core.triage.searching import Hunt
from handlers.fork import Fork
from handlers.gate import GROUPS
from handlers.measuring import running_hunts

PULL, SOURCE = "refs/graft/pull/", "refs/graft/source/"


async def forget_refs(fork: Fork, pulls: Sequence[Pull]) -> int:
    """Remove what belongs to no pull request of `pulls` (the open ones), to no unfinished run and to no running search;
    gives how many were removed.
    """
    # listed first: what comes meanwhile is not among them
    there = await asyncio.to_thread(_listed, fork)
    if not there:
        return 0
    live = {f"{PULL}{pull.number}" for pull in pulls} | {f"{SOURCE}{sha}" for sha in await _needed(fork, pulls)}
    ended = {ref: sha for ref, sha in there.items() if ref not in live}
    if ended:
        try:
            await asyncio.to_thread(fork.git.drop_refs, ended)
        except GitError as error:  # one of them moved: the next sweep looks again
            fork.ctx.log.info("refs were not removed", count=len(ended), error=str(error))
            return 0
    return len(ended)


def _listed(fork: Fork) -> dict[str, str]:
    return fork.git.refs(PULL) | fork.git.refs(SOURCE)


async def _needed(fork: Fork, pulls: Sequence[Pull]) -> set[str]:
    """The commits that somebody works with."""
    store = fork.ctx.store
    needed = {pull.head.sha for pull in pulls} | set(await fork.note(GROUPS) or {})
    needed |= {run.sha for run in await store.runs(fork.name, states=(RunState.QUEUED, RunState.LEASED), capacity=None)}
    for row in await store.breakages(fork.name):
        hunt = Hunt.of(row.data)
        if hunt is not None and hunt.running:
            needed.update(hunt.shas)
    for metric in await running_hunts(fork):
        needed.update(metric.shas)
    return needed
