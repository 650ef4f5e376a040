"""One bare repository: read, merged in memory, written to and pushed from, by the git of this machine."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Self

from bot.clients.git import loose
from bot.clients.git.batch import Objects
from bot.clients.git.errors import GitError, ObjectMissing
from bot.clients.git.patches import Section, parse_patches
from bot.clients.git.picks import Labels, Merge, Merger
from bot.clients.git.process import EMPTY_TREE, RENAME_LIMIT, environment, fixed_settings, roomy_folder, run, text
from bot.clients.git.remotes import Remotes
from bot.clients.git.tip import Kept, Store, Tip
from bot.clients.git.trees import Change, Trees
from bot.clients.git.values import (
    LOG_FORMAT,
    ConflictFile,
    FileChange,
    PickKind,
    PickResult,
    TreeEntry,
    parse_commits,
    parse_raw,
)
from bot.core.types import Commit

Keep = Collection[str]
_RENAMES = ["-M", f"-l{RENAME_LIMIT}"]


class Git(Remotes):
    """A bare mirror. Synchronous; safe to share between threads; `close` (or `with`) ends its helper processes."""

    def __init__(self, path: Path, *, scratch: Path | None = None) -> None:
        self.path = Path(path).resolve()
        self._objects_path = scratch or self.path / "objects"
        extra = {"GIT_DIR": str(self.path)}
        if scratch is not None:
            extra |= {
                "GIT_OBJECT_DIRECTORY": str(scratch),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.path / "objects"),
            }
        self._env = environment(extra)
        self._objects = Objects(self.path, self._env)
        self._merger: Merger | None = None
        self._tree_ids: dict[str, str] = {}
        self._trees = Trees(self._objects_path, self._objects)

    @classmethod
    def open_mirror(cls, path: Path) -> Self:
        """The bare repository at `path`, made there if it is missing. Raises GitError where something else is there."""
        path = Path(path)
        if not (path / "HEAD").is_file():
            path.mkdir(parents=True, exist_ok=True)
            run(["init", "--quiet", "--bare", "--template=", str(path.resolve())], env=environment())
        return cls(path)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Git]:
        """The same repository, but what is written to it is gone in the end: for trial picks and proofs."""
        with (
            tempfile.TemporaryDirectory(prefix="graft-scratch-", dir=roomy_folder()) as folder,
            Git(self.path, scratch=Path(folder)) as git,
        ):
            yield git

    def close(self) -> None:
        """End the helper processes; the object can be used on."""
        self._objects.close()
        if self._merger is not None:
            self._merger.close()
            self._merger = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def maintain(self) -> None:
        """Pack what is loose and join small packs, at any time: nothing is dropped, large packs stay as they are."""
        # on the disk before what it holds is removed elsewhere
        self._run(["-c", "core.fsync=committed", "repack", "-q", "-d", "-l", "--geometric=2"])

    # history

    def resolve(self, ref: str) -> str | None:
        """The commit that a name stands for, None where there is none."""
        done = run(
            ["rev-parse", "--quiet", "--verify", "--end-of-options", f"{ref}^{{commit}}"],
            env=self._env,
            cwd=self.path,
            ok=(0, 1, 128),
        )
        return text(done.stdout).strip() or None if done.returncode == 0 else None

    def commit(self, sha: str) -> Commit:
        """One commit; raises GitError where there is none."""
        return self.commits_of([sha])[0]

    def commits(
        self,
        include: str,
        exclude: Sequence[str] = (),
        *,
        first_parent: bool = True,
        before: int | None = None,
        newest: int | None = None,
    ) -> list[Commit]:
        """What `include` reaches and none of `exclude` does, oldest first; with `before`, committed then or earlier.

        `newest`: only the last so many.
        """
        flags = ["--first-parent"] if first_parent else ["--topo-order"]
        flags += [f"--min-age={before}"] if before is not None else []
        flags += [f"--max-count={newest}"] if newest is not None else []
        return self._log(["--reverse", *flags, include, *(f"^{name}" for name in exclude), "--"])

    def commits_of(self, shas: Sequence[str]) -> list[Commit]:
        """The named commits, in the order given."""
        if not shas:
            return []
        stdin = "".join(f"{sha}\n" for sha in shas).encode()
        found = {commit.sha: commit for commit in self._log(["--no-walk=unsorted", "--stdin"], stdin)}
        return [found[sha] if sha in found else found[self._must(sha)] for sha in shas]

    def merge_base(self, a: str, b: str) -> str | None:
        """A best common ancestor, None where the histories have nothing in common."""
        done = run(["merge-base", "--end-of-options", a, b], env=self._env, cwd=self.path, ok=(0, 1))
        return text(done.stdout).split("\n", 1)[0] or None

    def is_ancestor(self, a: str, b: str) -> bool:
        """True where `b` holds `a`."""
        done = run(["merge-base", "--is-ancestor", "--end-of-options", a, b], env=self._env, cwd=self.path, ok=(0, 1))
        return done.returncode == 0

    # content

    def read_blob(self, oid: str) -> bytes:
        """The content of a blob; raises ObjectMissing."""
        return self.read_blobs([oid])[oid]

    def read_blobs(self, oids: Sequence[str]) -> dict[str, bytes]:
        """The contents of many blobs by id, in one go; raises ObjectMissing."""
        blobs: dict[str, bytes] = {}
        for oid, found in self._objects.read_many(oids).items():
            if found is None:
                raise ObjectMissing(["cat-file", "blob", oid], f"no object {oid}", 128)
            blobs[oid] = found[2]
        return blobs

    def read_file(self, commit: str, path: str) -> bytes | None:
        """The content of a file in a commit or tree; None where it is not there, or no file."""
        found = self._objects.read(f"{commit}:{path}")
        return found[2] if found is not None and found[1] == "blob" else None

    def tree_of(self, commit: str) -> str:
        """The tree of a commit (or the tree itself); raises ObjectMissing."""
        if commit not in self._tree_ids:
            found = self._objects.read(f"{commit}^{{tree}}")
            if found is None:
                raise ObjectMissing(["rev-parse", f"{commit}^{{tree}}"], f"no commit or tree {commit}", 128)
            self._tree_ids[commit] = found[0]
        return self._tree_ids[commit]

    def list_tree(self, commit: str, path: str = "") -> list[TreeEntry]:
        """All files of a commit or tree, or those under `path`."""
        under = ["--", f":(literal){path}"] if path else []
        raw = self._run(["ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit, *([path] if under else [])])
        entries = (entry.partition("\t") for entry in text(raw).split("\0") if entry)
        return [TreeEntry(head.split(" ")[0], head.split(" ")[2], name) for head, _, name in entries]

    def changed_files(self, old: str, new: str) -> list[FileChange]:
        """The files that differ between two commits or trees, renames followed."""
        raw = self._run(["diff-tree", "-r", "-z", "--raw", "--no-abbrev", *_RENAMES, "--end-of-options", old, new])
        return parse_raw(text(raw).split("\0"))

    def changes_of(self, commits: Sequence[Commit]) -> dict[str, list[FileChange]]:
        """What each commit changes against its first parent, by commit, in one go."""
        pairs = [(self._parent_tree(commit), commit.tree) for commit in commits]
        stdin = "".join(f"{old} {new}\n" for old, new in dict.fromkeys(pairs)).encode()
        raw = text(self._run(["diff-tree", "--stdin", "-r", "-z", "--raw", "--no-abbrev", *_RENAMES], stdin=stdin))
        found: dict[tuple[str, str], list[str]] = {}
        fields: list[str] = []
        for part in raw.split("\0"):
            field = part
            # the pair stands on a line of its own before its changes, ended by a line break, not by NUL
            while "\n" in field and len(field) >= 82 and field[40] == " " and field[81] == "\n":
                fields = found.setdefault((field[:40], field[41:81]), [])
                field = field[82:]
            fields.append(field)
        return {commit.sha: parse_raw(found.get(pair, [])) for commit, pair in zip(commits, pairs, strict=True)}

    def patches_of(self, commits: Sequence[Commit]) -> dict[str, list[Section]]:
        """The changed line ranges of each commit against its first parent, by file in the order of `changes_of`."""
        pairs = [(self._parent_tree(commit), commit.tree) for commit in commits]
        stdin = "".join(f"{old} {new}\n" for old, new in dict.fromkeys(pairs)).encode()
        found = parse_patches(self._run(["diff-tree", "--stdin", "-r", "-p", "-U0", *_RENAMES], stdin=stdin))
        return {commit.sha: found.get(pair, []) for commit, pair in zip(commits, pairs, strict=True)}

    def diff(self, old: str, new: str, paths: Sequence[str] = (), *, context: int = 3) -> str:
        """The difference as a patch, `context` lines around each hunk; bytes that are no UTF-8 become surrogates."""
        limits = ["--", *(f":(literal){path}" for path in paths)] if paths else []
        return text(self._run(["diff-tree", "-r", "-p", "--full-index", f"-U{context}", *_RENAMES, old, new, *limits]))

    # merging

    def pick(self, commit: str, onto: str, *, keep_deleted: Keep = ()) -> PickResult:
        """Cherry-pick one commit onto a commit or tree, in memory; `marked_tree` then names the sides for a person."""
        parent, tree = self._sides(self.commit(commit))
        ours = self.tree_of(onto)
        merge = self._merge().merge(base=parent, ours=ours, theirs=tree)
        result = self._result(commit, ours, merge, keep_deleted)
        if result.kind != "conflict":
            return result
        marked = self._relabel(merge, f"parent of {commit[:12]}", f"upstream {commit[:12]}")
        return PickResult(commit, "conflict", None, result.conflicts, marked)

    def picks(
        self, commits: Sequence[str], onto: str, *, keep_deleted: Keep = (), kept: Kept | None = None
    ) -> Iterator[PickResult]:
        """Cherry-pick many in order, each onto what the clean ones before it made; a conflicting one is passed over.

        One that git can't merge (an object is missing) counts as conflicting, with `error` saying why. No `marked_tree`
        is made. `keep_deleted`: files that the fork deleted on purpose; upstream's change to one is no conflict, it
        stays away. `kept` holds what git said at other times.
        """
        tip = Tip(
            self.tree_of(onto),
            trees=self._trees,
            store=Store(self.read_blob, self.write_blob),
            merger=self._merge,
            stays=lambda merge: _stay_deleted(merge, keep_deleted),
            kept=kept,
            salt=self._salt(keep_deleted) if kept is not None else "",
        )
        found = self.commits_of(commits)
        for commit, changes in zip(found, self._changes(found), strict=True):
            before = tip.tree
            try:
                picked = tip.pick(*self._sides(commit), changes if changes is not None else self._change(commit))
            except GitError as error:
                yield PickResult(commit.sha, "conflict", None, error=str(error))
                continue
            if picked.tree is None:
                yield PickResult(commit.sha, "conflict", None, picked.conflicts)
            else:
                kind: PickKind = "empty" if picked.tree == before else "clean"
                yield PickResult(commit.sha, kind, picked.tree, kept_deleted=picked.stay)

    def merge_trees(self, *, base: str, ours: str, theirs: str) -> Merge:
        """The three-way merge of trees."""
        return self._merge().merge(base=self.tree_of(base), ours=self.tree_of(ours), theirs=self.tree_of(theirs))

    # writing

    def write_blob(self, content: bytes) -> str:
        """Store a file's content and return its id."""
        return loose.write(self._objects_path, "blob", content)

    def write_tree(self, base: str, edits: Mapping[str, tuple[str, str] | None]) -> str:
        """The tree of `base` (a commit or tree) with files set to (mode, blob id), or removed where None."""
        return self._edit(self.tree_of(base), edits)

    def write_commit(
        self,
        *,
        tree: str,
        parents: Sequence[str],
        message: str,
        author_name: str,
        author_email: str,
        author_date: str,
        committer_name: str,
        committer_email: str,
        committer_date: str,
    ) -> str:
        """Store a commit and return its id; dates as git takes them: `1700000000 +0200`, or ISO 8601 with an offset."""
        identity = {
            "GIT_AUTHOR_NAME": author_name,
            "GIT_AUTHOR_EMAIL": author_email,
            "GIT_AUTHOR_DATE": _date(author_date),
            "GIT_COMMITTER_NAME": committer_name,
            "GIT_COMMITTER_EMAIL": committer_email,
            "GIT_COMMITTER_DATE": _date(committer_date),
        }
        chain = [word for parent in parents for word in ("-p", parent)]
        done = self._run(
            ["commit-tree", tree, *chain, "-F", "-"], stdin=message.encode("utf-8", "replace"), env=identity
        )
        return text(done).strip()

    def _log(self, arguments: Sequence[str], stdin: bytes | None = None) -> list[Commit]:
        raw = self._run(
            [
                "log",
                "-z",
                f"--format={LOG_FORMAT}",
                "--date=raw",
                "--encoding=UTF-8",
                "--no-show-signature",
                *arguments,
            ],
            stdin=stdin,
        )
        return parse_commits(text(raw))

    def _must(self, ref: str) -> str:
        sha = self.resolve(ref)
        if sha is None:
            raise ObjectMissing(["rev-parse", ref], f"no commit {ref}", 128)
        return sha

    def _parent_tree(self, commit: Commit) -> str:
        return self.tree_of(commit.parents[0]) if commit.parents else EMPTY_TREE

    def _sides(self, commit: Commit) -> tuple[str, str]:
        return self._parent_tree(commit), commit.tree

    def _merge(self) -> Merger:
        if self._merger is None:
            self._merger = Merger(self.path, self._env)
        return self._merger

    def _result(self, commit: str, ours: str, merge: Merge, keep_deleted: Keep) -> PickResult:
        if merge.clean:
            return PickResult(commit, "empty" if merge.tree == ours else "clean", merge.tree)
        kept = _stay_deleted(merge, keep_deleted)
        if kept is None:
            return PickResult(commit, "conflict", None, merge.conflicts, merge.tree)
        tree = self._edit(merge.tree, dict.fromkeys(kept))
        return PickResult(commit, "empty" if tree == ours else "clean", tree, kept_deleted=kept)

    def _edit(self, tree: str, edits: Mapping[str, tuple[str, str] | None]) -> str:
        return self._trees.edit(tree, edits) or self._trees.empty()

    def _changes(self, commits: Sequence[Commit]) -> Sequence[Mapping[str, Change] | None]:
        """What each commit changes, by path; None for all where the trees of one can't be read."""
        try:
            return self._trees.differences([self._sides(commit) for commit in commits])
        except ObjectMissing:
            return [None] * len(commits)

    def _change(self, commit: Commit) -> Mapping[str, Change]:
        return self._trees.differences([self._sides(commit)])[0]

    def _salt(self, keep_deleted: Keep) -> str:
        """All that the answer to a merge depends on beside its trees: git, its settings, the files that stay away."""
        files = (self.path / name for name in ("config", "info/attributes"))
        parts = [self._run(["version"]), *(file.read_bytes() for file in files if file.is_file()), fixed_settings()]
        parts += [path.encode("utf-8", "surrogateescape") for path in sorted(keep_deleted)]
        return blake2b(b"\0".join(parts), digest_size=8).hexdigest()

    def _relabel(self, merge: Merge, base: str, theirs: str) -> str:
        entries = {entry.path: entry for entry in self.list_tree(merge.tree)}
        edits: dict[str, tuple[str, str] | None] = {}
        for path in (conflict.path for conflict in merge.conflicts if conflict.path in entries):
            if entries[path].mode not in {"100644", "100755"}:
                continue
            content = self.read_blob(entries[path].oid)
            edits[path] = (entries[path].mode, self.write_blob(_relabelled(content, merge.labels, base, theirs)))
        return self._edit(merge.tree, edits)


def _stay_deleted(merge: Merge, keep_deleted: Keep) -> tuple[str, ...] | None:
    """The files to take out again where all that conflicts is a change to what the fork deleted; else None."""

    def stays(conflict: ConflictFile) -> bool:
        names = (conflict.path, *merge.renamed.get(conflict.path, ()))
        known = conflict.kind in {"modify/delete", "rename/delete"}
        return known and conflict.ours_oid is None and any(name in keep_deleted for name in names)

    return tuple(conflict.path for conflict in merge.conflicts) if all(map(stays, merge.conflicts)) else None


def _relabelled(content: bytes, labels: Labels, base: str, theirs: str) -> bytes:
    for sha, name in ((labels.ours, "fork"), (labels.base, base), (labels.theirs, theirs)):
        content = content.replace(sha.encode(), name.encode())
    return content


def _date(date: str) -> str:
    """Git is sure that `<seconds> <zone>` are seconds only where an @ stands before them."""
    seconds, _, zone = date.partition(" ")
    return f"@{seconds} {zone}" if seconds.isdigit() and zone else date
