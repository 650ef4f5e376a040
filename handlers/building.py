"""Build a batch's branch in memory: one commit for each upstream commit, the same input always the same shas."""

from __future__ import annotations

from dataclasses import dataclass

from bot.context import Git, PickResult
from bot.core.batches import Batch
from bot.core.config import Config
from bot.core.conflict import FileConflict, FileResolution, resolve
from bot.core.render.pull import ConflictNote, Dropped
from bot.core.trailers import pick_message, pull_number
from bot.core.types import BatchKind, Commit
from handlers.moves import Layout

_AS_UPSTREAM = Layout()
_PROPOSAL = """Propose a resolution for the pick of {sha}

By stated rules, each hunk on its own; it wants a look.

{notes}
"""


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
    upstream_tip: str,
    config: Config,
    committer: Committer,
    layout: Layout = _AS_UPSTREAM,
) -> Built:
    """Pick the batch's commits onto `base` in the mirror. Writes objects there, moves no ref.

    A commit of a bundle that conflicts is dropped and the rest goes on. A conflicting link is committed with its
    markers; what the rules resolve of it is a commit of its own, so that it can be reviewed as a diff. Upstream's
    changes to files that the fork removed on purpose (`layout`) are no conflict; those to files that it moved are made
    there.
    """
    writer = _Writer(git, batch, base, config, committer, layout)
    picked: list[str] = []
    dropped: list[Dropped] = []
    empty: list[Dropped] = []
    notes: tuple[ConflictNote, ...] = ()
    for commit in git.commits_of(batch.commits):
        result = git.pick(commit.sha, writer.tip, keep_deleted=layout.deleted)
        if result.kind == "empty":
            empty.append(Dropped(commit.sha, commit.subject, "its change is already there"))
        elif result.tree is not None:
            writer.pick(commit, result.tree)
            picked.append(commit.sha)
        elif batch.kind is BatchKind.BUNDLE or result.marked_tree is None:
            paths = tuple(conflict.path for conflict in result.conflicts)
            dropped.append(Dropped(commit.sha, commit.subject, "conflicts on the present base", paths))
        else:
            writer.pick(commit, result.marked_tree)
            picked.append(commit.sha)
            notes = writer.propose(commit, result, result.marked_tree, upstream_tip)
    return Built(writer.tip, base, tuple(picked), tuple(dropped), tuple(empty), notes)


class _Writer:
    """Writes the branch commit by commit."""

    def __init__(
        self, git: Git, batch: Batch, base: str, config: Config, committer: Committer, layout: Layout
    ) -> None:  # fmt: skip
        self.tip = base
        self._layout = layout
        self._git, self._batch, self._config, self._committer = git, batch, config, committer
        # not the clock: a batch that is built again on the same base must be the same commit
        self._when = f"{git.commit(base).committer_time} +0000"

    def pick(self, commit: Commit, tree: str) -> None:
        """The upstream commit with its author and trailers."""
        message = pick_message(
            commit,
            upstream_repository=self._config.upstream.repository,
            pr=pull_number(commit.message),
            batch=self._batch.key,
            markers=self._config.ingest.picked_markers,
        )
        author = (commit.author_name, commit.author_email, f"{commit.author_time} {commit.author_tz}")
        self._write(tree, message, author)

    def propose(
        self, commit: Commit, result: PickResult, marked_tree: str, upstream_tip: str
    ) -> tuple[ConflictNote, ...]:
        """What the rules resolve, as a commit on top; a note on each conflicting file."""
        modes = {entry.path: entry.mode for entry in self._git.list_tree(marked_tree)}
        edits: dict[str, tuple[str, str] | None] = {}
        notes: list[ConflictNote] = []
        for conflict in result.conflicts:
            sides = (conflict.base_oid, conflict.ours_oid, conflict.theirs_oid)
            base, ours, theirs = (self._git.read_blob(oid) if oid else None for oid in sides)
            marked = self._git.read_file(marked_tree, conflict.path) if ours and theirs else None
            later = self._git.read_file(upstream_tip, conflict.path)
            moved = self._moved(conflict.path, marked_tree) if ours is None else None
            (found,) = resolve(
                [FileConflict(conflict.path, conflict.kind, base, ours, theirs, marked, moved=moved, later=later)],
                pins=self._config.ingest.pins,
            )
            if found.deleted or found.path != conflict.path:
                edits[conflict.path] = None
            if found.text is not None and found.text != marked and (found.resolved or marked is not None):
                edits[found.path] = (modes.get(found.path, "100644"), self._git.write_blob(found.text))
            kind = f"{conflict.kind}, {found.cls.value}"
            notes.append(ConflictNote(conflict.path, kind, _note(found), found.resolved))
        if edits:
            listed = "\n".join(f"- {note.path}: {note.note}" for note in notes)
            message = _PROPOSAL.format(sha=commit.sha[:12], notes=listed)
            author = (self._committer.name, self._committer.email, self._when)
            self._write(self._git.write_tree(marked_tree, edits), message, author)
        return tuple(notes)

    def _moved(self, path: str, tree: str) -> tuple[str, bytes] | None:
        """Where the fork keeps a file by another name, with its text there."""
        new = self._layout.moved.get(path)
        text = self._git.read_file(tree, new) if new else None
        return (new, text) if new and text is not None else None

    def _write(self, tree: str, message: str, author: tuple[str, str, str]) -> None:
        self.tip = self._git.write_commit(
            tree=tree,
            parents=[self.tip],
            message=message,
            author_name=author[0],
            author_email=author[1],
            author_date=author[2],
            committer_name=self._committer.name,
            committer_email=self._committer.email,
            committer_date=self._when,
        )


def _note(resolution: FileResolution) -> str:
    if resolution.deleted:
        return "proposed: it stays deleted, as in this fork"
    done = [hunk for hunk in resolution.hunks if hunk.resolution is not None]
    why = "; ".join(dict.fromkeys(text for hunk in resolution.hunks for text in hunk.evidence))[:300]
    if not done:
        return f"a person decides: {why}"
    rules = ", ".join(dict.fromkeys(hunk.rule for hunk in done))
    count = f"{len(done)} of {len(resolution.hunks)}"
    return f"proposed for {count} hunks by the rules {rules}: {why}"


def merges_cleanly(git: Git, *, head: str, base: str) -> bool:
    """True where the branch's own commits still apply to `base`, one by one."""
    start = git.merge_base(head, base)
    if start is None:
        return False
    own = git.commits(head, [base])
    with git.scratch() as scratch:
        return all(result.kind != "conflict" for result in scratch.picks([c.sha for c in own], base))
