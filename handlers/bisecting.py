"""The search for a breakage's culprit: runs on trunk's older commits, then inside the bundle that did it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from bot.context import Breakage, GitError, Run
from bot.core.bisect import Ask, Seen, next_step, stated
from bot.core.config import Suite
from bot.core.dispatched import workflow_of
from bot.core.render.text import code, line, plural, short
from bot.core.trailers import parse
from bot.core.triage import Digest, State, Suspect, capacity_of, series_of, suite_of
from bot.core.triage.searching import Hunt, Standing, record_of
from bot.core.turns import Turn
from bot.core.types import Level
from handlers.expanding import publish, take_apart
from handlers.fork import FORK, Fork
from handlers.trunk import read_before, read_runs
from handlers.validate import Target, start_level

_MOST_PROBES = 50
_SHOWN = 12
_DAY = "bisect:day"
_ASKED = "bisect:asked:"


async def why_not(fork: Fork, row: Breakage) -> str | None:
    """Why no search can begin for this breakage; None where one can."""
    hunt = Hunt.of(row.data)
    if hunt is not None and hunt.running:
        return "A search is running already."
    if not row.data.get("after") or not row.data.get("first_bad"):
        return "It is not known after which commit it came: no green run before it, so there is nothing to search."
    if _suite_in(fork, row.data["suite"]) is None:
        return f"{code(row.data['suite'])} is no suite of Graft's: what runs in other CI can't be searched from here."
    return await limit_reached(fork)


async def limit_reached(fork: Fork) -> str | None:
    """Why no further search may begin today; None where one may."""
    limit = fork.config.triage.searches_per_day
    return f"{plural(limit, 'search')} began today: that is the limit." if await _begun_today(fork) >= limit else None


async def count_search(fork: Fork) -> None:
    """Note that one more began today."""
    await fork.put_note(_DAY, {"day": fork.now.date().isoformat(), "count": await _begun_today(fork) + 1})


async def ask(fork: Fork, row: Breakage, *, by: str, end: bool) -> None:
    """Note that a search is wanted, or its end: the job that looks after trunk, and only that, changes breakages."""
    await fork.put_note(f"{_ASKED}{row.key}", {"by": by, "end": end})
    await fork.enqueue("triage", "trunk")


async def answer_asks(fork: Fork, rows: dict[str, Breakage], runs: list[Run]) -> dict[str, Breakage]:
    """Begin and end the searches that were asked for; gives the rows as they are then."""
    scope, store = fork.scope, fork.ctx.store
    fresh = dict(rows)
    for key, asked in (await store.notes(scope.installation, fork.name, _ASKED)).items():
        for signature, row in rows.items():
            if f"{_ASKED}{row.key}" != key:
                continue
            hunt = Hunt.of(row.data)
            if asked["end"] and hunt is not None and hunt.running:
                said = f"stopped by {asked['by']}"
                fresh[signature] = _with(row, hunt.model_copy(update={"standing": Standing.STOPPED, "said": said}))
                await store.save_breakage(fresh[signature])
            elif not asked["end"]:
                fresh[signature] = await start(fork, row, runs, by=asked["by"])
        await store.remove_note(scope.installation, fork.name, key)
    return fresh


async def start(fork: Fork, row: Breakage, runs: list[Run], *, by: str) -> Breakage:
    """Begin a search for this breakage, where one can begin; gives the row."""
    if await why_not(fork, row) is not None:
        return row
    after, first = row.data["after"], row.data["first_bad"]
    try:
        commits = await asyncio.to_thread(fork.git.commits, first, [after])
    except GitError:  # ends of a trunk since rewritten
        return row
    await count_search(fork)
    shas = (after, *(commit.sha for commit in commits))
    suite = row.data["suite"]
    weights, never = _weights(row, shas)
    red = [test for name, test in row.data["red"] if name == suite] or row.data["suites"][suite]
    probes = tuple(red[:_MOST_PROBES])
    before = await read_before(fork, after, runs, level=row.data["level"], series=suite)
    hunt = Hunt(
        signature=row.data["signature"],
        suite=suite,
        level=row.data["level"],
        shas=shas,
        probes=probes,
        record=record_of(before, signature=row.data["signature"], probes=probes),
        by=by,
        started=fork.now.isoformat(),
        before=tuple(run.id for run in runs if run.sha in shas and series_of(run.suite, run.capacity) == suite),
        weights=weights,
        never=never,
        max_runs=fork.config.triage.runs_per_search,
    )
    row = await _guarded(fork, _with(row, hunt), hunt, runs)
    await fork.ctx.store.save_breakage(row)
    return row


def spent_on(runs: Iterable[Run]) -> timedelta:
    """How long runners worked on these runs, as far as they have ended, for a search alone."""
    mine = [run for run in runs if run.turn is Turn.SEARCH and run.started_at and run.finished_at]
    return sum((run.finished_at - run.started_at for run in mine if run.finished_at and run.started_at), timedelta())


def hours(time: timedelta) -> str:
    """A span of time, for people."""
    return f"{time / timedelta(hours=1):.1f} hours"


async def advance(fork: Fork, row: Breakage, runs: list[Run]) -> Breakage:
    """Go on with a search by what its runs told so far; asking for the same run twice is asking once."""
    hunt = Hunt.of(row.data)
    if hunt is None or not hunt.running:
        return row
    if not State(row.state).alive:
        fresh = over(row, "it is mended")
    elif hunt.bundle is None and not await asyncio.to_thread(_on_trunk, fork, hunt.shas[-1]):
        said = "trunk was rewritten, and what was searched is on it no more"
        fresh = _with(row, hunt.model_copy(update={"standing": Standing.STOPPED, "said": said}))
    elif not is_run(fork, hunt.level, hunt.suite):
        said = f"{hunt.suite} is no suite of level {hunt.level} any more"
        fresh = _with(row, hunt.model_copy(update={"standing": Standing.STOPPED, "said": said}))
    else:
        fresh = await _guarded(fork, row, hunt, runs)
    if fresh != row:
        await fork.ctx.store.save_breakage(fresh)
    return fresh


def over(row: Breakage, said: str) -> Breakage:
    """The row with its search ended, since there is nothing to search any more."""
    hunt = Hunt.of(row.data)
    if hunt is None or not hunt.running:
        return row
    return _with(row, hunt.model_copy(update={"standing": Standing.STOPPED, "said": said}), keep=True)


def is_run(fork: Fork, level: str, series: str) -> bool:
    """Whether a suite is still run at that level: a search that asks for it would else wait for ever."""
    named = [one for one in fork.config.validation.of(Level(level)) if one.suite == suite_of(series)]
    return any(one.again() if capacity_of(series) else one.once() for one in named if not one.manual)


def _on_trunk(fork: Fork, sha: str) -> bool:
    try:
        return fork.git.is_ancestor(sha, FORK)
    except GitError:
        return False


def wanted(fork: Fork, row: Breakage) -> bool:
    """Whether a search begins by itself: a new regression with more than one suspect, be they inside one bundle, none
    searched for before.
    """
    triage, suspects = fork.config.triage, row.data.get("suspects", [])
    return (
        triage.bisect == "auto"
        and row.state == State.OPEN
        and row.data.get("kind") == "regression"
        and "hunt" not in row.data
        and "hunt_before" not in row.data
        and (len(suspects) > 1 or any(len(one["carries"]) > 1 for one in suspects))
        and row.number is not None
    )


async def say_waiting(fork: Fork, row: Breakage) -> Breakage:
    """Note on a breakage whose search would begin by itself why it does not yet; gives the row."""
    why = await limit_reached(fork)
    said = f"No search yet: {why} It begins by itself when it may." if why else ""
    if row.data.get("unsearched", "") == said:
        return row
    row = replace(row, data={**row.data, "unsearched": said})
    await fork.ctx.store.save_breakage(row)
    return row


def search_text(data: dict[str, Any]) -> str:
    """The search's section of the issue; empty where there was none."""
    hunt = Hunt.of(data)
    if hunt is None:
        if not data.get("hunt_before"):
            return ""
        before = search_text({"hunt": data["hunt_before"]})
        return f"Of the last time that it broke trunk, not of this one:\n\n{before}"
    where = f"inside {short(hunt.bundle)}" if hunt.bundle else "on trunk"
    span = f"{plural(len(hunt.shas) - 1, 'commit')} {where}"
    parts = [hunt.outer] if hunt.outer else []
    named = ", ".join(_name(hunt, sha) for sha in hunt.culprits)
    if len(hunt.culprits) > 1:
        named = f"one of {named}"
    sure = stated(hunt.confidence)
    used = f"{plural(max(hunt.queued, hunt.heard), 'run')} of at most {hunt.max_runs}"
    text = {
        Standing.RUNNING: f"It searches {span} with {code(hunt.suite)}: {used}. `/bisect stop` ends it.",
        Standing.CULPRIT: f"**Culprit:** {named}, with {sure} confidence, after {used} over {span}.",
        Standing.INCONCLUSIVE: f"**Inconclusive** after {used} over {span}: {line(hunt.said)}.",
        Standing.STOPPED: f"The search over {span} ended without an answer: {line(hunt.said)}.",
    }[hunt.standing]
    if hunt.standing is Standing.INCONCLUSIVE and named:
        text += f" Most is believed of {named} ({sure})."
    parts.append(text)
    if passed_over := _passed_over(hunt):
        parts.append(passed_over)
    if hunt.standing is Standing.CULPRIT and hunt.takes:
        one = hunt.takes[0] if len(hunt.takes) == 1 else None
        said = (
            f"`/rollback` here opens the pull request that takes just upstream {short(one)} back."
            if one
            else ("`/rollback <commit>` here opens the pull request that takes just one of them back.")
        )
        parts.append(said)
    return "\n\n".join(parts)


