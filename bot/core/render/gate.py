"""The gate's tree of reasons as the page of its check."""

from __future__ import annotations

from bot.core.gate import GateReason, GateResult
from bot.core.render.results import CheckText
from bot.core.render.text import CHECK_LIMIT, code, fit, line, short, table
from bot.core.types import Decision

_SIGN = {Decision.ALLOW: "✅", Decision.PENDING: "⏳", Decision.BLOCK: "❌"}


def gate_check(result: GateResult) -> CheckText:
    """The check `graft/gate`: success only where the gate allows; pending stays in progress, so that nothing lands."""
    title = {
        Decision.ALLOW: "allow",
        Decision.PENDING: "pending: ",
        Decision.BLOCK: "block: ",
    }[result.decision] + ("" if result.decision is Decision.ALLOW else line(result.summary, 180).replace("\\", ""))
    text = fit([_missing(result), "### All that was asked\n\n" + _tree(result.tree, 0)], limit=CHECK_LIMIT // 4)
    summary = f"The gate says **{result.decision.value}** for {short(result.head)}."
    if result.decision is Decision.PENDING:
        return CheckText("in_progress", None, title, summary, text)
    conclusion = "success" if result.decision is Decision.ALLOW else "failure"
    return CheckText("completed", conclusion, title, summary, text)


def _missing(result: GateResult) -> str:
    if not result.missing:
        return "Nothing is missing."
    rows = [
        [
            _SIGN[leaf.decision],
            line(leaf.text, 500),
            ", ".join(code(who) for who in leaf.who[:6]) or "–",
            code(leaf.command) if leaf.command else "–",
        ]
        for leaf in result.missing[:60]
    ]
    more = f"\n\n… and {len(result.missing) - 60} more." if len(result.missing) > 60 else ""
    return "### What is missing\n\n" + table(["", "what", "who can", "how"], rows) + more


def _tree(node: GateReason, depth: int) -> str:
    lines = [f"{'  ' * depth}- {_SIGN[node.decision]} {line(node.text, 500)}"]
    lines += [_tree(child, depth + 1) for child in node.children[:40]]
    if len(node.children) > 40:
        lines.append(f"{'  ' * (depth + 1)}- … {len(node.children) - 40} more")
    return "\n".join(lines)
