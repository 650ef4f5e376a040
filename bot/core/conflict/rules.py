"""The rules by which a hunk is resolved or classed; the first that holds decides. Never a guess: each has its proof.

A rule is mechanical where the result follows from the texts alone: one side changed the layout only, one side holds the
other's change already, or the lines are of a kind (includes, list entries, registrations, whole definitions) that
stand for themselves. What none of them resolves is classed for the person who must: API-related where upstream takes
names away that the fork's side still uses, semantic where both change the same code, unknown where the texts say too
little.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from keyword import kwlist

from bot.core.conflict.marked import Sides
from bot.core.conflict.regions import Region, merge_region, region_of
from bot.core.conflict.tokens import Style, joined, style_of, values
from bot.core.footprint import Language, language_of, references, symbols_of

_SIGNIFICANT = re.compile(rb"\w")
_ALIKE = 0.4
"""Share of equal lines from which two added blocks are taken for two forms of one thing."""

_LONGEST = 250
"""Lines of an added block beyond which it is more than one addition."""
_SECTION = re.compile(rb"\s*// -----\s*\n")
_SAME_TEST = 0.8
"""As _ALIKE, for tests: those of one file look alike by nature."""
_TELLING = 5
"""Tokens from which a text is no coincidence."""
_KEYWORDS = frozenset(kwlist) | frozenset(
    re.findall(
        r"\w+",
        "auto bool case catch char const constexpr default delete do double enum explicit extern false float goto "
        "inline int long namespace new nullptr operator override private protected public short signed sizeof static "
        "struct switch template this throw true typedef typename union unsigned using virtual void",
    )
)
"""Words that name nothing: that one of them is gone says nothing of an interface."""
_BLOCKS = frozenset({"function", "class", "def", "enum"})


class HunkClass(StrEnum):
    """What a hunk asks of whoever resolves it."""

    MECHANICAL = "mechanical"
    API = "api"
    SEMANTIC = "semantic"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class HunkVerdict:
    """What was decided of one hunk; `resolution` is None where a person must. `line` is that of its first marker."""

    cls: HunkClass
    rule: str
    evidence: tuple[str, ...]
    resolution: bytes | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a hunk stands: the file's language, the open brackets before it, the merged lines around it.

    `later` holds the tokens of the file as upstream has it by now, joined, empty where that is not known.
    """

    path: str
    depth: int
    before: tuple[bytes, ...]
    after: tuple[bytes, ...]
    later: str = ""

    @property
    def language(self) -> Language:
        """The language that the path says."""
        return language_of(self.path)

    @property
    def style(self) -> Style:
        """How texts of that language are compared."""
        return style_of(self.language)


Found = tuple[bytes, tuple[str, ...]]
Rule = Callable[[Sides, Place], Found | None]


def judge(hunk: Sides, place: Place) -> HunkVerdict:
    """Resolve a hunk by the first rule that holds, or class it."""
    for name, rule in RULES.items():
        found = rule(hunk, place)
        if found is not None:
            return HunkVerdict(HunkClass.MECHANICAL, name, found[1], found[0], hunk.line)
    return _classed(hunk, place)


def _values(hunk: Sides, place: Place) -> tuple[tuple[str, ...], ...]:
    return tuple(values(text, place.style, depth=place.depth) for text in (hunk.ours, hunk.base, hunk.theirs))


def _layout_ours(hunk: Sides, place: Place) -> Found | None:
    ours, base, _ = _values(hunk, place)
    if base and ours == base:
        return hunk.theirs, ("the fork changed the layout of these lines only: upstream's change stands",)
    return None


def _layout_theirs(hunk: Sides, place: Place) -> Found | None:
    _, base, theirs = _values(hunk, place)
    if base and theirs == base:
        return hunk.ours, ("upstream changed the layout of these lines only: the fork's change stands",)
    return None


