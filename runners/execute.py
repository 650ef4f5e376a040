"""One suite on one tree: build, run, collect, conclude; the same code under a runner and under `graft run`."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.core.canary import is_canary
from bot.core.config import Suite
from bot.core.types import Outcome
from bot.core.validation import Environment, Report, RunRequest, TestResult, check_manifest, conclude
from runners.artifacts import artifacts_in
from runners.environment import Health, child_environment, describe, probe
from runners.harnesses import (
    Collected,
    Harness,
    HarnessError,
    Place,
    Start,
    canary_place,
    harness_of,
    seen_failing,
)
from runners.harnesses.http import Http, Order
from runners.labs import Credential
from runners.leftovers import empty, take_out, tick
from runners.process import Ended, Killed, run_group
from runners.spotting import Called, spot

_BUILD_FACTOR = 3


@dataclass(frozen=True, slots=True)
class Machine:
    """Which machine this is to the reports, and which GPUs it may use (`visible` as CUDA_VISIBLE_DEVICES, None all)."""

    name: str = ""
    labels: tuple[str, ...] = ()
    visible: str | None = None
    keep: tuple[str, ...] = ()
    labs: Mapping[str, Credential] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Work:
    """One suite to run: the request, its tree and folders, and who listens to the output."""

    request: RunRequest
    source: Path
    folder: Path
    cache: Path
    machine: Machine = Machine()
    built: bool = False
    output: Callable[[str], None] = field(default=lambda _: None)
    redact: Callable[[str], str] = field(default=lambda text: text)
    cancelled: asyncio.Event | None = None
    keep_build: Callable[[Path], Awaitable[None]] | None = None
    environment: Mapping[str, str] | None = None
    short: Callable[[], bool] | None = None


async def execute(work: Work) -> Report:
    """Run the suite and report; whatever goes wrong is in the report's outcome and reason."""
    request, suite = work.request, work.request.suite
    started = datetime.now(UTC)
    if needs_no_source(suite):
        return await _in_lab(work, started)
    before = await probe(visible=work.machine.visible)
    if before.ok is False:
        return _report(work, started, Collected(Outcome.INFRA, before.text), ended=None, health=(before, None))
    place = Place(suite, work.source, work.folder / "results", request.expected, request.commit)
    # unlike that of any other process, since all that carry it are killed in the end
    mark = f"{request.run_id}-{request.attempt}-{uuid.uuid4().hex}"
    env = child_environment(
        home=work.folder / "home",
        cache=work.cache,
        mark=mark,
        commit=request.commit,
        visible=work.machine.visible,
        keep=work.machine.keep,
        extra={**suite.env, "GRAFT_BASE": request.base or "", "GRAFT_LEVEL": request.level.value},
        source=work.environment,
    )
    try:
        empty(place.results)
        harness = harness_of(suite.harness)
        start = harness.start(place)
    except OSError as error:
        said = Collected(Outcome.INFRA, f"the folder for results can't be emptied: {error}")
        return _report(work, started, said, ended=None, health=(before, None))
    except HarnessError as error:
        return _report(work, started, Collected(Outcome.INFRA, str(error)), ended=None, health=(before, None))
    if suite.build and not work.built:
        ended = await _run(work, suite.build, env, factor=_BUILD_FACTOR)
        if ended.exit_code != 0 or ended.killed is not None:
            return _report(work, started, _build_failed(ended), ended=ended, health=(before, None))
        if work.keep_build is not None:
            await work.keep_build(work.source)
    since, place = tick(work.folder), replace(place, began=datetime.now(UTC))
    ended, called = await _spotting(work, start, {**env, **start.env})
    left = await asyncio.to_thread(_leftovers, work, harness, place, since)
    collected = _without(_collect(harness, place, ended), left)
    if suite.canary is None and ended.started and ended.killed is None:
        collected = await _with_canary(work, harness, place, start, called, env, collected, ended)
    after = await probe(visible=work.machine.visible)
    if after.ok is False and collected.outcome is not Outcome.PASSED:
        collected = Collected(Outcome.INFRA, f"{collected.reason}; {after.text}", collected.tests)
    return _report(work, started, collected, ended=ended, health=(before, after))


