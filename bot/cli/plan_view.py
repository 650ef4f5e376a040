"""A plan on a terminal: numbers first, then what can land, what belongs together, what waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bot.cli.terminal import plain
from bot.core.types import Plan, PlannedCommit

_COLOUR = {
    "safe": "green",
    "watch": "yellow",
    "risky": "dark_orange",
    "conflict": "red",
    "empty": "dim",
    "skipped": "dim",
}
_LINKS = 12
_EVIDENCE = 20
_HUNKS = 8
_HUNK_LINES = 40
_MARKERS = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")


def show_plan(plan: Plan) -> None:
    """Print the whole plan."""
    console = Console(highlight=False)
    bundled = sum(len(bundle.commits) for bundle in plan.bundles)
    chained = sum(len(chain.commits) for chain in plan.chains)
    console.print(
        f"[bold]{bundled}[/] commits can land now, in {len(plan.bundles)} bundles; [bold]{chained}[/] in"
        f" {len(plan.chains)} chains; [bold]{len(plan.held)}[/] held; [bold]{len(plan.settled)}[/] need nothing"
    )
    metrics = plan.ledger.metrics
    console.print(
        f"Days Behind Upstream [bold]{metrics.days_behind:.1f}[/], Backlog Commits [bold]{metrics.backlog}[/];"
        f" pin {_short(plan.ledger.pin)}, frontier {_short(plan.ledger.frontier)}"
    )
    for number, bundle in enumerate(plan.bundles, 1):
        _section(console, f"Bundle {number}, {bundle.grade.value}, {bundle.key}", bundle.commits)
    for chain in plan.chains:
        name = "Lane" if chain.lane else "Chain"
        levels = f", needs {' '.join(level.value.upper() for level in chain.levels)}" if chain.levels else ""
        _section(console, f"{name} {chain.key}, {_links(len(chain.commits))}{levels}", chain.commits, shown=_LINKS)
    _section(console, "Held", plan.held)
    _section(console, "Nothing to do", plan.settled, shown=_LINKS)
    if plan.ledger.holes:
        table = Table("hole", "days", "owner", "subject", "why", box=None, title="Holes", title_justify="left")
        for hole in plan.ledger.holes[:_LINKS]:
            table.add_row(
                hole.sha[:10],
                f"{hole.age_days:.0f}",
                plain(hole.owner or "nobody"),
                plain(hole.subject[:60]),
                plain(hole.reason),
            )
        console.print(table)
        _rest(console, len(plan.ledger.holes), _LINKS)
    console.print("[dim]" + ", ".join(f"{phase} {spent:.1f} s" for phase, spent in plan.timings.items()) + "[/]")


def show_explained(facts: dict[str, Any]) -> None:
    """Print all that is known of one commit."""
    console = Console(highlight=False)
    console.print(plain(f"{facts['sha']}  {facts.get('subject') or ''}", "bold"), soft_wrap=True)
    by = f" by {facts['by']}" if facts.get("by") else ""
    console.print(plain(f"disposition  {facts['disposition'] or 'none'}{by}"))
    if facts["place"] is None:
        return
    console.print(Text.assemble("verdict      ", (facts["verdict"], _COLOUR[facts["verdict"]]), f", {facts['place']}"))
    for name, key in (("waits for", "waits_for"), ("awaited by", "awaited_by")):
        if facts[key]:
            console.print(plain(f"{name:12} " + " ".join(sha[:12] for sha in facts[key])))
    console.print("[bold]weight[/]")
    for reason in facts["reasons"]:
        told = f"  {reason['weight']:.2f}  {reason['kind'].replace('_', ' ')}: {reason['text']}"
        console.print(plain(told), soft_wrap=True)
        for piece in reason["evidence"][:_EVIDENCE]:
            # never wrapped: a path can be copied
            console.print(plain(f"        {piece}", "dim"), soft_wrap=True)
        if (more := len(reason["evidence"]) - _EVIDENCE) > 0:
            console.print(f"        [dim]… and {more} more: --json shows all[/]")
    if "conflict" in facts:
        _show_conflict(console, facts["conflict"], facts["hunks"])


def _show_conflict(console: Console, conflict: dict[str, Any], hunks: Sequence[dict[str, Any]]) -> None:
    console.print("[bold]conflict[/]")
    if conflict["text"]:
        console.print(plain(f"  {conflict['text']}"), soft_wrap=True)
    if conflict["partners"]:
        named = " ".join(sha[:12] for sha in conflict["partners"][:_EVIDENCE])
        console.print(plain(f"  before it, these change the same files: {named}"), soft_wrap=True)
        _rest(console, len(conflict["partners"]), _EVIDENCE)
    if hunks:
        console.print(plain(f"  merged onto {conflict['onto']}:"), soft_wrap=True)
    for hunk in hunks[:_HUNKS]:
        console.print(plain(f"\n{hunk['path']}:{hunk['line']}", "bold"), soft_wrap=True)
        lines = hunk["text"].splitlines()
        for line in lines[:_HUNK_LINES]:
            style = "dim" if line.startswith(_MARKERS) else ""
            console.print(plain(line, style), soft_wrap=True)
        if len(lines) > _HUNK_LINES:
            console.print(f"[dim]… and {len(lines) - _HUNK_LINES} more lines: --json shows all[/]")
    if len(hunks) > _HUNKS:
        console.print(f"\n[dim]… and {len(hunks) - _HUNKS} more hunks: --json shows all[/]")


def _section(console: Console, title: str, commits: tuple[PlannedCommit, ...], *, shown: int = 1000) -> None:
    if not commits:
        return
    table = Table(
        "commit", "pr", "verdict", "subject", "why", box=None, title=title, title_justify="left", expand=False
    )
    for commit in commits[:shown]:
        first = commit.reasons[0].text if commit.reasons else ""
        table.add_row(
            commit.sha[:10],
            str(commit.pr or ""),
            plain(commit.verdict.value, _COLOUR[commit.verdict.value]),
            plain(commit.subject[:72]),
            plain(first[:90]),
        )
    console.print(table)
    _rest(console, len(commits), shown)


def _rest(console: Console, count: int, shown: int) -> None:
    if count > shown:
        console.print(f"[dim]… and {count - shown} more: --json or --html show all[/]")


def _links(count: int) -> str:
    return f"{count} links" if count != 1 else "one link"


def _short(sha: str | None) -> str:
    return sha[:12] if sha else "none"
