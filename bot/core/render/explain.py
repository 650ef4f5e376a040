"""All that the planner holds for or against one upstream commit."""

from __future__ import annotations

from bot.core.render.plan import places
from bot.core.render.text import code, line, short, table
from bot.core.types import Plan


def explain_commit(plan: Plan, sha: str) -> str:
    """The commit's place in the plan, what it waits for, and every reason with its evidence and weight."""
    place, commit = places(plan).get(sha, ("", None))
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