def _same_change(hunk: Sides, place: Place) -> Found | None:
    ours, _, theirs = _values(hunk, place)
    if ours == theirs:
        return hunk.ours, ("both sides made the same change, in another layout",)
    return None


def _already_there(hunk: Sides, place: Place) -> Found | None:
    del place
    ours, base, theirs = (_lines(text) for text in (hunk.ours, hunk.base, hunk.theirs))
    added, removed = theirs - base, base - theirs
    if _holds(ours, theirs, added, removed):
        return hunk.ours, (f"the fork has upstream's change already ({sum(added.values())} added lines)",)
    return None


def _taken_upstream(hunk: Sides, place: Place) -> Found | None:
    del place
    ours, base, theirs = (_lines(text) for text in (hunk.ours, hunk.base, hunk.theirs))
    added, removed = ours - base, base - ours
    if not removed and _holds(theirs, ours, added, removed):
        return hunk.theirs, (f"upstream has the fork's change by now ({sum(added.values())} added lines)",)
    return None


def _holds(side: Counter[bytes], other: Counter[bytes], added: Counter[bytes], removed: Counter[bytes]) -> bool:
    """True where `side` has all that `other` adds and lacks all that it removes; something must have been added."""
    return (
        bool(added)
        and all(side[line] >= other[line] for line in added)
        and all(side[line] <= other[line] for line in removed)
    )


def _region(wanted: Region) -> Rule:
    def rule(hunk: Sides, place: Place) -> Found | None:
        texts = (hunk.ours, hunk.base, hunk.theirs)
        if region_of(texts, place.language, bracketed=place.depth > 0) is not wanted:
            return None
        around = [*place.before[-2:], *place.after[:1]]
        text = merge_region(wanted, hunk.base, hunk.ours, hunk.theirs, around=around)
        return None if text is None else (text, (f"both sides add or remove {wanted.value}: all are kept",))

    return rule


def _definitions(hunk: Sides, place: Place) -> Found | None:
    """Both sides add whole definitions at one place, of different names and unlike texts."""
    if _SIGNIFICANT.search(hunk.base) or place.language is Language.OTHER:
        return None
    if max(hunk.ours.count(b"\n"), hunk.theirs.count(b"\n")) > _LONGEST:
        return None
    found = [[d for d in symbols_of(side, place.language).definitions if d.names] for side in (hunk.ours, hunk.theirs)]
    names = [{d.name for d in side} for side in found]
    if not all(any(d.kind in _BLOCKS for d in side) for side in found) or names[0] & names[1]:
        return None
    if not (_whole(hunk.ours) and _whole(hunk.theirs)):
        return None
    if _likeness(hunk.ours, hunk.theirs) >= _ALIKE:
        return None
    shown = [", ".join(sorted(side)[:4]) for side in names]
    return hunk.ours + hunk.theirs, (f"the fork adds {shown[0]}", f"upstream adds {shown[1]}")


def _sections(hunk: Sides, place: Place) -> Found | None:
    """Both sides add whole sections to a file of tests that is split into sections."""
    if place.language is not Language.MLIR or _SIGNIFICANT.search(hunk.base):
        return None
    end = b"".join(place.after)
    if (end.strip() and not _SECTION.match(end)) or not (_SECTION.match(hunk.ours) and _SECTION.match(hunk.theirs)):
        return None
    if _likeness(hunk.ours, hunk.theirs) >= _SAME_TEST:
        return None
    return hunk.ours + hunk.theirs, ("both sides add sections of their own to this test",)


def _whole(text: bytes) -> bool:
    depth = 0
    for char in text:
        depth += (char in b"([{") - (char in b")]}")
        if depth < 0:
            return False
    return depth == 0


def _likeness(one: bytes, two: bytes) -> float:
    lines = [[x.strip() for x in text.splitlines() if _SIGNIFICANT.search(x)] for text in (one, two)]
    return SequenceMatcher(None, lines[0], lines[1], autojunk=False).ratio() if all(lines) else 0.0


