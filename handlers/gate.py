"""The gate: gather the facts of a pull request or of a merge group, decide, write the required check."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from bot.clients.git import FetchError, GitError
from bot.clients.github import Pull
from bot.clients.github import Review as GitHubReview
from bot.clients.store.models import Job, Run
from bot.clients.store.models import RunState as Row
from bot.context import Context
from bot.core.audit import AuditKind
from bot.core.batches import Batch
from bot.core.command import Command, Validate, parse
from bot.core.comments import CommentFact
from bot.core.gate import (
    GateFacts,
    GateResult,
    OpenBreakage,
    PullFact,
    PullKind,
    Review,
    ReviewState,
    RunState,
    SuiteResult,
    decide,
)
from bot.core.owners import People
from bot.core.render.gate import gate_check
from bot.core.render.results import CheckText
from bot.core.resolution import FindingKind
from bot.core.signoff import Change, Fingerprint, fingerprint, sign_offs
from bot.core.types import BatchKind, Level, Outcome
from bot.core.validation import Report
from bot.core.waivers import Failure, from_comments
from handlers.auditing import record
from handlers.batches import batch_of
from handlers.comments import comment_facts
from handlers.fork import CONFIG_PATH, BrokenConfig, Fork, NotAFork, open_fork
from handlers.people import people
from handlers.resolving import findings, marked_files
from handlers.validate import latest
from handlers.waivers import file_waivers

CHECK = "graft/gate"
MAX_FILES = 3_000  # GitHub lists no more files of a pull request


async def gate(ctx: Context, job: Job) -> None:
    """Job `gate`: decide anew for a pull request and write the check on its head."""
    number = int(job.payload["number"])
    try:
        fork = await open_fork(ctx, job.scope)
    except BrokenConfig as broken:
        await _refuse_all(ctx, job, number, broken)
        return
    except NotAFork:
        return
    pull = await fork.github.pull(number)
    if pull.state != "open" or pull.base.ref != fork.config.fork.branch:
        return
    result = await decide_for(fork, pull)
    await _note_decision(fork, number, result)
    await write_gate(fork, pull.head.sha, gate_check(result))


async def _note_decision(fork: Fork, number: int, result: GateResult) -> None:
    """A decision that differs from the last one goes into the audit, with what is missing."""
    key, said = f"gate:{number}", {"head": result.head, "decision": result.decision.value}
    if await fork.note(key) == said:
        return
    missing = [{"key": r.key, "code": r.code.value, "text": r.text} for r in result.missing[:100]]
    async with fork.ctx.store.transaction() as tx:
        await tx.put_note(fork.scope.installation, fork.name, key, said, fork.now)
        body = {"pull": number, **said, "missing": missing}
        await record(tx, scope=fork.scope, kind=AuditKind.GATE, body=body, at=fork.now)


async def gate_all(ctx: Context, job: Job) -> None:
    """Job `gate_all`: something changed that concerns every open pull request."""
    try:
        fork = await open_fork(ctx, job.scope)
    except NotAFork:
        return
    for pull in await fork.github.pulls(state="open", base=fork.config.fork.branch):
        await fork.enqueue("gate", f"#{pull.number}", {"number": pull.number})


async def gate_group(ctx: Context, job: Job) -> None:
    """Job `gate_group`: a merge queue asks about a group: each of its pull requests must be let through by itself."""
    fork = await open_fork(ctx, job.scope)
    sha, ref = job.payload["sha"], job.payload["ref"]
    numbers = group_numbers(ref)
    results = [await decide_for(fork, await fork.github.pull(number)) for number in numbers]
    if not results:
        text = CheckText("completed", "failure", "block: the group names no pull request", f"`{ref}` names none.")
        await write_gate(fork, sha, text)
        return
    worst = max(results, key=lambda r: ["allow", "pending", "block"].index(r.decision.value))
    await write_gate(fork, sha, gate_check(worst))


def group_numbers(ref: str) -> list[int]:
    """The pull requests that a merge queue's branch stands for (`…/pr-12-<sha>`)."""
    return [int(found) for found in re.findall(r"/pr-(\d+)-[0-9a-f]{40}", ref)]


async def decide_for(fork: Fork, pull: Pull) -> GateResult:
    """The gate's decision for a pull request as all is now."""
    facts = await gate_facts(fork, pull)
    return decide(config=fork.config, facts=facts, now=fork.now)


