"""Trunk: one issue for each cause of failure, with owners and suspects; closed only when its tests ran and passed."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from bot.context import Breakage, Context, Issue, Job, Run
from bot.core.render.breakage import LABEL
from bot.core.triage import Hand, Ineligible, State, Trunk, series_of, survey
from bot.core.turns import Turn
from bot.core.types import Level, Mode, Outcome
from handlers.bisecting import advance, answer_asks, built_shas, over, say_waiting, start, wanted
from handlers.breakages import without_issue, write
from handlers.desk import Desk
from handlers.fork import Fork, open_fork
from handlers.measuring import go_on
from handlers.remembering import remembered_of
from handlers.repeating import repeat_spoilt
from handlers.resigning import signed_anew
from handlers.restoring import adopt, restore
from handlers.results import suite_states, write_check
from handlers.trunk import read_trunk
from handlers.validate import SECOND
from handlers.withdrawing import withdraw

NEW_ISSUES = 20  # in one job: GitHub takes some 80 new things a minute, and others write too
ISSUES_A_DAY = 60  # a trunk that breaks in more ways than this at once is one event; the dashboard says how many wait
_TODAY = "trunk:opened"
_TOLD_INFRA = timedelta(hours=24)


async def triage(ctx: Context, job: Job) -> None:
    """Job `triage`: read trunk's history anew, and bring checks, breakages and their issues to what it says.

    All is derived from trunk's order and the stored runs, so reports may come late, twice or in any order.
    """
    fork = await open_fork(ctx, job.scope)
    await restore(fork)
    runs = await fork.ctx.store.trunk_runs(fork.name)
    sha = job.payload.get("sha") or (await fork.note("trunk") or {}).get("tip")
    rows = await fork.ctx.store.breakages(fork.name)
    made = built_shas(rows)
    await _checks(fork, runs, sha, made=made)
    if not runs:
        return
    trunk = await read_trunk(fork, runs)
    if sha and sha not in trunk.at and sha not in made:
        await fork.fetch_fork()
        trunk = await read_trunk(fork, runs)
    more = False
    if await fork.halted() is None:
        more = await _breakages(fork, trunk, runs, rows)
        await go_on(fork)
        await withdraw(fork)
    await _note_green(fork, trunk, runs)
    await _note_spoilt(fork, trunk, runs)
    await repeat_spoilt(fork, trunk, runs)
    await fork.enqueue("dashboard", "repository")
    await fork.enqueue("gate_all", "repository")  # red or mended, or measured: trunk is what every gate looks at
    if more:
        await fork.enqueue("triage", "trunk", dict(job.payload))


async def _checks(fork: Fork, runs: list[Run], sha: str | None, *, made: set[str]) -> None:
    """The checks of each commit of which something was heard since the last time: one job may stand for many runs."""
    note = await fork.note("triage") or {}
    until = datetime.fromisoformat(note["until"]) if note.get("until") else None
    heard = [run for run in runs if run.finished_at and (until is None or run.finished_at > until)]
    shas = dict.fromkeys([*([sha] if sha else []), *(run.sha for run in heard)])
    for one in [one for one in shas if one not in made][:50]:
        states = await suite_states(fork, sha=one, number=None)
        for level in Level:
            if any(state.level is level for state in states):
                await write_check(fork, one, level, states)
    if heard:
        newest = max(run.finished_at for run in heard if run.finished_at)
        await fork.put_note("triage", {**note, "until": newest.isoformat()})


async def _breakages(fork: Fork, trunk: Trunk, runs: list[Run], stored: list[Breakage]) -> bool:
    """Bring every breakage to what trunk says; True where issues are left to be opened."""
    desk = Desk(fork, await _open_issues(fork, stored), silent=fork.config.mode is Mode.OBSERVE)
    desk.keys = {row.key for row in stored}
    found = await adopt(fork, desk.open_issues.values(), desk.keys)
    desk.keys |= {row.key for row in found}
    rows = await answer_asks(fork, await signed_anew(desk, [*stored, *found], trunk), runs)
    rows = {signature: await advance(fork, row, runs) for signature, row in rows.items()}
    desk.rows = dict(rows)
    remembered = {signature: await remembered_of(desk, row, trunk) for signature, row in rows.items()}
    numbers = {signature: row.number for signature, row in rows.items() if row.number is not None}
    opened, began, left = 0, False, 0
    may_open = min(NEW_ISSUES, ISSUES_A_DAY - await _opened_today(fork))
    verdicts = await asyncio.to_thread(survey, trunk, remembered)
    # new ones first: the others name their issues
    for verdict in sorted(verdicts, key=lambda verdict: verdict.finding.signature in rows):
        row = rows.get(verdict.finding.signature)
        if row is not None and row.number is not None and remembered[verdict.finding.signature].hand is Hand.DELETED:
            row = without_issue(row)
        if row is not None and verdict.step.state is not None and not verdict.step.state.alive:
            dismissed = verdict.step.state is State.DISMISSED
            row = over(row, "a person closed the issue" if dismissed else "it is mended")
        untold = row is None or (row.number is None and verdict.step.state is not None and verdict.step.state.alive)
        if untold and opened >= may_open:
            left += 1
            if row is None:
                continue
        held = untold and opened >= may_open
        written = await write(desk, verdict, row=row, trunk=trunk, numbers=numbers, held=held)
        opened += row is None or (untold and written.number is not None)
        desk.rows[verdict.finding.signature] = written
        if written.number is not None:
            numbers[verdict.finding.signature] = written.number
        if not desk.silent and wanted(fork, written):
            searched = await start(fork, written, runs, by="Graft")
            began = (searched if searched is not written else await say_waiting(fork, written)) is not written or began
    today = await _opened_today(fork) + opened
    await fork.put_note(_TODAY, {"day": fork.now.date().isoformat(), "opened": today, "waiting": left})
    return began or (left > 0 and today < ISSUES_A_DAY)


async def _opened_today(fork: Fork) -> int:
    note = await fork.note(_TODAY) or {}
    return int(note["opened"]) if note.get("day") == fork.now.date().isoformat() else 0


async def _open_issues(fork: Fork, rows: list[Breakage]) -> dict[int, Issue]:
    """The open issues of breakages by number; none asked for where none was ever opened."""
    if not rows:
        return {}
    return {issue.number: issue for issue in await fork.github.issues((LABEL,))}


async def _note_green(fork: Fork, trunk: Trunk, runs: list[Run]) -> None:
    """Keep trunk's newest commit at which all that ran passed, L1 whole among it; an older one never replaces it."""
    suites = [suite for suite in fork.config.validation.l1 if not suite.manual]
    wanted = {(Level.L1.value, suite.suite) for suite in suites}
    wanted |= {(Level.L1.value, series_of(suite.suite, SECOND)) for suite in suites if suite.second}
    said: dict[str, dict[tuple[str, str], set[str | None]]] = {}
    for run in runs:
        if run.turn is not Turn.SEARCH and run.outcome not in (Outcome.INFRA, Outcome.CANCELLED):
            key = (run.level, series_of(run.suite, run.capacity))
            said.setdefault(run.sha, {}).setdefault(key, set()).add(run.outcome)
    for sha in reversed(trunk.order):
        outcomes = said.get(sha, {})
        # one run of a suite that failed there outweighs those that passed
        good = all(words <= {Outcome.PASSED, Outcome.WAIVED} for words in outcomes.values())
        if outcomes and wanted <= set(outcomes) and good:
            await fork.change_note("trunk", partial(_with_green, sha))
            return


def _with_green(sha: str, known: Any) -> dict[str, Any]:
    return {**(known or {}), "green": sha}


async def _note_spoilt(fork: Fork, trunk: Trunk, runs: list[Run]) -> None:
    """Keep what of trunk's runs of late tells no cause: no breakage comes of it, and it is said on the dashboard.

    The machines' failures, and what other CI ended with and did not explain.
    """
    ended = {run.id: run for run in runs}
    since = fork.now - _TOLD_INFRA
    infra, unknown = [], []
    for one in trunk.digests:
        run = ended.get(one.run)
        if run is None or run.finished_at is None or run.finished_at < since:
            continue
        told = {"sha": one.sha, "suite": one.suite, "judged": one.judged}
        if one.infra:
            infra.append({**told, "why": one.infra[0][:200]})
        if one.unknown:
            green = run.outcome in (Outcome.PASSED, Outcome.OMITTED)
            kind = Ineligible.NOTHING_PROVED if green else Ineligible.CAUSE_UNKNOWN
            unknown.append({**told, "why": f"{kind.value}: {one.unknown[:200]}"})
    for key, found in (("trunk:infra", infra), ("trunk:unknown", unknown)):
        if (await fork.note(key) or []) != found:
            await fork.put_note(key, found[-200:])
