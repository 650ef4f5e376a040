"""Identifiers of a text without comments and strings: what code refers to, by line; the fallback for any language."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.core.footprint.languages import Language

_WORD = rb"[A-Za-z_][A-Za-z0-9_]*"
_STRINGS = rb"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_C_COMMENT = rb"//[^\n]*|/\*.*?\*/|" + _STRINGS
_HASH_COMMENT = rb"#[^\n]*|\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'|" + _STRINGS
_INCLUDED = rb"#[ \t]*include[ \t]*[\"<](?:[^\">\n]*/)?(" + _WORD + rb")[^\">\n]*[\">]"
_C_LIKE = re.compile(rb"(" + _C_COMMENT + rb")|(\n)|(" + _WORD + rb")|" + _INCLUDED, re.DOTALL)
_TRIPLE = rb"\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'"
_FORMAT = rb"(?:[fF][rR]?|[rR][fF])"
_HASH = re.compile(rb"(" + _HASH_COMMENT + rb")|(\n)|(" + _WORD + rb")", re.DOTALL)
# a string of Python's that holds expressions comes before the word that its prefix seems to be
_PYTHON = re.compile(
    rb"(" + _HASH_COMMENT + rb")|(\n)|\b(" + _FORMAT + rb"(?:" + _TRIPLE + rb"|" + _STRINGS + rb"))|(" + _WORD + rb")",
    re.DOTALL,
)
# what FileCheck expects stands in comments, so those count
_MLIR = re.compile(rb"(?!)()|(\n)|(" + _WORD + rb"(?:\.[A-Za-z_][A-Za-z0-9_]*)*)")
_BLANK = re.compile(rb"[ \t\r]*\n(?:[ \t\r]*\n)*")
_DOCSTRING = re.compile(rb"(\b" + _FORMAT + rb")?(?:" + _TRIPLE + rb")", re.DOTALL)
_QUOTED = re.compile(_STRINGS)
_WORDS = re.compile(_WORD)
_PLAIN = re.compile(rb"(?!)()|(\n)|(" + _WORD + rb")")
_LEXERS = {
    Language.C: _C_LIKE,
    Language.CPP: _C_LIKE,
    Language.CUDA: _C_LIKE,
    Language.TABLEGEN: _C_LIKE,
    Language.PYTHON: _PYTHON,
    Language.CMAKE: _HASH,
    Language.MLIR: _MLIR,
    Language.OTHER: _PLAIN,
}
_ANY_WORD = re.compile(_WORD + rb"(?:\.[a-z_][a-z0-9_]*)*")


def references(blob: bytes, language: Language) -> dict[str, tuple[int, ...]]:
    """Each identifier outside comments and strings with the lines (from 1) that it stands on, in order.

    A header that is included counts by its stem.
    """
    found: dict[bytes, list[int]] = {}
    line = 1
    for match in _LEXERS[language].finditer(blob):
        kind = match.lastindex
        if kind == 2:
            line += 1
        elif kind == 3 and language is Language.PYTHON:
            for at, names in _formatted(match[0]):
                for name in names:
                    found.setdefault(name, []).append(line + at)
            line += match[0].count(b"\n")
        elif kind is not None and kind >= 3:
            found.setdefault(match[kind], []).append(line)
        else:
            line += match[0].count(b"\n")
    return {name.decode("ascii"): tuple(lines) for name, lines in found.items()}


def without_docstrings(text: bytes) -> bytes:
    """Python without what stands in strings of three quotes, line for line, but for the names in their expressions."""
    if b'"""' not in text and b"'''" not in text:
        return text
    return _DOCSTRING.sub(_bare, text)


def _bare(match: re.Match[bytes]) -> bytes:
    rows = [b""] * (match[0].count(b"\n") + 1)
    for at, names in _formatted(match[0]) if match[1] else ():
        rows[at] += b" " + b" ".join(names) + b" "
    return b"\n".join(rows)


def _formatted(string: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """The names in each expression of a format string, with how many lines below its start the expression begins."""
    at, end = 0, len(string)
    while at < end:
        if string[at : at + 2] in (b"{{", b"}}"):
            at += 2
            continue
        if string[at : at + 1] != b"{":
            at += 1
            continue
        start = at = at + 1
        depth = 0
        while at < end:
            one = string[at : at + 1]
            if depth == 0 and (one in b"}:" or (one == b"!" and string[at + 1 : at + 2] != b"=")):
                break
            depth += (one in b"([{") - (one in b")]}")
            at += 1
        # what follows a colon is a format, in which braces may open again
        yield string.count(b"\n", 0, start), _WORDS.findall(_QUOTED.sub(b" ", string[start:at]))


def words(blob: bytes) -> frozenset[str]:
    """Every word of a text, comments and strings included: what must miss before a name counts as nowhere."""
    return frozenset(word.decode("ascii") for word in set(_ANY_WORD.findall(blob)))


def code_of(text: bytes, language: Language) -> bytes:
    """`text` without comments and with white space made plain: equal where only the layout differs.

    MLIR keeps its comments (they are what FileCheck expects), Python its indentation (it is syntax).
    """
    pattern = _COMMENTS.get(language)
    bare = pattern.sub(_keep_strings, text) if pattern else text
    if language in (Language.PYTHON, Language.OTHER):
        return _BLANK.sub(b"\n", bare).lstrip(b"\n").rstrip()
    return b" ".join(bare.split())


def _keep_strings(match: re.Match[bytes]) -> bytes:
    return b" " if match[0][:1] in b"/#" else match[0]


_COMMENTS = {
    Language.C: re.compile(_C_COMMENT, re.DOTALL),
    Language.CPP: re.compile(_C_COMMENT, re.DOTALL),
    Language.CUDA: re.compile(_C_COMMENT, re.DOTALL),
    Language.TABLEGEN: re.compile(_C_COMMENT, re.DOTALL),
    Language.PYTHON: re.compile(_HASH_COMMENT, re.DOTALL),
    Language.CMAKE: re.compile(_HASH_COMMENT, re.DOTALL),
}
