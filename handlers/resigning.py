"""Breakages from before Graft's rules for telling causes apart changed: each is signed anew, and its issue goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from bot.context import Breakage, Forbidden, Gone, NotFound, Validation
from bot.core.render.breakage import LABEL, STATE_LABELS, superseded_body, superseded_text
from bot.core.triage import State, Test, Trunk, sign_again
from bot.core.triage.searching import Hunt
from handlers.bisecting import over
from handlers.desk import Desk

_LOST = (NotFound, Gone, Forbidden, Validation)


async def signed_anew(desk: Desk, rows: Iterable[Breakage], trunk: Trunk) -> dict[str, Breakage]:
    """The breakages by the signature that their failures have now. Those that had several and have one now are one:
    the first that is open goes on, the issues of the others say so.

    Nothing says when the rules changed: each is signed by its last failure's text, which gives what it has where they
    did not. A row is written before anything else is done with it, so that half of it done is done again.
    """
    store = desk.fork.ctx.store
    groups: dict[str, list[Breakage]] = {}
    known = [row for row in rows if row.data.get("signature")]
    signatures = await asyncio.to_thread(lambda: [_signature_of(row, trunk) for row in known])
    for row, signature in zip(known, signatures, strict=True):
        fresh = row
        if signature != row.data["signature"]:
            desk.fork.ctx.log.info("a breakage is signed anew", key=row.key, number=row.number, signature=signature)
            fresh = _renamed(row, signature, trunk)
            await store.save_breakage(fresh)
        groups.setdefault(signature, []).append(fresh)
    found = {}
    for signature, group in groups.items():
        first, *others = sorted(group, key=_precedence)
        for other in others:
            if await _superseded(desk, other, first):
                merged = _joined(first, other, trunk)
                await store.save_breakage(merged)
                first = merged
                await store.save_breakage(_retired(other, first))
        found[signature] = first
    return found


def _signature_of(row: Breakage, trunk: Trunk) -> str:
    old = str(row.data["signature"])
    if row.data.get("sample") is None and trunk.failures(old):  # kept by an older Graft: it may not tell enough
        return old
    return sign_again(row.data)


def _precedence(row: Breakage) -> tuple[int, int]:
    """An open one goes on before one that is mended, and that before one which a person put by: nothing is hidden."""
    state = State(row.state)
    rank = 0 if state.alive else 1 if state is State.FIXED else 2
    return rank, row.number if row.number is not None else 1 << 62


def _renamed(row: Breakage, signature: str, trunk: Trunk) -> Breakage:
    """The row under its new signature, without the tests that fail by another cause by the new rules."""
    data: dict[str, Any] = {**row.data, "signature": signature}
    mine = trunk.failures(signature)
    if mine:
        others = {test for one in trunk.signatures for test in trunk.failures(one)} - set(mine)
        suites = data.get("suites", {})
        data["suites"] = {
            suite: [test for test in tests if Test(suite, test) not in others] for suite, tests in suites.items()
        }
        data["red"] = [pair for pair in data.get("red", []) if Test(*pair) not in others]
    hunt = Hunt.of(data)
    if hunt is not None:
        data["hunt"] = hunt.model_copy(update={"signature": signature}).model_dump(mode="json")
    return replace(row, data=data)


def _joined(row: Breakage, other: Breakage, trunk: Trunk) -> Breakage:
    """The row with the other's tests, as old as the elder of the two; the same where the other one is over."""
    if not State(other.state).alive:
        return row
    data, more = dict(row.data), other.data
    suites = {suite: list(tests) for suite, tests in data.get("suites", {}).items()}
    for suite, tests in more.get("suites", {}).items():
        suites[suite] = list(dict.fromkeys([*suites.get(suite, []), *tests]))
    data["suites"] = suites
    data["tests"] = list(dict.fromkeys(test for tests in suites.values() for test in tests))
    data["red"] = [list(pair) for pair in dict.fromkeys(map(tuple, [*data.get("red", []), *more.get("red", [])]))]
    first, before = data.get("first_bad"), more.get("first_bad")
    if before is not None and trunk.at.get(before, -1) < trunk.at.get(first or "", len(trunk.order)):
        data |= {name: more.get(name) for name in ("first_bad", "last_good", "after")}
        data.pop("span", None)
    return replace(row, data=data)


def _retired(row: Breakage, into: Breakage) -> Breakage:
    """The row of a breakage that is another one's now: kept, since its key and its issue are taken."""
    row = over(row, "it is told as another one now")
    data = {name: value for name, value in row.data.items() if name != "signature"}
    data |= {"merged": into.key, "red": [], "masks": []}
    return replace(row, state=State.DISMISSED.value, data=data)


async def _superseded(desk: Desk, row: Breakage, by: Breakage) -> bool:
    """Say on an open issue where its cause goes on, and close it; False where this can't be done now."""
    if row.number is None or row.number not in desk.open_issues:
        return True
    if desk.silent or by.number is None:
        return False
    github = desk.fork.github
    try:
        issue = desk.open_issues[row.number]
        await desk.comment(row.number, f"<!-- graft:same-as {by.number} -->", superseded_text(by.number))
        await github.update_issue(
            row.number, body=superseded_body(issue.body, by.number), state="closed", state_reason="duplicate"
        )
        wanted = STATE_LABELS[State.DISMISSED.value]
        await desk.label(LABEL, wanted)
        await github.add_labels(row.number, [LABEL, wanted])
        for name in sorted({label.name for label in issue.labels} & set(STATE_LABELS.values()) - {wanted}):
            await github.remove_label(row.number, name)
    except _LOST as error:
        desk.fork.ctx.log.warning("a superseded issue was not closed", issue=row.number, error=str(error))
        return False
    return True