async def _spotting(work: Work, start: Start, env: Mapping[str, str]) -> tuple[Ended, Called | None]:
    """Run the suite; and how it called the program that its command hides, where that was seen."""
    if start.hidden is None:
        return await _run(work, start.argv, env, factor=1), None
    tool, looking = start.hidden.tool, list[asyncio.Task[Called]]()
    try:
        ended = await _run(
            work, start.argv, env, factor=1, started=lambda root: looking.append(asyncio.create_task(spot(root, tool)))
        )
    finally:
        for task in looking:
            task.cancel()
    found = await asyncio.gather(*looking, return_exceptions=True)
    return ended, next((one for one in found if isinstance(one, Called)), None)


def _collect(harness: Harness, place: Place, ended: Ended) -> Collected:
    try:
        return harness.collect(place, ended)
    except (OSError, ValueError, RecursionError) as error:
        return Collected(Outcome.INFRA, f"the results can't be read: {type(error).__name__}: {error}")


def _leftovers(work: Work, harness: Harness, place: Place, since: int) -> list[str]:
    try:
        return take_out(place.results, harness.reads, source=work.source, since=since, apart=work.folder.parent)
    except OSError as error:
        return [f"whether the results are of this run can't be told: {error}"]


def _without(collected: Collected, left: list[str]) -> Collected:
    """What the suite said, where result files that are not its own were taken out: no pass."""
    if not left:
        return collected
    outcome = Outcome.OMITTED if collected.outcome is Outcome.PASSED else collected.outcome
    return replace(collected, outcome=outcome, reason="; ".join(part for part in (*left, collected.reason) if part))


async def _with_canary(
    work: Work,
    harness: Harness,
    place: Place,
    start: Start,
    called: Called | None,
    env: Mapping[str, str],
    collected: Collected,
    ended: Ended,
) -> Collected:
    """What the suite said, and whether its harness reports the stand-in that must fail, where there is one."""
    hidden = start.hidden
    if start.canary is None and hidden is None:
        return collected
    if any(test.outcome.bad for test in collected.tests):
        return replace(collected, canary_seen=True)  # it has just shown that it reports failures
    canary = start.canary
    if hidden is not None:
        with contextlib.suppress(OSError):
            canary = await asyncio.to_thread(hidden.stand_in, called)
    if canary is None:
        work.output("canary: none, the program that reports was not found\n")
        return collected
    there = canary_place(place)
    # what it prints looks like a failure of the suite's
    quiet = replace(work, output=lambda _: None)
    seen: bool | None = False
    with contextlib.suppress(OSError):  # the suite left no folder to write to
        there.results.mkdir(parents=True, exist_ok=True)
        fell = await _run(quiet, canary.argv, {**env, **canary.env}, factor=1)
        if fell.killed is Killed.CANCELLED:
            return replace(collected, outcome=Outcome.CANCELLED, reason="cancelled")
        shown = _collect(harness, there, fell)
        seen = seen_failing(shown, fell)
        if hidden is not None and ((not shown.tests and fell.exit_code != 0) or not hidden.same()):
            seen = None
    told = {True: "failed, as it has to", False: "not reported as failed", None: "none, it could not be tried"}[seen]
    work.output(f"canary: {told}\n")
    if collected.outcome is Outcome.PASSED and ended.exit_code != 0:
        # a canary among the tests would explain the exit status, a stand-in does not
        reason = f"exit status {ended.exit_code} though every reported test passed"
        collected = replace(collected, outcome=Outcome.FAILED, reason=reason)
    return replace(collected, canary_seen=seen)


def needs_no_source(suite: Suite) -> bool:
    """Whether the suite runs somewhere else, with neither tree nor GPU of this machine."""
    return suite.harness == "http"


async def _in_lab(work: Work, started: datetime) -> Report:
    order = Order(work.request, dict(work.machine.labs), work.output, work.redact, work.cancelled)
    try:
        collected = await Http().hand_over(order)
    except HarnessError as error:
        collected = Collected(Outcome.INFRA, str(error))
    return _report(work, started, collected, ended=None, health=(Health(None, "ran in a lab"), None))


