"""Texts as tokens, so that two texts are equal where they differ in layout alone.

Layout is: white space, line breaks inside brackets, how comments are wrapped, quotes of plain Python strings, and a
comma before a closing bracket (a Python tuple of one keeps its comma), brackets around a power in Python, and a line
joined to the next by a backslash there. Indentation counts in Python.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from keyword import iskeyword

from bot.core.footprint import Language


class Style(Enum):
    """How a language writes comments, and whether indentation is syntax."""

    SLASHES = "//"
    HASH = "#"
    PYTHON = "python"
    PLAIN = ""


_STYLES = {
    Language.C: Style.SLASHES,
    Language.CPP: Style.SLASHES,
    Language.CUDA: Style.SLASHES,
    Language.TABLEGEN: Style.SLASHES,
    Language.MLIR: Style.SLASHES,
    Language.PYTHON: Style.PYTHON,
    Language.CMAKE: Style.HASH,
}
_STRING = r"\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_SCANNERS = {
    Style.SLASHES: re.compile(
        r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>\"(?:\\.|[^\"\\\n])*\")|(?P<word>[\w.$%@!]+)|(?P<other>\S)", re.S
    ),
    Style.HASH: re.compile(
        r"(?P<comment>#[^\n]*)|(?P<string>\"(?:\\.|[^\"\\])*\")|(?P<word>[\w.$@/-]+)|(?P<other>\S)", re.S
    ),
    Style.PYTHON: re.compile(
        rf"(?P<comment>#[^\n]*)|(?P<string>{_STRING})|(?P<joint>\\\r?\n)|(?P<word>\w+)|(?P<other>\S)", re.S
    ),
    Style.PLAIN: re.compile(r"(?P<word>\w+)|(?P<other>[^\w\n ]|(?<=\n)[ ]+|\n)"),
}
_PLAIN_STRING = re.compile(r"'([^'\"\\\n]*)'")
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Token:
    """One token as compared, and where its text stands (`start` includes the layout before it)."""

    text: str
    start: int
    end: int


def style_of(language: Language) -> Style:
    """How texts of this language are compared."""
    return _STYLES.get(language, Style.PLAIN)


def tokens(text: bytes, style: Style, *, depth: int = 0) -> tuple[Token, ...]:
    """The tokens of a text; `depth` is how many brackets are open where it starts."""
    source = text.decode("utf-8", "surrogateescape")
    found: list[Token] = []
    at, commented = 0, False
    for match in _SCANNERS[style].finditer(source):
        lead = source[at : match.start()]
        broken = "\n" in lead or match.start() == 0
        if match.lastgroup == "comment":
            words = match[0].lstrip("/*#!< ").rstrip("*/ ").split() if style is not Style.PLAIN else []
            mark = match[0][:2] if style is Style.SLASHES else "#"
            marks = [] if commented and broken and mark != "/*" else [mark]
            found += [Token(word, at, match.end()) for word in [*marks, *words]]
            commented = broken and match[0][:2] != "/*"
            at = match.end()
            continue
        if match.lastgroup == "joint":
            at = match.end()
            continue
        if commented:
            found.append(Token("\n", at, at))
            commented = False
        if style is Style.PYTHON and broken and depth <= 0:
            indent = lead.rpartition("\n")[2]
            found.append(Token(f"\n{len(indent.expandtabs())}", at, at))
        value = match[0]
        if value in _OPENING:
            depth += 1
        elif value in _CLOSING:
            depth -= 1
            _drop_comma(found, value, style)
        if match.lastgroup == "string" and style is Style.PYTHON:
            value = _PLAIN_STRING.sub(r'"\1"', value)
        found.append(Token(value, at, match.end()))
        at = match.end()
    return tuple(_without_needless(found) if style is Style.PYTHON else found)


def _without_needless(found: list[Token]) -> list[Token]:
    """The tokens without the brackets that formatters set around a power: `-(2**31)`."""
    kept: list[Token] = []
    index = 0
    while index < len(found):
        texts = [token.text for token in found[index : index + 7]]
        before = kept[-1].text if kept else ""
        if (
            texts[:1] + texts[2:4] + texts[5:6] == ["(", "*", "*", ")"]
            and all(re.fullmatch(r"\w+", texts[place]) for place in (1, 4))
            and not (_callable(before) or before in ("*", "await"))
            and texts[6:] not in (["*"], ["."], ["("], ["["])
        ):
            kept += found[index + 1 : index + 5]
            index += 6
        else:
            kept.append(found[index])
            index += 1
    return kept


def _drop_comma(found: list[Token], closing: str, style: Style) -> None:
    """Take out a comma before a closing bracket, unless it makes a tuple."""
    if not found or found[-1].text != ",":
        return
    if closing == ")" and style is Style.PYTHON:
        level, commas = 0, 0
        for index in range(len(found) - 2, -1, -1):
            text = found[index].text
            if text in _CLOSING:
                level += 1
            elif text in _OPENING and level:
                level -= 1
            elif text in _OPENING:
                called = index > 0 and _callable(found[index - 1].text)
                if not commas and not called:
                    return
                break
            elif text == "," and not level:
                commas += 1
    found.pop()


def _callable(text: str) -> bool:
    """True for a token after which a bracket is a call or a subscript, not a tuple."""
    return text in (")", "]") or (text.isidentifier() and not iskeyword(text))


def values(text: bytes, style: Style, *, depth: int = 0) -> tuple[str, ...]:
    """The tokens as compared, without places."""
    return tuple(token.text for token in tokens(text, style, depth=depth))


def joined(tokens: Sequence[str]) -> str:
    """Tokens as one string, so that one sequence can be looked for in another."""
    return "\0" + "\0".join(tokens) + "\0"


def open_brackets(text: bytes, style: Style) -> int:
    """How many brackets are open at the end of a text."""
    count = 0
    for match in _SCANNERS[style].finditer(text.decode("utf-8", "surrogateescape")):
        if match.lastgroup == "other":
            count += (match[0] in _OPENING) - (match[0] in _CLOSING)
    return max(count, 0)
