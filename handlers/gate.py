"""The gate: gather the facts of a pull request or of a merge group, decide, write the required check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from bot.context import Context, Job, Pull, Repository
from bot.core.audit import AuditKind
from bot.core.gate import GateFacts, GateResult, PullFact, decide, decide_group
from bot.core.render.gate import gate_check
from bot.core.render.results import CheckText
from bot.core.types import Level
from bot.core.waivers import JudgedWaiver
from handlers.auditing import record
from handlers.facts import gate_facts
from handlers.failing import suite_results
from handlers.fork import CONFIG_PATH, BrokenConfig, Fork, open_fork
from handlers.regating import concerned, measured, note_of, seen_by, seen_now
from handlers.requesting import request_sign_offs
from handlers.validate import GROUP, Target, cancel_runs, start_level, stranger, unfinished
from handlers.waivers import ask_in_pull

CHECK = "graft/gate"
GROUPS = "groups"
_LOOKS = 3
_KEPT_FOR = timedelta(days=2)


class Moving(Exception):
    """The pull request's head moved each time while its facts were read: the job looks again later."""


async def gate(ctx: Context, job: Job) -> None:
    """Job `gate`: decide anew for a pull request and write the check on its head."""
    number = int(job.payload["number"])
    try:
        fork = await open_fork(ctx, job.scope)
    except BrokenConfig as broken:
        await _refuse(ctx, job, number, broken)
        return
    for _ in range(_LOOKS):
        pull = await fork.github.pull(number)
        if pull.state != "open" or pull.base.ref != fork.config.fork.branch:
            return
        trunk = await measured(fork)
        facts = await gate_facts(fork, pull)
        if (await fork.github.pull(number)).head.sha != pull.head.sha:
            continue  # what was read belongs to two commits
        result = decide(config=fork.config, facts=facts, now=fork.now)
        await _note_decision(fork, number, result)
        await write_gate(fork.github, pull.head.sha, gate_check(result))
        await fork.put_note(note_of(number), seen_by(fork.config, facts, trunk))
        await ask_in_pull(fork, number, _used(facts), facts.people)
        await request_sign_offs(fork, number, facts, result)
        return
    raise Moving(f"#{number} moved {_LOOKS} times while it was read")


def _used(facts: GateFacts) -> list[JudgedWaiver]:
    """The waivers that matter: those of something that did not pass."""
    failures = [failure for result in facts.results for failure in result.failures]
    return [one for one in facts.waivers if any(one.waiver.covers(failure) for failure in failures)]


async def _note_decision(fork: Fork, number: int, result: GateResult) -> None:
    """A decision that differs from the last one goes into the audit, with what is missing."""
    missing = [{"key": r.key, "code": r.code.value, "text": r.text} for r in result.missing[:100]]
    key = f"gate:{number}"
    said = {"head": result.head, "decision": result.decision.value, "why": [f"{m['code']} {m['key']}" for m in missing]}
    if await fork.note(key) == said:
        return
    async with fork.ctx.store.transaction() as tx:
        await tx.put_note(fork.scope.installation, fork.name, key, said, fork.now)
        body = {"pull": number, "head": result.head, "decision": result.decision.value, "missing": missing}
        await record(tx, scope=fork.scope, kind=AuditKind.GATE, body=body, at=fork.now)


async def gate_all(ctx: Context, job: Job) -> None:
    """Job `gate_all`: something changed that may concern every open pull request, and every group in the merge queue.

    Only those are asked for whose decision may be another one now (see `handlers.regating`); who is a member of what is
    kept nowhere, so a change of that asks for all of them.
    """
    try:
        fork = await open_fork(ctx, job.scope)
        pulls = await fork.github.pulls(state="open", base=fork.config.fork.branch)
        everyone = job.payload.get("event") == "membership"
        known = {pull.number: await fork.note(note_of(pull.number)) for pull in pulls if not everyone}
        numbers = concerned(now=await seen_now(fork), pulls=pulls, known=known)
    except BrokenConfig:
        # which branch it is can't be read: all of them are shut
        github = ctx.github.repository(job.scope.installation, job.scope.repository)
        numbers = [pull.number for pull in await github.pulls(state="open", base=None)]
    for number in numbers:
        await _ask(ctx, job, "gate", f"#{number}", {"number": number})
    for sha, group in (await ctx.store.note(job.installation, job.repository, GROUPS) or {}).items():
        await _ask(ctx, job, "gate_group", sha, {"sha": sha, "ref": group["ref"]})


