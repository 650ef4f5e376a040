"""Footprints of made-up commits: texts before and after by path."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha1

from bot.core.footprint import Footprint, footprint, needed_blobs
from bot.core.types import Commit

ZERO = "0" * 40


@dataclass(frozen=True)
class Change:
    """One change, as git tells it."""

    status: str
    path: str
    old_path: str | None
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str


def of(*files: tuple[str, bytes | None, bytes | None], moved: str | None = None, mode: str = "100644") -> Footprint:
    """The footprint of a commit that makes the first text of each path the second (None: not there)."""
    blobs: dict[str, bytes] = {}
    changes = []
    for path, old, new in files:
        oids = []
        for text in (old, new):
            oid = ZERO if text is None else sha1(text, usedforsecurity=False).hexdigest()
            if text is not None:
                blobs[oid] = text
            oids.append(oid)
        status = "R" if moved else "A" if old is None else "D" if new is None else "M"
        modes = ("000000" if old is None else "100644", "000000" if new is None else mode)
        changes.append(Change(status, path, moved, *modes, *oids))
    commit = Commit("c" * 40, "t" * 40, (), "a", "a@x", 0, "+0000", 0, "subject")
    assert needed_blobs(changes) == blobs.keys()
    return footprint(commit=commit, changes=changes, blobs=blobs)
