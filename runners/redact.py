"""What must never leave the machine in a log: the runner's own secrets and whatever looks like a token."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_SHAPES = re.compile(
    r"gh[pousr]_[A-Za-z0-9]{20,255}|github_pat_[A-Za-z0-9_]{20,255}|glpat-[A-Za-z0-9_-]{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bhf_[A-Za-z0-9]{20,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bsk-[A-Za-z0-9_-]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|(?<=://)[^\s/:@]{1,100}:[^\s/@]{1,200}(?=@)"
    r"|(?i:(?<=authorization: bearer )|(?<=authorization: basic )|(?<=authorization: token ))\S+"
)
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)


def redactor(secrets: Iterable[str]) -> Callable[[str], str]:
    """A function that replaces the given secrets (of 6 characters and more) and all token shapes by `***`."""
    known = sorted({secret for secret in secrets if len(secret) >= 6}, key=len, reverse=True)
    literal = re.compile("|".join(re.escape(secret) for secret in known)) if known else None

    def redact(text: str) -> str:
        if literal is not None:
            text = literal.sub("***", text)
        return _KEY.sub("***", _SHAPES.sub("***", text))

    return redact
