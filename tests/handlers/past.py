"""Two histories in one bare repository, written commit by commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bot.clients.git import EMPTY_TREE, Git

HOUR = 3600


class Joined:
    """Upstream and fork in one bare repository, on the branches `upstream` and `fork`; a commit is an hour later."""

    def __init__(self, path: Path) -> None:
        self.git = Git.open_mirror(path)
        self.time = 1_700_000_000

    def commit(self, branch: str, message: str, files: Mapping[str, str | None]) -> str:
        """A commit on a branch that sets these files (None deletes one); gives its id."""
        self.time += HOUR
        parent = self.git.resolve(f"refs/heads/{branch}")
        edits = {
            path: None if text is None else ("100644", self.git.write_blob(text.encode()))
            for path, text in files.items()
        }
        date = f"{self.time} +0000"
        sha = self.git.write_commit(
            tree=self.git.write_tree(parent or EMPTY_TREE, edits),
            parents=[parent] if parent else [],
            message=message,
            author_name="A",
            author_email="a@example.com",
            author_date=date,
            committer_name="A",
            committer_email="a@example.com",
            committer_date=date,
        )
        self.git.set_ref(f"refs/heads/{branch}", sha)
        return sha

    def fork_off(self) -> None:
        """Begin the fork at upstream's tip."""
        self.git.set_ref("refs/heads/fork", self.git.resolve("upstream") or "")

    def land(self, upstream: str, message: str, files: Mapping[str, str | None] | None = None) -> str:
        """A pick as the fork's maintainers would land it, with what they change besides."""
        parent = self.git.resolve("fork") or ""
        picked = self.git.pick(upstream, parent)
        tree = self.git.list_tree(picked.tree or parent)
        there = {entry.path: self.git.read_blob(entry.oid).decode() for entry in tree}
        gone = {entry.path: None for entry in self.git.list_tree(parent) if entry.path not in there}
        return self.commit(
            "fork", f"{message}\n\n(cherry picked from commit {upstream})", {**there, **gone, **(files or {})}
        )
