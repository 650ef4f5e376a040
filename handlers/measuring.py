"""The search for the commit that moved a metric of trunk: each value is held against one of the good end beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from bot.context import Forbidden, GitError, NotFound, Run, RunState
from bot.core.batches import key_of
from bot.core.bisect import Ask, stated
from bot.core.config import Suite
from bot.core.measured import Value, budget_of, machine, over, values
from bot.core.render.answers import Said
from bot.core.render.text import code, line, marker, plural, short
from bot.core.triage.measuring import MetricHunt, Place, Round
from bot.core.triage.searching import Standing
from bot.core.turns import Turn
from bot.core.types import Level, Outcome
from bot.core.validation import Report
from handlers.asked import Asked
from handlers.bisecting import count_search, hours, is_run, limit_reached, spent_on
from handlers.expanding import publish, take_apart
from handlers.fork import Fork
from handlers.trunk import trunk_order
from handlers.validate import Target, start_level

_HUNT, _STOP = "bisect-metric:", "bisect-metric-stop:"
_LOOKED_AT = 200  # runs of trunk
_NOTHING_SAID = (Outcome.INFRA, Outcome.CANCELLED)


async def bisect_metric(asked: Asked, target: str, *, stop: bool) -> Said:
    """`/bisect <suite>#<metric>`: where trunk's newest value breaks its budget against an older one, begin the search
    between the two; or end it.
    """
    fork = asked.fork
    name, _, wanted = target.partition("#")
    metric, _, kernel = wanted.partition("@")
    found = [
        (level, s) for level in Level for s in fork.config.validation.of(level) if s.suite == name and not s.manual
    ]
    if not found:
        return asked.refused(f"{code(name)} is no suite that runs by itself.")
    level, suite = found[0]
    key = key_of(fork.name, name, wanted)
    hunt = await _hunt(fork, key)
    if stop:
        if hunt is None or not hunt.running:
            return asked.refused("No search is running there.")
        await fork.put_note(_STOP + key, {"by": asked.author})
        await fork.enqueue("triage", "trunk")
        return asked.done("The search ends; what it has waiting or running is withdrawn.")
    if hunt is not None and hunt.running:
        return asked.refused(f"A search is running already; how it stands is told on #{hunt.told}.")
    if (problem := await limit_reached(fork)) is not None:
        return asked.refused(problem)
    span = await _span(fork, level, suite, metric, kernel or None)
    if isinstance(span, str):
        return asked.refused(span)
    place, good, bad = span
    try:
        commits = await asyncio.to_thread(fork.git.commits, bad, [good])
    except GitError as error:
        return asked.refused(
            f"git can't tell what lies between {short(good)} and {short(bad)}: {line(str(error), 200)}"
        )
    hunt = MetricHunt(
        suite=name,
        level=level.value,
        place=place,
        shas=(good, *(commit.sha for commit in commits)),
        by=asked.author,
        told=asked.number,
        least=budget_of(suite, place[0], place[1]).regression or 0.0,
        max_runs=fork.config.triage.runs_per_search,
    )
    await count_search(fork)
    await fork.put_note(_HUNT + key, hunt.model_dump(mode="json"))
    await fork.enqueue("triage", "trunk")
    between = f"{plural(len(commits), 'commit')} from {short(good)} to {short(bad)}"
    return asked.done(f"The search begins over {between}; how it stands is told here.")


async def go_on(fork: Fork) -> None:
    """Take each search one step further by what its runs measured; twice is once. To be called as trunk is read."""
    store, scope = fork.ctx.store, fork.scope
    stops = await store.notes(scope.installation, fork.name, _STOP)
    for name, raw in (await store.notes(scope.installation, fork.name, _HUNT)).items():
        hunt = MetricHunt.model_validate(raw)
        if not hunt.running:
            continue
        key = name.removeprefix(_HUNT)
        if (stop := stops.get(_STOP + key)) is not None:
            fresh = hunt.model_copy(update={"standing": Standing.STOPPED, "said": f"stopped by {stop['by']}"})
        elif not is_run(fork, hunt.level, hunt.suite):
            said = f"{hunt.suite} is no suite of level {hunt.level} any more"
            fresh = hunt.model_copy(update={"standing": Standing.STOPPED, "said": said})
        else:
            fresh = await _guarded(fork, hunt)
        if fresh != hunt:
            # told first: what is stored already is not told again
            try:
                await fork.github.upsert_comment(fresh.told, marker(f"bisect-metric {key}"), text_of(fresh, key))
            except (NotFound, Forbidden) as error:  # the issue is gone or locked: trunk is looked after all the same
                fork.ctx.log.warning("a search could not be told", number=fresh.told, error=str(error))
            await fork.put_note(name, fresh.model_dump(mode="json"))
    for name in stops:
        await store.remove_note(scope.installation, fork.name, name)


async def running_hunts(fork: Fork) -> list[MetricHunt]:
    """The searches that ask for runs."""
    notes = await fork.ctx.store.notes(fork.scope.installation, fork.name, _HUNT)
    hunts = [MetricHunt.model_validate(raw) for raw in notes.values()]
    return [hunt for hunt in hunts if hunt.running]


def text_of(hunt: MetricHunt, key: str) -> str:
    """The comment in which a search tells how it stands."""
    what = " ".join(code(part) for part in hunt.place if part)
    span = f"{plural(len(hunt.shas) - 1, 'commit')} {f'inside {short(hunt.bundle)}' if hunt.bundle else 'on trunk'}"
    used = f"{plural(hunt.asked, 'run')} of at most {hunt.max_runs}"
    sure = f"{stated(hunt.confidence)} confidence"
    named = ", ".join(_name(hunt, sha) for sha in hunt.culprits)
    text = {
        Standing.RUNNING: f"{used} over {span}, each beside one of {short(hunt.shas[0])}. "
        f"`/bisect stop {hunt.suite}#{hunt.place[0]}` ends it.",
        Standing.CULPRIT: f"**Culprit:** {'one of ' if len(hunt.culprits) > 1 else ''}{named}, with {sure}, "
        f"after {used} over {span}.",
        Standing.INCONCLUSIVE: f"**Inconclusive** after {used} over {span}: {line(hunt.said)}."
        + (f" Most is believed of {named} ({sure})." if named else ""),
        Standing.STOPPED: f"It ended without an answer: {line(hunt.said)}.",
    }[hunt.standing]
    parts = [marker(f"bisect-metric {key}"), f"### What moved {what} of {code(hunt.suite)}", hunt.outer, text]
    return "\n\n".join(part for part in parts if part)


def _name(hunt: MetricHunt, sha: str) -> str:
    if hunt.names and sha in hunt.shas[1:]:
        upstream = hunt.names[hunt.shas.index(sha) - 1]
        return f"upstream {short(upstream)}" if upstream else f"what {short(sha)} holds beyond its upstream commits"
    return short(sha)


async def _hunt(fork: Fork, key: str) -> MetricHunt | None:
    raw = await fork.note(_HUNT + key)
    return MetricHunt.model_validate(raw) if raw else None


async def _guarded(fork: Fork, hunt: MetricHunt) -> MetricHunt:
    try:
        return await _step(fork, hunt)
    except GitError as error:
        said = f"git could not do its part: {str(error)[:300]}"
        return hunt.model_copy(update={"standing": Standing.INCONCLUSIVE, "said": said})


async def _step(fork: Fork, hunt: MetricHunt) -> MetricHunt:
    measured: dict[str, float | None] = {}
    runs: list[Run] = []
    for run_id in {name for one in hunt.rounds for name in (one.base, one.run)}:
        run = await fork.ctx.store.run(run_id)
        if run is not None and run.state is not RunState.DONE:
            return hunt
        if run is None or run.outcome in _NOTHING_SAID:  # the machine's doing: the round counts for nothing
            rounds = tuple(one for one in hunt.rounds if run_id not in (one.base, one.run))
            return await _step(fork, hunt.model_copy(update={"rounds": rounds}))
        measured[run_id] = _value(run, hunt.place)
        runs.append(run)
    step = await asyncio.to_thread(hunt.next, measured)
    if not isinstance(step, Ask):
        return await _end(fork, hunt.ended(step))
    spent = spent_on(runs)
    if hunt.asked + 2 > hunt.max_runs or spent >= fork.config.triage.runner_time_per_search:
        said = f"more runs, or more runner time: {hunt.asked} were asked for and took {hours(spent)}"
        return hunt.model_copy(update={"standing": Standing.INCONCLUSIVE, "said": said})
    for position in step.positions:
        hunt = await _ask(fork, hunt, position)
    return hunt


async def _ask(fork: Fork, hunt: MetricHunt, position: int) -> MetricHunt:
    """Queue a round; what is on its way already is taken as it is."""
    base, more = await _queue(fork, hunt, 0)
    run, count = (base, 0) if position == 0 else await _queue(fork, hunt, position)
    if position == 0:
        base = hunt.rounds[-1].base
    rounds = (*hunt.rounds, Round(position=position, base=base, run=run))
    return hunt.model_copy(update={"rounds": rounds, "asked": hunt.asked + more + count})


async def _queue(fork: Fork, hunt: MetricHunt, position: int) -> tuple[str, int]:
    """A new run there, and 1; or the one that is on its way, and 0."""
    target, level = Target(hunt.shas[position], hunt.shas[0]), Level(hunt.level)
    created = await start_level(fork, target, level, suites=(hunt.suite,), again=True, turn=Turn.SEARCH)
    if created:
        return created[0].id, 1
    there = await fork.ctx.store.runs(fork.name, target.sha, level.value, suite=hunt.suite)
    waiting = [run for run in there if run.number is None and run.state is not RunState.DONE]
    return (waiting or there)[0].id, 0


async def _end(fork: Fork, hunt: MetricHunt) -> MetricHunt:
    """An answer: where it is one commit that takes in several upstream commits, the search goes on inside it."""
    if hunt.standing is not Standing.CULPRIT or hunt.bundle or len(hunt.culprits) != 1:
        return hunt
    apart = await take_apart(fork, await asyncio.to_thread(fork.git.commit, hunt.culprits[0]))
    if apart is None:
        return hunt
    await asyncio.to_thread(publish, fork.git, apart)
    came = f"On trunk it came with {short(hunt.culprits[0])} ({stated(hunt.confidence)} confidence)"
    inside = {
        "bundle": hunt.culprits[0],
        "shas": (apart.line.base, *apart.line.commits),
        "names": apart.upstream,
        "rounds": (),
        "asked": 0,
        "standing": Standing.RUNNING,
        "culprits": (),
        "confidence": 0.0,
        "outer": f"{came}, which takes in {plural(apart.count, 'upstream commit')}.",
    }
    return await _step(fork, hunt.model_copy(update=inside))


def _value(run: Run, place: Place) -> float | None:
    """What a run measured at that place; None where it measured nothing there."""
    found = values(Report.model_validate(run.report)).get(place) if run.report else None
    return found.middle if found is not None and found.middle > 0 else None


async def _span(
    fork: Fork, level: Level, suite: Suite, metric: str, kernel: str | None
) -> tuple[Place, str, str] | str:
    """What is measured, the last commit of trunk where it was good and the newest measured one, where it is not."""
    runs = await fork.ctx.store.runs(
        fork.name, level=level.value, suite=suite.suite, trunk=True, states=(RunState.DONE,), limit=_LOOKED_AT
    )
    at = {sha: place for place, sha in enumerate(await asyncio.to_thread(trunk_order, fork.git))}
    newest: dict[str, Report] = {}
    for run in runs:
        if run.sha in at and run.report and run.outcome not in _NOTHING_SAID:
            newest.setdefault(run.sha, Report.model_validate(run.report))
    order = sorted(newest, key=lambda sha: at[sha], reverse=True)
    if not order:
        return f"Trunk has no run of {code(suite.suite)} yet: there is nothing to compare."
    here = newest[order[0]]
    places = {place: v for place, v in values(here).items() if place[0] == metric and kernel in (None, place[1])}
    if not places:
        return f"Trunk's newest run of {code(suite.suite)}, at {short(order[0])}, did not measure {code(metric)}."
    spans = []
    for place, value in places.items():
        for sha in order[1:]:
            if machine(newest[sha]) == machine(here) and _worse(suite, place, value, values(newest[sha])):
                spans.append((abs(value.middle / values(newest[sha])[place].middle - 1), place, sha))
                break
    if not spans:
        return (
            f"{code(metric)} keeps its budget at {short(order[0])} against all that trunk measured before, "
            "or it can't be told from the noise: there is no step to search for."
        )
    _, place, good = max(spans, key=lambda span: span[0])
    return place, good, order[0]


def _worse(suite: Suite, place: Place, value: Value, before: Mapping[Place, Value]) -> bool:
    """Whether a value breaks its budget for sure against an older one that kept its own bounds."""
    then, budget = before.get(place), budget_of(suite, place[0], place[1])
    if then is None or then.middle == 0 or over(then, then, budget) is not None:
        return False
    broken = over(value, then, budget)
    return broken is not None and not broken.unsure
