"""Read what commits touch and what the fork holds of its own, from git, by way of the cache."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from bot.context import Git
from bot.core.divergence import Divergence, FileDivergence, decode_file, divergence_key, encode_file
from bot.core.footprint import (
    GRAMMAR_VERSION,
    Footprint,
    FootprintCache,
    decode_footprint,
    encode_footprint,
    footprint_key,
    language_of,
    references,
)
from bot.core.types import Commit
from handlers.reading import blobs_of, portions, read_divergences, read_footprints

Progress = Callable[[str, int, int], None]
_FILE_MODES = ("100644", "100755")
_LARGEST_TEXT = 2_000_000  # bytes; beyond, the words of a file are data


def footprints(
    git: Git, commits: Sequence[Commit], *, cache: FootprintCache | None = None, progress: Progress | None = None
) -> dict[str, Footprint]:
    """The footprint of each commit against its first parent, by sha; `progress` hears what, how many, of how many."""
    kept = cache.get_many([footprint_key(c.sha) for c in commits]) if cache else {}
    found = {c.sha: decode_footprint(kept[footprint_key(c.sha)]) for c in commits if footprint_key(c.sha) in kept}
    missing = [c for c in commits if c.sha not in found]
    for fresh in read_footprints(git, missing):
        if cache:
            cache.put_many({footprint_key(sha): encode_footprint(value) for sha, value in fresh.items()})
        found |= fresh
        if progress:
            progress("footprints", len(found), len(commits))
    return {c.sha: found[c.sha] for c in commits}


class UpstreamVersions:
    """Which versions upstream ever had of each path: those of the window's base and of each commit since."""

    def __init__(self, git: Git, *, base: str, commits: Sequence[Commit]) -> None:
        self.base = {entry.path: entry.oid for entry in git.list_tree(base) if entry.mode in _FILE_MODES}
        self._position = {commit.sha: index for index, commit in enumerate(commits)}
        self._later: dict[str, list[tuple[int, str]]] = {}
        self._gone: dict[str, int] = {}
        changes = git.changes_of(commits)
        for index, commit in enumerate(commits):
            for change in changes[commit.sha]:
                if change.new_oid.strip("0"):
                    self._later.setdefault(change.path, []).append((index, change.new_oid))
                if not change.new_oid.strip("0") or change.old_path not in (None, change.path):
                    self._gone[change.old_path or change.path] = index

    def of(self, path: str, *, until: int | None = None) -> tuple[str, ...]:
        """The blob ids that `path` ever had, oldest first; `until`: only by commits before that position."""
        first = (self.base[path],) if path in self.base else ()
        later = (oid for index, oid in self._later.get(path, ()) if until is None or index < until)
        return tuple(dict.fromkeys((*first, *later)))

    def deleted(self, path: str, *, until: int | None = None) -> bool:
        """True where an upstream commit deleted the path (or moved it away)."""
        return path in self._gone and (until is None or self._gone[path] < until)


def survey(
    git: Git,
    *,
    fork: str,
    versions: UpstreamVersions,
    until: int | None = None,
    words: WordIndex | None = None,
    known: dict[str, FileDivergence] | None = None,
    cache: FootprintCache | None = None,
    progress: Progress | None = None,
) -> Divergence:
    """What the commit or tree `fork` holds of its own against all that upstream ever had (`until` as in `of`).

    `words` and `known` carry over from one survey to the next what has not changed.
    """
    tree = {entry.path: entry.oid for entry in git.list_tree(fork) if entry.mode in _FILE_MODES}
    wanted: dict[str, tuple[str, tuple[str, ...]]] = {}
    files: dict[str, FileDivergence] = {}
    for path, oid in tree.items():
        theirs = versions.of(path, until=until)
        if oid not in theirs:
            wanted[path] = (oid, theirs)
    for path in versions.base:
        if path not in tree and not versions.deleted(path, until=until):
            files[path] = FileDivergence(path, "removed")
    files |= _files(git, wanted, {} if known is None else known, cache, progress)
    return Divergence(files=files, words=(words or WordIndex(git, cache)).of(fork), size=len(tree))


class WordIndex:
    """Every identifier in the code of a tree; going from one tree to the next reads only what differs."""

    def __init__(self, git: Git, cache: FootprintCache | None = None) -> None:
        self._git = git
        self._cache = cache
        self._tree: dict[str, str] = {}
        self._counts: Counter[str] = Counter()

    def of(self, commit: str) -> Mapping[str, int]:
        """The words of the commit's (or tree's) code and how many files hold each; the next call changes the answer."""
        tree = {e.path: e.oid for e in self._git.list_tree(commit) if e.mode in _FILE_MODES}
        gone = [(path, oid) for path, oid in self._tree.items() if tree.get(path) != oid]
        come = [(path, oid) for path, oid in tree.items() if self._tree.get(path) != oid]
        for portion in portions(gone):
            for words in self._words(portion):
                self._counts.subtract(words)
                for word in words:
                    if not self._counts[word]:
                        del self._counts[word]
        for portion in portions(come):
            for words in self._words(portion):
                self._counts.update(words)
        self._tree = tree
        return self._counts

    def _words(self, files: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
        keys = {file: f"words:{GRAMMAR_VERSION}:{language_of(file[0]).value}:{file[1]}" for file in files}
        kept = self._cache.get_many(list(keys.values())) if self._cache else {}
        missing = [file for file in files if keys[file] not in kept]
        blobs = blobs_of(self._git, [oid for _, oid in missing])
        fresh: dict[str, bytes] = {}
        for path, oid in missing:
            blob = blobs.get(oid, b"")
            text = len(blob) <= _LARGEST_TEXT and b"\0" not in blob[:8192]
            named = references(blob, language_of(path)) if text else {}
            fresh[keys[path, oid]] = zlib.compress("\n".join(sorted(named)).encode(), 1)
        if self._cache and fresh:
            self._cache.put_many(fresh)
        for file in files:
            raw = kept.get(keys[file]) or fresh[keys[file]]
            yield zlib.decompress(raw).decode("ascii").split("\n")


def _files(
    git: Git,
    wanted: Mapping[str, tuple[str, tuple[str, ...]]],
    known: dict[str, FileDivergence],
    cache: FootprintCache | None,
    progress: Progress | None,
) -> dict[str, FileDivergence]:
    keys = {path: divergence_key(path, oid, theirs) for path, (oid, theirs) in wanted.items()}
    kept = cache.get_many([key for key in keys.values() if key not in known]) if cache else {}
    known |= {key: decode_file(raw) for key, raw in kept.items()}
    found = {path: known[key] for path, key in keys.items() if key in known}
    missing = sorted(path for path in wanted if path not in found)
    for fresh in read_divergences(git, [(path, *wanted[path]) for path in missing]):
        known |= {keys[path]: value for path, value in fresh.items()}
        if cache:
            cache.put_many({keys[path]: encode_file(value) for path, value in fresh.items()})
        found |= fresh
        if progress:
            progress("divergence", len(found), len(wanted))
    return found
