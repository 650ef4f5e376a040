"""Cherry-picks in memory: one long-lived `git merge-tree` merges made-up commits whose only base is the picked parent.

A pick of commit C onto tip T is the three-way merge of T and C with C's first parent as the base. merge-tree finds the
base by history, so each pick gets three commits of its own: the base (the parent's tree), and on top of it T's and C's
trees. They live in an object directory that is thrown away; the mirror never sees them.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.clients.git import loose
from bot.clients.git.batch import Child
from bot.clients.git.errors import GitError
from bot.clients.git.process import roomy_folder, text
from bot.clients.git.values import ConflictFile, ConflictKind

# git up to 2.40 or so does not flush after an answer: the next, long, answer pushes the awaited one out of its buffer
_LONG = b"x" * 9000
_IDENTITY = "graft <graft@localhost> 0 +0000"
_KINDS: tuple[tuple[str, ConflictKind], ...] = (
    ("CONFLICT (rename/delete)", "rename/delete"),
    ("CONFLICT (modify/delete)", "modify/delete"),
    ("CONFLICT (rename/rename)", "rename/rename"),
    ("CONFLICT (rename involved in collision)", "rename/add"),
    ("CONFLICT (add/add)", "add/add"),
    ("CONFLICT (file/directory)", "directory/file"),
    ("CONFLICT (directory", "directory/file"),
    ("CONFLICT (binary)", "binary"),
    ("CONFLICT (submodule", "submodule"),
    ("CONFLICT (distinct modes)", "mode"),
    ("CONFLICT (distinct types)", "mode"),
    ("CONFLICT (contents)", "contents"),
    ("CONFLICT", "other"),
)


@dataclass(frozen=True, slots=True)
class Labels:
    """The ids that stand in a conflict's marker lines."""

    base: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merge:
    """One three-way merge of trees: clean with its tree, or the tree with markers and the files that conflict.

    `renamed` maps a conflicting path to the other paths that git's message about it names.
    """

    clean: bool
    tree: str
    conflicts: tuple[ConflictFile, ...]
    labels: Labels
    renamed: Mapping[str, tuple[str, ...]]


class Merger:
    """Merges trees one after the other; each result can be a side of the next. Safe to share between threads."""

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        self._directory = directory
        self._made_up = Path(tempfile.mkdtemp(prefix="graft-picks-", dir=roomy_folder()))
        self._env = dict(env)
        alternates = [str(self._made_up), *filter(None, [self._env.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")])]
        self._env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(alternates)
        self._lock = threading.Lock()
        self._said = self._made_up / "stderr"
        self._child = Child()
        self._end = weakref.finalize(self, _forget, self._child, self._made_up)
        self._buffer = b""
        self._fillers_due = 0
        self._filler = self._make_filler()

    def merge(self, *, base: str, ours: str, theirs: str) -> Merge:
        """Merge three trees. Raises GitError where git could not do it (an object is missing)."""
        with self._lock:
            labels = self._labels(base, ours, theirs)
            try:
                return self._ask(labels)
            except (OSError, ValueError, IndexError) as error:
                raise self._failure() from error

    def close(self) -> None:
        """End the process and forget the made-up commits."""
        with self._lock:
            self._end()

    def _labels(self, base: str, ours: str, theirs: str) -> Labels:
        root = self._commit(base, "base", ())
        return Labels(root, self._commit(ours, "ours", (root,)), self._commit(theirs, "theirs", (root,)))

    def _commit(self, tree: str, message: str, parents: Sequence[str]) -> str:
        lines = [
            f"tree {tree}",
            *(f"parent {parent}" for parent in parents),
            f"author {_IDENTITY}",
            f"committer {_IDENTITY}",
        ]
        return loose.write(self._made_up, "commit", ("\n".join(lines) + f"\n\n{message}\n").encode())

    def _make_filler(self) -> bytes:
        """A merge with a quick and very long answer: a file with an endless name, changed here, deleted there."""

        def tree(content: bytes | None, other: bytes) -> str:
            entries = [(b"y", loose.write(self._made_up, "blob", other))]
            if content is not None:
                entries.insert(0, (_LONG, loose.write(self._made_up, "blob", content)))
            raw = b"".join(b"100644 " + name + b"\0" + bytes.fromhex(oid) for name, oid in entries)
            return loose.write(self._made_up, "tree", raw)

        labels = self._labels(tree(b"a\n", b"1\n"), tree(None, b"1\n"), tree(b"b\n", b"1\n"))
        return f"{labels.ours} {labels.theirs}\n".encode()

    def _ask(self, labels: Labels) -> Merge:
        process = self._started()
        if process.stdin is None:  # pragma: no cover - it is a pipe
            raise OSError("no pipe")
        process.stdin.write(f"{labels.ours} {labels.theirs}\n".encode() + self._filler)
        process.stdin.flush()
        for _ in range(self._fillers_due):
            self._answer(labels)
        answer = self._answer(labels)
        self._fillers_due = 1
        return answer

    def _answer(self, labels: Labels) -> Merge:
        clean = self._field() == "1"
        tree = self._field()
        if clean:
            self._field()
            return Merge(True, tree, (), labels, {})
        stages: dict[str, dict[str, str]] = {}
        while entry := self._field():
            head, _, path = entry.partition("\t")
            _, oid, stage = head.split(" ")
            stages.setdefault(path, {})[stage] = oid
        kinds: dict[str, ConflictKind] = {}
        renamed: dict[str, tuple[str, ...]] = {}
        while count := self._field():
            paths = [self._field() for _ in range(int(count))]
            kind = _kind(self._field())
            self._field()
            if kind is not None:
                for path in paths:
                    kinds.setdefault(path, kind)
                    renamed[path] = tuple(other for other in paths if other != path)
        conflicts = tuple(
            ConflictFile(path, kinds.get(path, "other"), sides.get("1"), sides.get("2"), sides.get("3"))
            for path, sides in sorted(stages.items())
        )
        return Merge(False, tree, conflicts, labels, renamed)

    def _field(self) -> str:
        while (at := self._buffer.find(b"\0")) < 0:
            process = self._child.running()
            if process.stdout is None:  # pragma: no cover - it is a pipe
                raise OSError("no pipe")
            more = process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
            if not more:
                raise OSError("git merge-tree ended")
            self._buffer += more
        field, self._buffer = self._buffer[:at], self._buffer[at + 1 :]
        return text(field)

    def _started(self) -> subprocess.Popen[bytes]:
        if not self._child.alive:
            self._child.end()
            self._buffer, self._fillers_due = b"", 0
            with self._said.open("wb") as stderr:
                self._child.process = subprocess.Popen(
                    ["git", "merge-tree", "--write-tree", "-z", "--stdin"],
                    cwd=self._directory,
                    env=self._env,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                )
        return self._child.running()

    def _failure(self) -> GitError:
        process = self._child.process
        self._child.end()
        status = process.returncode if process else 1
        return GitError(["merge-tree", "--write-tree", "--stdin"], text(self._said.read_bytes()), status)


def _forget(child: Child, folder: Path) -> None:
    child.end()
    shutil.rmtree(folder, ignore_errors=True)


def _kind(message_type: str) -> ConflictKind | None:
    return next((kind for prefix, kind in _KINDS if message_type.startswith(prefix)), None)
