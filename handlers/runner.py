"""The bot's side of the runners' protocol: who a runner is, which run it may have, what it says of it.

What a runner says is data to be judged: the outcome is derived again from the tests, against what the store says had to
run (`handlers.hearing`). Everything may be said twice.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.context import Context, FetchError, Queued, QueueUnavailable, Run, Runner, RunState, Scope
from bot.core.dispatched import workflow_of
from bot.core.turns import in_turn
from bot.core.types import Outcome
from bot.core.validation import PROTOCOL, Report, RunRequest
from handlers.hearing import judge_report
from handlers.offering import offer, wake_results
from handlers.sourcing import ensure_source

LOG_LIMIT = 16 * 1024 * 1024
_ELSEWHERE_FOR = timedelta(minutes=2)
_ALIVE = timedelta(minutes=5)


class Refusal(Exception):
    """Why a runner does not get what it asks for; `status` is that of HTTP."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def token_hash(token: str) -> str:
    """What is stored of a runner's token."""
    return hashlib.sha256(token.encode()).hexdigest()


async def authenticate(ctx: Context, token: str) -> Runner:
    """The runner that holds this token, with no label before it said hello. Raises Refusal(401)."""
    pairs = ctx.settings.runner_token_pairs()
    named = [name for name, known in pairs.items() if hmac.compare_digest(known.encode(), token.encode())]
    runner = await ctx.store.runner_by_token(token_hash(token))
    if runner is not None and (named or not runner.facts.get("from_settings")):
        return runner
    if named:
        return Runner(name=named[0], token_hash=token_hash(token), labels=())
    raise Refusal(401, "no runner has this token: name it in GRAFT_RUNNER_TOKENS of the bot, as name=token")


async def hello(ctx: Context, runner: Runner, *, protocol: Any, labels: Sequence[str], facts: dict[str, Any]) -> Runner:
    """Note a runner with its labels. Raises Refusal(426) where it speaks another version."""
    check_protocol(protocol)
    known = Runner(
        name=runner.name,
        token_hash=runner.token_hash,
        labels=tuple(dict.fromkeys(labels)),
        installation=runner.installation,
        repository=runner.repository,
        facts={**facts, "from_settings": runner.name in ctx.settings.runner_token_pairs()},
        seen_at=ctx.now(),
    )
    await ctx.store.register_runner(known)
    return known


def check_protocol(protocol: Any) -> None:
    """Raises Refusal(426) unless the version is ours."""
    if protocol != PROTOCOL:
        raise Refusal(426, f"the bot speaks protocol {PROTOCOL}, the runner {protocol!r}: update the older one")


async def lease(ctx: Context, runner: Runner, run_id: str, *, active: Sequence[str] | None = None) -> RunRequest:
    """Give a run to the runner: whose turn it is, of those that it may have (`bot.core.turns`), not always the one that
    it was woken for. `active` are the runs that it works on; None: it takes no other than the one named.

    Raises Refusal: 404 unknown, 403 not its labels or repository, 409 taken, 410 done, 423 for another machine first,
    503 the source can't be fetched now.
    """
    run = await _run(ctx, run_id)
    if active is None:
        return await _give(ctx, runner, run, queued=False)
    lost = await _never_heard(ctx, runner, active)
    if lost is not None:
        return await _give(ctx, runner, lost, queued=False)
    waiting, served = await ctx.store.waiting_runs(ctx.now())
    fitting = {one.waiting.run: one for one in waiting if _fits(one, runner)}
    for turn in in_turn((one.waiting for one in fitting.values()), served=served, now=ctx.now()):
        if turn.run == run_id:
            other = run
        elif (found := await ctx.store.run(turn.run)) is not None:
            other = found
        else:
            continue
        try:
            given = await _give(ctx, runner, other, queued=True)
        except Refusal as refusal:
            ctx.log.info("a run was passed over", run=turn.run, runner=runner.name, why=refusal.reason)
            continue
        await _ring_for(ctx, run, waiting, given=fitting[turn.run])
        return given
    await _ring_for(ctx, run, waiting, given=None)
    return await _give(ctx, runner, run, queued=True)


