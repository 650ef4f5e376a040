"""Many patterns for one thing, each tried only on lines that hold a word it can't do without."""

from __future__ import annotations

import re

_LITERAL_ESCAPES = " .-'/[](){}+:,#\"`!=<>"


class AnyOf:
    """Alternatives in the order given; the first that is found speaks."""

    def __init__(self, *patterns: str, flags: int = re.I) -> None:
        self._alternatives = tuple((needed(pattern), re.compile(pattern, flags)) for pattern in patterns)

    def search(self, line: str, lowered: str) -> re.Match[str] | None:
        """The first alternative found in `line`; `lowered` is the line in lower case."""
        for words, pattern in self._alternatives:
            if not words or any(word in lowered for word in words):
                found = pattern.search(line)
                if found:
                    return found
        return None


def needed(pattern: str) -> tuple[str, ...]:
    """Words, in lower case, of which whatever `pattern` matches holds one; () where nothing can be said.

    >>> needed(r"(?:could not|unable to) (?:find|locate) \\w+")
    ('could not', 'unable to')
    """
    parts = _alternatives(pattern)
    each = [_needed_in_sequence(part) for part in parts]
    return tuple(dict.fromkeys(word for words in each for word in words)) if all(each) else ()


def _needed_in_sequence(pattern: str) -> tuple[str, ...]:
    candidates: list[tuple[str, ...]] = []
    run, index = "", 0
    while index < len(pattern):
        end = _end(pattern, index)
        item, optional, repeated = pattern[index:end], False, False
        while end < len(pattern) and pattern[end] in "?*+{":
            optional = optional or (pattern[end] in "?*" and not repeated) or pattern[end : end + 2] in ("{0", "{,")
            repeated = True
            end = pattern.index("}", end) + 1 if pattern[end] == "{" else end + 1
        literal = "" if repeated else _literal(item)
        run += literal
        if not literal and run:
            candidates.append((run,))
            run = ""
        if item.startswith("(") and not optional and (inner := _group(item)):
            candidates.append(needed(inner))
        index = end
    candidates.append((run,) if run else ())
    best = max(candidates, key=lambda words: (min(map(len, words)) if words else 0, -len(words)))
    return best if best and min(map(len, best)) > 1 else ()


def _literal(item: str) -> str:
    if item.startswith("\\"):
        return item[1] if item[1] in _LITERAL_ESCAPES else ""
    return item.lower() if len(item) == 1 and item not in ".^$" else ""


def _group(item: str) -> str:
    """What stands in a group that has to match, "" where it only looks."""
    inside = item[1:-1]
    if inside.startswith(("?=", "?!", "?<=", "?<!")):
        return ""
    return re.sub(r"^\?(?::|P<\w+>)", "", inside)


def _end(pattern: str, start: int) -> int:
    """Where the item that begins at `start` ends: a character, an escape, a class or a group."""
    char = pattern[start]
    if char == "\\":
        return start + 2
    if char == "[":
        index = start + 1 + (pattern[start + 1] == "^")
        index += pattern[index] == "]"
        while pattern[index] != "]":
            index = _end(pattern, index) if pattern[index] == "\\" else index + 1
        return index + 1
    if char == "(":
        index = start + 1
        while pattern[index] != ")":
            index = _end(pattern, index)
        return index + 1
    return start + 1


def _alternatives(pattern: str) -> list[str]:
    parts, index, start = [], 0, 0
    while index < len(pattern):
        if pattern[index] == "|":
            parts.append(pattern[start:index])
            start = index + 1
        index = _end(pattern, index)
    return [*parts, pattern[start:]]
