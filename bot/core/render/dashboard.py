"""The one dashboard issue of a fork: both metrics, every hole with its reason, what is open, waits, or is wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.core.batches import Batch, BatchState
from bot.core.doctor import SuiteCost
from bot.core.gpubudget import AreaBudget, month_key
from bot.core.render.rewritten import RewriteNote, rewrite_alarm, rewrite_box
from bot.core.render.text import BODY_LIMIT, block, code, fit, line, marker, plural, short, table
from bot.core.types import BatchKind, Mode, Plan

DASHBOARD = "dashboard"
ALARM = "alarm"
TITLE = "Graft: what of upstream is in, what is open, what waits"
_SUITES = 20
_BOX = re.compile(r"^\s*[-*] \[[xX]\] .*<!-- graft:do ([a-z-]+)(?: ([0-9a-f]{40}))? -->\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class WaitingNote:
    """Commits that could be planned but are not open, with the reason."""

    commits: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class BreakageNote:
    """One open breakage of trunk."""

    title: str
    number: int | None
    area: str | None
    state: str
    since: datetime | None


@dataclass(frozen=True, slots=True)
class DashboardFacts:
    """All that the dashboard says. `plan` None: there was no good reading yet."""

    upstream: str
    mode: Mode
    now: datetime
    plan: Plan | None = None
    batches: Sequence[Batch] = ()
    waiting: Sequence[WaitingNote] = ()
    breakages: Sequence[BreakageNote] = ()
    good_at: datetime | None = None
    error: str | None = None
    halted_by: str | None = None
    config_problems: Sequence[str] = ()
    blocked: Sequence[str] = ()
    digest: str = ""
    costs: Sequence[SuiteCost] = ()
    budgets: Sequence[AreaBudget] = ()
    rewritten: RewriteNote | None = None


@dataclass(frozen=True, slots=True)
class Click:
    """A ticked box: what it asks for, and of which commit."""

    verb: str
    sha: str | None = None


def dashboard_body(facts: DashboardFacts) -> str:
    """The issue's text; a function of the facts, so that nothing changes where nothing happened."""
    parts = [marker(DASHBOARD), *_alarms(facts)]
    if facts.plan is not None:
        parts += [_metrics(facts, facts.plan), _open(facts, facts.plan), _breakages(facts), facts.digest]
        parts += [_holes(facts.plan), _chains(facts.plan), _waiting(facts), _budgets(facts), _costs(facts)]
    parts.append(_boxes(facts))
    return fit([part for part in parts if part], block("metrics", _machine(facts)), BODY_LIMIT - 100)


def clicks(body: str) -> list[Click]:
    """The boxes that somebody ticked."""
    return [Click(match[1], match[2]) for match in _BOX.finditer(body.replace("\r\n", "\n"))]


def _alarms(facts: DashboardFacts) -> list[str]:
    alarms = [
        f"> ❌ `.github/graft.yml` is broken, nothing is done: {line(problem, 300)}"
        for problem in facts.config_problems
    ]
    if facts.halted_by:
        alarms.append(f"> ⛔ Halted by {line(facts.halted_by)}: nothing is written.")
    if facts.error:
        since = f"{facts.good_at:%Y-%m-%d %H:%M} UTC" if facts.good_at else "ever"
        alarms.append(
            f"> ⚠️ The last look at both sides failed; what stands here is from {since}. {line(facts.error, 300)}"
        )
    if facts.rewritten is not None:
        alarms.append(f"> ⚠️ {rewrite_alarm(facts.rewritten)}")
    alarms += [f"> ⚠️ {line(problem, 300)}" for problem in facts.blocked]
    return ["\n\n".join(alarms)] if alarms else []


def _metrics(facts: DashboardFacts, plan: Plan) -> str:
    metrics, ledger = plan.ledger.metrics, plan.ledger
    stale = _stale(facts, plan)
    note = f" (stale since {datetime.fromtimestamp(stale, UTC):%Y-%m-%d %H:%M} UTC)" if stale else ""
    rows = [
        ["**Days Behind Upstream**", f"**{metrics.days_behind:.1f}**{note}"],
        ["**Backlog Commits**", f"**{metrics.backlog}**"],
        ["contiguous pin", short(ledger.pin)],
        ["frontier", short(ledger.frontier)],
        [f"tip of {code(facts.upstream)}", short(plan.upstream_tip)],
        ["mode", code(facts.mode.value)],
    ]
    return table(["", "now"], rows)


def _stale(facts: DashboardFacts, plan: Plan) -> int | None:
    """Since when (seconds since the epoch) the metrics are stale; None while they are not."""
    failed = facts.error and facts.good_at
    return plan.ledger.metrics.stale_since or (int(facts.good_at.timestamp()) if failed and facts.good_at else None)


def _open(facts: DashboardFacts, plan: Plan) -> str:
    rows = []
    for batch in facts.batches:
        if not batch.state.in_flight or batch.number is None:
            continue
        place = f", link {batch.position} of {len(batch.chain)}" if batch.kind is not BatchKind.BUNDLE else ""
        waits = "a resolution" if batch.kind is BatchKind.CONFLICT else "the gate"
        if batch.paused:
            waits = "the person who pushed to it"
        if batch.state is BatchState.DRAFT and batch.kind is not BatchKind.CONFLICT:
            waits = "someone to mark it ready"
        rows.append([f"#{batch.number}", f"{batch.kind.value}{place}", plural(len(batch.commits), "commit"), waits])
    if not rows:
        return "### Open\n\nNothing is open."
    return "### Open\n\n" + table(["pull request", "kind", "carries", "waits for"], rows)


