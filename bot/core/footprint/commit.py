"""The footprint of one commit: files, hunks and symbols that it defines, changes, removes, renames, newly refers to."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from bot.core.footprint.hunks import Hunk, hunks
from bot.core.footprint.languages import GRAMMAR_VERSION, Language, language_of
from bot.core.footprint.lexer import references, without_docstrings
from bot.core.footprint.table import TOP, Definition, SymbolTable, symbols_of, table_key
from bot.core.types import Commit


class FileChange(Protocol):
    """One changed file as `git diff --raw` tells it; ids and modes of all zeros (or empty) where a side is missing."""

    @property
    def status(self) -> str:
        """A, M, D, R, C or T, a similarity after it is ignored."""

    @property
    def path(self) -> str:
        """The new path; the old one where the file was deleted."""

    @property
    def old_path(self) -> str | None:
        """The old path of a rename or copy."""

    @property
    def old_mode(self) -> str:
        """The mode before."""

    @property
    def new_mode(self) -> str:
        """The mode after."""

    @property
    def old_oid(self) -> str:
        """The blob before."""

    @property
    def new_oid(self) -> str:
        """The blob after."""


@dataclass(frozen=True, slots=True)
class SymbolChange:
    """One symbol that a commit changes.

    `what` is defined, signature, body, removed, renamed (from `old`), moved_in or moved_out (to another file).
    """

    name: str
    kind: str
    what: str
    names: tuple[str, ...]
    old: str | None = None


@dataclass(frozen=True, slots=True)
class FileFootprint:
    """What a commit does to one file.

    `parsed` is False where the symbols can't be trusted; `top`: what stands outside all symbols changes too. `refers`
    and `drops` are the identifiers that stand only on the added, or only on the removed, lines.
    """

    path: str
    old_path: str | None
    status: str
    old_oid: str
    new_oid: str
    mode_changed: bool
    language: Language
    binary: bool
    parsed: bool
    hunks: tuple[Hunk, ...]
    symbols: tuple[SymbolChange, ...]
    top: bool
    refers: frozenset[str]
    drops: frozenset[str]


@dataclass(frozen=True, slots=True)
class Footprint:
    """What a commit touches, over all its files."""

    sha: str
    files: tuple[FileFootprint, ...]

    @property
    def paths(self) -> frozenset[str]:
        """All paths touched, old names of renames too."""
        return frozenset(p for f in self.files for p in (f.path, f.old_path) if p)

    @property
    def defined(self) -> frozenset[str]:
        """Short names and aliases that it newly defines (new names of renames too)."""
        return self._names("defined", "renamed")

    @property
    def changed(self) -> frozenset[str]:
        """Short names and aliases whose signature or body it changes."""
        return self._names("signature", "body")

    @property
    def resigned(self) -> frozenset[str]:
        """Short names and aliases whose signature it changes."""
        return self._names("signature")

    @property
    def removed(self) -> frozenset[str]:
        """Names and aliases that it removes (old names of renames too) and defines nowhere else."""
        renamed = (s.old for f in self.files for s in f.symbols if s.what == "renamed" and s.old)
        return (self._names("removed") | {old.rpartition(".")[2] for old in renamed}) - self.defined

    @property
    def referred(self) -> frozenset[str]:
        """Identifiers that it newly refers to, over all files."""
        return frozenset().union(*(f.refers for f in self.files))

    @property
    def parsed(self) -> bool:
        """False where a file's grammar failed: its symbols are not to be trusted."""
        return all(f.parsed for f in self.files)

    def _names(self, *what: str) -> frozenset[str]:
        return frozenset(n for f in self.files for s in f.symbols if s.what in what for n in s.names)


def footprint_key(sha: str) -> str:
    """The cache's key for a commit's footprint (against its first parent)."""
    return f"footprint:{GRAMMAR_VERSION}:{sha}"


def needed_blobs(changes: Sequence[FileChange]) -> frozenset[str]:
    """The ids of the blobs that `footprint` wants to see for these changes."""
    return frozenset(
        oid
        for change in changes
        for oid, mode in ((change.old_oid, change.old_mode), (change.new_oid, change.new_mode))
        if _is_file(oid, mode)
    )


