"""Start the levels: queue each suite's run for a runner, at an exact commit, cheaper level first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bot.context import Context, Job, Pull, Run, RunState
from bot.core.batches import key_of
from bot.core.config import Suite
from bot.core.dispatched import workflow_of
from bot.core.measured import needs_baseline
from bot.core.turns import Turn
from bot.core.types import Level, Outcome
from bot.core.validation import RunRequest
from handlers.fork import Fork, open_fork
from handlers.manifest import canary_before, expectation
from handlers.offering import offer

WRITERS = ("write", "maintain", "admin")
SECOND = "second"  # the capacity on which a suite is proved once more
GROUP = 0  # in place of a pull request's number: the commit of a merge queue's group
L2_AT = "trunk_l2"
BEFORE = {Level.L1: None, Level.L2: Level.L1, Level.L3: Level.L2}


@dataclass(frozen=True, slots=True)
class Target:
    """What is validated: a commit of a pull request (`number`), of a merge queue's group (GROUP) or of trunk (None),
    against its base.
    """

    sha: str
    base: str
    number: int | None = None


async def validate(ctx: Context, job: Job) -> None:
    """Job `validate`: start L1 at the pull request's present head, cancel what runs for older ones."""
    fork = await open_fork(ctx, job.scope)
    number = int(job.payload["number"])
    pull = await fork.github.pull(number)
    await cancel_superseded(fork, number, keep=pull.head.sha if pull.state == "open" else None)
    if pull.state != "open" or pull.base.ref != fork.config.fork.branch:
        return
    if (why_not := await stranger(fork, pull)) is not None:
        await fork.put_note(f"untrusted:{number}", {"sha": pull.head.sha, "why": why_not})
    else:
        await start_level(fork, target_of(pull), Level.L1)
    await fork.enqueue("results", f"#{number}", {"number": number, "sha": pull.head.sha})


async def validate_trunk(ctx: Context, job: Job) -> None:
    """Job `validate_trunk`: start L1 at trunk's present tip, and L2 by the schedule of the fork's file."""
    fork = await open_fork(ctx, job.scope)
    tip = await fork.fetch_fork()
    trunk = await fork.change_note("trunk", lambda known: {**(known or {}), "tip": tip})
    target = Target(tip, trunk.get("green") or tip)
    await start_level(fork, target, Level.L1)
    await _measure_by_schedule(fork, target)


async def _measure_by_schedule(fork: Fork, target: Target) -> None:
    """L2 of trunk's tip, once L1 passed there, where the last time is longer ago than the fork's file allows."""
    every, suites = fork.config.validation.l2_every, fork.config.validation.l1
    if every is None:
        return
    last = await fork.note(L2_AT) or {}
    if last.get("sha") == target.sha or fork.now.timestamp() - last.get("at", 0) < every.total_seconds():
        return
    ended = []
    for capacity, wanted in (("", suites), (SECOND, [suite for suite in suites if suite.second])):
        runs = await fork.ctx.store.runs(fork.name, target.sha, Level.L1.value, trunk=True, capacity=capacity)
        newest = latest(runs)
        ended += [newest.get((Level.L1, suite.suite)) for suite in wanted]
    if all(run is not None and run.outcome in (Outcome.PASSED, Outcome.WAIVED) for run in ended):
        await start_level(fork, target, Level.L2)
        await fork.put_note(L2_AT, {"sha": target.sha, "at": fork.now.timestamp()})


def target_of(pull: Pull) -> Target:
    """The pull request's head, to be compared with the base branch's commit that GitHub names."""
    return Target(pull.head.sha, pull.base.sha, pull.number)


async def stranger(fork: Fork, pull: Pull) -> str | None:
    """Why code of this pull request may not run yet; None where it may.

    It may where the branch is in the fork itself or its author may write there, else after /ok-to-test on this commit.
    """
    if pull.head.repo is not None and pull.head.repo.full_name == fork.name:
        return None
    if await fork.github.permission(pull.user.login) in WRITERS:
        return None
    allowed = await fork.note(f"ok-to-test:{pull.number}") or {}
    if allowed.get("sha") == pull.head.sha:
        return None
    return f"{pull.user.login} may not write here: someone who may has to say /ok-to-test on this commit"


async def start_level(
    fork: Fork,
    target: Target,
    level: Level,
    *,
    suites: tuple[str, ...] = (),
    again: bool = False,
    turn: Turn | None = None,
    capacity: str = "",
) -> list[Run]:
    """Queue a run for each suite of the level (or the named ones), on each of its capacities; a suite that has one at
    this commit is left alone, unless `again`. Suites by hand (`manual`) are not queued. `turn` says what they are for
    where the target does not; a search runs on one `capacity`. Gives the runs that were created there.
    """
    turn = _turn(target) if turn is None else turn
    created = []
    for suite in fork.config.validation.of(level):
        if suite.manual or (suites and suite.suite not in suites):
            continue
        for where, one in (("", suite.once()), (SECOND, suite.again())):
            if one is None or (turn is Turn.SEARCH and where != capacity):
                continue
            run = await _queue(fork, target, level, one, again=again, turn=turn, capacity=where)
            if run is None:
                continue
            if where == capacity:
                created.append(run)
            if target.number is not None and needs_baseline(one):
                await _measure_trunk(fork, target, level, one, turn=turn, capacity=where)
    return created


