"""How a fork seems to have recorded its picks, where nobody said so: a help for the first reading, never a ledger."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from bot.core.types import Commit, Disposition, Ledger

_LINE = re.compile(r"^[ \t]*(\(?[A-Za-z][A-Za-z0-9 ./_-]{2,60}[:=]?[ \t]+)([0-9a-f]{40})\b", re.MULTILINE)


def unread_markers(fork: Iterable[Commit], ledger: Ledger) -> list[tuple[str, int]]:
    """Beginnings of lines before an upstream commit that the ledger holds unpicked, with how often, most first."""
    seen = {Disposition.PICKED, Disposition.REVERTED}
    unread = {entry.sha for entry in ledger.entries if entry.disposition not in seen}
    counts = Counter(
        prefix
        for commit in fork
        for prefix, sha in _LINE.findall(commit.message)
        if sha in unread and "revert" not in prefix.lower()
    )
    return counts.most_common()
