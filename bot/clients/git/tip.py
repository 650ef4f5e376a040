"""Picks onto a tip that grows: git merges only what both sides changed, and what it said is kept for the next time.

A file that one side alone changed needs no merge, and one that both changed in place merges by itself, whatever stands
around it: a tree of just these files gives git the same question, with the same answer. Only where files come or go
in a way that git may see as a rename is it asked about whole trees. What was asked is known by its trees and blobs, so
an answer holds for as long as git and its settings are the same.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from bot.clients.git.errors import GitError
from bot.clients.git.picks import Merge, Merger
from bot.clients.git.trees import FOLDER, Change, Edits, Entry, Trees
from bot.clients.git.values import ConflictFile

_FILES = ("100644", "100755")
_SUBMODULE = "160000"


class Kept(Protocol):
    """Where answers are kept: by key, and lost without harm."""

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values that are there."""

    def put_many(self, values: Mapping[str, bytes]) -> None:
        """Keep these values."""


@dataclass(frozen=True, slots=True)
class Store:
    """How blobs are read and written."""

    read: Callable[[str], bytes]
    write: Callable[[bytes], str]


@dataclass(frozen=True, slots=True)
class Picked:
    """What a change does on the tip: the tree with it, or the files in conflict; `stay` are files that stay deleted."""

    tree: str | None
    conflicts: tuple[ConflictFile, ...] = ()
    stay: tuple[str, ...] = ()


class Tip:
    """A tree that picks are put onto. `stays` says which conflicts are no more than files that stay deleted.

    `kept` holds answers of earlier times, told apart by `salt`: all beside trees and blobs that they depend on.
    """

    def __init__(
        self,
        tree: str,
        *,
        trees: Trees,
        store: Store,
        merger: Callable[[], Merger],
        stays: Callable[[Merge], tuple[str, ...] | None],
        kept: Kept | None = None,
        salt: str = "",
    ) -> None:
        self.tree = tree
        self._trees = trees
        self._store = store
        self._merger = merger
        self._stays = stays
        self._kept = kept
        self._salt = salt

    def pick(self, base: str, theirs: str, changes: Mapping[str, Change]) -> Picked:
        """Put the change from `base` to `theirs` (trees, `changes` what differs) onto the tip, which it becomes.

        A conflict leaves the tip as it was. Raises GitError where git could not merge.
        """
        split = self._split(base, changes)
        if split is None:
            key = self._key("trees", base, self.tree, theirs)
            answer = self._known(key) or self._keep(key, self._whole(base, theirs), changes)
            edits: dict[str, Entry | None] = {}
        else:
            edits, contested = split
            answer = self._contested(contested) if contested else _Answer({})
        if answer.conflicts and not answer.stay:
            return Picked(None, answer.conflicts)
        edits.update(answer.edits)
        # a repository's last file gone leaves the empty tree
        self.tree = self._trees.edit(self.tree, edits) or self._trees.empty() if edits else self.tree
        return Picked(self.tree, answer.conflicts, answer.stay)

    def _split(
        self, base: str, changes: Mapping[str, Change]
    ) -> tuple[dict[str, Entry | None], dict[str, tuple[Entry, Entry, Entry]]] | None:
        """What can be taken as it is, and what both sides changed in place; None where whole trees must be merged."""
        plain: dict[str, Entry | None] = {}
        contested: dict[str, tuple[Entry, Entry, Entry]] = {}
        come = gone = False
        for path, (old, new) in changes.items():
            ours = self._trees.at(self.tree, path)
            if any(side is not None and side[0] not in _FILES for side in (old, new, ours)):
                return None
            if old is None:
                come = True
                if ours is not None or not self._open(path, base):
                    return None
                plain[path] = new
            elif ours is None:
                return None  # the fork may have moved it
            elif new is None:
                gone = True
                if ours != old:
                    return None
                plain[path] = None
            elif ours == old:
                plain[path] = new
            elif ours != new:
                contested[path] = (old, ours, new)
        return None if come and gone else (plain, contested)

    def _open(self, path: str, base: str) -> bool:
        """True where a new file has its place in the tip: no file is in its way, and no folder of its was moved."""
        *folders, _ = path.split("/")
        for depth in range(1, len(folders) + 1):
            folder = "/".join(folders[:depth])
            ours = self._trees.at(self.tree, folder)
            if ours is None:
                return self._trees.at(base, folder) is None
            if ours[0] != FOLDER:
                return False
        return True

    def _contested(self, files: Mapping[str, tuple[Entry, Entry, Entry]]) -> _Answer:
        words = [word for path, sides in sorted(files.items()) for word in (path, *(w for side in sides for w in side))]
        key = self._key("files", *words)
        known = self._known(key)
        if known is not None:
            return known
        base, ours, theirs = (
            self._trees.edit(None, {path: sides[side] for path, sides in files.items()}) or "" for side in range(3)
        )
        merge = self._merger().merge(base=base, ours=ours, theirs=theirs)
        edits = {path: self._trees.at(merge.tree, path) for path in files} if merge.clean else {}
        return self._keep(key, _Answer(edits, merge.conflicts), {p: (b, t) for p, (b, _, t) in files.items()})

    def _whole(self, base: str, theirs: str) -> _Answer:
        merge = self._merger().merge(base=base, ours=self.tree, theirs=theirs)
        stay = () if merge.clean else self._stays(merge)
        if stay is None:
            return _Answer({}, merge.conflicts)
        (differs,) = self._trees.differences([(self.tree, merge.tree)])
        edits = {path: new for path, (_, new) in differs.items()}
        return _Answer({**edits, **dict.fromkeys(stay)}, merge.conflicts, stay)

    def _key(self, *words: str) -> str:
        digest = blake2b("\0".join(words).encode("utf-8", "surrogateescape"), digest_size=20).hexdigest()
        return f"pick:{self._salt}:{digest}"

    def _known(self, key: str) -> _Answer | None:
        raw = self._kept.get_many([key]).get(key) if self._kept is not None else None
        try:
            return _decoded(raw, self._store) if raw is not None else None
        except (ValueError, TypeError, KeyError, zlib.error):
            return None  # a broken answer is asked for again

    def _keep(self, key: str, answer: _Answer, changes: Mapping[str, Change]) -> _Answer:
        if self._kept is not None:
            theirs = {new[1] for _, new in changes.values() if new is not None}
            with contextlib.suppress(GitError):  # what the repository lacks can't be kept either
                self._kept.put_many({key: _encoded(answer, self._store, theirs)})
        return answer


