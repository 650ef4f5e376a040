"""Which earlier commit last wrote each line, so that a commit's text is known to stand on another's.

Commits are given in upstream order; line numbers are those of upstream's own files. A commit stands on another where it
replaces, or touches without a line between, what that one wrote; there a three-way merge without the other conflicts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bot.core.footprint import FileFootprint, Footprint, Hunk

BASE = -1
"""The owner of what was there before the first commit."""

NEAR = 3
"""Lines: two changes of one function that are no further apart than this are taken to belong together."""


class _File:
    """The owners of one file's lines and, for each place between two lines, of what was last taken out there."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self.gaps: list[int] = [BASE]
        self.whole = BASE
        self.touched: set[int] = set()

    def grow(self, count: int) -> None:
        missing = count - len(self.lines)
        if missing > 0:
            self.lines.extend([BASE] * missing)
            self.gaps.extend([BASE] * missing)

    def under(self, hunk: Hunk, around: int = 1) -> set[int]:
        """The owners of the lines that a hunk replaces, of `around` lines on both sides, and of the gaps between."""
        start = hunk.old_start - 1
        end = start + hunk.old_lines
        self.grow(end + around)
        first = max(start - around, 0)
        return {*self.lines[first : end + around], *self.gaps[start - min(around - 1, start) : end + around]}

    def replaced(self, hunk: Hunk) -> set[int]:
        """The owners of the lines that a hunk takes away, and of the gaps between them."""
        start = hunk.old_start - 1
        end = start + hunk.old_lines
        self.grow(end)
        return {*self.lines[start:end], *self.gaps[start + 1 : end]}

    def write(self, hunk: Hunk, owner: int) -> None:
        start = hunk.old_start - 1
        end = start + hunk.old_lines
        self.lines[start:end] = [owner] * hunk.new_lines
        taken = owner if hunk.old_lines else BASE
        if hunk.new_lines:
            inner = [BASE] * (hunk.new_lines - 1)
            self.gaps[start : end + 1] = [self.gaps[start], *inner, self.gaps[end]]
        else:
            self.gaps[start : end + 1] = [taken]


class Owners(NamedTuple):
    """Whose lines a commit touches, comes near to, and (of those that it touches) replaces."""

    touches: frozenset[int]
    near: frozenset[int]
    replaces: frozenset[int]


class Lineage:
    """The owners of all lines of all files that the commits so far have touched; owners are the caller's numbers."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}

    def add(self, footprint: Footprint, owner: int) -> Owners:
        """Take in the next commit as `owner`; gives the owners of what it stands on, is NEAR, and replaces."""
        below: set[int] = set()
        near: set[int] = set()
        replaced: set[int] = set()
        moves: dict[str, _File | None] = {}
        for change in footprint.files:
            old_path = change.old_path or change.path
            file = self._files.get(old_path) or _File()
            below.update(self._under(change, file))
            for hunk in change.hunks if change.status != "D" else ():
                near |= file.under(hunk, NEAR)
                replaced |= file.replaced(hunk)
            if change.status == "A" and change.path in self._files:
                below |= self._files[change.path].touched
            self._write(change, file, owner)
            if change.status == "D":
                moves[old_path] = _gone(owner)
            else:
                if change.status == "R" and old_path != change.path:
                    moves.setdefault(old_path, _gone(owner))
                moves[change.path] = file
        self._files |= {path: file for path, file in moves.items() if file is not None}
        nobody = {BASE, owner}
        return Owners(frozenset(below - nobody), frozenset(near - nobody), frozenset(replaced - nobody))

    def _under(self, change: FileFootprint, file: _File) -> Iterable[int]:
        below = {file.whole}
        if change.binary or change.status == "D":
            return below | file.touched
        for hunk in change.hunks:
            below |= file.under(hunk)
        return below

    def _write(self, change: FileFootprint, file: _File, owner: int) -> None:
        for hunk in reversed(change.hunks):
            file.grow(hunk.old_start + hunk.old_lines)
            file.write(hunk, owner)
        if change.binary or change.status == "A":
            file.whole = owner
        file.touched.add(owner)


def _gone(owner: int) -> _File:
    """What is left at a path after its file went away: whoever comes back to it stands on that."""
    file = _File()
    file.whole = owner
    file.touched = {owner}
    return file


@dataclass(frozen=True, slots=True)
class Below:
    """Earlier commits by what a commit has to do with their text: it touches, comes near, or replaces their lines."""

    touches: frozenset[str] = frozenset()
    near: frozenset[str] = frozenset()
    replaces: frozenset[str] = frozenset()


def textual(footprints: Iterable[Footprint]) -> dict[str, Below]:
    """What each commit stands on, by commit; they are given in upstream order without a gap."""
    lineage = Lineage()
    names: list[str] = []
    below: dict[str, Below] = {}
    for index, footprint in enumerate(footprints):
        names.append(footprint.sha)
        owners = lineage.add(footprint, index)
        below[footprint.sha] = Below(*(frozenset(names[owner] for owner in kind) for kind in owners))
    return below
