"""A failure's text as it is kept: enough of it to be signed again when the rules that tell causes apart changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict

from bot.core.signature import Signature, signature

KEPT_TEXT = 6_000  # characters
_MOST_TRIED = 20


def omitted_signature(suite: str) -> str:
    """The signature of expected tests of a suite that did not report."""
    return hashlib.sha256(f"omitted\x1f{suite}".encode()).hexdigest()[:16]


def kept_text(
    text: str, test: str, key: str, *, last: bool = False, sign: Callable[[str, str | None], Signature] = signature
) -> str:
    """At most KEPT_TEXT characters of a failure's text that are signed as the whole of it is, its beginning before its
    end (`last`: the other way round); the whole where no part is.
    """
    if len(text) <= KEPT_TEXT:
        return text
    half = KEPT_TEXT // 2
    ends = text[:KEPT_TEXT], text[-KEPT_TEXT:]
    parts = *(reversed(ends) if last else ends), f"{text[:half]}\n[…]\n{text[-half:]}"
    return next((part for part in parts if sign(part, test).key == key), text)


class Sample(BaseModel):
    """One failure of a cause: its test, and its text in the row beside it; `omitted` is the suite where it is a test
    that did not report, which has no text of its own.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    test: str = ""
    omitted: str = ""


def sign_again(data: Mapping[str, Any]) -> str:
    """The signature that a row's last failure has by the rules as they are now; that of its data where it can't be
    told: an older Graft kept no test beside the text, and only its beginning.
    """
    old, text, sample = str(data["signature"]), str(data.get("message", "")), data.get("sample")
    if sample is None:
        if old in (omitted_signature(suite.partition("@")[0]) for suite in data.get("suites", {})):
            return old
        names = [test for tests in data.get("suites", {}).values() for test in tests][:_MOST_TRIED]
        found = [_signed(text, test) for test in names] if 0 < len(text) < KEPT_TEXT else []
        return old if old in found or not found else found[0]
    known = Sample.model_validate(sample)
    return omitted_signature(known.omitted) if known.omitted else _signed(text, known.test)


@lru_cache(maxsize=4096)
def _signed(text: str, test: str) -> str:
    return signature(text, test or None).key
