"""Bundles: what may land together, cut by the file's caps and never through a dependency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.core.batches import key_of
from bot.core.chains import Groups
from bot.core.config import BundleCaps
from bot.core.types import Bundle, Grade, PlannedCommit, Verdict


def cut(
    commits: Sequence[PlannedCommit],
    *,
    together: Mapping[str, frozenset[str]],
    paths: Mapping[str, frozenset[str]],
    caps: BundleCaps,
) -> tuple[Bundle, ...]:
    """Bundles of commits that are given in upstream order, which each bundle keeps.

    `together` names for each commit the others that it must share a bundle with, `paths` what it touches. Commits that
    belong together are one piece, as near to the fork's own as its nearest commit; a piece larger than the caps is a
    bundle of its own.
    """
    pieces = _pieces(commits, together)
    bundles: list[Bundle] = []
    for grade, limit in ((Grade.SAFE, caps.max_commits), (Grade.WATCH, caps.watch_max_commits)):
        of_grade = [piece for piece in pieces if _grade(piece) is grade]
        for chosen in _portions(of_grade, limit, caps.max_files, paths):
            order = {commit.sha: index for index, commit in enumerate(commits)}
            ordered = tuple(sorted(chosen, key=lambda commit: order[commit.sha]))
            bundles.append(Bundle(key_of("bundle", *(commit.sha for commit in ordered)), grade, ordered))
    return tuple(bundles)


def _pieces(commits: Sequence[PlannedCommit], together: Mapping[str, frozenset[str]]) -> list[list[PlannedCommit]]:
    groups = Groups()
    by_sha = {commit.sha: commit for commit in commits}
    for commit in commits:
        groups.add(commit.sha)
    for commit in commits:
        groups.join([commit.sha, *(other for other in sorted(together.get(commit.sha, ())) if other in by_sha)])
    return [[by_sha[sha] for sha in group] for group in groups.members()]


def _grade(piece: Sequence[PlannedCommit]) -> Grade:
    return Grade.SAFE if all(commit.verdict is Verdict.SAFE for commit in piece) else Grade.WATCH


def _portions(
    pieces: Sequence[Sequence[PlannedCommit]], max_commits: int, max_files: int, paths: Mapping[str, frozenset[str]]
) -> list[list[PlannedCommit]]:
    portions: list[list[PlannedCommit]] = []
    open_one: list[PlannedCommit] = []
    files: frozenset[str] = frozenset()
    for piece in pieces:
        touched = frozenset().union(*(paths.get(commit.sha, frozenset()) for commit in piece))
        if open_one and (len(open_one) + len(piece) > max_commits or len(files | touched) > max_files):
            portions.append(open_one)
            open_one, files = [], frozenset()
        open_one = [*open_one, *piece]
        files |= touched
    return [*portions, open_one] if open_one else portions
