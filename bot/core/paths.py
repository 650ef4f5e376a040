"""One meaning of path patterns, used everywhere: those of `.gitignore`, last match wins, `!` takes out again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

MAX_PATTERN = 1024
MAX_WILDCARDS = 16


class PatternError(ValueError):
    """A pattern that can't be meant: the message says what is wrong and how to mend it."""


def matches(path: str, patterns: Sequence[str]) -> bool:
    """True where the last pattern that hits `path` is no negated one.

    `a/b` and `a/b/` hit all below; without an inner slash a pattern hits at any depth; `*` and `?` stay within a
    folder, `**` does not; a leading `/` ties to the root. Raises PatternError on a pattern that `problem` names.
    """
    hit = False
    for pattern in patterns:
        negated = pattern.startswith("!")
        if negated != hit:
            continue
        if compiled(pattern[1:] if negated else pattern).fullmatch(path):
            hit = not negated
    return hit


def matching(paths: Iterable[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The paths that `patterns` hit, in their order."""
    return tuple(path for path in paths if matches(path, patterns))


def matches_name(name: str, patterns: Sequence[str]) -> bool:
    """True where any shell pattern (`*LinearLayout*`) hits a symbol or kernel name; case counts."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def problem(pattern: str) -> str | None:
    """What is wrong with a pattern, or None."""
    try:
        compiled(pattern.removeprefix("!"))
    except PatternError as error:
        return str(error)
    return None


@lru_cache(maxsize=4096)
def compiled(pattern: str, *, below: bool = True) -> re.Pattern[str]:
    """The regular expression of one pattern without its `!`.

    `below=False` is CODEOWNERS' reading of a last part with a star: `docs/*` hits no file in a folder of docs.
    """
    _refuse(pattern)
    folder = pattern.endswith("/") and not pattern.endswith("\\/")
    body = pattern.strip("/") if folder else pattern.lstrip("/")
    parts = body.split("/")
    if not pattern.startswith("/") and "/" not in body:
        parts = ["**", *parts]
    regex = _blocks(parts)
    if folder:
        regex += "/.+"
    elif parts[-1] != "**" and (below or "*" not in parts[-1] or body == "*"):
        regex += "(?:/.*)?"
    return re.compile(regex, re.DOTALL)


def _blocks(parts: list[str]) -> str:
    """The parts as one expression; what stands between two `**` is taken at its first place and never tried again.

    That is right for globs, and keeps a path of many folders from taking exponential time.
    """
    blocks: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            blocks.append([])
        else:
            blocks[-1].append(_part(part))
    first, *rest = ["/".join(block) for block in blocks]
    if not rest:
        return first
    last = rest.pop()
    middle = "".join(f"(?>(?:[^/]*/)*?{block}/)" for block in rest if block)
    return (f"{first}/" if first else "") + middle + (f"(?:[^/]*/)*{last}" if last else ".+")


def _refuse(pattern: str) -> None:
    if not pattern.strip("/").strip():
        raise PatternError("an empty pattern hits nothing: write a path, or ** for all")
    if len(pattern) > MAX_PATTERN or pattern.count("*") > MAX_WILDCARDS:
        raise PatternError(f"too long a pattern: at most {MAX_PATTERN} characters and {MAX_WILDCARDS} stars")
    if "\0" in pattern or "\n" in pattern:
        raise PatternError("a pattern is one line of text")
    if any(part in (".", "..") for part in pattern.split("/")):
        raise PatternError("paths are told from the root of the repository, without . and ..")


def _part(part: str) -> str:
    """One part between slashes as an expression; like `_blocks`, each piece between stars is tried once."""
    pieces, place = [""], 0
    while place < len(part):
        char = part[place]
        place += 1
        if char == "*":
            pieces.append("")
        elif char == "?":
            pieces[-1] += "[^/]"
        elif char == "\\":
            if place == len(part):
                raise PatternError(f"{part!r} ends in a backslash: double it")
            pieces[-1] += re.escape(part[place])
            place += 1
        elif char == "[":
            text, place = _class(part, place)
            pieces[-1] += text
        else:
            pieces[-1] += re.escape(char)
    first, *rest = pieces
    if not rest:
        return first
    last = rest.pop()
    return first + "".join(f"(?>[^/]*?{piece})" for piece in rest if piece) + f"[^/]*{last}"


def _class(part: str, place: int) -> tuple[str, int]:
    """The class `[...]` whose inside begins at `place`, and the place after it."""
    negated = part[place : place + 1] in ("!", "^")
    start = place + negated
    end = part.find("]", start + 1)
    if end < 0:
        raise PatternError(f"{part!r} opens [ without ]: close it, or write \\[")
    inside = re.sub(r"([\\\[\]&~|^])", r"\\\1", part[start:end])
    text = f"(?!/)[{'^' if negated else ''}{inside}]"
    try:
        re.compile(text)
    except re.error as error:
        raise PatternError(f"{part!r} holds a class that can't be read: {error}") from error
    return text, end + 1
