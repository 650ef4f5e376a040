"""Positions and commits: a range of a branch, or the inside of a bundle re-applied commit by commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """`base` is position 0, `commits[i - 1]` position i; `inside` is the bundle that they were expanded from."""

    base: str
    commits: tuple[str, ...]
    inside: str = ""

    @property
    def n(self) -> int:
        """How many commits may have done it."""
        return len(self.commits)

    def at(self, position: int) -> str:
        """The commit whose tree stands at `position`, 0..n; raises IndexError outside."""
        if not 0 <= position <= self.n:
            raise IndexError(f"position {position} is not in 0..{self.n}")
        return self.base if position == 0 else self.commits[position - 1]

    def named(self, positions: Sequence[int]) -> tuple[str, ...]:
        """The commits at `positions`."""
        return tuple(self.at(position) for position in positions)


def expand(bundle: str, *, parent: str, members: Sequence[str]) -> Line | None:
    """The line inside a squashed `bundle`: its upstream commits applied one by one on its parent; None where it has
    fewer than two, and so nothing to search. The last position has the bundle's own tree.
    """
    return Line(parent, tuple(members), inside=bundle) if len(members) > 1 else None


def differing(good: Mapping[str, str], bad: Mapping[str, str]) -> tuple[str, ...]:
    """The dependencies whose versions differ between two ends, or are told at one only: their change may be the cause,
    so the range must not be searched until they are the same.
    """
    return tuple(sorted(name for name in {*good, *bad} if good.get(name) != bad.get(name)))
