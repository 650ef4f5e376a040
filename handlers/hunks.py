"""Where one upstream commit does not merge with the fork's tip, hunk by hunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bot.context import Git
from bot.core.conflict import MarkersBroken, read_marked


@dataclass(frozen=True, slots=True)
class ConflictHunk:
    """A place in a file: `line` (from 1) is the fork's, `text` the three sides between markers (diff3)."""

    path: str
    line: int
    text: str


def conflict_hunks(git: Git, sha: str, onto: str) -> tuple[ConflictHunk, ...]:
    """The hunks that picking `sha` onto `onto` leaves; empty where it merges there, or no text conflicts.

    Writes nothing to the repository. Raises GitError where one of the two is not there.
    """
    with git.scratch() as scratch:
        picked = scratch.pick(sha, onto)
        if picked.marked_tree is None:
            return ()
        files = ((c.path, scratch.read_file(picked.marked_tree, c.path)) for c in picked.conflicts)
        return tuple(hunk for path, text in files if text is not None for hunk in _hunks(path, text))


def _hunks(path: str, text: bytes) -> Iterator[ConflictHunk]:
    try:
        marked = read_marked(text)
    except MarkersBroken:
        return  # text of its own that looks like markers: where the hunks begin can't be told
    line = 1
    for merged, hunk in zip(marked.merged, marked.hunks, strict=False):
        line += merged.count(b"\n")
        yield ConflictHunk(path, line, hunk.marked.decode("utf-8", "replace"))
        line += hunk.ours.count(b"\n")
