"""The changed line ranges in git's own patches, without the lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_PAIR = re.compile(rb"^([0-9a-f]{40}) ([0-9a-f]{40})$")
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Section:
    """One file's part of a patch: (old start, old count, new start, new count) of each hunk, lines from 1.

    Where a side has no lines, its start is the line before which the change stands.
    """

    binary: bool
    hunks: tuple[tuple[int, int, int, int], ...]


def parse_patches(raw: bytes) -> dict[tuple[str, str], list[Section]]:
    """The sections of `git diff-tree --stdin -p -U0` by the pair of trees, in git's order of files."""
    found: dict[tuple[str, str], list[Section]] = {}
    for pair, lines in _pairs(raw):
        found[pair] = list(_sections(lines))
    return found


def _pairs(raw: bytes) -> Iterator[tuple[tuple[str, str], list[bytes]]]:
    pair: tuple[str, str] | None = None
    lines: list[bytes] = []
    for line in raw.split(b"\n"):
        match = _PAIR.match(line)
        if match is None:
            if line.startswith((b"diff --git ", b"@@ -", b"Binary files ", b"GIT binary patch")):
                lines.append(line)
            continue
        if pair is not None:
            yield pair, lines
        pair, lines = (match[1].decode(), match[2].decode()), []
    if pair is not None:
        yield pair, lines


def _sections(lines: list[bytes]) -> Iterator[Section]:
    hunks: list[tuple[int, int, int, int]] = []
    binary = started = False
    for line in lines:
        if line.startswith(b"diff --git "):
            if started:
                yield Section(binary, tuple(hunks))
            hunks, binary, started = [], False, True
        elif match := _HUNK.match(line):
            old, before, new, after = (int(part) if part is not None else 1 for part in match.groups())
            hunks.append((old + (before == 0), before, new + (after == 0), after))
        else:
            binary = True
    if started:
        yield Section(binary, tuple(hunks))
