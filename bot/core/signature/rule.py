"""A kind of line, as a row of a table."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.signature.patterns import AnyOf

# what tells causes of one kind apart, besides a pattern's named groups: nothing, which of its patterns it is, that and
# the service that is asked, the line
NONE, PHRASE, WHO, LINE = "none", "phrase", "who", "line"


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of line with its class and its rank; a pattern's named groups, masked, belong to the key."""

    kind: str
    cls: str
    pattern: AnyOf
    rank: int
    detail: str


def rules(cls: str, rank: int, detail: str, *table: tuple[str, ...]) -> tuple[Rule, ...]:
    """Rows of one class, rank and detail: (kind, pattern, pattern …)."""
    return tuple(Rule(kind, cls, AnyOf(*patterns), rank, detail) for kind, *patterns in table)
