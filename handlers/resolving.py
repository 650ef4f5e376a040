"""What a pushed resolution still lacks, read from git."""

from __future__ import annotations

from bot.clients.git import Git
from bot.core.resolution import markers


def marked_files(git: Git, *, head: str, base: str) -> tuple[str, ...]:
    """The files changed between the merge base and `head` that hold conflict markers which were not there before."""
    start = git.merge_base(head, base)
    if start is None:
        return ("every file: the branch has nothing in common with its base",)
    changes = [c for c in git.changed_files(start, head) if c.status != "D" and c.new_mode != "160000"]
    found = []
    for change in changes:
        before = git.read_file(start, change.old_path) or b""
        after = git.read_file(head, change.path) or b""
        if markers(change.path, before=before, after=after):
            found.append(change.path)
    return tuple(found)
