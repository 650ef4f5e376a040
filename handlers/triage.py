"""Trunk: one issue for each cause of failure, with its area's owners; closed only when its tests ran and passed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bot.clients.store.models import Breakage, Job
from bot.context import Context
from bot.core.batches import key_of
from bot.core.owners import mentionable, owners_of
from bot.core.render.breakage import LABEL, BreakageFacts, breakage_body, breakage_marker, breakage_title
from bot.core.render.results import SuiteState
from bot.core.render.text import short
from bot.core.signature import signature
from bot.core.types import Level, Outcome
from bot.core.validation import TestResult
from handlers.dashboard import OPEN_BREAKAGE
from handlers.fork import Fork, open_fork
from handlers.people import people
from handlers.results import suite_states, write_check


async def triage(ctx: Context, job: Job) -> None:
    """Job `triage`: judge trunk's newest tested commit, open and close breakages by what its tests say."""
    fork = await open_fork(ctx, job.scope)
    sha = job.payload.get("sha") or (await fork.note("trunk") or {}).get("tip")
    if not sha:
        return
    states = await suite_states(fork, sha=sha, number=None)
    for level in Level:
        if any(state.level is level for state in states):
            await write_check(fork, sha, level, states)
    for state in states:
        if state.report is not None and state.outcome is not None:
            await _judge(fork, sha, state)
    if states and all(state.outcome in (Outcome.PASSED, Outcome.WAIVED) for state in states):
        await fork.put_note("trunk", {**(await fork.note("trunk") or {}), "green": sha})
    await fork.enqueue("dashboard", "repository")
    await fork.enqueue("gate_all", "repository")  # red or mended, or measured: trunk is what every gate looks at


async def _judge(fork: Fork, sha: str, state: SuiteState) -> None:
    assert state.report is not None
    groups: dict[str, list[TestResult]] = {}
    for test in state.report.failures:
        groups.setdefault(test.signature or test.id, []).append(test)
    for key, tests in groups.items():
        await _open(fork, sha, state, key, tests)
    passed = {test.id for test in state.report.tests if test.outcome.proves}
    for row in await fork.ctx.store.breakages(fork.name, OPEN_BREAKAGE):
        data = row.data
        mine = data["suite"] == state.suite and row.key not in {_key(fork, key) for key in groups}
        if mine and data["tests"] and set(data["tests"]) <= passed:
            await _close(fork, sha, row)


def _key(fork: Fork, signature_key: str) -> str:
    return key_of(fork.name, signature_key)


async def _open(fork: Fork, sha: str, state: SuiteState, signature_key: str, tests: Sequence[TestResult]) -> None:
    key = _key(fork, signature_key)
    known = await fork.ctx.store.breakage(fork.name, key)
    old: dict[str, Any] = known.data if known else {}
    first = tests[0]
    who = await people(fork, [])
    owners = owners_of(state.area, fork.config) if state.area else ()
    asked = mentionable(owners, people=who, default=fork.config.default_owner)
    ids = list(dict.fromkeys([*old.get("tests", []), *(test.id for test in tests)]))
    facts = BreakageFacts(
        key=key,
        title=signature(first.message, first.id).title,
        level=state.level.value,
        suite=state.suite,
        area=state.area,
        tests=ids,
        message=first.message,
        first_bad=old.get("first_bad", sha),
        last_good=old.get("last_good") or (await fork.note("trunk") or {}).get("green"),
        first_seen=known.first_seen if known and known.first_seen else fork.now,
        owners=owners,
        mentions=asked.owners,
        repeat=state.report.repeat if state.report else "",
        warnings=asked.warnings,
    )
    labels = [LABEL, f"level:{facts.level}"] + ([f"area:{facts.area}"] if facts.area else [])
    for name in labels:
        await fork.github.ensure_label(name, "b60205" if name == LABEL else "c5def5")
    issue = await fork.github.create_issue(
        breakage_title(facts),
        breakage_body(facts),
        labels=labels,
        assignees=[owner for owner in asked.owners if "/" not in owner],
        marker=breakage_marker(key),
    )
    body = breakage_body(facts)
    if issue.state != "open" or issue.body != body:
        await fork.github.update_issue(issue.number, body=body, state="open")
    row = Breakage(
        key=key,
        repository=fork.name,
        installation=fork.scope.installation,
        state="open",
        title=facts.title,
        number=issue.number,
        first_seen=facts.first_seen,
        last_seen=fork.now,
        data={
            "suite": state.suite,
            "level": facts.level,
            "area": state.area,
            "tests": ids,
            "first_bad": facts.first_bad,
            "last_good": facts.last_good,
            "owners": list(asked.owners),
        },
    )
    await fork.ctx.store.save_breakage(row)


async def _close(fork: Fork, sha: str, row: Breakage) -> None:
    """Each of its tests ran at `sha` and passed: that, and nothing less, closes it."""
    assert row.number is not None
    text = f"Each of its tests ran and passed at {short(sha)}."
    await fork.github.upsert_comment(row.number, f"<!-- graft:fixed {sha} -->", text)
    await fork.github.update_issue(row.number, state="closed", state_reason="completed")
    await fork.ctx.store.save_breakage(replace(row, state="fixed", last_seen=fork.now))