def _fits(one: Queued, runner: Runner) -> bool:
    """Whether the runner may have the run."""
    mine = not runner.repository or (runner.repository, runner.installation) == (
        one.waiting.repository,
        one.installation,
    )
    pool = bool(one.wanted) and workflow_of(one.label) is None
    return mine and pool and set(one.wanted) <= set(runner.labels)


async def _never_heard(ctx: Context, runner: Runner, active: Sequence[str]) -> Run | None:
    """A run whose lease the runner does not know of, nor did it ever hold it on: the answer got lost on its way."""
    for one in await ctx.store.leased_by(runner.name):
        first = one.started_at is not None and one.lease_until == one.started_at + timedelta(
            seconds=ctx.settings.runner_lease_seconds
        )
        if one.id not in active and first:
            return one
    return None


async def _ring_for(ctx: Context, woken: Run, waiting: Sequence[Queued], *, given: Queued | None) -> None:
    """Ring once more where the wake-up that brought the runner here was needed for a run that still waits.

    Each wake-up brings one runner, and there are as many as queued runs. It may have been spent on a run that wants
    other labels, or on none: another runner has to be woken for the one that waits.
    """
    left = [one for one in waiting if one.label == woken.label and one is not given]
    mine = next((one for one in left if one.waiting.run == woken.id), None)
    if given is not None:
        if mine is None or set(mine.wanted) == set(given.wanted):
            return
    elif mine is not None or not left:
        return  # it is offered again by the runner itself, which may not have it, or nothing waits
    else:
        mine = left[0]
    run = await ctx.store.run(mine.waiting.run)
    if run is None or run.state is not RunState.QUEUED:
        return
    again = f"for-{given.waiting.run if given else woken.id}"
    try:
        await ctx.queue.push_run(
            run.label, run.id, run.repository, run.sha, run.suite, attempt=run.attempt, again=again
        )
    except QueueUnavailable as error:
        ctx.log.warning("run not offered again yet", run=run.id, error=str(error))


async def _give(ctx: Context, runner: Runner, run: Run, *, queued: bool) -> RunRequest:
    """Lease this very run; the refusals of `lease`."""
    request = RunRequest.model_validate(run.request)
    if runner.repository and (runner.repository, runner.installation) != (run.repository, run.installation):
        raise Refusal(403, f"runner {runner.name} serves {runner.repository} only")
    if workflow_of(run.label) is not None:
        raise Refusal(410, "the run is GitHub Actions'")
    lacking = sorted({*request.suite.runner} - {*runner.labels})
    if lacking:
        raise Refusal(403, f"runner {runner.name} lacks the label {', '.join(lacking)}")
    if run.state is RunState.DONE:
        raise Refusal(410, "the run is done")
    if await _elsewhere(ctx, run, runner):
        raise Refusal(423, "the run failed on this machine; another one is asked first")
    try:
        await ensure_source(ctx, Scope(run.installation, run.repository), run.sha, run.number)
    except FetchError as error:
        raise Refusal(503, f"the source can't be fetched now: {error}") from error
    seconds = ctx.settings.runner_lease_seconds
    leased = await ctx.store.lease_run(run.id, runner.name, ctx.now(), seconds, queued=queued)
    if leased is None:
        raise Refusal(409, "another runner has it")
    await ctx.store.runner_seen(runner.name, ctx.now())
    await wake_results(ctx, leased)
    return request.model_copy(
        update={"attempt": leased.attempt, "lease_seconds": seconds, "heartbeat_seconds": max(0.5, seconds / 4)}
    )


async def heartbeat(ctx: Context, runner: Runner, run_id: str, attempt: int) -> str | None:
    """Hold the lease on; None while the runner shall go on, else why it has to stop."""
    run = await _run(ctx, run_id)
    await ctx.store.runner_seen(runner.name, ctx.now())
    if run.state is RunState.DONE:
        return "cancelled" if run.outcome == Outcome.CANCELLED else "the run is done"
    if run.attempt != attempt or run.runner != runner.name:
        return "the lease was lost"
    held = await ctx.store.heartbeat(run_id, runner.name, ctx.now(), ctx.settings.runner_lease_seconds)
    return None if held else "the lease was lost"


