"""Build a batch's branch in memory: one commit for each upstream commit, the same input always the same shas."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from bot.clients.git import Git, PickResult
from bot.core.batches import Batch
from bot.core.config import Config
from bot.core.render.pull import ConflictNote, Dropped
from bot.core.trailers import pick_message, pull_number
from bot.core.types import BatchKind


@dataclass(frozen=True, slots=True)
class Committer:
    """Who commits: the App."""

    name: str
    email: str

    @classmethod
    def of(cls, login: str) -> Committer:
        """The App as git's committer."""
        return cls(login, f"{login}@users.noreply.github.com")


@dataclass(frozen=True, slots=True)
class Built:
    """The branch as built: its head, what is in it, and what had to be left out, with the reason."""

    head: str
    base: str
    picked: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    empty: tuple[Dropped, ...]
    conflicts: tuple[ConflictNote, ...] = ()


def build(
    git: Git,
    *,
    batch: Batch,
    base: str,
    config: Config,
    committer: Committer,
    keep_deleted: frozenset[str] = frozenset(),
) -> Built:
    """Pick the batch's commits onto `base` in the mirror. Writes objects there, moves no ref.

    A commit of a bundle that conflicts is dropped and the rest goes on; a conflicting link is committed with its
    markers, to be resolved in a commit of its own.
    """
    tip = base
    when = _date(git.commit(base).committer_time)
    picked: list[str] = []
    dropped: list[Dropped] = []
    empty: list[Dropped] = []
    conflicts: tuple[ConflictNote, ...] = ()
    for commit in git.commits_of(batch.commits):
        result = git.pick(commit.sha, tip, keep_deleted=keep_deleted)
        tree = result.tree
        if result.kind == "empty":
            empty.append(Dropped(commit.sha, commit.subject, "its change is already there"))
            continue
        if result.kind == "conflict":
            if batch.kind is BatchKind.BUNDLE or result.marked_tree is None:
                paths = tuple(c.path for c in result.conflicts)
                dropped.append(Dropped(commit.sha, commit.subject, "conflicts on the present base", paths))
                continue
            tree, conflicts = result.marked_tree, _notes(result)
        assert tree is not None
        message = pick_message(
            commit,
            upstream_repository=config.upstream.repository,
            pr=pull_number(commit.message),
            batch=batch.key,
            markers=config.ingest.picked_markers,
        )
        tip = git.write_commit(
            tree=tree,
            parents=[tip],
            message=message,
            author_name=commit.author_name,
            author_email=commit.author_email,
            author_date=f"{commit.author_time} {commit.author_tz}",
            committer_name=committer.name,
            committer_email=committer.email,
            # not the clock: a batch that is built again on the same base must be the same commit
            committer_date=when,
        )
        picked.append(commit.sha)
    return Built(tip, base, tuple(picked), tuple(dropped), tuple(empty), conflicts)


def merges_cleanly(git: Git, *, head: str, base: str) -> bool:
    """True where the branch's own commits still apply to `base`, one by one."""
    start = git.merge_base(head, base)
    if start is None:
        return False
    own = git.commits(head, [base])
    with git.scratch() as scratch:
        return all(result.kind != "conflict" for result in scratch.picks([c.sha for c in own], base))


def deleted_by_fork(git: Git, *, upstream: str, base: str) -> frozenset[str]:
    """The files that were there when the histories parted and that the fork has removed since: they stay away."""
    start = git.merge_base(upstream, base)
    changes = git.changed_files(start, base) if start else []
    return frozenset(change.path for change in changes if change.status == "D")


def _notes(result: PickResult) -> tuple[ConflictNote, ...]:
    return tuple(ConflictNote(c.path, c.kind, "") for c in result.conflicts)


def _date(seconds: int) -> str:
    return f"{int(datetime.fromtimestamp(seconds, UTC).timestamp())} +0000"
