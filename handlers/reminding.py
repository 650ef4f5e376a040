"""Remind a breakage's owner after the deadline, and tell those whom the file names after the second."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bot.context import Breakage
from bot.core.owners import mentionable
from bot.core.render.breakage import BreakageFacts
from bot.core.render.text import code
from bot.core.triage import State
from handlers.desk import Desk


def red_since(row: Breakage) -> datetime | None:
    """Since when somebody is to mend it; None where nobody is: it is over, or comes and goes."""
    told = row.data.get("red_since") or row.data.get("opened_at")
    return datetime.fromisoformat(told) if told and State(row.state).red else None


async def remind(desk: Desk, row: Breakage, facts: BreakageFacts) -> Breakage:
    """Remind the owner, and who was assigned since, once after the deadline; tell those named in the file once after
    the second. Each time that it turns red has its own, in comments of its own: one that is renewed is heard by nobody.
    """
    rules, now, data = desk.fork.config.triage, desk.fork.now, dict(row.data)
    since = red_since(row)
    if since is None or row.number is None:
        return row
    age = now - since
    episode = f"{since:%Y-%m-%dT%H:%M:%S}"
    if age >= rules.remind_after and not data.get("reminded"):
        who = " ".join(f"@{login}" for login in await _asked(desk, row.number, facts))
        text = f"{who} this has been open for {age.days} days and waits for you."
        if not who:
            text = (
                f"This has been open for {age.days} days, and nobody can be asked: its text says whom the file names."
            )
        await desk.comment(row.number, f"<!-- graft:reminder {episode} -->", text)
        data["reminded"] = now.isoformat()
    if age >= rules.escalate_after and not data.get("escalated") and rules.escalate_to:
        told = mentionable(rules.escalate_to, people=await desk.people(), default=desk.fork.config.default_owner)
        who = " ".join(f"@{login}" for login in told.owners)
        owners = ", ".join(code(owner) for owner in facts.owners) or "nobody"
        text = f"{who} this has been open for {age.days} days. Its owner: {owners}.".strip()
        await desk.comment(row.number, f"<!-- graft:escalation {episode} -->", text)
        data["escalated"] = now.isoformat()
    return replace(row, data=data)


async def _asked(desk: Desk, number: int, facts: BreakageFacts) -> list[str]:
    issue = await desk.issue(number)
    assigned = [user.login for user in issue.assignees] if issue is not None else []  # GitHub takes its own people only
    return list(dict.fromkeys([*facts.mentions, *assigned]))