def _passed_over(hunt: Hunt) -> str:
    """What the search could not try, said so that nobody takes it for cleared."""
    said = []
    if hunt.left:
        apply = "does not apply by itself" if len(hunt.left) == 1 else "do not apply by themselves"
        said.append(f"{_listed(hunt.left)} {apply}")
    dead = [_name(hunt, hunt.shas[place]) for place in hunt.dead if place < len(hunt.shas)]
    if dead:
        more = f" and {len(dead) - _SHOWN} more" if len(dead) > _SHOWN else ""
        said.append(f"with {', '.join(dead[:_SHOWN])}{more} nothing could be judged (no build, or another failure)")
    return f"Skipped: {'; '.join(said)}." if said else ""


def _listed(shas: tuple[str, ...]) -> str:
    more = f" and {len(shas) - _SHOWN} more" if len(shas) > _SHOWN else ""
    return "upstream " + ", ".join(short(sha) for sha in shas[:_SHOWN]) + more


def built_shas(rows: list[Breakage]) -> set[str]:
    """The commits that searches made in the mirror, which GitHub does not know."""
    hunts = [Hunt.of(row.data) for row in rows]
    return {sha for hunt in hunts if hunt is not None and hunt.bundle for sha in hunt.shas[1:] if sha != hunt.bundle}