def needed_tables(changes: Sequence[FileChange]) -> Iterator[tuple[str, Language, str | None]]:
    """Blob and language of each table that `footprint` would make for these changes; a new side names its old one."""
    for change in changes:
        if change.old_oid == change.new_oid:
            continue
        old, new = language_of(change.old_path or change.path), language_of(change.path)
        before = change.old_oid if _is_file(change.old_oid, change.old_mode) else None
        if before:
            yield before, old, None
        if _is_file(change.new_oid, change.new_mode):
            yield change.new_oid, new, before


def footprint(
    *,
    commit: Commit,
    changes: Sequence[FileChange],
    blobs: Mapping[str, bytes],
    tables: Mapping[str, SymbolTable] | None = None,
) -> Footprint:
    """The footprint of `commit` from its changes against its first parent.

    `blobs` holds the bytes by blob id (a missing one counts as binary and not parsed); `tables` those tables that are
    already known, by `table_key`; the rest are made here.
    """
    known = tables or {}
    files = [_file(change, blobs, known) for change in sorted(changes, key=lambda c: c.path)]
    return Footprint(commit.sha, tuple(_without_moves(files)))


def _is_file(oid: str, mode: str) -> bool:
    return bool(oid.strip("0")) and not mode.startswith("16")


def _file(change: FileChange, blobs: Mapping[str, bytes], tables: Mapping[str, SymbolTable]) -> FileFootprint:
    sides = (
        (change.old_path or change.path, change.old_oid, change.old_mode),
        (change.path, change.new_oid, change.new_mode),
    )
    language = language_of(change.path)
    texts: list[bytes] = []
    known: list[SymbolTable] = []
    missing = False
    for path, oid, mode in sides:
        there = _is_file(oid, mode)
        blob = blobs.get(oid) if there else b""
        missing = missing or blob is None
        texts.append(blob or b"")
        side = language_of(path)
        if oid == change.old_oid == change.new_oid or not blob:
            known.append(SymbolTable(side, ()))
        else:
            known.append(tables.get(table_key(oid, side)) or symbols_of(blob, side))
    binary = missing or any(b"\0" in text[:8192] for text in texts)
    changed = () if binary else hunks(*texts)
    refers, drops = _words(texts[0], texts[1], changed, language) if changed else (frozenset(), frozenset())
    compared = tuple(_compare(*known))
    modes = {mode for _, oid, mode in sides if oid.strip("0")}
    return FileFootprint(
        path=change.path,
        old_path=change.old_path if change.old_path != change.path else None,
        status=change.status[:1],
        old_oid=change.old_oid,
        new_oid=change.new_oid,
        mode_changed=len(modes) > 1,
        language=language,
        binary=binary,
        parsed=not missing and all(table.parsed for table in known),
        hunks=changed,
        symbols=tuple(s for s in compared if s.name != TOP),
        top=any(s.name == TOP for s in compared),
        refers=refers,
        drops=drops,
    )


def _words(
    old: bytes, new: bytes, changed: Sequence[Hunk], language: Language
) -> tuple[frozenset[str], frozenset[str]]:
    removed = _words_on(old, [(h.old_start, h.old_lines) for h in changed], language)
    added = _words_on(new, [(h.new_start, h.new_lines) for h in changed], language)
    return added - removed, removed - added


def _words_on(text: bytes, ranges: Sequence[tuple[int, int]], language: Language) -> frozenset[str]:
    """Identifiers on these lines; a line of Python can't tell by itself that it stands in a docstring."""
    if language is Language.PYTHON:
        text = without_docstrings(text)
    rows = text.splitlines(keepends=True)
    part = b"".join(row for start, count in ranges for row in rows[start - 1 : start - 1 + count])
    return frozenset(references(part, language))


