"""What is remembered of a breakage when trunk is read anew: how it stood, and what people did to its issue since."""

from __future__ import annotations

from bot.context import Breakage
from bot.core.render.breakage import LABEL
from bot.core.triage import Hand, Known, Remembered, State, Test, Trunk
from handlers.desk import Desk
from handlers.gone import gone_tests, parted_at


async def remembered_of(desk: Desk, row: Breakage, trunk: Trunk) -> Remembered:
    """What triage's core needs of a stored breakage, with what a person did to its issue."""
    data, state = row.data, State(row.state)
    gone = await gone_tests(desk.fork, trunk, row) if state.alive else {}
    known = Known(
        signature=data["signature"],
        red=frozenset(Test(suite, test) for suite, test in data.get("red", [])),
        first_red=data.get("first_bad"),
        last_green=data.get("last_good") or data.get("after"),
        flaky=state is State.FLAKY,
        gone=frozenset(gone),
        renamed=frozenset(test for test, passed in gone.items() if passed),
        parted=await parted_at(desk.fork, trunk, row) if state.alive else None,
    )
    hand = await _hand_of(desk, row, failing=bool(trunk.failures(data["signature"])))
    return Remembered(known, state, data.get("closed_at"), hand, settled=len(data.get("deleted_issues", [])) > 1)


async def _hand_of(desk: Desk, row: Breakage, *, failing: bool) -> Hand:
    """What others did to the issue since Graft last wrote it."""
    state = State(row.state)
    if row.number is None:
        return Hand.DELETED if state is State.DISMISSED else Hand.NOTHING  # else there never was one
    if not state.alive and row.number in desk.open_issues:
        return Hand.REOPENED
    if row.number in desk.open_issues or not (state.alive or (state is State.DISMISSED and failing)):
        return Hand.NOTHING
    issue = await desk.issue(row.number)
    if issue is None:
        return Hand.NOTHING if await desk.switched_off() else Hand.DELETED
    if not state.alive:
        return Hand.NOTHING
    if issue.number != row.number:
        return Hand.DISMISSED  # somebody moved it to another repository, where GitHub's answer leads
    if issue.state == "open":
        if not desk.silent:  # its label was taken off, by which it is listed and found again
            await desk.label(LABEL)
            await desk.fork.github.add_labels(row.number, [LABEL])
        return Hand.NOTHING
    return Hand.DISMISSED if issue.state_reason in ("not_planned", "duplicate") else Hand.CLOSED
