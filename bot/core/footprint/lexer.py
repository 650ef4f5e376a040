"""Identifiers of a text without comments and strings: what code refers to, by line; the fallback for any language."""

from __future__ import annotations

import re

from bot.core.footprint.languages import Language

_WORD = rb"[A-Za-z_][A-Za-z0-9_]*"
_STRINGS = rb"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_C_COMMENT = rb"//[^\n]*|/\*.*?\*/|" + _STRINGS
_HASH_COMMENT = rb"#[^\n]*|\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'|" + _STRINGS
_INCLUDED = rb"#[ \t]*include[ \t]*[\"<](?:[^\">\n]*/)?(" + _WORD + rb")[^\">\n]*[\">]"
_C_LIKE = re.compile(rb"(" + _C_COMMENT + rb")|(\n)|(" + _WORD + rb")|" + _INCLUDED, re.DOTALL)
_HASH = re.compile(rb"(" + _HASH_COMMENT + rb")|(\n)|(" + _WORD + rb")", re.DOTALL)
# what FileCheck expects stands in comments, so those count
_MLIR = re.compile(rb"(?!)()|(\n)|(" + _WORD + rb"(?:\.[A-Za-z_][A-Za-z0-9_]*)*)")
_BLANK = re.compile(rb"[ \t\r]*\n(?:[ \t\r]*\n)*")
_DOCSTRING = re.compile(rb"\"\"\".*?\"\"\"|'''.*?'''", re.DOTALL)
_PLAIN = re.compile(rb"(?!)()|(\n)|(" + _WORD + rb")")
_LEXERS = {
    Language.C: _C_LIKE,
    Language.CPP: _C_LIKE,
    Language.CUDA: _C_LIKE,
    Language.TABLEGEN: _C_LIKE,
    Language.PYTHON: _HASH,
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
        elif kind is not None and kind >= 3:
            found.setdefault(match[kind], []).append(line)
        else:
            line += match[0].count(b"\n")
    return {name.decode("ascii"): tuple(lines) for name, lines in found.items()}


def without_docstrings(text: bytes) -> bytes:
    """Python without what stands in strings of three quotes, line for line."""
    if b'"""' not in text and b"'''" not in text:
        return text
    return _DOCSTRING.sub(lambda match: b"\n" * match[0].count(b"\n"), text)


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
