"""What an issue keeps of its breakage, hidden: all that makes it whole again where the store was lost."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.core.triage.lifecycle import State
from bot.core.triage.texts import KEPT_TEXT, Sample

PACKED = 3_000  # characters of JSON: longer ones are packed
MOST_PACKED = 24_000  # characters, of the 65,536 that GitHub takes
_MOST_UNPACKED = 10_000_000  # bytes
_MOST_TESTS = (3_000, 1_000, 300, 0)  # where all of them are too many


class Kept(BaseModel):
    """A breakage as its issue keeps it: the fields of the row and of its data that triage goes on from."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    key: str = Field(min_length=1, max_length=64)
    state: State
    signature: str = Field(min_length=1, max_length=64)
    sample: Sample = Sample()
    message: str = ""
    title: str = ""
    suite: str = Field(min_length=1)
    suites: dict[str, list[str]]
    red: list[tuple[str, str]] = []
    level: str = "l1"
    area: str | None = None
    areas: list[str] = []
    suite_areas: list[str] = []
    first_bad: str | None = None
    last_good: str | None = None
    after: str | None = None
    closed_at: str | None = None
    opened_at: str | None = None
    red_since: str | None = None
    reopened: int = 0
    deleted_issues: list[int] = []

    @classmethod
    def read(cls, block: Any) -> Self | None:
        """From an issue's block, whatever people made of it; None where it does not hold."""
        if not isinstance(block, dict):
            return None
        try:
            more = _unpacked(block["packed"]) if "packed" in block else block.get("kept")
            given = {**block, **(more if isinstance(more, dict) else {})}
            green = {(suite, test) for suite, test in given.pop("green", [])}
            whole = cls.model_validate(given)
            red = [(suite, test) for suite, tests in whole.suites.items() for test in tests]
            return whole.model_copy(update={"red": [pair for pair in red if pair not in green]})
        except (ValidationError, ValueError, TypeError, zlib.error):
            return None

    def standing(self, *, open_: bool, reason: str | None) -> State:
        """How it stands by its issue: open, or closed for GitHub's `reason`. That it was closed as done is no proof:
        where Graft did not close it, it is as open as it was.
        """
        if not open_ and reason in ("not_planned", "duplicate"):
            return State.DISMISSED
        return State.OPEN if self.state is State.BISECTING else self.state


def kept_block(data: Mapping[str, Any]) -> dict[str, Any]:
    """The part of an issue's block that `Kept.read` reads, from a row's data: as it is where it is short, else packed;
    where all tests are too many, as many of the red ones as there is room for.
    """
    given = {name: data[name] for name in Kept.model_fields if data.get(name) not in (None, [], 0)}
    red = [(suite, test) for suite, test in given.pop("red", [])]
    there, names = frozenset(red), given.get("suites", {})
    if green := [(suite, test) for suite, tests in names.items() for test in tests if (suite, test) not in there]:
        given["green"] = green
    if len(json.dumps(given)) <= PACKED:
        return {"kept": given}
    for most in (None, *_MOST_TESTS):
        if most is not None:
            suites: dict[str, list[str]] = {name: [] for name in names}
            for suite, test in red[:most]:
                suites.setdefault(suite, []).append(test)
            given |= {"suites": suites, "green": [], "message": str(given.get("message", ""))[:KEPT_TEXT]}
        packed = base64.b64encode(zlib.compress(json.dumps(given).encode(), 9)).decode()
        if len(packed) <= MOST_PACKED:
            break
    return {"packed": packed}


def _unpacked(packed: Any) -> Any:
    unpacking = zlib.decompressobj()
    raw = unpacking.decompress(base64.b64decode(str(packed), validate=True), _MOST_UNPACKED)
    return json.loads(raw)
