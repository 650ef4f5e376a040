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


async def remind(desk: Desk, row: Breakage, facts: BreakageFacts) -> Breakage:
    """Remind the owner once after the deadline, and tell those named in the file once after the second."""
    rules, now, data = desk.fork.config.triage, desk.fork.now, dict(row.data)
    if not State(row.state).red or row.number is None or not data.get("opened_at"):
        return row
    age = now - datetime.fromisoformat(data["opened_at"])
    episode = data.get("reopened", 0)
    if age >= rules.remind_after and not data.get("reminded"):
        who = " ".join(f"@{login}" for login in facts.mentions)
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
