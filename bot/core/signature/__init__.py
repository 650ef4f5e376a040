"""The normalised error: the same cause gives the same signature whatever the test, address, line or time."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_VOLATILE = re.compile(r"0x[0-9a-fA-F]+|\b\d+(?:\.\d+)?\b|\b[0-9a-f]{12,40}\b|/[^\s:]+/")


@dataclass(frozen=True, slots=True)
class Signature:
    """`key` stands for the cause, `cls` is infra, code, harness or unknown, `title` says it in one line."""

    key: str
    cls: str
    title: str


def signature(text: str, test: str | None = None) -> Signature:
    """The signature of a failure's text; `test` is the node id, used where the text says nothing of the cause."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if re.match(r"(E\s+)?[\w.]*(Error|Exception|assert)", line)), "")
    title = told or (lines[-1] if lines else test or "no text")
    normal = _VOLATILE.sub("#", told) if told else (test or title).split("[", 1)[0]
    return Signature(hashlib.sha256(normal.encode()).hexdigest()[:16], "unknown", title[:200])