def _lines(text: bytes) -> Counter[bytes]:
    return Counter(line for line in map(bytes.strip, text.splitlines()) if _SIGNIFICANT.search(line))


def _ahead(hunk: Sides, place: Place) -> Found | None:
    """The fork took a later commit of upstream's before this one: upstream arrives at the fork's text by itself."""
    near = (b"".join(place.before[-1:]), b"".join(place.after[:1]))
    ours, theirs = (
        joined(values(near[0] + text + near[1], place.style, depth=place.depth)) for text in (hunk.ours, hunk.theirs)
    )
    if len(values(hunk.ours, place.style)) < _TELLING or ours not in place.later or theirs in place.later:
        return None
    return hunk.ours, ("upstream's own file has the fork's text by now, and no longer this commit's",)


_VERSION = re.compile(r"v?\d+(?:\.\d+)+")


def _newer_version(hunk: Sides, place: Place) -> Found | None:
    """All three sides differ in one version number alone, which both sides raised: the higher one stands."""
    sides = _values(hunk, place)
    if len({len(side) for side in sides}) != 1 or not sides[0]:
        return None
    differing = [tokens for tokens in zip(*sides, strict=True) if len(set(tokens)) > 1]
    pins = [[match[0] for token in tokens if (match := _VERSION.search(token))] for tokens in differing]
    if len(differing) != 1 or len(pins[0]) != 3:
        return None
    rests = {_VERSION.sub("", token, count=1) for token in differing[0]}
    ours, base, theirs = ([int(part) for part in pin.lstrip("v").split(".")] for pin in pins[0])
    if len(rests) != 1 or not (ours > base and theirs > base):
        return None
    why = f"both sides raise {pins[0][1]}, the fork to {pins[0][0]}, upstream to {pins[0][2]}: the higher stands"
    return hunk.ours if ours > theirs else hunk.theirs, (why,)


RULES: dict[str, Rule] = {
    "layout-fork": _layout_ours,
    "layout-upstream": _layout_theirs,
    "same-change": _same_change,
    "already-there": _already_there,
    "taken-upstream": _taken_upstream,
    "includes": _region(Region.INCLUDES),
    "entries": _region(Region.ENTRIES),
    "registrations": _region(Region.REGISTRATIONS),
    "definitions": _definitions,
    "sections": _sections,
    "newer-version": _newer_version,
    "ahead": _ahead,
}


def _classed(hunk: Sides, place: Place) -> HunkVerdict:
    ours, base, theirs = (
        set(references(text, place.language)) - _KEYWORDS for text in (hunk.ours, hunk.base, hunk.theirs)
    )
    gone = sorted((base - theirs) & ours)
    if gone:
        return HunkVerdict(
            HunkClass.API,
            "names-gone",
            (f"upstream no longer uses {', '.join(gone[:6])} here, the fork still does",),
            line=hunk.line,
        )
    if not _SIGNIFICANT.search(hunk.base):
        if _likeness(hunk.ours, hunk.theirs) >= _ALIKE:
            text = "both sides add what looks like two forms of one thing"
            return HunkVerdict(HunkClass.SEMANTIC, "added-alike", (text,), line=hunk.line)
        text = "both sides add code at one place; which goes first is not known"
        return HunkVerdict(HunkClass.UNKNOWN, "added-both", (text,), line=hunk.line)
    if not _SIGNIFICANT.search(hunk.ours) or not _SIGNIFICANT.search(hunk.theirs):
        side = "the fork" if not _SIGNIFICANT.search(hunk.ours) else "upstream"
        text = f"{side} removed what the other side changes"
        return HunkVerdict(HunkClass.SEMANTIC, "removed-and-changed", (text,), line=hunk.line)
    return HunkVerdict(HunkClass.SEMANTIC, "both-change", ("both sides change the same lines",), line=hunk.line)
