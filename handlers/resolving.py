"""What a pushed resolution still lacks, read from git and judged by the checks after any resolution."""

from __future__ import annotations

from bot.context import Git
from bot.core.batches import Batch
from bot.core.resolution import Finding, ResolvedFile, check, markers


def marked_files(git: Git, *, head: str, base: str) -> tuple[str, ...]:
    """The files changed between the merge base and `head` that hold conflict markers which were not there before."""
    start = git.merge_base(head, base)
    if start is None:
        return ("every file: the branch has nothing in common with its base",)
    changes = [c for c in git.changed_files(start, head) if c.status != "D" and c.new_mode != "160000"]
    return tuple(
        c.path
        for c in changes
        if markers(c.path, before=git.read_file(start, c.old_path) or b"", after=git.read_file(head, c.path) or b"")
    )


def findings(git: Git, *, batch: Batch, head: str, base: str) -> tuple[Finding, ...]:
    """What is to be looked at in a branch that carries one upstream commit and that a person, or a rule, resolved."""
    start = git.merge_base(head, base)
    if start is None or len(batch.commits) != 1:
        return ()
    upstream = git.commit(batch.commits[0])
    before = upstream.parents[0] if upstream.parents else upstream.sha
    paths = {path for change in git.changed_files(before, upstream.sha) for path in change.paths}
    paths |= {path for change in git.changed_files(start, head) for path in change.paths}
    return check(
        [
            ResolvedFile(
                path=path,
                base=git.read_file(before, path),
                theirs=git.read_file(upstream.sha, path),
                ours=git.read_file(start, path),
                after=git.read_file(head, path),
            )
            for path in sorted(paths)
        ]
    )