def _compare(old: SymbolTable, new: SymbolTable) -> Iterator[SymbolChange]:
    before, after = _by_name(old), _by_name(new)
    gone = {name: found for name, found in before.items() if name not in after}
    for name, found in after.items():
        first = found[0]
        if name not in before:
            old_name = _renamed_from(first, gone)
            if old_name is not None:
                del gone[old_name]
            yield SymbolChange(name, first.kind, "renamed" if old_name else "defined", first.names, old_name)
            continue
        earlier = before[name]
        if sorted(d.signature for d in earlier) != sorted(d.signature for d in found):
            yield SymbolChange(name, first.kind, "signature", _all_names(earlier, found))
        elif sorted(d.body for d in earlier) != sorted(d.body for d in found):
            yield SymbolChange(name, first.kind, "body", _all_names(earlier, found))
    for name, found in gone.items():
        yield SymbolChange(name, found[0].kind, "removed", found[0].names)


def _by_name(table: SymbolTable) -> dict[str, list[Definition]]:
    result: dict[str, list[Definition]] = {}
    for definition in table.definitions:
        result.setdefault(definition.name, []).append(definition)
    return result


def _all_names(old: Sequence[Definition], new: Sequence[Definition]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for d in (*old, *new) for name in d.names))


def _renamed_from(new: Definition, gone: Mapping[str, list[Definition]]) -> str | None:
    """A definition that is gone and had the same body: only where that body says something and no other had it."""
    if new.kind not in _HAS_BODY or not new.body:
        return None
    same = [name for name, found in gone.items() if found[0].kind == new.kind and found[0].body == new.body]
    return same[0] if len(same) == 1 else None


_HAS_BODY = frozenset({"function", "class", "enum", "macro", "def"})


def _without_moves(files: Sequence[FileFootprint]) -> Iterator[FileFootprint]:
    """Mark a definition that left one file and appears in another under its name as moved: neither gone nor new."""
    removed = {s.name for f in files for s in f.symbols if s.what == "removed"}
    defined = {s.name for f in files for s in f.symbols if s.what == "defined"}
    moved = removed & defined
    for file in files:
        if any(s.name in moved and s.what in ("removed", "defined") for s in file.symbols):
            yield replace(file, symbols=tuple(_moved(s) if s.name in moved else s for s in file.symbols))
        else:
            yield file


def _moved(symbol: SymbolChange) -> SymbolChange:
    if symbol.what in ("removed", "defined"):
        return replace(symbol, what=f"moved_{'out' if symbol.what == 'removed' else 'in'}")
    return symbol


def encode_footprint(value: Footprint) -> bytes:
    """A compact form for the cache."""
    rows = [
        [
            f.path,
            f.old_path,
            f.status,
            f.old_oid,
            f.new_oid,
            f.mode_changed,
            f.language.value,
            f.binary,
            f.parsed,
            [[h.old_start, h.old_lines, h.new_start, h.new_lines] for h in f.hunks],
            [[s.name, s.kind, s.what, s.names, s.old] for s in f.symbols],
            f.top,
            sorted(f.refers),
            sorted(f.drops),
        ]
        for f in value.files
    ]
    return zlib.compress(json.dumps([value.sha, rows], separators=(",", ":")).encode(), 1)


def decode_footprint(raw: bytes) -> Footprint:
    """The inverse of `encode_footprint`; raises ValueError where `raw` is none."""
    try:
        sha, rows = json.loads(zlib.decompress(raw))
    except zlib.error as error:
        raise ValueError(f"not a footprint: {error}") from error
    return Footprint(sha, tuple(_decode_file(row) for row in rows))


def _decode_file(row: list[Any]) -> FileFootprint:
    path, old_path, status, old_oid, new_oid, mode, language, binary, parsed, ranges, symbols, top, refers, drops = row
    return FileFootprint(
        path=path,
        old_path=old_path,
        status=status,
        old_oid=old_oid,
        new_oid=new_oid,
        mode_changed=mode,
        language=Language(language),
        binary=binary,
        parsed=parsed,
        hunks=tuple(Hunk(*h) for h in ranges),
        symbols=tuple(SymbolChange(name, kind, what, tuple(names), old) for name, kind, what, names, old in symbols),
        top=top,
        refers=frozenset(refers),
        drops=frozenset(drops),
    )
