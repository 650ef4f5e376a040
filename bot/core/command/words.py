"""The words of one command line: quotes of every alphabet, `key=value`, dashes and spaces as phones type them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

_CLOSERS = {'"': '"', "'": "'", "“": "”“„‟\"", "”": "”“\"", "„": "“”‟\"", "‟": "”“\"", "«": "»", "»": "«", "‘": "’‘'",
            "’": "’‘'", "‚": "‘’'"}  # fmt: skip
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)=")
_DASHES = dict.fromkeys(map(ord, "‐‑‒–—−﹣-"), "-")
_EDGES = ",;"
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")


class WordError(ValueError):
    """A line that can't be cut into words, or a word that is not what it should be."""


@dataclass(frozen=True, slots=True)
class Words:
    """What followed a command's name: plain words in order, and `key=value` pairs (keys in lower case)."""

    plain: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]

    def get(self, key: str) -> str | None:
        """The value of `key`, or None."""
        return next((value for name, value in self.pairs if name == key), None)


def dashed(text: str) -> str:
    """The text with every kind of dash and minus as `-`."""
    return text.translate(_DASHES)


def cut(line: str) -> Words:
    """The words of a line; raises WordError on a quote that never closes and on a key given twice."""
    plain: list[str] = []
    pairs: dict[str, str] = {}
    place = 0
    while place < len(line):
        if line[place].isspace():
            place += 1
            continue
        key = _KEY.match(line, place)
        value, place, quoted = _value(line, key.end() if key else place)
        if key is None:
            plain += [value] if quoted or value.strip(_EDGES) else []
            continue
        name = key[1].lower()
        if name in pairs:
            raise WordError(f"{name}= stands twice: give it once")
        pairs[name] = value
    return Words(tuple(plain), tuple(pairs.items()))


def _value(line: str, place: int) -> tuple[str, int, bool]:
    if place < len(line) and line[place] in _CLOSERS:
        return _quoted(line, place)
    end = place
    while end < len(line) and not line[end].isspace():
        end += 1
    return line[place:end], end, False


def _quoted(line: str, start: int) -> tuple[str, int, bool]:
    """The text within the quotes that open at `start`; but for `"` they close only before a space or the end."""
    closers, text, place = _CLOSERS[line[start]], "", start + 1
    while place < len(line):
        char = line[place]
        after = line[place + 1 : place + 2]
        if char == "\\" and after and (after in closers or after == "\\"):
            text += after
            place += 2
            continue
        if char in closers and (not after or after.isspace() or after in _EDGES or line[start] == '"'):
            return text.strip(), place + 1, True
        text += char
        place += 1
    raise WordError(f"the quote {line[start]} at {line[start : start + 20]!r} never closes: end it with {closers[0]}")


def number(text: str) -> tuple[float, bool]:
    """A number and whether it is a percentage (given back as a fraction); raises WordError, on NaN and infinity too."""
    plain = dashed(text).strip()
    relative = plain.endswith("%")
    match = _NUMBER.fullmatch(plain.removesuffix("%").rstrip())
    value = float(match[0]) if match else float("inf")
    if abs(value) == float("inf"):
        raise WordError(f"{text!r} is no number: write it as in 0.8012 or +1.2%")
    return (value / 100, True) if relative else (value, False)


def day(text: str) -> date:
    """A date written YYYY-MM-DD; raises WordError."""
    plain = dashed(text).strip()
    try:
        if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", plain):
            raise ValueError
        return date.fromisoformat(plain)
    except ValueError:
        raise WordError(f"{text!r} is no date: write it as in 2026-12-31") from None
