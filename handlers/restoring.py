"""Breakages that GitHub knows and the store does not: it was lost, or is another one. Their issues make them whole."""

from __future__ import annotations

from collections.abc import Iterable, Set
from datetime import datetime

from bot.context import Breakage, Gone, Issue
from bot.core.render.breakage import LABEL, breakage_data, breakage_keys
from bot.core.triage import Kept
from handlers.fork import Fork

_READ = "breakages:read"


async def restore(fork: Fork) -> None:
    """Read Graft's own issues of breakages, open and closed, once for each store; what it knows already stays as it is.

    What an issue does not hold (any more) is found again when it fails again, by the marker.
    """
    if await fork.note(_READ) is not None:
        return
    try:
        issues = await fork.github.issues((LABEL,), "all")
    except Gone:  # issues are switched off: perhaps not for ever
        return
    made = await adopt(fork, issues, {row.key for row in await fork.ctx.store.breakages(fork.name)})
    if made:
        await fork.enqueue("dashboard", "repository")
        await fork.enqueue("gate_all", "repository")
    await fork.put_note(_READ, {"at": fork.now.isoformat(), "issues": len(issues)})


async def adopt(fork: Fork, issues: Iterable[Issue], known: Set[str]) -> list[Breakage]:
    """Store the breakages of those issues of Graft's whose keys are not known, as where the store is an older copy of
    what it was; gives them.
    """
    made: dict[str, Breakage] = {}
    me = ""
    for issue in sorted(issues, key=lambda issue: (issue.state != "open", issue.number)):
        if not breakage_keys(issue.body).isdisjoint(known):
            continue
        me = me or await fork.login()
        kept = Kept.read(breakage_data(issue.body)) if issue.user.login == me else None
        if kept is None or kept.key in known or kept.key in made:
            continue
        made[kept.key] = _row(fork, kept, issue)
        await fork.ctx.store.save_breakage(made[kept.key])
    if made:
        fork.ctx.log.info("breakages were made whole from their issues", count=len(made))
    return list(made.values())


def _row(fork: Fork, kept: Kept, issue: Issue) -> Breakage:
    state = kept.standing(open_=issue.state == "open", reason=issue.state_reason)
    data = kept.model_dump(mode="json", exclude={"key", "state"})
    tests = dict.fromkeys(test for names in kept.suites.values() for test in names)
    return Breakage(
        key=kept.key,
        repository=fork.name,
        installation=fork.scope.installation,
        state=state.value,
        title=kept.title,
        number=issue.number,
        first_seen=datetime.fromisoformat(kept.opened_at) if kept.opened_at else fork.now,
        last_seen=fork.now if state.alive else issue.closed_at,
        data={**data, "tests": list(tests), "repeat": "", "masks": [], "behind": []},
    )