@dataclass(frozen=True, slots=True)
class _Answer:
    """What git said: files to set or remove on the tip, or what conflicts; with `stay` the conflicts are settled."""

    edits: Edits
    conflicts: tuple[ConflictFile, ...] = ()
    stay: tuple[str, ...] = ()


def _encoded(answer: _Answer, store: Store, there: set[str]) -> bytes:
    """The answer with the content of each blob that it made, so that it stands when those are gone."""
    files = {entry[1] for entry in answer.edits.values() if entry is not None and entry[0] != _SUBMODULE}
    made = sorted(files - there)
    blobs = [store.read(oid) for oid in made]
    head = {
        "edits": dict(answer.edits),
        "conflicts": [[c.path, c.kind, c.base_oid, c.ours_oid, c.theirs_oid] for c in answer.conflicts],
        "stay": answer.stay,
        "sizes": [len(blob) for blob in blobs],
    }
    return zlib.compress(b"\n".join([json.dumps(head, separators=(",", ":")).encode(), b"".join(blobs)]), 1)


def _decoded(raw: bytes, store: Store) -> _Answer:
    line, _, rest = zlib.decompress(raw).partition(b"\n")
    head: dict[str, Any] = json.loads(line)
    for size in head["sizes"]:
        store.write(rest[:size])
        rest = rest[size:]
    return _Answer(
        {path: (entry[0], entry[1]) if entry is not None else None for path, entry in head["edits"].items()},
        tuple(ConflictFile(*conflict) for conflict in head["conflicts"]),
        tuple(head["stay"]),
    )
