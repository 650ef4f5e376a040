"""Three-way merges of sequences that are finer than git's: edits that only touch each other are both made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Generic, TypeVar

T = TypeVar("T")
_LARGEST = 4_000_000  # product of two lengths beyond which the exact matcher takes seconds


@dataclass(frozen=True, slots=True)
class Edit(Generic[T]):
    """Items `start` … `end` (excluded) of the base became `new`, which begins at `at` in the other text."""

    start: int
    end: int
    new: tuple[T, ...]
    at: int


def edits(base: Sequence[T], other: Sequence[T]) -> list[Edit[T]] | None:
    """What was changed, in order; None where the texts are too long to compare."""
    if len(base) * len(other) > _LARGEST:
        return None
    matcher = SequenceMatcher(None, base, other, autojunk=False)
    return [Edit(i, j, tuple(other[k:m]), k) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"]


def merge(base: Sequence[T], ours: Sequence[T], theirs: Sequence[T]) -> list[T] | None:
    """Both sides' edits, where no two of them change the same items or insert at the same place; else None."""
    mine, other = edits(base, ours), edits(base, theirs)
    if mine is None or other is None:
        return None
    made = sorted({(e.start, e.end, e.new) for e in [*mine, *other]}, key=lambda edit: edit[:2])
    insertions = [start for start, end, _ in made if start == end]
    if len(insertions) != len(set(insertions)):
        return None
    result: list[T] = []
    at = 0
    for start, end, new in made:
        if start < at:
            return None
        result += base[at:start]
        result += new
        at = end
    return [*result, *base[at:]]
