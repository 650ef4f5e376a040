"""What the fork holds that upstream does not: its files, its symbols, and its own code that uses upstream's symbols.

A file, a definition or a line is the fork's own when no version that upstream ever had of it in the window equals it: a
fork that is merely behind, or has taken later commits out of order, has changed nothing.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import blake2b

from bot.core.footprint import (
    GRAMMAR_VERSION,
    TOP,
    Definition,
    Language,
    SymbolTable,
    language_of,
    references,
    symbols_of,
)

_UNSPANNED = frozenset({"operand", "attribute", "enumerator"})  # they share their lines with what holds them


@dataclass(frozen=True, slots=True)
class Use:
    """A place in the fork's own code that uses a name."""

    path: str
    line: int
    own_file: bool


@dataclass(frozen=True, slots=True)
class FileDivergence:
    """How one file of the fork differs from every version that upstream had of it.

    `kind`: own (upstream never had the path), changed, removed (upstream has it, the fork deleted it). `changed` are
    qualified names that the fork defines differently, `resigned` those of them whose signature differs, `added` its
    own, `removed` those it lost; `aliases` maps a name of these to what else it is called. `own_lines` are ranges of
    lines that upstream never had; `uses` are the names that these lines refer to, with the first such line.
    """

    path: str
    kind: str
    changed: frozenset[str] = frozenset()
    resigned: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    aliases: Mapping[str, tuple[str, ...]] | None = None
    own_lines: tuple[tuple[int, int], ...] = ()
    uses: Mapping[str, int] | None = None

    @property
    def own(self) -> bool:
        """True where the whole file is the fork's."""
        return self.kind == "own"

    def names_of(self, qualified: Iterable[str]) -> Iterator[str]:
        """The short names and aliases by which other code knows these symbols."""
        for name in qualified:
            yield name.rpartition(".")[2]
            yield from (self.aliases or {}).get(name, ())


_MANY = 1000


class Divergence:
    """All that the fork holds of its own at one commit.

    `files` has only files that differ from each of upstream's versions; a file that is merely behind is not in it.
    `words` are all identifiers in the code of the fork's tree, with the number of files that hold each (a set counts
    one): a name that is not among them is nowhere in the fork. `size` is the number of files in that tree.
    """

    def __init__(
        self, *, files: Mapping[str, FileDivergence], words: Mapping[str, int] | Set[str], size: int = 0
    ) -> None:
        self.files = files
        self.size = size
        self._counts: Mapping[str, int] = words if isinstance(words, Mapping) else dict.fromkeys(words, 1)
        self._uses: dict[str, tuple[Use, ...]] = {}
        self._users = sorted((path, file.uses, file.own) for path, file in files.items() if file.uses)
        self._folders: dict[str, list[str]] = {}
        for path in sorted(path for path, file in files.items() if file.kind == "changed"):
            self._folders.setdefault(path.rpartition("/")[0], []).append(path)
        self._names = _named(files.values(), lambda file: file.changed | file.removed)
        self._signatures = _named(files.values(), lambda file: file.resigned | file.removed)

    @property
    def words(self) -> Set[str]:
        """All identifiers in the code of the fork's tree."""
        return self._counts.keys()

    def files_with(self, name: str) -> int:
        """How many files of the fork hold the identifier."""
        return self._counts.get(name, 0)

    def changed_in(self, folder: str) -> Sequence[str]:
        """The files right in a folder that the fork has changed."""
        return self._folders.get(folder, ())

    @property
    def paths(self) -> Set[str]:
        """The files that differ."""
        return self.files.keys()

    def changed(self, name: str) -> Sequence[str]:
        """The paths where the fork defines `name` (short, or an alias) differently from upstream, or lost it."""
        return self._names.get(name, ())

    def resigned(self, name: str) -> Sequence[str]:
        """The paths where the fork gives `name` another signature, or lost it."""
        return self._signatures.get(name, ())

    def uses(self, name: str) -> Sequence[Use]:
        """The places in the fork's own code that refer to `name`, by path."""
        if name not in self._uses:
            if len(self._uses) == _MANY:  # a whole window asks for far more names than a single pick
                self._index()
            if len(self._uses) > _MANY:
                return ()
            self._uses[name] = tuple(Use(path, uses[name], own) for path, uses, own in self._users if name in uses)
        return self._uses[name]

    def _index(self) -> None:
        """Look all names up at once."""
        found: dict[str, list[Use]] = {}
        for path, uses, own in self._users:
            for name, line in uses.items():
                found.setdefault(name, []).append(Use(path, line, own))
        self._uses |= {name: tuple(places) for name, places in found.items()}
        self._uses[""] = ()


def _named(files: Iterable[FileDivergence], symbols: Callable[[FileDivergence], Iterable[str]]) -> dict[str, list[str]]:
    """The paths by the short names and aliases of the symbols that are asked for."""
    found: dict[str, list[str]] = {}
    for file in sorted(files, key=lambda f: f.path):
        for name in set(file.names_of(symbols(file))):
            found.setdefault(name, []).append(file.path)
    return found


