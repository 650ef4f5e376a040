"""One bare repository on disk: the plumbing that the sandbox's answers are made of. Calls block for milliseconds."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_PASSED = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
_FORMAT = "%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%aI%x1f%cn%x1f%ce%x1f%cI%x1f%B"
_STATUS = {"A": "added", "D": "removed", "M": "modified", "R": "renamed", "C": "copied", "T": "changed"}


_CONFIG = """
[http]
	receivepack = true
[uploadpack]
	allowAnySHA1InWant = true
	allowFilter = true
[gc]
	auto = 0
[receive]
	autogc = false
	denyDeleteCurrent = ignore
[transfer]
	hideRefs = refs/internal
[core]
	logAllRefUpdates = false
[diff]
	renameLimit = 20000
[merge]
	renameLimit = 20000
"""


class GitFailure(Exception):
    """Git said no."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Who and when, the time in ISO 8601."""

    name: str
    email: str
    date: str


@dataclass(frozen=True, slots=True)
class CommitData:
    """One commit."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Signature
    committer: Signature
    message: str


@dataclass(frozen=True, slots=True)
class FileDiff:
    """What happened to one file; `status` in the words of GitHub's API, `patch` without its head, None if binary."""

    path: str
    old_path: str | None
    status: str
    blob: str
    additions: int
    deletions: int
    patch: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a tree."""

    mode: str
    kind: str
    oid: str
    size: int | None
    path: str


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """A clean environment for git: nobody's own configuration has a say."""
    kept = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return {**kept, **ENVIRONMENT, **(extra or {})}


