"""Footprints without symbols: the files and hunks of commits that are in the fork already, from git's patches."""

from __future__ import annotations

from collections.abc import Sequence

from bot.context import FileChange, Git, Section
from bot.core.footprint import FileFootprint, Footprint, Hunk, language_of
from bot.core.types import Commit


def outlines(git: Git, commits: Sequence[Commit]) -> dict[str, Footprint]:
    """Each commit's files and hunks against its first parent, by sha: enough to follow who wrote which line."""
    changes = git.changes_of(commits)
    patches = git.patches_of(commits)
    return {
        commit.sha: Footprint(commit.sha, tuple(_files(changes[commit.sha], patches[commit.sha]))) for commit in commits
    }


def _files(changes: Sequence[FileChange], sections: Sequence[Section]) -> list[FileFootprint]:
    left = list(sections)
    files = []
    for change in changes:
        # a file that became another kind of thing (a link, a submodule) is written as gone and made anew
        mine, left = (left[:2], left[2:]) if change.status == "T" else (left[:1], left[1:])
        whole = not mine or change.status == "T" or any(section.binary for section in mine)
        files.append(_file(change, () if whole else mine[0].hunks, binary=whole and change.old_oid != change.new_oid))
    return files


def _file(change: FileChange, hunks: Sequence[tuple[int, int, int, int]], *, binary: bool) -> FileFootprint:
    return FileFootprint(
        path=change.path,
        old_path=change.old_path if change.old_path != change.path else None,
        status=change.status,
        old_oid=change.old_oid,
        new_oid=change.new_oid,
        mode_changed=change.old_mode != change.new_mode,
        language=language_of(change.path),
        binary=binary,
        parsed=True,
        hunks=tuple(Hunk(*hunk) for hunk in hunks),
        symbols=(),
        top=False,
        refers=frozenset(),
        drops=frozenset(),
    )
