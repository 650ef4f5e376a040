"""Decisions as lines of text: what a bundle leaves out stands in its pull request body, so that git and GitHub hold it.

Graft-Deferred: <sha> owner=@octocat needs the LLVM bump
Graft-Skipped: <sha> changes upstream's CI alone
Graft-Wont-Port: <sha> the fork has its own
"""

from __future__ import annotations

import re

from bot.core.trailers import inert, revive
from bot.core.types import Disposition, LedgerEntry

_WORDS = {
    Disposition.DEFERRED: "Deferred",
    Disposition.SKIPPED: "Skipped",
    Disposition.WONT_PORT: "Wont-Port",
    Disposition.EMPTY: "Empty",
    Disposition.PENDING: "Pending",
}
PASSED_OVER = "history"
"""What `by` says of a deferral that nobody decided: later commits landed without this one."""
_HELD = "Held"
_DISPOSITIONS = {word.lower(): disposition for disposition, word in _WORDS.items()} | {
    _HELD.lower(): Disposition.DEFERRED
}
_LINE = re.compile(
    r"^[ \t>*-]*graft-(deferred|held|skipped|wont-port|empty|pending)[ \t]*:[ \t]*([0-9a-f]{7,64})\b"
    r"(?:[ \t]+owner=@?\u200b?([\w./-]+))?[ \t]*(.*?)[ \t\r]*$",
    re.IGNORECASE | re.MULTILINE,
)


def decision_line(entry: LedgerEntry) -> str:
    """One line that `read_decisions` reads back: disposition, commit, owner, reason; inert on GitHub.

    A deferral by PASSED_OVER is written as held.
    Raises ValueError for what git itself records (picked, reverted).
    """
    if entry.disposition not in _WORDS:
        raise ValueError(f"{entry.disposition.value} is no decision: it is read from the fork's commits")
    owner = f" owner={entry.owner.lstrip('@')}" if entry.owner else ""
    reason = " ".join(entry.reason.split())
    if not owner and re.match(r"owner=", reason, re.IGNORECASE):
        reason = f"- {reason}"
    held = entry.disposition is Disposition.DEFERRED and entry.by == PASSED_OVER
    word = _HELD if held else _WORDS[entry.disposition]
    return f"Graft-{word}: {entry.sha}{owner} {inert(reason)}".rstrip()


def read_decisions(text: str, *, by: str, time: int | None = None) -> tuple[LedgerEntry, ...]:
    """All decision lines of a text in their order; `by` says where the text stands, `time` from when it is.

    Commits may be abbreviated; `time` is in seconds since the epoch.
    """
    return tuple(
        LedgerEntry(
            sha=match[2].lower(),
            disposition=_DISPOSITIONS[match[1].lower()],
            by=PASSED_OVER if match[1].lower() == _HELD.lower() else by,
            reason=revive(match[4]),
            owner=match[3],
            time=time,
        )
        for match in _LINE.finditer(text)
    )
