"""Markdown from untrusted parts: cells, code, fences, hidden blocks, and cuts that never leave a fence open."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from bot.core.trailers import inert

# GitHub refuses a comment, an issue or a pull request body over this many characters
BODY_LIMIT = 65_536
# and the summary or text of a check run over this many bytes
CHECK_LIMIT = 65_535
TITLE_LIMIT = 256

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")


def printable(text: str) -> str:
    """`text` without terminal colours, control characters and marks that turn the reading direction."""
    return _CONTROL.sub("", _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def line(text: str, limit: int = 200) -> str:
    """Untrusted text as one inert line of markdown, cut at `limit` characters."""
    flat = " ".join(printable(text).split())
    if len(flat) > limit:
        flat = flat[: limit - 1] + "…"
    escaped = re.sub(r"([\\`*_{}\[\]<>|~])", r"\\\1", flat)
    return inert(escaped)


def code(text: str) -> str:
    """Untrusted text as inline code; a table may hold it too."""
    flat = " ".join(printable(text).split())
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}".replace("|", "\\|") if flat else "` `"


def fence(text: str, language: str = "") -> str:
    """Untrusted text as a fenced block that it can't break out of."""
    clean = printable(text).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`{3,}", clean)), default=2)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{clean}\n{ticks}"


def details(summary: str, content: str) -> str:
    """A folded section; `summary` is trusted markdown-free text."""
    return f"<details><summary>{html.escape(summary, quote=False)}</summary>\n\n{content}\n\n</details>"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of already rendered cells."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def block(name: str, data: Any) -> str:
    """A machine-readable block that a reader does not see; nothing in it can close it: `<`, `>` and `-` are escaped."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    for char in "<>-":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return f"<!-- graft:{name} {text} -->"


def read_block(name: str, body: str | None) -> Any | None:
    """The data of the first block of that name in `body`; None where there is none or it does not parse."""
    match = re.search(rf"<!-- graft:{re.escape(name)} (\S.*?) -->", body or "")
    if match is None:
        return None
    try:
        return json.loads(match[1])
    except ValueError:
        return None


def marker(name: str) -> str:
    """The hidden line by which Graft finds a comment or issue of its own again."""
    return f"<!-- graft:{name} -->"


def fit(parts: list[str], tail: str = "", limit: int = BODY_LIMIT) -> str:
    """Join `parts` with empty lines while they fit, then `tail`; says how many parts were left out.

    Each part is kept whole or left out whole, so that no fence and no table is cut in two.
    """
    note = "\n\n… {} more not shown: GitHub takes no longer text. The report has them all.\n\n"
    room = limit - len(tail) - len(note) - 10
    taken: list[str] = []
    used = 0
    for index, part in enumerate(parts):
        if used + len(part) + 2 > room:
            left = len(parts) - index
            return "\n\n".join(taken) + note.format(left) + tail
        taken.append(part)
        used += len(part) + 2
    return "\n\n".join([*taken, tail] if tail else taken)


def plural(count: int, noun: str) -> str:
    """`1 commit`, `2 commits`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun.endswith(('s', 'h')) else 's'}"


def short(sha: str | None) -> str:
    """The first ten digits of a sha as code; `none` for none."""
    return f"`{sha[:10]}`" if sha else "none"