def log_path(ctx: Context, run_id: str, attempt: int) -> Path:
    """Where the log of an attempt is kept."""
    return Path(ctx.settings.data) / "runs" / run_id / f"{attempt}.log"


async def append_log(ctx: Context, runner: Runner, run_id: str, *, attempt: int, offset: int, data: bytes) -> int:
    """Add a piece of the log at its offset (bytes); gives how much is there, so that a repeat adds nothing twice."""
    run = await _run(ctx, run_id)
    if run.runner != runner.name or run.attempt != attempt or run.state is RunState.DONE:
        raise Refusal(409, "the run is not leased by this runner")
    return await asyncio.to_thread(_append, log_path(ctx, run_id, attempt), offset, data)


def _append(path: Path, offset: int, data: bytes) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        size = file.tell()
        if offset <= size:
            file.write(data[size - offset :][: max(0, LOG_LIMIT - size)])
        return file.tell()


async def report(ctx: Context, runner: Runner, run_id: str, body: bytes, *, attempt: int) -> dict[str, Any]:
    """Take the report of an attempt, once. Raises Refusal(409) where the run is not this runner's to report on."""
    run = await _run(ctx, run_id)
    if run.runner != runner.name or run.attempt != attempt:
        raise Refusal(409, f"attempt {attempt} is not leased by {runner.name}")
    if run.state is RunState.DONE:
        return {"recorded": False, "outcome": run.outcome}
    return await take(ctx, run, judge_report(run, RunRequest.model_validate(run.request), body, runner=runner), runner)


async def take(ctx: Context, run: Run, counted: Report, runner: Runner) -> dict[str, Any]:
    """End the run with its report as it counts, or let it begin anew after trouble with the machine."""
    # a run that the bot cancelled is done by now: one that says cancelled was ended by its runner
    if counted.outcome in (Outcome.INFRA, Outcome.CANCELLED) and await _again(ctx, run, runner):
        return {"recorded": True, "outcome": counted.outcome.value, "again": True}
    done = await ctx.store.finish_run(
        run.id,
        outcome=counted.outcome.value,
        report=counted.model_dump(mode="json"),
        now=ctx.now(),
        runner=runner.name,
    )
    if done is not None:
        await wake_results(ctx, done)
    return {"recorded": done is not None, "outcome": counted.outcome.value}


async def may_read(ctx: Context, runner: Runner, repository: str) -> bool:
    """Whether the runner may read a repository's source now: while it has a run of that repository."""
    runs = await ctx.store.runs(repository, states=(RunState.LEASED,), capacity=None)
    return any(run.runner == runner.name for run in runs)


async def _run(ctx: Context, run_id: str) -> Run:
    run = await ctx.store.run(run_id)
    if run is None:
        raise Refusal(404, f"there is no run {run_id}")
    return run


async def _again(ctx: Context, run: Run, runner: Runner) -> bool:
    """Queue the run anew after trouble with the machine, while its suite's `retries` allow; True where done."""
    request = RunRequest.model_validate(run.request)
    if run.attempt > request.suite.retries or run.deadline <= ctx.now():
        return False
    value = {"runner": runner.name, "at": ctx.now().timestamp()}
    await ctx.store.put_note(run.installation, run.repository, f"infra:{run.id}", value, ctx.now())
    again = await ctx.store.requeue_run(run.id, ctx.now())
    if again is None:
        return False
    await offer(ctx, again)
    await wake_results(ctx, again)
    return True


async def _elsewhere(ctx: Context, run: Run, runner: Runner) -> bool:
    """Whether the run's trouble was on this machine and another of its label may take it soon."""
    if run.attempt == 1:
        return False
    note = await ctx.store.note(run.installation, run.repository, f"infra:{run.id}")
    now = ctx.now()
    if not note or note.get("runner") != runner.name or now.timestamp() - note["at"] > _ELSEWHERE_FOR.total_seconds():
        return False
    others = [other for other in await ctx.store.runners() if other.name != runner.name and run.label in other.labels]
    return any(other.seen_at is not None and now - other.seen_at < _ALIVE for other in others)
