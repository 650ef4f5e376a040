"""Where the fork keeps, or no longer keeps, the files that upstream goes on changing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from bot.context import Git


@dataclass(frozen=True, slots=True)
class Layout:
    """Files that the fork deleted (with the names that upstream gives them later), and those it moved, by old name."""

    deleted: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict)


@lru_cache(maxsize=16)
def layout_of(path: Path, upstream: str, base: str) -> Layout:
    """The layout of the fork at `base` against `upstream`, both commits of the repository at `path`."""
    with Git(path) as git:
        return read_layout(git, upstream=upstream, base=base)


def read_layout(git: Git, *, upstream: str, base: str) -> Layout:
    """The same, read anew.

    A file counts as moved where a commit of the fork's own renamed it, whatever was done to it since: git looks at the
    two ends only, and takes a moved file that was changed a lot for a deleted one.
    """
    start = git.merge_base(upstream, base)
    if start is None:
        return Layout()
    there = {entry.path for entry in git.list_tree(base)}
    own = git.commits(base, [upstream])
    changes = git.changes_of(own)
    deleted = {change.path for made in changes.values() for change in made if change.status == "D"}
    deleted |= {change.path for change in git.changed_files(start, base) if change.status == "D"}
    deleted -= there
    moved: dict[str, str] = {}
    for commit in own:
        for change in changes[commit.sha]:
            if change.status == "R" and change.old_path:
                moved |= {old: change.path for old, new in moved.items() if new == change.old_path}
                moved[change.old_path] = change.path
    moved = {old: new for old, new in moved.items() if new in there and old not in there}
    deleted -= moved.keys()
    if deleted:
        for made in git.changes_of(git.commits(upstream, [start])).values():
            deleted |= {c.path for c in made if c.status == "R" and c.old_path in deleted and c.path not in there}
    return Layout(frozenset(deleted), moved)
