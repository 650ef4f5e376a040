"""Commands in comments: what a comment asks for, who may ask it, and the help, all from one table."""

from __future__ import annotations

import re
from difflib import get_close_matches

from bot.core.command.markdown import spoken
from bot.core.command.table import BY_NAME, TABLE, Role, Spec, Where
from bot.core.command.values import (
    Arguments,
    Bisect,
    Command,
    Defer,
    Explain,
    GpuBudget,
    HandReport,
    Help,
    Malformed,
    MetricText,
    OkToTest,
    Pick,
    Rebase,
    Retry,
    Rollback,
    Signoff,
    Skip,
    Split,
    Unsign,
    Validate,
    Waive,
    WontPort,
)  # fmt: skip
from bot.core.command.words import WordError, cut, dashed

__all__ = [
    "BY_NAME", "MAX_COMMANDS", "TABLE", "Arguments", "Bisect", "Command", "Defer", "Explain", "GpuBudget",
    "HandReport", "Help", "Malformed", "MetricText", "OkToTest", "Pick", "Rebase", "Retry", "Role", "Rollback",
    "Signoff", "Skip", "Spec", "Split", "Unsign", "Validate", "Waive", "Where", "WontPort", "help_text", "parse",
]  # fmt: skip

MAX_COMMANDS = 20
MAX_BODY = 262_144  # GitHub's own limit is 65,536 characters; in bytes four times that
_NAME = re.compile(r"/([A-Za-z][A-Za-z‐‑‒–—−-]*)(?=\s|$)")


def parse(body: str) -> tuple[Command | Malformed, ...]:
    """The commands of a comment in their order; lines that name one and can't be read come as Malformed.

    Only a line's first character counts, and only where the line is the writer's own plain text. Never raises.
    """
    found: list[Command | Malformed] = []
    for number, line in spoken(body[:MAX_BODY]):
        match = _NAME.match(line)
        spec = BY_NAME.get(dashed(match[1]).lower()) if match else None
        if match is None or spec is None:
            continue
        text = line.rstrip()
        if len(found) == MAX_COMMANDS:
            problem = f"one comment holds at most {MAX_COMMANDS} commands; this one and those after it were not read"
            return (*found, Malformed(spec.name, MAX_COMMANDS, number, text, problem, spec.syntax))
        found.append(_read(spec, line[match.end() :], index=len(found), line=number, text=text))
    return tuple(found)


def _read(spec: Spec, rest: str, *, index: int, line: int, text: str) -> Command | Malformed:
    try:
        return Command(spec.name, index, line, text, spec.read(cut(rest)))
    except WordError as error:
        return Malformed(spec.name, index, line, text, str(error), spec.syntax)


def help_text(topic: str | None = None) -> str:
    """The commands as a Markdown table, or one of them at length; holds no line that would itself be a command."""
    spec = BY_NAME.get(topic) if topic else None
    if spec is not None:
        where = ", ".join(sorted(place.value for place in spec.where))
        return (
            f"`{spec.syntax}`\n\n{spec.summary}\n\nWho: {_WHO[spec.role]}. Where: {where}. Example: `{spec.example}`\n"
        )
    lead = ""
    if topic:
        near = get_close_matches(topic, BY_NAME, 1)
        lead = "There is no command of that name" + (f"; did you mean `/{near[0]}`?" if near else ".") + "\n\n"
    rows = (f"| `{row.syntax.replace('|', chr(92) + '|')}` | {row.summary} | {_WHO[row.role]} |" for row in TABLE)
    return lead + "\n".join(("| Command | What it does | Who |", "|---|---|---|", *rows)) + "\n"


_WHO = {
    Role.ANYONE: "anyone",
    Role.WRITE: "those with write access",
    Role.OWNER: "owners of the area",
    Role.MAINTAIN: "maintainers",
}