def _breakages(facts: DashboardFacts) -> str:
    if not facts.breakages:
        return ""
    rows = [
        [
            f"#{b.number}" if b.number else "–",
            line(b.title, 120),
            code(b.area) if b.area else "–",
            b.state.replace("_", " "),
            f"{b.since:%Y-%m-%d}" if b.since else "–",
        ]
        for b in facts.breakages
    ]
    return "### Trunk is broken\n\n" + table(["issue", "what", "area", "state", "since"], rows)


def _holes(plan: Plan) -> str:
    holes = plan.ledger.holes
    if not holes:
        return "### Holes\n\nNone: every commit up to the frontier is decided."
    rows = [
        [
            short(hole.sha),
            line(hole.subject, 100),
            f"{hole.age_days:.0f} d",
            line(hole.reason, 160) or "–",
            code(hole.owner) if hole.owner else "nobody",
        ]
        for hole in holes[:100]
    ]
    more = f"\n\n… and {len(holes) - 100} more: `graft ledger show`." if len(holes) > 100 else ""
    return "### Holes\n\n" + table(["upstream", "subject", "age", "why", "owner"], rows) + more


def _chains(plan: Plan) -> str:
    if not plan.chains:
        return ""
    rows = [
        [
            code(chain.key),
            "lane" if chain.lane else "chain",
            str(len(chain.commits)),
            f"{short(chain.commits[0].sha)} {line(chain.commits[0].subject, 80)}",
            line(max(chain.commits[0].reasons, key=lambda r: r.weight).text, 120) if chain.commits[0].reasons else "–",
        ]
        for chain in plan.chains[:40]
    ]
    more = f"\n\n… and {len(plan.chains) - 40} more." if len(plan.chains) > 40 else ""
    return "### Chains\n\n" + table(["chain", "", "links", "next link", "why"], rows) + more


def _waiting(facts: DashboardFacts) -> str:
    if not facts.waiting:
        return ""
    rows = [
        [", ".join(short(sha) for sha in w.commits[:3]) + (" …" if len(w.commits) > 3 else ""), line(w.text, 200)]
        for w in facts.waiting[:40]
    ]
    more = f"\n\n… and {len(facts.waiting) - 40} more." if len(facts.waiting) > 40 else ""
    return "### Waiting\n\n" + table(["upstream", "for"], rows) + more


def _budgets(facts: DashboardFacts) -> str:
    if not facts.budgets:
        return ""
    rows = [
        [code(one.area), f"{'⛔ ' if one.spent else ''}{line(one.text)}", f"`/gpu-budget {one.area} add=<hours>`"]
        for one in facts.budgets
    ]
    title = f"### GPU time, {month_key(facts.now)}"
    return f"{title}\n\n" + table(["area", "L3, and L2 on demand", "more, by a maintainer"], rows)


def _costs(facts: DashboardFacts) -> str:
    """Value against cost, the most expensive suites first; hours of GPUs, of machines where none was used."""
    if not facts.costs:
        return ""
    rows = [
        [
            f"{one.level} {code(one.suite)}",
            str(one.runs),
            f"{one.gpu_hours:.1f}" if one.gpu_hours else f"{one.hours:.1f} (no GPU)",
            str(one.caught),
            str(one.only),
            str(one.escaped),
            str(one.wasted),
            "nothing caught" if one.per_catch is None else f"{one.per_catch:.1f} h",
        ]
        for one in facts.costs[:_SUITES]
    ]
    head = ["suite", "runs", "GPU hours", "caught", "by it alone", "only on trunk", "wasted", "a catch costs"]
    text = f"### What each suite cost and caught, the last 30 days\n\n{table(head, rows)}"
    more = len(facts.costs) - len(rows)
    return text + (f"\n\nAnd {plural(more, 'cheaper suite')}: `graft doctor` names all." if more > 0 else "")


def _boxes(facts: DashboardFacts) -> str:
    lines = ["### Do", "", "- [ ] Look at both sides again now <!-- graft:do ingest -->"]
    if facts.rewritten is not None and facts.rewritten.related:
        lines.append(rewrite_box(facts.rewritten))
    if facts.plan is not None:
        lines += [
            f"- [ ] Take {short(hole.sha)} in next: {line(hole.subject, 80)} <!-- graft:do pick {hole.sha} -->"
            for hole in facts.plan.ledger.holes[:15]
        ]
    return "\n".join(lines)


def _machine(facts: DashboardFacts) -> dict[str, object]:
    if facts.plan is None:
        return {"version": 1}
    ledger = facts.plan.ledger
    return {
        "version": 1,
        "days_behind": round(ledger.metrics.days_behind, 3),
        "backlog": ledger.metrics.backlog,
        "pin": ledger.pin,
        "frontier": ledger.frontier,
        "upstream": facts.plan.upstream_tip,
        "stale_since": _stale(facts, facts.plan),
    }


def alarm_title() -> str:
    """The title of the alarm."""
    return "Graft takes nothing in any more"


def alarm_body(*, since: datetime | None, allowed: timedelta, error: str) -> str:
    """The text of the alarm: since when, how long is allowed, and why."""
    when = f"since {since:%Y-%m-%d %H:%M} UTC" if since else "ever since it was installed"
    hours = allowed.total_seconds() / 3600
    why = (
        f"The last error: {line(error, 600)}"
        if error
        else "No error is noted: is a worker running? `graft doctor` tells."
    )
    return (
        f"{marker(ALARM)}\nNothing was taken in {when}; `ingest.stale_after` allows {hours:g} hours. "
        f"What the dashboard says is as old.\n\n{why}\n\nThis issue is closed by itself once it works again."
    )