def _name(hunt: Hunt, sha: str) -> str:
    if hunt.names and sha in hunt.shas[1:]:
        upstream = hunt.names[hunt.shas.index(sha) - 1]
        return f"upstream {short(upstream)}" if upstream else f"what {short(sha)} holds beyond its upstream commits"
    if sha == hunt.landed and len(hunt.takes) == 1:
        return f"{short(sha)}, upstream {short(hunt.takes[0])}"
    return short(sha)


def _suite_in(fork: Fork, series: str) -> Suite | None:
    """The suite of the fork's file as it runs on that capacity; None where it is not there, or not there any more."""
    suites = [one for level in Level for one in fork.config.validation.of(level) if one.suite == suite_of(series)]
    return next((one for suite in suites if (one := suite.again() if capacity_of(series) else suite)), None)


def searchable(fork: Fork, series: str) -> bool:
    """Whether Graft itself runs the suite: only such a one can be run at older commits."""
    return _suite_in(fork, series) is not None


async def _begun_today(fork: Fork) -> int:
    note = await fork.note(_DAY) or {}
    return int(note.get("count", 0)) if note.get("day") == fork.now.date().isoformat() else 0


def _weights(row: Breakage, shas: tuple[str, ...]) -> tuple[tuple[float, ...] | None, tuple[int, ...]]:
    """The suspects' shares as the search's prior, and the places that can't have done it."""
    suspects = [Suspect(**{**one, "evidence": (), "carries": ()}) for one in row.data.get("suspects", [])]
    if len(suspects) >= 20 or not suspects:  # only the first ones are kept: nothing is known of the rest
        return None, ()
    share = {one.sha: one.share for one in suspects}
    floor = 0.2 / len(suspects)
    never = tuple(place for place, sha in enumerate(shas) if place and sha not in share)
    return tuple(share.get(sha, 0.0) + floor for sha in shas[1:]), never


async def _guarded(fork: Fork, row: Breakage, hunt: Hunt, runs: list[Run]) -> Breakage:
    """One step; what git can't do ends this search, and nothing else that looks after trunk."""
    try:
        return await _step(fork, row, hunt, runs)
    except GitError as error:
        said = f"git could not do its part: {str(error)[:300]}"
        return _with(row, hunt.model_copy(update={"standing": Standing.INCONCLUSIVE, "said": said}))


