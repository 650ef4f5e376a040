"""What a commit touches: files, hunks and symbols, as pure functions over bytes.

`symbols_of` turns one blob into a compact table, cacheable by blob id and `GRAMMAR_VERSION`; `footprint` joins the
tables of a commit's old and new blobs into what it defines, changes, removes, renames and newly refers to.
"""

from __future__ import annotations

from bot.core.footprint.commit import (
    FileChange,
    FileFootprint,
    Footprint,
    SymbolChange,
    decode_footprint,
    encode_footprint,
    footprint,
    footprint_key,
    needed_blobs,
    needed_tables,
)
from bot.core.footprint.hunks import Hunk, hunks
from bot.core.footprint.languages import GRAMMAR_VERSION, Language, is_test, language_of
from bot.core.footprint.lexer import references, words
from bot.core.footprint.table import TOP, Definition, FootprintCache, SymbolTable, Tables, symbols_of, table_key

__all__ = [
    "GRAMMAR_VERSION",
    "TOP",
    "Definition",
    "FileChange",
    "FileFootprint",
    "Footprint",
    "FootprintCache",
    "Hunk",
    "Language",
    "SymbolChange",
    "SymbolTable",
    "Tables",
    "decode_footprint",
    "encode_footprint",
    "footprint",
    "footprint_key",
    "hunks",
    "is_test",
    "language_of",
    "needed_blobs",
    "needed_tables",
    "references",
    "symbols_of",
    "table_key",
    "words",
]
