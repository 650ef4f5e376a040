"""All that the planner holds for or against one upstream commit."""

from __future__ import annotations

from bot.core.render.text import code, line, short, table
from bot.core.types import Plan, PlannedCommit


def explain_commit(plan: Plan, sha: str) -> str:
    """The commit's place in the plan, what it waits for, and every reason with its evidence and weight."""
    place, commit = _find(plan, sha)
    entry = next((e for e in plan.ledger.entries if e.sha == sha), None)
    subject = commit.subject if commit else entry.subject if entry else ""
    lines = [f"**{short(sha)}** {line(subject, 160)}", ""]
    if entry is not None:
        why = f": {line(entry.reason, 200)}" if entry.reason else ""
        by = f" (by {line(entry.by, 80)})" if entry.by else ""
        lines.append(f"- in the ledger: **{entry.disposition.value}**{why}{by}")
    if commit is None:
        return "\n".join([*lines, "- it is in no plan: it is decided, or older than where the histories part"])
    lines.append(f"- verdict: **{commit.verdict.value}**, {place}")
    if commit.waits_for:
        lines.append("- waits for: " + ", ".join(short(need) for need in commit.waits_for))
    rows = [
        [
            reason.kind.value.replace("_", " "),
            f"{reason.weight:.2f}",
            line(reason.text, 240),
            ", ".join(code(item) for item in reason.evidence[:12])
            + (f" (+{len(reason.evidence) - 12})" if len(reason.evidence) > 12 else "")
            or "–",
        ]
        for reason in sorted(commit.reasons, key=lambda r: -r.weight)
    ]
    return "\n".join(lines) + ("\n\n" + table(["reason", "weight", "why", "evidence"], rows) if rows else "")


def _find(plan: Plan, sha: str) -> tuple[str, PlannedCommit | None]:
    for bundle in plan.bundles:
        for commit in bundle.commits:
            if commit.sha == sha:
                return f"in bundle {code(bundle.key)} of {len(bundle.commits)}", commit
    for chain in plan.chains:
        for index, commit in enumerate(chain.commits, 1):
            if commit.sha == sha:
                name = "lane" if chain.lane else "chain"
                return f"link {index} of {len(chain.commits)} of {name} {code(chain.key)}", commit
    for commit in plan.held:
        if commit.sha == sha:
            return "held back", commit
    for commit in plan.settled:
        if commit.sha == sha:
            return "settled: nothing is to be done", commit
    return "", None
