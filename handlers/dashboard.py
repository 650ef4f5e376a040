"""Keep the dashboard issue: written again only where it would say something else; its boxes ask for work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from bot.context import Context, Gone, Issue, Job
from bot.core.render.dashboard import (
    DASHBOARD,
    TITLE,
    BreakageNote,
    Click,
    DashboardFacts,
    WaitingNote,
    clicks,
    dashboard_body,
)
from bot.core.render.rewritten import RewriteNote
from bot.core.render.text import marker
from bot.core.types import Mode, Plan
from handlers.affording import note_budgets
from handlers.batches import add_to_note, load_batches
from handlers.digest import trunk_digest
from handlers.fork import BrokenConfig, Fork, open_fork
from handlers.plans import plan_of, stored_plan
from handlers.spending import note_costs

DASHBOARD_LABEL = "graft:dashboard"
FOLLOW, REWRITTEN = "follow", "rewritten"
OPEN_BREAKAGE = ("open", "bisecting", "culprit_known")


async def dashboard(ctx: Context, job: Job) -> None:
    """Job `dashboard`: carry out ticked boxes, then bring the issue up to date."""
    try:
        fork = await open_fork(ctx, job.scope)
    except BrokenConfig as broken:
        await _say_broken(ctx, job, broken)
        return
    for issue in await _mine(fork):
        await _carry_out(fork, clicks(issue.body))
    await update_dashboard(fork, await stored_plan(fork))


async def ticked(ctx: Context, job: Job) -> None:
    """Job `ticked`: someone edited an issue; boxes that they ticked on the dashboard are carried out.

    They are read from the stored, signed delivery: by the time that the issue is read again, an update of Graft's own
    may have written over the tick. Who may not write may not tick.
    """
    fork = await open_fork(ctx, job.scope)
    delivery = await ctx.store.delivery(str(job.payload["delivery"]))
    issue = json.loads(delivery.payload).get("issue", {}) if delivery and delivery.payload else {}
    body = str(issue.get("body") or "")
    if marker(DASHBOARD) not in body or (issue.get("user") or {}).get("login") != await fork.login():
        return
    found = clicks(body)
    by = str(job.payload.get("sender", ""))
    role = await fork.github.permission(by) if found else None
    if role not in ("write", "maintain", "admin"):
        return
    for click in found:
        if click.verb == "follow" and role != "write":  # carried out by the ingest that `_carry_out` asks for
            await fork.put_note(FOLLOW, {"sha": click.sha, "by": by, "issue": issue["number"]})
    await _carry_out(fork, found)
    await fork.enqueue("dashboard", "repository")


async def _carry_out(fork: Fork, found: Sequence[Click]) -> None:
    for click in found:
        if click.verb == "pick" and click.sha:
            await fork.ctx.store.remove_decision(fork.name, click.sha)
            await add_to_note(fork, "urgent", [click.sha])
        await fork.enqueue("ingest", "repository")


async def noted_rewrite(fork: Fork) -> RewriteNote | None:
    """What is known of an upstream whose history was rewritten and is not followed yet."""
    data = await fork.note(REWRITTEN)
    return RewriteNote(**{**data, "picked": tuple(data["picked"])}) if data else None


async def dashboard_issue(fork: Fork) -> int | None:
    """The number of the dashboard issue where there is one."""
    return next((issue.number for issue in await _mine(fork)), None)


async def _mine(fork: Fork) -> list[Issue]:
    me = await fork.login()
    issues = await fork.github.issues(labels=(DASHBOARD_LABEL,))
    return [issue for issue in issues if marker(DASHBOARD) in issue.body and issue.user.login == me]


async def update_dashboard(fork: Fork, plan: Plan | None) -> None:
    """Write the dashboard from what is known now."""
    state = await fork.note("ingest") or {}
    rows = await fork.ctx.store.breakages(fork.name, OPEN_BREAKAGE)
    facts = DashboardFacts(
        upstream=fork.config.upstream.repository,
        mode=fork.config.mode,
        now=fork.now,
        plan=plan,
        batches=await load_batches(fork),
        waiting=[WaitingNote(tuple(commits), text) for commits, text, _ in await fork.note("waiting") or []],
        breakages=[BreakageNote(r.title, r.number, r.data.get("area"), r.state, r.first_seen) for r in rows],
        good_at=datetime.fromtimestamp(state["good_at"], UTC) if state.get("good_at") else None,
        error=state.get("error"),
        halted_by=await fork.halted(),
        blocked=[str(text) for text in (await fork.note("blocked") or {}).values()],
        digest=await trunk_digest(fork),
        costs=await note_costs(fork),
        budgets=await note_budgets(fork),
        rewritten=await noted_rewrite(fork),
    )
    await fork.put_note("upstream", fork.config.upstream.repository)
    await fork.github.ensure_label(DASHBOARD_LABEL, "bfd4f2", "Graft's dashboard")
    try:
        await fork.github.upsert_issue(marker(DASHBOARD), TITLE, dashboard_body(facts), labels=(DASHBOARD_LABEL,))
    except Gone as error:  # issues are switched off, as they are at first in a fork: pull requests go on without it
        if error.archived:
            raise
        fork.ctx.log.warning("there is no dashboard: switch issues on in the repository's settings", error=str(error))


async def _say_broken(ctx: Context, job: Job, broken: BrokenConfig) -> None:
    """What was known stands, below what is wrong with the file."""
    github = ctx.github.repository(job.scope.installation, job.scope.repository)
    facts = DashboardFacts(
        upstream=await ctx.store.note(job.scope.installation, job.scope.repository, "upstream") or "upstream",
        mode=Mode.OBSERVE,
        now=ctx.now(),
        plan=await plan_of(ctx, job.scope),
        config_problems=tuple(str(problem) for problem in broken.error.problems),
    )
    await github.ensure_label(DASHBOARD_LABEL, "bfd4f2", "Graft's dashboard")
    await github.upsert_issue(marker(DASHBOARD), TITLE, dashboard_body(facts), labels=(DASHBOARD_LABEL,))
