"""The values that the readers of failure texts hand to each other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

INFRA, CODE, HARNESS, UNKNOWN = "infra", "code", "harness", "unknown"


class Rank(IntEnum):
    """How near a line stands to the root of a failure: the least of a text wins, the first of equals."""

    PHYSICAL = 0  # the disk is full: whatever follows, follows from it
    FAULT = 10  # a compiler's or a device's own words
    EXCEPTION = 20
    SERVICE = 30  # network, git, packages, runner, workflow
    CRASH = 40
    TIMEOUT = 45
    SPOKEN = 50  # a line that says "error" and no more of its kind
    OPAQUE = 60  # something failed, and it is not said why
    WRAPPER = 80  # only repeats that something before it failed
    NOTHING = 100


@dataclass(frozen=True, slots=True)
class Found:
    """What one line says of the cause. `key` parts are equal for equal causes; `hard`: only code can have done it."""

    kind: str
    rank: int
    cls: str
    key: tuple[str, ...]
    title: str
    hard: bool = False
    by_test: bool = False  # says nothing of the cause itself: stands for its test


@dataclass(frozen=True, slots=True)
class Signature:
    """`key` stands for the cause, `cls` is infra, code, harness or unknown, `title` says it in one line."""

    key: str
    cls: str
    title: str
