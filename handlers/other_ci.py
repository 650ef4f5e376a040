"""Hear what CI that is not Graft's says of trunk's commits, and keep it as runs of the suites that the file names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from bot.context import Context, Forbidden, Gone, Job, NotFound, Run, RunState, TooLarge
from bot.core.batches import key_of
from bot.core.config import OtherCi
from bot.core.reports import parse_xml
from bot.core.reports.archive import ArchiveError, read_archive
from bot.core.triage.other_ci import Left, Source, check_report, of_check, of_workflow, wants, workflow_report
from bot.core.turns import Turn
from bot.core.validation import Report
from handlers.fork import Fork, open_fork
from handlers.trunk import trunk_order

if TYPE_CHECKING:
    from bot.context import CheckRun, WorkflowArtifact, WorkflowRun

CHECKED = 10  # trunk's newest commits whose checks a sweep reads
LOOKED_BACK = timedelta(days=3)  # for runs of workflows that no event told of
MOST_ARTIFACTS = 30  # of one run
DENIED = "other_ci:denied"


async def other_ci(ctx: Context, job: Job) -> None:
    """Job `other_ci`: the finished runs at the commit that is named, else at trunk's newest; each attempt once."""
    fork = await open_fork(ctx, job.scope)
    if not fork.config.triage.other_ci:
        return
    sha = job.payload.get("sha")
    order = await asyncio.to_thread(trunk_order, fork.git)
    if not order or (sha and sha not in order):
        await fork.fetch_fork()
        order = await asyncio.to_thread(trunk_order, fork.git)
    if sha and sha not in order:
        return  # of a branch: it says nothing of trunk
    known = {run.id for run in await ctx.store.trunk_runs(fork.name)}
    try:
        fresh = [run async for run in _fresh(fork, order, sha, known)]
    except Forbidden as error:
        await _denied(fork, str(error))
        return
    await _denied(fork, None)
    for commit in dict.fromkeys(fresh):
        await fork.enqueue("triage", "trunk", {"sha": commit})


async def _denied(fork: Fork, why: str | None) -> None:
    """Have the dashboard say that other CI can't be read, or no longer."""
    if await fork.note(DENIED) != why:
        await fork.put_note(DENIED, why)
        await fork.enqueue("dashboard", "repository")


async def _fresh(fork: Fork, order: Sequence[str], sha: str | None, known: set[str]) -> AsyncIterator[str]:
    """Store each finished run that was not known yet; gives its commit."""
    entries, on_trunk = fork.config.triage.other_ci, set(order)
    if any(entry.workflow for entry in entries):
        since = None if sha else fork.now - LOOKED_BACK
        for run in await fork.github.workflow_runs(sha=sha, branch=fork.config.fork.branch, since=since):
            if run.status != "completed" or run.head_sha not in on_trunk:
                continue
            for entry in of_workflow(fork.config, run.path, run.event):
                key = _key(fork, entry, f"workflow {run.id}.{run.run_attempt}")
                if key not in known and (report := await _workflow(fork, entry, run, key)) is not None:
                    yield await _keep(fork, report)
    if any(entry.checks for entry in entries):
        own = (await fork.ctx.github.info()).id
        for commit in [sha] if sha else order[-CHECKED:]:
            for check in await fork.github.check_runs(commit):
                app = check.app
                if check.status != "completed" or app is None or app.id == own:
                    continue
                named = of_check(fork.config, check.name, app.slug)
                key = _key(fork, named, f"check {check.id} {check.completed_at}") if named else ""
                if named is not None and key not in known:
                    yield await _keep(fork, _check(fork, named, check, key))


def _key(fork: Fork, entry: OtherCi, source: str) -> str:
    return key_of(fork.name, "other ci", entry.suite, source)


async def _keep(fork: Fork, report: Report) -> str:
    sha = report.subject.commit
    run = Run(
        id=report.run_id,
        repository=fork.name,
        installation=fork.scope.installation,
        number=None,
        sha=sha,
        base=sha,
        level=report.level.value,
        suite=report.suite,
        label=report.harness,
        request={},
        deadline=report.finished_at,
        queued_at=report.started_at,
        state=RunState.DONE,
        outcome=report.outcome.value,
        report=report.model_dump(mode="json"),
        runner=report.environment.runner,
        started_at=report.started_at,
        finished_at=report.finished_at,
        turn=Turn.TRUNK,
    )
    await fork.ctx.store.create_run(run)
    return sha


async def _workflow(fork: Fork, entry: OtherCi, run: WorkflowRun, key: str) -> Report | None:
    """The report of a workflow's run; None where the run is gone."""
    source = Source(
        run=key,
        repository=fork.name,
        commit=run.head_sha,
        level=entry.level,
        suite=entry.suite,
        by="GitHub Actions",
        conclusion=run.conclusion or "",
        started_at=run.run_started_at or run.created_at or fork.now,
        finished_at=run.updated_at or fork.now,
        repeat=f"gh run rerun {run.id} --repo {fork.name}",
    )
    try:
        there = await fork.github.artifacts(run.id)
    except NotFound:
        return None
    if run.run_attempt > 1 and run.run_started_at:  # an earlier attempt's results are that attempt's
        there = [one for one in there if one.created_at is None or one.created_at >= run.run_started_at]
    newest = {one.name: one for one in sorted(there, key=lambda one: one.id) if wants(entry, one.name)}
    left = [await _left(fork, one) for one in list(newest.values())[:MOST_ARTIFACTS]]
    left += [Left(name, problem=f"of more than {MOST_ARTIFACTS}") for name in list(newest)[MOST_ARTIFACTS:]]
    vain = [pattern for pattern in entry.artifacts if not any(fnmatchcase(name, pattern) for name in newest)]
    return await asyncio.to_thread(
        workflow_report, source, [*left, *(Left(pattern, problem="the run left none") for pattern in vain)]
    )


async def _left(fork: Fork, artifact: WorkflowArtifact) -> Left:
    if artifact.expired:
        return Left(artifact.name, problem="it has expired")
    try:
        data = await fork.github.download_artifact(artifact)
    except Gone:
        return Left(artifact.name, problem="it has expired")
    except NotFound:
        return Left(artifact.name, problem="it is gone")
    except TooLarge as error:
        return Left(artifact.name, problem=error.message)
    return await asyncio.to_thread(_read, artifact.name, data)


def _read(name: str, data: bytes) -> Left:
    try:
        files = read_archive(data, wanted=lambda file: file.lower().endswith(".xml"))
    except ArchiveError as error:
        return Left(name, problem=str(error))
    if not files:
        return Left(name, problem="no result file is in it")
    return Left(name, tuple(parse_xml(content) for _, content in files))


def _check(fork: Fork, entry: OtherCi, check: CheckRun, key: str) -> Report:
    said = check.output
    source = Source(
        run=key,
        repository=fork.name,
        commit=check.head_sha,
        level=entry.level,
        suite=entry.suite,
        by=check.app.slug if check.app else "",
        conclusion=check.conclusion or "",
        started_at=check.started_at or check.completed_at or fork.now,
        finished_at=check.completed_at or fork.now,
    )
    text = "\n".join(part for part in (said.title, said.summary, said.text) if part)
    return check_report(source, name=check.name, text=text)