def _turn(target: Target) -> Turn:
    if target.number is None:
        return Turn.TRUNK
    return Turn.GROUP if target.number == GROUP else Turn.PULL


async def _measure_trunk(
    fork: Fork, target: Target, level: Level, suite: Suite, *, turn: Turn, capacity: str
) -> None:  # fmt: skip
    """Where trunk has no number to compare with, nor is one on its way, its commit below the change is measured too."""
    runs = await fork.ctx.store.runs(fork.name, level=level.value, capacity=capacity)
    mine = [r for r in runs if r.number is None and r.suite == suite.suite and r.turn is not Turn.SEARCH]
    if not any(run.state is not RunState.DONE or run.outcome == Outcome.PASSED for run in mine):
        await _queue(fork, Target(target.base, target.base), level, suite, again=True, turn=turn, capacity=capacity)


async def _queue(
    fork: Fork, target: Target, level: Level, suite: Suite, *, again: bool, turn: Turn, capacity: str
) -> Run | None:
    there = await fork.ctx.store.runs(fork.name, target.sha, level.value, suite=suite.suite, capacity=capacity)
    before = [r for r in there if r.number == target.number]
    mine = [r for r in before if _answers(r.turn, turn)]
    if mine and not again:
        return None
    if any(r.state is not RunState.DONE for r in mine):
        for r in mine:  # it is on its way: a second one beside it would prove nothing more
            if not r.turn.tells_of_trunk:  # whose word it is stays
                await fork.ctx.store.hasten_run(r.id, turn)
        return None
    place = str(target.number) if target.number is not None else "trunk"
    parts = (fork.name, place, target.sha, level.value, suite.suite, str(len(before)))
    run_id = key_of(*parts, capacity) if capacity else key_of(*parts)
    expected, skipped = await expectation(fork, target.sha, level, suite, number=target.number, capacity=capacity)
    request = RunRequest(
        run_id=run_id,
        repository=fork.name,
        commit=target.sha,
        base=target.base,
        level=level,
        suite=suite,
        git_path=f"/runner/git/{fork.name}.git",
        expected=expected,
        skipped_before=skipped,
        canary_before=await canary_before(fork, level, suite),
    )
    now = fork.now
    run = Run(
        id=run_id,
        repository=fork.name,
        installation=fork.scope.installation,
        number=target.number,
        sha=target.sha,
        base=target.base,
        level=level.value,
        suite=suite.suite,
        label=suite.runner[-1],
        request=request.model_dump(mode="json"),
        deadline=now + suite.deadline,
        queued_at=now,
        turn=turn,
        capacity=capacity,
    )
    if not await fork.ctx.store.create_run(run):
        return None
    await offer(fork.ctx, run)
    return run


def _answers(there: Turn, wanted: Turn) -> bool:
    """Whether a run that is there will do for what is wanted: a search's for searches alone, and trunk, of which only
    its own runs tell, is run for itself even where it was measured for a pull request.
    """
    if wanted.tells_of_trunk:
        return there.tells_of_trunk
    return wanted is Turn.SEARCH or there is not Turn.SEARCH


async def push_again(fork: Fork) -> None:
    """Queued runs whose wake-up Redis may have lost are pushed once more; the lease sees to it that each runs once."""
    for run in await fork.ctx.store.runs(fork.name, states=(RunState.QUEUED,), capacity=None):
        if fork.now - run.queued_at > timedelta(seconds=30):
            await offer(fork.ctx, run)


async def cancel_superseded(fork: Fork, number: int, *, keep: str | None) -> None:
    """End the unfinished runs of a pull request at all commits but `keep`."""
    await cancel_runs(fork, [run for run in await unfinished(fork, number) if run.sha != keep])


async def unfinished(fork: Fork, number: int) -> list[Run]:
    """The runs of a pull request (GROUP: of the merge queue's groups) that wait or run, on every capacity."""
    waiting = (RunState.QUEUED, RunState.LEASED)
    return await fork.ctx.store.runs(fork.name, number=number, states=waiting, capacity=None)


async def cancel_runs(fork: Fork, runs: Sequence[Run]) -> None:
    """End the runs; those on GitHub Actions are cancelled there too."""
    for run in runs:
        await fork.ctx.store.finish_run(run.id, outcome=Outcome.CANCELLED.value, report=None, now=fork.now)
    if any(workflow_of(run.label) is not None for run in runs):
        await fork.enqueue("elsewhere", "repository")


def latest(runs: list[Run]) -> dict[tuple[Level, str], Run]:
    """The newest run of each suite, by level and suite; `runs` newest first, as the store gives them."""
    newest: dict[tuple[Level, str], Run] = {}
    for run in runs:
        newest.setdefault((Level(run.level), run.suite), run)
    return newest
