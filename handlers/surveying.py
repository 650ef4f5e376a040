"""Read what commits touch and what the fork holds of its own, from git, by way of the cache."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bot.clients.git import FileChange, Git, ObjectMissing
from bot.core.footprint import (
    Footprint,
    FootprintCache,
    SymbolTable,
    decode_footprint,
    encode_footprint,
    footprint,
    footprint_key,
    needed_blobs,
    needed_tables,
    symbols_of,
    table_key,
)
from bot.core.types import Commit

Progress = Callable[[str, int, int], None]
_PORTION = 40  # commits whose blobs are held in memory at once


def footprints(
    git: Git, commits: Sequence[Commit], *, cache: FootprintCache | None = None, progress: Progress | None = None
) -> dict[str, Footprint]:
    """The footprint of each commit against its first parent, by sha; `progress` hears what, how many, of how many."""
    kept = cache.get_many([footprint_key(c.sha) for c in commits]) if cache else {}
    found = {c.sha: decode_footprint(kept[footprint_key(c.sha)]) for c in commits if footprint_key(c.sha) in kept}
    missing = [c for c in commits if c.sha not in found]
    known: dict[str, SymbolTable] = {}
    for portion in _portions(missing):
        fresh = _read(git, portion, known)
        if cache:
            cache.put_many({footprint_key(sha): encode_footprint(value) for sha, value in fresh.items()})
        found |= fresh
        if progress:
            progress("footprints", len(found), len(commits))
    return {c.sha: found[c.sha] for c in commits}


def blobs_of(git: Git, oids: Sequence[str]) -> dict[str, bytes]:
    """The contents of these blobs; one that the mirror lacks is left out."""
    try:
        return git.read_blobs(oids)
    except ObjectMissing:
        there: dict[str, bytes] = {}
        for oid in oids:
            try:
                there[oid] = git.read_blob(oid)
            except ObjectMissing:
                continue
        return there


def _read(git: Git, commits: Sequence[Commit], known: dict[str, SymbolTable]) -> dict[str, Footprint]:
    """The footprints of a portion. `known` holds tables of the portion before, and afterwards those of this one."""
    changes: dict[str, list[FileChange]] = git.changes_of(commits)
    blobs = blobs_of(git, sorted({oid for c in commits for oid in needed_blobs(changes[c.sha])}))
    tables: dict[str, SymbolTable] = {}
    for commit in commits:
        for oid, language in needed_tables(changes[commit.sha]):
            key = table_key(oid, language)
            if key not in tables and oid in blobs:
                tables[key] = known.get(key) or symbols_of(blobs[oid], language)
    known.clear()
    known.update(tables)
    return {c.sha: footprint(commit=c, changes=changes[c.sha], blobs=blobs, tables=tables) for c in commits}


def _portions(commits: Sequence[Commit]) -> Iterator[Sequence[Commit]]:
    for start in range(0, len(commits), _PORTION):
        yield commits[start : start + _PORTION]
