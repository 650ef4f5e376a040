"""A file with conflict markers (diff3 style) as parts: merged text and hunks, in order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_OPEN = re.compile(rb"<{7}( .*)?")
_BASE = re.compile(rb"\|{7}( .*)?")
_MIDDLE = re.compile(rb"={7}")
_CLOSE = re.compile(rb">{7}( .*)?")


class MarkersBroken(ValueError):
    """The markers do not pair up, or lack the base: such text can't be taken apart."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The three texts of one hunk, whole lines each; `line` is where its first marker stands (from 1).

    `marked` is the hunk as it stood in the file, markers and all.
    """

    ours: bytes
    base: bytes
    theirs: bytes
    line: int
    marked: bytes = b""


@dataclass(frozen=True, slots=True)
class Marked:
    """`merged` texts with `hunks` between them: merged[0], hunks[0], merged[1], … merged[-1]."""

    merged: tuple[bytes, ...]
    hunks: tuple[Sides, ...]

    def filled(self, texts: Sequence[bytes | None]) -> bytes | None:
        """The whole text with each hunk replaced; None where one has no replacement."""
        parts = [self.merged[0]]
        for text, merged in zip(texts, self.merged[1:], strict=True):
            if text is None:
                return None
            parts += [text, merged]
        return b"".join(parts)


def read_marked(text: bytes) -> Marked:
    """Take a text apart; raises MarkersBroken."""
    merged: list[bytes] = []
    hunks: list[Sides] = []
    part: list[bytes] = []
    whole: list[bytes] = []
    sides: dict[str, list[bytes]] = {}
    state, opened = "", 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        bare = line.rstrip(b"\r\n")
        whole.append(line)
        if not state and _OPEN.fullmatch(bare):
            merged.append(b"".join(part))
            part, whole, sides, state, opened = [], [line], {"ours": [], "base": [], "theirs": []}, "ours", number
        elif state == "ours" and _BASE.fullmatch(bare):
            state = "base"
        elif state == "base" and _MIDDLE.fullmatch(bare):
            state = "theirs"
        elif state == "theirs" and _CLOSE.fullmatch(bare):
            ours, base, theirs = (b"".join(sides[name]) for name in ("ours", "base", "theirs"))
            hunks.append(Sides(ours, base, theirs, opened, b"".join(whole)))
            state = ""
        elif state:
            sides[state].append(line)
        else:
            part.append(line)
    if state:
        raise MarkersBroken(f"the conflict that starts at line {opened} does not end, or shows no base")
    return Marked((*merged, b"".join(part)), tuple(hunks))
