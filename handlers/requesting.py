"""Ask the owners of areas for their L3 sign-off once the cheaper levels passed, and remind them."""

from __future__ import annotations

from datetime import datetime, timedelta

from bot.core.gate import GateFacts, GateReason, GateResult, ReasonCode
from bot.core.owners import mentionable, owners_of
from bot.core.render.request import REQUEST, Wanted, reminder_body, request_body
from bot.core.render.text import marker
from bot.core.signoff import declared
from bot.core.types import Decision, Level
from handlers.fork import Fork

PATIENCE = timedelta(days=2)
REMINDERS = 3


async def request_sign_offs(fork: Fork, number: int, facts: GateFacts, result: GateResult) -> None:
    """Keep the request of a pull request up to date; nothing is asked before L1 and L2 passed on this head."""
    key = f"l3:{number}"
    asked = await fork.note(key)
    wanted = _wanted(fork, facts, result)
    if not wanted or facts.pull.draft or facts.halted is not False or not _cheaper_passed(result):
        if asked and not wanted and result.areas:
            await fork.github.upsert_comment(
                number, marker(REQUEST), request_body(head=result.head, wanted=(), deadline=fork.now)
            )
            await fork.put_note(key, None)
        return
    if not asked or asked["head"] != result.head:
        asked = {"head": result.head, "at": fork.now.isoformat()}
        await fork.put_note(key, asked)
    since = datetime.fromisoformat(asked["at"])
    body = request_body(head=result.head, wanted=wanted, deadline=since + PATIENCE)
    await fork.github.upsert_comment(number, marker(REQUEST), body)
    nth = min(REMINDERS, (fork.now - since) // PATIENCE)
    if nth > asked.get("reminded", 0):
        text = reminder_body(head=result.head, wanted=wanted, deadline=fork.now + PATIENCE, nth=nth)
        await fork.github.upsert_comment(number, marker(f"l3-reminder {result.head[:12]} {nth}"), text)
        await fork.put_note(key, {**asked, "reminded": nth})


def _wanted(fork: Fork, facts: GateFacts, result: GateResult) -> tuple[Wanted, ...]:
    found = []
    for leaf in result.missing:
        if leaf.code is ReasonCode.SIGNOFF:
            asked = mentionable(
                owners_of(leaf.key, fork.config), people=facts.people, default=fork.config.default_owner
            )  # fmt: skip
            workload = dict.fromkeys(f"{suite.suite}: {metric}" for suite, metric in declared(leaf.key, fork.config))
            found.append(Wanted(leaf.key, asked.owners, tuple(workload), leaf.command or "", asked.warnings))
    return tuple(found)


def _cheaper_passed(result: GateResult) -> bool:
    """True where each level below L3 that is required was passed."""
    below = {Level.L1.value, Level.L2.value}
    return all(one.decision is Decision.ALLOW for one in _levels(result.tree) if one.key in below)


def _levels(node: GateReason) -> list[GateReason]:
    if node.code in (ReasonCode.LEVEL, ReasonCode.NO_SUITE):
        return [node]
    return [found for child in node.children for found in _levels(child)]
