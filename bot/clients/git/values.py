"""What git says, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bot.core.types import Commit

PickKind = Literal["clean", "empty", "conflict"]
ConflictKind = Literal[
    "contents",
    "add/add",
    "modify/delete",
    "rename/delete",
    "rename/rename",
    "rename/add",
    "directory/file",
    "binary",
    "submodule",
    "mode",
    "other",
]
ZERO = "0" * 40


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One entry of a tree; `mode` is six octal digits, `path` is from the root."""

    mode: str
    oid: str
    path: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file between two trees. `status` is A, M, D, R, C or T; absent sides have mode 000000 and a zero id;
    `old_path` differs from `path` only where the file was renamed or copied.
    """

    status: str
    path: str
    old_path: str
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str

    @property
    def paths(self) -> tuple[str, ...]:
        """Each path that the change speaks of, once."""
        return (self.path,) if self.path == self.old_path else (self.old_path, self.path)


@dataclass(frozen=True, slots=True)
class ConflictFile:
    """A file that did not merge: blob ids of the three sides, None where a side lacks the file."""

    path: str
    kind: ConflictKind
    base_oid: str | None
    ours_oid: str | None
    theirs_oid: str | None


@dataclass(frozen=True, slots=True)
class PickResult:
    """What one commit's change does on a tip.

    `clean`: `tree` holds it. `empty`: it changes nothing there (`tree` is the tip's). `conflict`: `tree` is None,
    `marked_tree` holds the files with diff3 markers. `kept_deleted` names files that upstream changed and that stay
    deleted.
    """

    commit: str
    kind: PickKind
    tree: str | None
    conflicts: tuple[ConflictFile, ...] = ()
    marked_tree: str | None = None
    kept_deleted: tuple[str, ...] = ()
    error: str | None = None


def parse_commits(raw: str) -> list[Commit]:
    """The commits of `git log -z --format=LOG_FORMAT --date=raw`, in its order."""
    return [_commit(record) for record in raw.split("\0") if record.strip("\n")]


LOG_FORMAT = "%H%n%T%n%P%n%an%n%ae%n%ad%n%ct%n%B"


def _commit(record: str) -> Commit:
    sha, tree, parents, name, email, authored, committed, message = record.lstrip("\n").split("\n", 7)
    when, _, zone = authored.partition(" ")
    return Commit(
        sha=sha,
        tree=tree,
        parents=tuple(parents.split()),
        author_name=name,
        author_email=email,
        author_time=int(when),
        author_tz=zone or "+0000",
        committer_time=int(committed),
        message=message.rstrip("\n"),
    )


def parse_raw(fields: list[str]) -> list[FileChange]:
    """The changes in the NUL-separated fields of `git diff-tree --raw -z`."""
    changes: list[FileChange] = []
    rest = iter(fields)
    for head in rest:
        if not head.startswith(":"):
            continue
        old_mode, new_mode, old_oid, new_oid, status = head[1:].split(" ")
        old_path = next(rest)
        path = next(rest) if status[0] in "RC" else old_path
        changes.append(
            FileChange(
                status=status[0],
                path=path,
                old_path=old_path,
                old_mode=old_mode,
                new_mode=new_mode,
                old_oid=old_oid,
                new_oid=new_oid,
            )
        )
    return changes