class Bare:
    """Git commands in one bare repository; GitFailure where git fails."""

    def __init__(self, path: Path):
        self.path = path
        self._commits: dict[str, CommitData] = {}

    @classmethod
    def create(cls, path: Path, branch: str, source: Path | None = None) -> Bare:
        """A new bare repository, a copy of `source` where one is given (branches and tags only)."""
        path.parent.mkdir(parents=True, exist_ok=True)
        bare = cls(path)
        subprocess.run(
            ["git", "init", "-q", "--bare", f"--initial-branch={branch}", str(path)],
            check=True,
            capture_output=True,
            env=environment(),
        )
        with (path / "config").open("a", encoding="utf-8") as config:
            config.write(_CONFIG)
        if source is not None:
            bare.run(
                "fetch",
                "-q",
                "--no-write-fetch-head",
                str(source),
                "+refs/heads/*:refs/heads/*",
                "+refs/tags/*:refs/tags/*",
            )
        return bare

    def run(
        self,
        *arguments: str,
        data: bytes | None = None,
        env: Mapping[str, str] | None = None,
        accept: Sequence[int] = (0,),
    ) -> bytes:
        """Run git and give its output; GitFailure unless it exits with one of `accept`."""
        done = subprocess.run(
            ["git", "--git-dir", str(self.path), *arguments],
            input=data,
            capture_output=True,
            env=environment(env),
            check=False,
        )
        if done.returncode not in accept:
            said = done.stderr.decode(errors="replace").strip() or done.stdout.decode(errors="replace").strip()
            raise GitFailure(f"git {' '.join(arguments[:3])} exited with {done.returncode}: {said}")
        return done.stdout

    def text(self, *arguments: str, data: bytes | None = None, accept: Sequence[int] = (0,)) -> str:
        """Run git and give its output as one stripped text."""
        return self.run(*arguments, data=data, accept=accept).decode(errors="replace").strip()

    def resolve(self, name: str) -> str | None:
        """The commit that a branch, tag, ref or sha names."""
        if not name or name.startswith("-"):
            return None
        for candidate in (f"refs/heads/{name}", f"refs/tags/{name}", name):
            found = self.text("rev-parse", "-q", "--verify", f"{candidate}^{{commit}}", accept=(0, 1, 128))
            if len(found) == 40:
                return found
        return None

    def ref(self, ref: str) -> str | None:
        """What a full ref name points at."""
        return self.text("rev-parse", "-q", "--verify", ref, accept=(0, 1, 128)) or None

    def refs(self, prefix: str = "refs/heads/") -> dict[str, str]:
        """All refs below `prefix`: full name to object."""
        lines = self.text("for-each-ref", "--format=%(objectname) %(refname)", prefix).splitlines()
        return {name: oid for oid, _, name in (line.partition(" ") for line in lines)}

    def set_ref(self, ref: str, new: str, old: str | None = None) -> None:
        """Point a ref at an object, if it still points at `old`."""
        self.run("update-ref", ref, new, *([old] if old is not None else []))

    def delete_ref(self, ref: str) -> None:
        """Take a ref away."""
        self.run("update-ref", "-d", ref)

    def kind(self, oid: str) -> str | None:
        """The type of an object; None where it is missing."""
        return self.text("cat-file", "-t", oid, accept=(0, 1, 128)) or None

    def commit(self, sha: str) -> CommitData:
        """One commit, remembered."""
        if sha not in self._commits:
            self.commits("-1", sha)
        return self._commits[sha]

    def commits(self, *arguments: str) -> list[CommitData]:
        """What `git log` lists for these arguments."""
        output = self.run("log", "-z", f"--format={_FORMAT}", *arguments).decode(errors="replace")
        found = []
        for record in output.split("\0"):
            if not record:
                continue
            sha, tree, parents, an, ae, ad, cn, ce, cd, message = record.split("\x1f", 9)
            data = CommitData(
                sha, tree, tuple(parents.split()), Signature(an, ae, ad), Signature(cn, ce, cd), message.rstrip("\n")
            )
            self._commits[sha] = data
            found.append(data)
        return found

    def merge_base(self, a: str, b: str) -> str | None:
        """The best common ancestor."""
        return self.text("merge-base", a, b, accept=(0, 1)).split("\n")[0] or None

    def is_ancestor(self, a: str, b: str, env: Mapping[str, str] | None = None) -> bool:
        """True where `b` contains `a`."""
        try:
            self.run("merge-base", "--is-ancestor", a, b, env=env)
        except GitFailure:
            return False
        return True

    def count(self, exclude: str, include: str) -> int:
        """How many commits `include` has that `exclude` has not."""
        return int(self.text("rev-list", "--count", f"^{exclude}", include))

    def merge_tree(self, ours: str, theirs: str) -> tuple[str | None, tuple[str, ...]]:
        """The tree of the merge, or None and the paths in conflict."""
        output = (
            self.run(
                "merge-tree",
                "--write-tree",
                "--allow-unrelated-histories",
                "--name-only",
                "--no-messages",
                "-z",
                ours,
                theirs,
                accept=(0, 1),
            )
            .decode(errors="replace")
            .split("\0")
        )
        paths = tuple(dict.fromkeys(path for path in output[1:] if path))
        return (None, paths) if paths else (output[0].strip(), ())

    def pick(self, commit: str, onto: str, committer: Signature) -> str | None:
        """The commit put onto another one, as a rebase does; None on conflict."""
        data = self.commit(commit)
        target = self.commit(onto)
        nobody = Signature("sandbox", "sandbox@localhost", "1970-01-01T00:00:00+00:00")
        ours = self.write_commit(target.tree, data.parents[:1], "ours", nobody, nobody)
        tree, conflicts = self.merge_tree(ours, commit)
        if tree is None or conflicts:
            return None
        return self.write_commit(tree, [onto], data.message, data.author, committer)

    def write_commit(
        self, tree: str, parents: Sequence[str], message: str, author: Signature, committer: Signature
    ) -> str:
        """A new commit object."""
        env = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_AUTHOR_DATE": author.date,
            "GIT_COMMITTER_NAME": committer.name,
            "GIT_COMMITTER_EMAIL": committer.email,
            "GIT_COMMITTER_DATE": committer.date,
        }
        flags = [word for parent in parents for word in ("-p", parent)]
        return (
            self.run("commit-tree", tree, *flags, "-F", "-", data=(message + "\n").encode(), env=env).decode().strip()
        )

    def write_blob(self, content: bytes) -> str:
        """A new blob."""
        return self.text("hash-object", "-w", "--stdin", data=content)

    def blob(self, oid: str) -> bytes:
        """The content of a blob."""
        return self.run("cat-file", "blob", oid)

    def tree(self, treeish: str, path: str = "", *, recursive: bool = False) -> list[Entry]:
        """The entries of a tree; with `path` those below it (`path/`) or that one itself."""
        flags = ["-r", "-t"] if recursive else []
        output = self.run("ls-tree", "-z", "-l", *flags, treeish, *([path] if path else [])).decode(errors="replace")
        entries = []
        for record in filter(None, output.split("\0")):
            head, _, name = record.partition("\t")
            mode, kind, oid, size = head.split()
            entries.append(Entry(mode, kind, oid, None if size == "-" else int(size), name))
        return entries

    def write_tree(self, base: str | None, changes: Sequence[tuple[str, str, str | None]]) -> str:
        """A new tree: `base` with (mode, path, object or None to take it away)."""
        index = self.path / f"index-{os.getpid()}-{id(changes)}"
        env = {"GIT_INDEX_FILE": str(index)}
        try:
            if base is not None:
                self.run("read-tree", base, env=env)
            lines = "".join(f"{mode if oid else '0'} {oid or '0' * 40}\t{path}\n" for mode, path, oid in changes)
            self.run("update-index", "--index-info", data=lines.encode(), env=env)
            return self.run("write-tree", env=env).decode().strip()
        finally:
            index.unlink(missing_ok=True)

    def changed_by(self, shas: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """Of each commit the (letter, path) of what it changed, renames as two; nothing of a merge."""
        output = self.run(
            "-c",
            "core.quotePath=false",
            "diff-tree",
            "--stdin",
            "-r",
            "--root",
            "--name-status",
            "--no-renames",
            data="".join(f"{sha}\n" for sha in shas).encode(),
        )
        found: dict[str, list[tuple[str, str]]] = {sha: [] for sha in shas}
        at = ""
        for line in output.decode(errors="replace").splitlines():
            letter, tab, path = line.partition("\t")
            if tab:
                found[at].append((letter[0], path))
            else:
                at = line
        return found

    def changed_paths(self, old: str, new: str, env: Mapping[str, str] | None = None) -> list[str]:
        """The paths that differ, renames as two."""
        output = self.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, env=env)
        return [path for path in output.decode(errors="replace").split("\0") if path]

    def diff(self, old: str, new: str) -> list[FileDiff]:
        """All files that differ, with their patches."""
        common = ["diff", "--no-ext-diff", "--no-textconv", "-M", "--no-color", "--abbrev=40", "-l20000"]
        raw = self.run(*common, "--raw", "-z", old, new).decode(errors="replace").split("\0")
        numbers = self.run(*common, "--numstat", "-z", old, new).decode(errors="replace").split("\0")
        patches = ("\n" + self.run(*common, "-p", "--full-index", old, new).decode(errors="replace")).split(
            "\ndiff --git "
        )[1:]
        return list(_join(raw, numbers, patches))


def _join(raw: list[str], numbers: list[str], patches: list[str]) -> list[FileDiff]:
    found = []
    at = number = patch = 0
    while at < len(raw) and raw[at]:
        _, _, old_oid, new_oid, letter = raw[at].split()
        renamed = letter[0] in "RC"
        old_path, path = raw[at + 1], raw[at + 2] if renamed else raw[at + 1]
        at += 3 if renamed else 2
        added, removed, *_ = numbers[number].split("\t")
        number += 3 if renamed else 1
        pieces = 2 if letter[0] == "T" else 1
        texts = patches[patch : patch + pieces]
        patch += pieces
        hunks = [text[text.index("\n@@ ") + 1 :] for text in texts if "\n@@ " in text]
        found.append(
            FileDiff(
                path,
                old_path if renamed else None,
                _STATUS.get(letter[0], "changed"),
                old_oid if letter[0] == "D" else new_oid,
                int(added) if added != "-" else 0,
                int(removed) if removed != "-" else 0,
                "\n".join(hunks).rstrip("\n") if hunks else None,
            )
        )
    return found


EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
