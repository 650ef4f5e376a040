"""Runs on GitHub Actions: start their workflow, look after it, take what it left, cancel what nobody waits for."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from bot.context import (
    Conflict,
    Context,
    Forbidden,
    Gone,
    Job,
    NotFound,
    Run,
    Runner,
    RunState,
    TooLarge,
    Unavailable,
    Validation,
)
from bot.core.canary import has_canary
from bot.core.dispatched import (
    REPORT,
    Unusable,
    artifact_of,
    correlation,
    inputs_of,
    is_of_workflow,
    is_run_of,
    report_of,
    wanted,
    workflow_of,
)
from bot.core.reports.archive import ArchiveError, read_archive
from bot.core.types import Level, Outcome
from bot.core.validation import Report, RunRequest
from handlers.fork import Fork, open_fork
from handlers.hearing import judged, no_report
from handlers.runner import take

if TYPE_CHECKING:
    from bot.context import WorkflowRun

NOTE = "workflows"
FIND_FOR = timedelta(minutes=5)  # how long GitHub may take to show a run whose id it did not tell
_SKEW = timedelta(minutes=1)
_REFUSED = (NotFound, Validation, Forbidden, Gone, Conflict)


async def elsewhere(ctx: Context, job: Job) -> None:
    """Job `elsewhere`: look at each unfinished run of the repository that is GitHub Actions' to do."""
    known: dict[str, Any] = await ctx.store.note(job.installation, job.repository, NOTE) or {}
    waiting = await ctx.store.runs_elsewhere(job.repository)
    if not known and not waiting:
        return
    fork = await open_fork(ctx, job.scope)
    for run_id, about in list(known.items()):
        run = await ctx.store.run(run_id)
        if run is None or run.state is RunState.DONE or run.attempt != about["attempt"]:
            await _cancel(fork, about)
            known = await _keep(fork, known, run_id, None)
    for run in waiting:
        if run.state is RunState.QUEUED:
            known = await _start(fork, run, known)
        elif await _look(fork, run, known.get(run.id) or {}):
            known = await _keep(fork, known, run.id, None)


async def _keep(fork: Fork, known: dict[str, Any], run_id: str, about: dict[str, Any] | None) -> dict[str, Any]:
    """Note at once which of GitHub's runs is whose: nothing else tells it after a restart."""
    kept = {key: value for key, value in known.items() if key != run_id}
    if about is not None:
        kept[run_id] = about
    if kept != known:
        await fork.put_note(NOTE, kept)
    return kept


async def _cancel(fork: Fork, about: dict[str, Any]) -> None:
    """End what nobody waits for any more: cancelled, overdue or begun anew."""
    if about["workflow_run"] is not None:
        try:
            await fork.github.cancel_workflow_run(about["workflow_run"])
        except _REFUSED as error:
            fork.ctx.log.warning("a workflow's run was not cancelled", run=about["workflow_run"], error=str(error))


async def _start(fork: Fork, run: Run, known: dict[str, Any]) -> dict[str, Any]:
    machine = _machine(run)
    seconds = max(0.0, (run.deadline - fork.now).total_seconds()) + _SKEW.total_seconds()  # its deadline ends it
    leased = await fork.ctx.store.lease_run(run.id, machine.name, fork.now, seconds, queued=True)
    if leased is None:
        return known
    request = _request(leased)
    workflow, ref = str(workflow_of(run.label)), _ref(fork, leased)
    started: int | None = None
    try:
        started = await fork.github.dispatch(workflow, ref=ref, inputs=inputs_of(request))
    except Unavailable as error:  # it may have begun: it is looked for by its name
        fork.ctx.log.warning("whether a workflow was started is not known", run=run.id, error=str(error))
    except _REFUSED as error:
        why = f"GitHub did not start {workflow} on {ref}: {error.message}"
        await take(fork.ctx, leased, no_report(leased, why, runner=machine), machine)
        return known
    return await _keep(fork, known, run.id, {"attempt": leased.attempt, "workflow_run": started})


async def _look(fork: Fork, run: Run, about: dict[str, Any]) -> bool:
    """Take what a run left once it has ended; True where it is over."""
    request, machine = _request(run), _machine(run)
    try:
        found = await _find(fork, run, request, about.get("workflow_run"))
        if found is None or found.status != "completed":
            return False
        report = await _report(fork, run, request, found)
    except Unusable as error:
        report = no_report(run, str(error), runner=machine)
    await take(fork.ctx, run, report, machine)
    return True


async def _find(fork: Fork, run: Run, request: RunRequest, known: int | None) -> WorkflowRun | None:
    """GitHub's run of this attempt, None while it is not there yet. Raises Unusable."""
    workflow = workflow_of(run.label)
    if known is not None:
        try:
            found = await fork.github.workflow_run(known)
        except NotFound:
            raise Unusable(f"the run {known} of {workflow} was deleted") from None
        if not is_of_workflow(request, event=found.event, path=found.path):
            raise Unusable(f"the run {known} is none of {workflow} that was started for this")
        return found
    since = run.started_at or run.queued_at
    for found in reversed(await fork.github.workflow_runs(event="workflow_dispatch", since=since - _SKEW)):
        if is_run_of(request, title=found.display_title, event=found.event, path=found.path):
            return found
    if fork.now - since > FIND_FOR:
        raise Unusable(
            f"no run of {workflow} bears {correlation(request)} in its name: "
            "it needs run-name: graft ${{ inputs.graft_run }}"
        )
    return None


async def _report(fork: Fork, run: Run, request: RunRequest, found: WorkflowRun) -> Report:
    """What the run's artifact counts as. Raises Unusable."""
    name = artifact_of(request)
    there = sorted(await fork.github.artifacts(found.id, name=name), key=lambda one: one.id)
    ended = f"{workflow_of(run.label)} ended as {found.conclusion or 'nothing'}"
    if not there:
        raise Unusable(f"{ended} and left no artifact {name}")
    if there[-1].expired:
        raise Unusable(f"the artifact {name} has expired")
    try:
        data = await fork.github.download_artifact(there[-1])
        files = await asyncio.to_thread(read_archive, data, wanted=wanted)
    except (Gone, NotFound):
        raise Unusable(f"the artifact {name} has expired") from None
    except TooLarge as error:
        raise Unusable(f"the artifact {name}: {error.message}") from error
    except ArchiveError as error:
        raise Unusable(f"the artifact {name}: {error}") from error
    said = await asyncio.to_thread(
        report_of,
        request,
        files,
        conclusion=found.conclusion or "",
        runner=_machine(run).name,
        started_at=found.run_started_at or found.created_at or run.queued_at,
        finished_at=found.updated_at or fork.now,
    )
    own = any(name.rpartition("/")[2] == REPORT for name, _ in files)
    counted = judged(run, request, said, canary=has_canary(request.suite) if own else request.suite.canary is not None)
    if counted.outcome is Outcome.PASSED and found.conclusion != "success":
        raise Unusable(f"its report says passed, but {ended}")
    return counted


def _request(run: Run) -> RunRequest:
    return RunRequest.model_validate(run.request).model_copy(update={"attempt": run.attempt})


def _machine(run: Run) -> Runner:
    return Runner(name=f"GitHub Actions {workflow_of(run.label)}", token_hash="", labels=(run.label,))


def _ref(fork: Fork, run: Run) -> str:
    """The branch whose workflow runs: never the pull request's."""
    for suite in fork.config.validation.of(Level(run.level)):
        if suite.suite == run.suite and suite.second is not None and suite.second.ref:
            return suite.second.ref
    return fork.config.fork.branch