async def _step(fork: Fork, row: Breakage, hunt: Hunt, runs: list[Run]) -> Breakage:
    mine = [run for run in runs if run.sha in hunt.shas and series_of(run.suite, run.capacity) == hunt.suite]
    digests: list[Digest] = await read_runs(fork, mine)
    told = hunt.runs(digests)
    alive = {run.position for run in told if run.seen is not Seen.SKIP}
    dead = tuple(sorted({run.position for run in told} - alive))
    hunt = hunt.model_copy(update={"dead": dead, "heard": len(told)})
    step = await asyncio.to_thread(next_step, search=hunt.search(), runs=told)
    if not isinstance(step, Ask):
        return await _end(fork, row, hunt.ended(step), runs)
    if (
        spent := spent_on(run for run in mine if run.id not in hunt.before)
    ) >= fork.config.triage.runner_time_per_search:
        said = f"more runner time: its runs took {hours(spent)}"
        return _with(row, hunt.model_copy(update={"standing": Standing.INCONCLUSIVE, "said": said}))
    for place in dict.fromkeys(step.positions):
        if hunt.queued >= hunt.max_runs:
            said = f"more runs: {hunt.max_runs} were asked for, and too few of them proved anything"
            return _with(row, hunt.model_copy(update={"standing": Standing.INCONCLUSIVE, "said": said}))
        target = Target(hunt.shas[place], hunt.shas[0])
        created = await start_level(
            fork,
            target,
            Level(hunt.level),
            suites=(suite_of(hunt.suite),),
            again=True,
            turn=Turn.SEARCH,
            capacity=capacity_of(hunt.suite),
        )
        hunt = hunt.model_copy(update={"queued": hunt.queued + len(created)})
    return _with(row, hunt)


async def _end(fork: Fork, row: Breakage, hunt: Hunt, runs: list[Run]) -> Breakage:
    """An answer: where it is one commit that takes in several upstream commits, the search goes on inside it."""
    if hunt.standing is Standing.CULPRIT and hunt.bundle is None and len(hunt.culprits) == 1:
        inside = await _inside(fork, hunt)
        if inside is not None:
            return await _step(fork, _with(row, inside), inside, runs)
        hunt = await _single(fork, hunt)
    return _with(row, hunt)


async def _inside(fork: Fork, hunt: Hunt) -> Hunt | None:
    """The search inside a bundle: its upstream commits applied again one by one on its parent, in the mirror alone."""
    (sha,) = hunt.culprits
    suite = _suite_in(fork, hunt.suite)
    if suite is None or workflow_of(suite.runner[-1]) is not None:  # GitHub does not know what is in the mirror alone
        return None
    try:
        apart = await take_apart(fork, await asyncio.to_thread(fork.git.commit, sha))
    except GitError as error:  # the culprit on trunk is known all the same
        fork.ctx.log.warning("a bundle was not taken apart", commit=sha, error=str(error))
        return None
    if apart is None:
        return None
    await asyncio.to_thread(publish, fork.git, apart)
    return hunt.model_copy(
        update={
            "bundle": sha,
            "shas": (apart.line.base, *apart.line.commits),
            "names": apart.upstream,
            "left": apart.left,
            "dead": (),
            "standing": Standing.RUNNING,
            "weights": None,
            "never": (),
            "culprits": (),
            "confidence": 0.0,
            "queued": 0,
            "outer": f"On trunk it came with {short(sha)} ({stated(hunt.confidence)} confidence), which takes in "
            f"{plural(apart.count, 'upstream commit')}: `/rollback` on its pull request takes all of them back.",
        }
    )


async def _single(fork: Fork, hunt: Hunt) -> Hunt:
    """A culprit on trunk that is one upstream commit, as bundles leave them that landed by rebase: it is named too."""
    commit = await asyncio.to_thread(fork.git.commit, hunt.culprits[0])
    picks = parse(commit.message).picks
    return hunt.model_copy(update={"takes": picks, "landed": commit.sha}) if len(picks) == 1 else hunt


def _with(row: Breakage, hunt: Hunt, *, keep: bool = False) -> Breakage:
    """The row with its search, and the state that follows from it."""
    data = {**row.data, "hunt": hunt.model_dump(mode="json")}
    if keep or row.state == State.FLAKY:
        return replace(row, data=data)
    state = {Standing.RUNNING: State.BISECTING, Standing.CULPRIT: State.CULPRIT_KNOWN}.get(hunt.standing, State.OPEN)
    return replace(row, data=data, state=state.value)