async def gate_facts(fork: Fork, pull: Pull) -> GateFacts:
    """All that the gate decides on, read from GitHub, git and the store."""
    comments = await comment_facts(fork, pull.number)
    reviews = await fork.github.reviews(pull.number)
    files = await fork.github.pull_files(pull.number)
    batch = await batch_of(fork, pull.number)
    speakers = [c.author for c in comments if parse(c.body)] + [r.user.login for r in reviews] + [pull.user.login]
    who = await people(fork, speakers)
    head = pull.head.sha
    waivers = from_comments(
        comments=comments, people=who, head=head, pull=pull.number, config=fork.config, now=fork.now
    )
    runs = await fork.ctx.store.runs(fork.name, number=pull.number)
    paths = tuple(dict.fromkeys(p for f in files for p in (f.previous_filename, f.filename) if p))
    in_file = await file_waivers(fork)
    halted = await fork.halted()
    marked, left = await _resolution(fork, pull, batch, reviews, who)
    return GateFacts(
        pull=PullFact(
            number=pull.number,
            author=pull.user.login,
            head=head,
            kind=_kind(batch),
            draft=pull.draft,
            files=paths if len(files) < MAX_FILES else None,
            labels=tuple(label.name for label in pull.labels),
            risks=batch.rules if batch else (),
            toolchain=bool(batch and "toolchain" in batch.rules),
            conflict_markers=marked,
            open_findings=left,
        ),
        results=tuple(_suite_result(key[0], run) for key, run in latest([r for r in runs if r.sha == head]).items()),
        sign_offs=sign_offs(
            config=fork.config,
            comments=comments,
            people=who,
            author=pull.user.login,
            head=head,
            fingerprints=await _fingerprints(fork, pull, comments),
            runs={run.id: run.sha for run in runs},
            waivers=(*waivers, *(in_file or ())),
        ),
        waivers=waivers,
        file_waivers=in_file,
        reviews=tuple(_review(review) for review in _latest_reviews(reviews)),
        breakages=await open_breakages(fork),
        halted=halted is not None,
        halted_by=halted or "",
        people=who,
        forced=_forced(comments, who, head),
    )


async def open_breakages(fork: Fork) -> tuple[OpenBreakage, ...]:
    """Trunk's breakages that are not mended."""
    rows = await fork.ctx.store.breakages(fork.name, ["open", "bisecting", "culprit_known"])
    return tuple(OpenBreakage(row.key, row.data.get("area"), row.number) for row in rows)


def _kind(batch: Batch | None) -> PullKind:
    if batch is None:
        return PullKind.PERSON
    return {
        BatchKind.BUNDLE: PullKind.BUNDLE,
        BatchKind.CHAIN: PullKind.CHAIN,
        BatchKind.CONFLICT: PullKind.CONFLICT,
    }[batch.kind]


def _suite_result(level: Level, run: Run) -> SuiteResult:
    states = {Row.QUEUED: RunState.QUEUED, Row.LEASED: RunState.RUNNING, Row.DONE: RunState.DONE}
    outcome = Outcome(run.outcome) if run.outcome else None
    report = Report.model_validate(run.report) if run.report else None
    return SuiteResult(
        level=level,
        suite=run.suite,
        head=run.sha,
        state=states[run.state],
        outcome=outcome,
        attempt=run.attempt,
        failures=failures_of(level, run.suite, report, outcome),
        run=run.id,
    )


def failures_of(level: Level, suite: str, report: Report | None, outcome: Outcome | None) -> tuple[Failure, ...]:
    """All of a suite that did not pass: its failed and missing tests, else the suite as a whole."""
    if outcome in (None, Outcome.PASSED):
        return ()
    tests = [Failure(level, suite, Outcome.FAILED, test=t.id) for t in report.failures] if report else []
    missing = [Failure(level, suite, Outcome.OMITTED, test=t) for t in report.manifest.missing] if report else []
    return tuple(tests + missing) or (Failure(level, suite, outcome),)


async def failures_of_runs(fork: Fork, number: int, sha: str) -> tuple[Failure, ...]:
    """All that did not pass in the newest runs of a pull request at a commit."""
    runs = await fork.ctx.store.runs(fork.name, sha, number=number)
    results = [_suite_result(key[0], run) for key, run in latest(runs).items()]
    return tuple(failure for result in results for failure in result.failures)


