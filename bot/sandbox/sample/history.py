"""Histories as values: edits of a tree, commits made of them, and the one `git fast-import` that writes them.

Every edit must find what it edits, exactly once; so a history that no longer fits its base fails while it is built,
not later in a test that looks at something else.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

Files = dict[str, str]
Edit = Callable[[Files], None]


@dataclass(frozen=True, slots=True)
class Person:
    """A name and an address, as they stand in a commit; `login` is the person's account."""

    name: str
    email: str
    login: str

    @property
    def signature(self) -> str:
        return f"{self.name} <{self.email}>"


@dataclass(frozen=True, slots=True)
class Change:
    """One commit to be made. `{sha:role}` and `{fork:role}` in the message stand for commits made before."""

    message: str
    author: Person
    when: datetime
    edits: tuple[Edit, ...] = ()
    role: str = ""
    committer: Person | None = None
    committed: datetime | None = None
    side: tuple[Change, ...] = ()


def at(month: int, day: int, hour: int = 12, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def write(path: str, text: str) -> Edit:
    """A new file."""

    def edit(files: Files) -> None:
        if path in files:
            raise ValueError(f"{path}: is there already")
        files[path] = text.removeprefix("\n")

    return edit


def replace(path: str, old: str, new: str) -> Edit:
    """One place of a file; a leading newline of both texts is only for the reader's eye."""
    before, after = old.removeprefix("\n"), new.removeprefix("\n")

    def edit(files: Files) -> None:
        if files[path].count(before) != 1:
            raise ValueError(f"{path}: {files[path].count(before)} times, not once:\n{before}")
        files[path] = files[path].replace(before, after)

    return edit


def overwrite(path: str, text: str) -> Edit:
    """A file with all its text new."""

    def edit(files: Files) -> None:
        if path not in files:
            raise ValueError(f"{path}: is not there")
        files[path] = text.removeprefix("\n")

    return edit


def append(path: str, text: str) -> Edit:
    def edit(files: Files) -> None:
        files[path] += text

    return edit


def remove(path: str) -> Edit:
    def edit(files: Files) -> None:
        del files[path]

    return edit


def rename(old: str, new: str) -> Edit:
    def edit(files: Files) -> None:
        files[new] = files.pop(old)

    return edit


@dataclass(slots=True)
class Writer:
    """One bare repository under way: the commits of `refs/heads/main`, in one stream to `git fast-import`."""

    path: Path
    known: Mapping[str, str] = field(default_factory=dict)
    files: Files = field(default_factory=dict)
    shas: dict[str, str] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)
    _mark: int = 0
    _marks: dict[str, int] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Writer:
        subprocess.run(
            ["git", "-c", "init.defaultBranch=main", "init", "--bare", "--quiet", "--template=", str(self.path)],
            stdout=subprocess.DEVNULL,
            check=True,
        )
        self._process = subprocess.Popen(
            ["git", "-C", str(self.path), "fast-import", "--quiet", "--done", "--date-format=raw"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        process = self._process
        if process is None or process.stdout is None:
            raise RuntimeError("the writer was never opened")
        if kind is None:
            self._in.write(b"done\n")
            self._in.close()
            if process.wait() != 0:
                raise RuntimeError(f"git fast-import ended with {process.returncode} in {self.path}")
        else:
            process.kill()
            self._in.close()
            process.wait()
        process.stdout.close()

    @property
    def _in(self) -> IO[bytes]:
        if self._process is None or self._process.stdin is None:
            raise RuntimeError("the writer was never opened")
        return self._process.stdin

    def extend(self, changes: Sequence[Change]) -> None:
        """The commits on main, in order."""
        for change in changes:
            self.commit(change)

    def commit(self, change: Change) -> str:
        """One commit on main (a merge of its side branch, where it has one); returns its sha."""
        side = 0
        base_mark, base_files = self._mark, dict(self.files)
        for number, part in enumerate(change.side):
            self._write(part, parent=base_mark if number == 0 else self._mark)
            side = self._mark
        merged = dict(self.files)
        if side:
            self.files = base_files
        before = dict(self.files)
        if side:
            self.files = merged
        sha = self._write(change, parent=base_mark, merge=side, before=before)
        self.commits.append(sha)
        self._marks[sha] = self._mark
        return sha

    def reference(self, name: str, sha: str) -> None:
        """A further ref of the repository, at a commit of main."""
        self._in.write(f"reset {name}\nfrom :{self._marks[sha]}\n\n".encode())

    def _write(self, change: Change, *, parent: int, merge: int = 0, before: Files | None = None) -> str:
        old = dict(self.files) if before is None else before
        for edit in change.edits:
            edit(self.files)
        self._mark += 1
        message = self._message(change.message).encode()
        committer, committed = change.committer or change.author, change.committed or change.when
        lines = [
            "commit refs/heads/main",
            f"mark :{self._mark}",
            f"author {change.author.signature} {int(change.when.timestamp())} +0000",
            f"committer {committer.signature} {int(committed.timestamp())} +0000",
            f"data {len(message)}",
        ]
        self._in.write("\n".join(lines).encode() + b"\n" + message + b"\n")
        if parent:
            self._in.write(f"from :{parent}\n".encode())
        if merge:
            self._in.write(f"merge :{merge}\n".encode())
        for path in sorted(old.keys() - self.files.keys()):
            self._in.write(f"D {path}\n".encode())
        for path in sorted(path for path, text in self.files.items() if old.get(path) != text):
            data = self.files[path].encode()
            self._in.write(f"M 100644 inline {path}\ndata {len(data)}\n".encode() + data + b"\n")
        sha = self._sha()
        if change.role:
            if change.role in self.shas:
                raise ValueError(f"two commits have the role {change.role}")
            self.shas[change.role] = sha
        return sha

    def _sha(self) -> str:
        self._in.write(f"\nget-mark :{self._mark}\n".encode())
        self._in.flush()
        if self._process is None or self._process.stdout is None:
            raise RuntimeError("the writer was never opened")
        answer = self._process.stdout.readline().decode().strip()
        if not answer:
            raise RuntimeError(f"git fast-import gave up in {self.path}")
        return answer

    def _message(self, text: str) -> str:
        for role, sha in self.known.items():
            text = text.replace(f"{{sha:{role}}}", sha)
        for role, sha in self.shas.items():
            text = text.replace(f"{{sha:{role}}}", sha).replace(f"{{fork:{role}}}", sha)
        if "{sha:" in text or "{fork:" in text:
            raise ValueError(f"names a commit that is not made yet: {text}")
        return text if text.endswith("\n") else text + "\n"