async def _run(
    work: Work,
    argv: tuple[str, ...],
    env: Mapping[str, str],
    *,
    factor: int,
    started: Callable[[int], None] = lambda _: None,
) -> Ended:
    suite = work.request.suite
    work.output(f"$ {shlex.join(argv)}\n")
    return await run_group(
        argv,
        cwd=work.source,
        env=env,
        seconds=suite.timeout.total_seconds() * factor,
        memory_bytes=int(suite.memory_gib * 2**30) if suite.memory_gib is not None else None,
        output=work.output,
        redact=work.redact,
        cancelled=work.cancelled,
        short=work.short,
        started=started,
    )


def _build_failed(ended: Ended) -> Collected:
    if ended.killed is Killed.CANCELLED:
        return Collected(Outcome.CANCELLED, "cancelled during the build")
    if ended.killed is Killed.TIMEOUT:
        return Collected(Outcome.TIMED_OUT, f"the build was stopped at its time limit, after {ended.seconds:.0f} s")
    if ended.killed is Killed.DISK:
        return Collected(Outcome.INFRA, "the build was stopped: the machine's disk is all but full")
    if not ended.started:
        return Collected(Outcome.INFRA, f"the build can't be started: {ended.tail.strip()}")
    return Collected(Outcome.FAILED, f"the build failed with exit status {ended.exit_code}: nothing ran")


def _report(
    work: Work, started: datetime, collected: Collected, *, ended: Ended | None, health: tuple[Health, Health | None]
) -> Report:
    request = work.request
    before, after = health
    tests = tuple(_clean(test, work) for test in collected.tests)
    manifest = check_manifest(
        expected=request.expected, skipped_before=request.skipped_before, tests=tests, canary=collected.canary
    )
    if collected.canary is not None:
        # seen or not, the canary is no test of the fork's: the manifest check says what became of it
        tests = tuple(test for test in tests if not is_canary(test.id, collected.canary))
    elsewhere = collected.elsewhere
    seen = elsewhere.canary if elsewhere is not None else collected.canary_seen
    if manifest.canary is None and seen is not None:
        manifest = manifest.model_copy(update={"canary": seen})
    exit_code = ended.exit_code if ended is not None else elsewhere.exit_code if elsewhere is not None else None
    outcome, why = conclude(
        claimed=collected.outcome,
        tests=tests,
        measurements=len(collected.measurements),
        manifest=manifest,
        exit_code=exit_code,
    )
    finished = datetime.now(UTC)
    return request.report(
        environment=_environment(work, collected, before, after),
        started_at=started,
        finished_at=finished,
        outcome=outcome,
        reason=work.redact("; ".join(dict.fromkeys(part for part in (collected.reason, why) if part)))[:2000],
        exit_code=exit_code,
        tests=tests,
        manifest=manifest,
        measurements=collected.measurements,
        artifacts=tuple(artifact for artifact, _ in artifacts_in(work.folder / "results")[0]),
        repeat=f"graft run {request.level.value} --suite {shlex.quote(request.suite.suite)}",
        log_tail=(ended.tail if ended is not None else elsewhere.log_tail if elsewhere is not None else "")[-16_000:],
        gpu_seconds=elsewhere.gpu_seconds if elsewhere else (finished - started).total_seconds() * len(before.gpus),
    )


def _environment(work: Work, collected: Collected, before: Health, after: Health | None) -> Environment:
    """The machine that ran it, under the name of the runner that answers for it."""
    if collected.elsewhere is not None:
        mine = {"runner": work.machine.name, "labels": work.machine.labels}
        return collected.elsewhere.environment.model_copy(update=mine)
    return describe(runner=work.machine.name, labels=work.machine.labels, before=before, after=after)


def _clean(test: TestResult, work: Work) -> TestResult:
    message = work.redact(test.message).replace(str(work.source), ".")
    return test if message == test.message else test.model_copy(update={"message": message})