async def _fingerprints(fork: Fork, pull: Pull, comments: Sequence[CommentFact]) -> dict[str, Fingerprint]:
    """What each commit that somebody signed, and the head, changes; one that git can't give is left out."""
    wanted = {
        c.head
        for c in comments
        if c.head and any(isinstance(x, Command) and x.name == "signoff" for x in parse(c.body))
    }
    if not wanted - {pull.head.sha}:
        return {}  # signed for the very head, or not at all: nothing to compare
    await fork.fetch_fork(pull.number)

    def one(sha: str) -> Fingerprint | None:
        if fork.git.resolve(sha) is None or (base := fork.git.merge_base(sha, pull.base.sha)) is None:
            return None
        changes = fork.git.changed_files(base, sha)
        return fingerprint([Change(c.path, c.old_oid, c.new_oid, c.new_mode) for c in changes], fork.config)

    found = {sha: await asyncio.to_thread(one, sha) for sha in {*wanted, pull.head.sha}}
    return {sha: print_ for sha, print_ in found.items() if print_ is not None}


async def _resolution(
    fork: Fork, pull: Pull, batch: Batch | None, reviews: Sequence[GitHubReview], who: People
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The files with conflict markers, and the findings that nobody confirmed yet; None where git can't be read.

    A finding is confirmed by the approval of someone who may write, given for this very head.
    """
    if batch is None or (batch.kind is not BatchKind.CONFLICT and not batch.paused):
        return (), ()
    head = pull.head.sha
    try:
        base = await fork.fetch_fork(pull.number)
        marked = await asyncio.to_thread(marked_files, fork.git, head=head, base=base)
        found = await asyncio.to_thread(findings, fork.git, batch=batch, head=head, base=base)
    except (GitError, FetchError) as error:
        fork.ctx.log.warning("a resolution was not read", number=pull.number, error=str(error))
        return None, None
    confirmed = any(r.state == "APPROVED" and r.commit_id == head and who.can_write(r.user.login) for r in reviews)
    left = [f for f in found if f.blocking or (f.confirm and not confirmed)]
    return marked, tuple(f"{f.path}: {f.text}" for f in left if f.kind is not FindingKind.MARKER)


def _latest_reviews(reviews: Sequence[GitHubReview]) -> list[GitHubReview]:
    newest: dict[str, GitHubReview] = {}
    for review in reviews:
        if review.state in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED"):
            newest[review.user.login] = review
    return list(newest.values())


def _review(review: GitHubReview) -> Review:
    states = {"APPROVED": ReviewState.APPROVED, "CHANGES_REQUESTED": ReviewState.CHANGES_REQUESTED}
    return Review(review.user.login, states.get(review.state, ReviewState.OTHER), review.commit_id)


def _forced(comments: Sequence[CommentFact], who: People, head: str) -> tuple[Level, ...]:
    """Levels that a maintainer let start before the one below had passed, on this very commit."""
    found = []
    for comment in comments:
        for command in parse(comment.body) if comment.head == head and not comment.edited else ():
            force = isinstance(command, Command) and isinstance(command.args, Validate) and command.args.force
            if force and who.can_maintain(comment.author):
                assert isinstance(command, Command) and isinstance(command.args, Validate)
                found.append(command.args.level)
    return tuple(found)


async def write_gate(fork: Fork, sha: str, text: CheckText) -> None:
    """Write the required check of a commit."""
    await fork.github.upsert_check(
        sha,
        CHECK,
        status=text.status,
        conclusion=text.conclusion,
        title=text.title,
        summary=text.summary,
        text=text.text,
        external_id=f"gate:{sha}",
    )


async def _refuse_all(ctx: Context, job: Job, number: int, broken: BrokenConfig) -> None:
    """The fork's file is broken: the gate stays shut and says what to mend."""
    github = ctx.github.repository(job.scope.installation, job.scope.repository)
    pull = await github.pull(number)
    if pull.state != "open":
        return
    facts = GateFacts(
        pull=PullFact(number, pull.user.login, pull.head.sha),
        config_problems=tuple(str(problem) for problem in broken.error.problems) or (f"{CONFIG_PATH} can't be read",),
    )
    text = gate_check(decide(config=None, facts=facts, now=ctx.now()))
    await github.upsert_check(
        pull.head.sha,
        CHECK,
        status=text.status,
        conclusion=text.conclusion,
        title=text.title,
        summary=text.summary,
        text=text.text,
        external_id=f"gate:{pull.head.sha}",
    )