async def _ask(ctx: Context, job: Job, kind: str, key: str, payload: dict[str, Any]) -> None:
    await ctx.store.enqueue(
        kind, key, payload, installation=job.installation, repository=job.repository, now=ctx.now()
    )  # fmt: skip


async def gate_group(ctx: Context, job: Job) -> None:
    """Job `gate_group`: a merge queue asks about a group, or let it go.

    Each of its pull requests must be let through by itself, and L1 must pass on the group's own commit.
    """
    sha, ref = str(job.payload["sha"]), str(job.payload.get("ref", ""))
    try:
        fork = await open_fork(ctx, job.scope)
    except BrokenConfig as broken:
        github = ctx.github.repository(job.scope.installation, job.scope.repository)
        members = [
            _unread(number, "", (await github.pull(number)).head.sha, broken) for number in group_numbers(ref)
        ]  # fmt: skip
        result = decide_group(config=None, head=sha, members=members, results=(), now=ctx.now())
        await write_gate(github, sha, gate_check(result))
        return
    if job.payload.get("action") == "destroyed":
        await _group_gone(fork, sha)
        return
    pulls = [await fork.github.pull(number) for number in group_numbers(ref)]
    await _keep_group(fork, sha, ref)
    if pulls and all([await stranger(fork, pull) is None for pull in pulls]):
        await start_level(fork, Target(sha, pulls[0].base.sha, GROUP), Level.L1)
    runs = await fork.ctx.store.runs(fork.name, sha, number=GROUP)
    result = decide_group(
        config=fork.config,
        head=sha,
        members=[await gate_facts(fork, pull) for pull in pulls],
        results=await suite_results(fork, runs),
        now=fork.now,
    )
    await write_gate(fork.github, sha, gate_check(result))


def group_numbers(ref: str) -> list[int]:
    """The pull requests that a merge queue's branch stands for (`…/pr-12-<sha>`)."""
    return [int(found) for found in re.findall(r"/pr-(\d+)-[0-9a-f]{40}", ref)]


async def _keep_group(fork: Fork, sha: str, ref: str) -> None:
    """The groups that are in the queue are looked at again with everything else, until they are gone or old."""
    oldest, now = (fork.now - _KEPT_FOR).timestamp(), fork.now.timestamp()

    def with_it(known: Any) -> dict[str, Any]:
        kept = {key: value for key, value in (known or {}).items() if key == sha or value["at"] > oldest}
        return {sha: {"ref": ref, "at": now}, **kept}

    await fork.change_note(GROUPS, with_it)


async def _group_gone(fork: Fork, sha: str) -> None:
    await fork.change_note(GROUPS, lambda known: {key: value for key, value in (known or {}).items() if key != sha})
    await cancel_runs(fork, [run for run in await unfinished(fork, GROUP) if run.sha == sha])


async def decide_for(fork: Fork, pull: Pull) -> GateResult:
    """The gate's decision for a pull request as all is now."""
    return decide(config=fork.config, facts=await gate_facts(fork, pull), now=fork.now)


async def write_gate(github: Repository, sha: str, text: CheckText) -> None:
    """Write the required check of a commit."""
    await github.upsert_check(
        sha,
        CHECK,
        status=text.status,
        conclusion=text.conclusion,
        title=text.title,
        summary=text.summary,
        text=text.text,
        external_id=f"gate:{sha}",
    )


async def _refuse(ctx: Context, job: Job, number: int, broken: BrokenConfig) -> None:
    """The fork's file is broken: the gate stays shut and says what to mend."""
    github = ctx.github.repository(job.scope.installation, job.scope.repository)
    pull = await github.pull(number)
    if pull.state != "open":
        return
    facts = _unread(number, pull.user.login, pull.head.sha, broken)
    await ctx.store.put_note(job.installation, job.repository, note_of(number), None, ctx.now())
    await write_gate(github, pull.head.sha, gate_check(decide(config=None, facts=facts, now=ctx.now())))


def _unread(number: int, author: str, head: str, broken: BrokenConfig) -> GateFacts:
    problems: Sequence[str] = [str(problem) for problem in broken.error.problems]
    return GateFacts(
        pull=PullFact(number, author, head), config_problems=tuple(problems) or (f"{CONFIG_PATH} can't be read",)
    )
