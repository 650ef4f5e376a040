"""What kind of text a hunk is: lists of like lines merge as lists, whatever git says; code does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import pairwise

from bot.core.conflict.merge import edits
from bot.core.footprint import Language

_INCLUDE = re.compile(rb"\s*(#\s*include\s*[<\"].*|(import|from)\s+[\w.]+.*|using\s+[\w:]+(\s*=\s*[^;]+)?;)\s*")
_ENTRY = re.compile(rb"\s*(\"[^\"]*\"|'[^']*'|[\w.:/*+-]+)(\s*[:=]\s*[^;{}]+)?\s*,?\s*(//.*|#.*)?")
_REGISTERS = rb"(regist|[Aa]dd_?|ADD_|insert|push_back|emplace_back|append|\.def|->def)"
_REGISTRATION = re.compile(rb"\s*([\w.:<>,* ]*" + _REGISTERS + rb"[\w<>:, ]*)\(.*\)\s*[;,]?\s*", re.DOTALL)
_STEMS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rb"include\s*[<\"]([^\">]+)",
        rb"from\s+([\w.]+)",
        rb"import\s+([\w.]+)",
        rb"^\s*[\"']([^\"']+)",
        rb"^\s*([\w./-]+)\s*[:=,]",
    )
)
_COMMENT = re.compile(rb"\s*(//|#(?!\s*include)|/\*|\*).*")


class Region(StrEnum):
    """A kind of lines whose order says little, and that stand for themselves."""

    INCLUDES = "includes"
    ENTRIES = "entries"
    REGISTRATIONS = "registrations"


def region_of(texts: Sequence[bytes], language: Language, *, bracketed: bool) -> Region | None:
    """The kind that all lines of all texts are, None where they are not of one; `bracketed`: inside brackets."""
    units = [unit for text in texts for unit in statements(text) if unit.strip()]
    if not units:
        return None
    if all(_INCLUDE.fullmatch(unit) for unit in units):
        return Region.INCLUDES
    if all(_REGISTRATION.fullmatch(unit) for unit in units):
        return Region.REGISTRATIONS
    listed = bracketed or language is Language.CMAKE
    if listed and all(_ENTRY.fullmatch(unit) or _COMMENT.fullmatch(unit) for unit in units):
        return Region.ENTRIES
    return None


def statements(text: bytes) -> list[bytes]:
    """The lines of a text, those joined whose brackets are open."""
    found: list[bytes] = []
    depth = 0
    for line in text.splitlines(keepends=True):
        if depth > 0:
            found[-1] += line
        else:
            found.append(line)
        depth += sum(line.count(c) for c in (b"(", b"[", b"{")) - sum(line.count(c) for c in (b")", b"]", b"}"))
        depth = max(depth, 0)
    return found


def merge_region(region: Region, base: bytes, ours: bytes, theirs: bytes, *, around: Sequence[bytes]) -> bytes | None:
    """All lines of a region to which both sides only add; None where one removes or changes a line, or adds its like.

    `around` are the lines near it: where those and the added ones are in order, the result is.
    """
    commas = region is Region.ENTRIES and any(b"," in text for text in (base, ours, theirs))
    key = _uncomma if commas else bytes.strip
    sides = [statements(text) for text in (base, ours, theirs)]
    keys = [[key(unit) for unit in side] for side in sides]
    changes = [edits(keys[0], side) for side in keys[1:]]
    if any(side is None or any(edit.end > edit.start for edit in side) for side in changes):
        return None
    mine, other = (
        [(edit.start, units[edit.at : edit.at + len(edit.new)]) for edit in side or []]
        for side, units in zip(changes, sides[1:], strict=True)
    )
    if _alike([unit for _, block in mine for unit in block], [unit for _, block in other for unit in block]):
        return None
    near = [
        key(line) for line in around if line.strip() and region_of([line], Language.CMAKE, bracketed=True) is region
    ]
    result: list[bytes] = []
    for index in range(len(sides[0]) + 1):
        blocks = [[unit for at, block in side if at == index for unit in block] for side in (mine, other)]
        result += _join(*blocks, ordered=region is Region.INCLUDES or (bool(near) and _is_sorted(near)), key=key)
        result += sides[0][index : index + 1]
    if commas and result:
        result = _with_commas(result, theirs if keys[2] and keys[2][-1] == key(result[-1]) else ours)
    return b"".join(result)


def _alike(ours: Sequence[bytes], theirs: Sequence[bytes]) -> bool:
    """True where a line of one side is a changed form of the other's: the same name with another ending or value."""
    stems = [{_stem(unit): unit.strip().rstrip(b",") for unit in side if _stem(unit)} for side in (ours, theirs)]
    return any(stems[0][stem] != stems[1][stem] for stem in stems[0].keys() & stems[1].keys())


def _stem(unit: bytes) -> bytes:
    found = next((match for match in (pattern.search(unit) for pattern in _STEMS) if match), None)
    return found[1].rpartition(b".")[0] or found[1] if found else b""


def _uncomma(unit: bytes) -> bytes:
    return unit.strip().rstrip(b",").rstrip()


def _join(
    ours: Sequence[bytes], theirs: Sequence[bytes], *, ordered: bool, key: Callable[[bytes], bytes]
) -> list[bytes]:
    known = {key(unit) for unit in ours}
    both = [*ours, *(unit for unit in theirs if key(unit) not in known)]
    if ordered and _is_sorted([key(u) for u in ours]) and _is_sorted([key(u) for u in theirs]):
        both.sort(key=key)
    return both


def _is_sorted(values: Sequence[bytes]) -> bool:
    return all(a <= b for a, b in pairwise(values))


def _with_commas(units: list[bytes], last_of: bytes) -> list[bytes]:
    """Each entry but the last with its comma; the last as the side has it that it comes from."""
    trailing = last_of.rstrip().endswith(b",")
    filled = [index for index, unit in enumerate(units) if unit.strip()]
    for index in filled:
        unit = units[index]
        bare = unit.rstrip()
        has = bare.endswith(b",")
        wants = index != filled[-1] or trailing
        if wants and not has and not _COMMENT.fullmatch(bare):
            units[index] = bare + b"," + unit[len(bare) :]
        elif has and not wants:
            units[index] = bare[:-1] + unit[len(bare) :]
    return units
