"""Which commits a build can tell apart, and where it is worth trying to build."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

_BUILDS = 0.9  # that a position builds, when nothing is known of its neighbours
_BESIDE_DEAD = 0.45


@dataclass(frozen=True, slots=True)
class Group:
    """Commits first..last, between two positions that build: `low` before them and `high` = last."""

    first: int
    last: int
    share: float

    @property
    def low(self) -> int:
        """The position whose build holds none of them."""
        return self.first - 1


def groups(shares: Sequence[float], dead: Collection[int], n: int) -> list[Group]:
    """Commits 1..n in groups that no build can tell apart, `dead` being positions that don't build."""
    found: list[Group] = []
    first, share = 1, 0.0
    for c in range(1, n + 1):
        share += shares[c]
        if c not in dead or c == n:
            found.append(Group(first, c, share))
            first, share = c + 1, 0.0
    return found


def chance_to_build(position: int, dead: Collection[int], alive: Collection[int]) -> float:
    """How likely a position is to build: those that don't come in runs."""
    if position in alive:
        return 1.0
    beside = (position - 1 in dead) + (position + 1 in dead)
    return _BUILDS if not beside else _BESIDE_DEAD if beside == 1 else _BESIDE_DEAD * 0.6