def file_divergence(*, path: str, fork: bytes | None, upstream: Sequence[bytes]) -> FileDivergence:
    """How the fork's version (None: the fork has none) differs from all of upstream's versions of the file."""
    if fork is None:
        return FileDivergence(path, "removed")
    language = language_of(path)
    table = symbols_of(fork, language)
    rows = fork.split(b"\n")
    theirs: set[bytes] = set()
    for version in upstream:
        theirs.update(version.split(b"\n"))
    own = tuple(_ranges([n for n, row in enumerate(rows, 1) if row not in theirs and row.strip()]))
    uses = _uses(fork, language, own)
    if not upstream:
        names = frozenset(d.name for d in table.definitions)
        return FileDivergence(path, "own", added=names, own_lines=own, uses=uses)
    nearest = symbols_of(_nearest(rows, upstream), language)
    mine, before = _by_name(table.definitions), _by_name(nearest.definitions)
    bounded = [b"\n" + version + b"\n" for version in reversed(upstream)]
    changed = {
        name
        for name, chunks in _chunks(table, rows).items()
        if not any(all(chunk in version for chunk in chunks) for version in bounded)
    }
    added = {name for name in changed if name not in before}
    changed -= added
    resigned = {n for n in changed if {d.signature for d in mine[n]} != {d.signature for d in before[n]}}
    removed = before.keys() - mine.keys()
    both = {n: [*mine.get(n, ()), *before.get(n, ())] for n in changed | added | removed}
    aliases = {n: tuple(dict.fromkeys(a for d in found for a in d.aliases)) for n, found in both.items()}
    return FileDivergence(
        path,
        "changed",
        changed=frozenset(changed),
        resigned=frozenset(resigned),
        added=frozenset(added),
        removed=frozenset(removed),
        aliases={n: a for n, a in aliases.items() if a},
        own_lines=own,
        uses=uses,
    )


def divergence_key(path: str, fork_oid: str, upstream_oids: Iterable[str]) -> str:
    """The cache's key for how one version of a file differs from these versions of upstream's."""
    digest = blake2b(
        "\n".join([path, fork_oid, *sorted(upstream_oids)]).encode("utf-8", "surrogateescape"), digest_size=16
    )
    return f"divergence:{GRAMMAR_VERSION}:{digest.hexdigest()}"


def encode_file(value: FileDivergence) -> bytes:
    """A compact form for the cache."""
    row = [
        value.path,
        value.kind,
        sorted(value.changed),
        sorted(value.resigned),
        sorted(value.added),
        sorted(value.removed),
        value.aliases or {},
        value.own_lines,
        value.uses or {},
    ]
    return zlib.compress(json.dumps(row, separators=(",", ":")).encode(), 1)


def decode_file(raw: bytes) -> FileDivergence:
    """The inverse of `encode_file`; raises ValueError where `raw` is none."""
    try:
        path, kind, changed, resigned, added, removed, aliases, own_lines, uses = json.loads(zlib.decompress(raw))
    except zlib.error as error:
        raise ValueError(f"not a file's divergence: {error}") from error
    return FileDivergence(
        path,
        kind,
        changed=frozenset(changed),
        resigned=frozenset(resigned),
        added=frozenset(added),
        removed=frozenset(removed),
        aliases={name: tuple(others) for name, others in aliases.items()},
        own_lines=tuple((first, last) for first, last in own_lines),
        uses=uses,
    )


def _uses(blob: bytes, language: Language, own: Sequence[tuple[int, int]]) -> dict[str, int]:
    inside = {n for start, end in own for n in range(start, end + 1)}
    found = ((name, next((n for n in lines if n in inside), 0)) for name, lines in references(blob, language).items())
    return {name: line for name, line in found if line}


def _nearest(rows: Sequence[bytes], upstream: Sequence[bytes]) -> bytes:
    """The version of upstream's that shares most lines; the newest of several."""
    mine = set(rows)

    def likeness(version: bytes) -> tuple[int, int]:
        theirs = set(version.split(b"\n"))
        return len(theirs & mine), -len(theirs - mine)

    return max(reversed(upstream), key=likeness)


def _chunks(table: SymbolTable, rows: Sequence[bytes]) -> dict[str, list[bytes]]:
    """The text of each symbol as pieces of whole lines, each between line breaks: its lines without those that belong
    to a symbol inside it.
    """
    owner: list[str] = [TOP] * (len(rows) + 1)
    for definition in table.definitions:  # an outer one comes before what is inside it
        if definition.name != TOP and definition.kind not in _UNSPANNED:
            owner[definition.start : definition.end + 1] = [definition.name] * (definition.end + 1 - definition.start)
    chunks: dict[str, list[bytes]] = {}
    start = 1
    for line in range(2, len(rows) + 2):
        if line > len(rows) or owner[line] != owner[start]:
            text = b"\n".join(rows[start - 1 : line - 1])
            if text.strip():
                chunks.setdefault(owner[start], []).append(b"\n" + text.strip(b"\n") + b"\n")
            start = line
    return chunks


def _by_name(definitions: Iterable[Definition]) -> dict[str, list[Definition]]:
    result: dict[str, list[Definition]] = {}
    for definition in definitions:
        result.setdefault(definition.name, []).append(definition)
    return result


def _ranges(lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    start = last = 0
    for line in lines:
        if start and line == last + 1:
            last = line
            continue
        if start:
            yield start, last
        start = last = line
    if start:
        yield start, last


__all__ = [
    "Divergence",
    "FileDivergence",
    "Use",
    "decode_file",
    "divergence_key",
    "encode_file",
    "file_divergence",
]
