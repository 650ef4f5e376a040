"""The changed line ranges between two texts: minimal enough to be local, fast on large files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

_BLOCK = 64
_SMALL = 250_000  # product of two line counts up to which the exact matcher is quick enough


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines `old_start` … `old_start + old_lines - 1` became those of the new text; lines count from 1.

    Where nothing was removed (added), `old_start` (`new_start`) is the line before which it happened.
    """

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


@lru_cache(maxsize=256)
def hunks(old: bytes, new: bytes) -> tuple[Hunk, ...]:
    """The changed ranges in order; empty for equal texts."""
    if old == new:
        return ()
    return tuple(_merged(_changes(old.splitlines(keepends=True), new.splitlines(keepends=True), 1, 1)))


def _changes(old: Sequence[bytes], new: Sequence[bytes], old_at: int, new_at: int) -> Iterator[Hunk]:
    head = _common(old, new)
    old, new = old[head:], new[head:]
    tail = _common(old[::-1], new[::-1])
    old, new = old[: len(old) - tail], new[: len(new) - tail]
    old_at, new_at = old_at + head, new_at + head
    if not old and not new:
        return
    if not old or not new:
        yield Hunk(old_at, len(old), new_at, len(new))
    elif len(old) * len(new) <= _SMALL:
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                yield Hunk(old_at + a, b - a, new_at + c, d - c)
    else:
        yield from _between_anchors(old, new, old_at, new_at)


def _common(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """How many lines are equal at the start: by blocks first, since that is done without a step for each line."""
    at, end = 0, min(len(old), len(new))
    while at + _BLOCK <= end and old[at : at + _BLOCK] == new[at : at + _BLOCK]:
        at += _BLOCK
    while at < end and old[at] == new[at]:
        at += 1
    return at


def _between_anchors(old: Sequence[bytes], new: Sequence[bytes], old_at: int, new_at: int) -> Iterator[Hunk]:
    """Cut at lines that are unique on both sides and in the same order (patience), then go on in the pieces."""
    anchors = _anchors(old, new)
    if not anchors:
        yield Hunk(old_at, len(old), new_at, len(new))
        return
    a = b = 0
    for i, j in [*anchors, (len(old), len(new))]:
        yield from _changes(old[a:i], new[b:j], old_at + a, new_at + b)
        a, b = i + 1, j + 1


def _anchors(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    in_old, in_new = Counter(old), Counter(new)
    where = {line: j for j, line in enumerate(new) if in_new[line] == 1}
    pairs = [(i, where[line]) for i, line in enumerate(old) if in_old[line] == 1 and line in where]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    tops: list[int] = []  # index into pairs of the smallest end of an increasing run of each length
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        low, high = 0, len(tops)
        while low < high:
            middle = (low + high) // 2
            if pairs[tops[middle]][1] < j:
                low = middle + 1
            else:
                high = middle
        before.append(tops[low - 1] if low else -1)
        tops[low : low + 1] = [index]
    result, index = [], tops[-1] if tops else -1
    while index >= 0:
        result.append(pairs[index])
        index = before[index]
    return result[::-1]


def _merged(found: Iterator[Hunk]) -> Iterator[Hunk]:
    """Join hunks that touch on both sides."""
    last: Hunk | None = None
    for hunk in found:
        if (
            last
            and hunk.old_start == last.old_start + last.old_lines
            and hunk.new_start == last.new_start + last.new_lines
        ):
            last = Hunk(
                last.old_start, last.old_lines + hunk.old_lines, last.new_start, last.new_lines + hunk.new_lines
            )
            continue
        if last:
            yield last
        last = hunk
    if last:
        yield last
