"""Two plain repositories on this disk seen as one, without copying: what `plan` and `ledger` read when told paths."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bot.clients.git import Git

UPSTREAM = "refs/graft/upstream"
FORK = "refs/graft/fork"


class PairError(ValueError):
    """A path or ref that can't be used: what, where, how to mend it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A throw-away repository that borrows both histories, with the tips under UPSTREAM and FORK."""

    git: Git
    upstream: str = UPSTREAM
    fork: str = FORK


@contextmanager
def open_pair(
    upstream: Path, fork: Path, *, upstream_ref: str | None = None, fork_ref: str | None = None
) -> Iterator[Pair]:
    """Borrow the objects of both repositories (bare, or with a work tree; refs default to HEAD). Raises PairError."""
    sides = [
        ("upstream", _git_folder(upstream, "upstream"), upstream_ref or "HEAD", UPSTREAM),
        ("fork", _git_folder(fork, "fork"), fork_ref or "HEAD", FORK),
    ]
    with tempfile.TemporaryDirectory(prefix="graft-pair-") as folder:
        path = Path(folder) / "pair.git"
        Git.open_mirror(path).close()
        borrowed = dict.fromkeys(str(side / "objects") for _, side, _, _ in sides)
        (path / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (path / "objects" / "info" / "alternates").write_text("".join(f"{line}\n" for line in borrowed), "utf-8")
        with Git(path) as git:
            for what, side, ref, name in sides:
                with Git(side) as there:
                    tip = there.resolve(ref)
                if tip is None:
                    raise PairError(f"{side} has no commit {ref!r}: name one of its branches with --{what}-ref")
                git.set_ref(name, tip)
                # stand-ins for objects that a side lacks on purpose hold here too
                with Git(side) as there:
                    for replaced, stand_in in there.refs("refs/replace/").items():
                        git.set_ref(replaced, stand_in)
            yield Pair(git)


def _git_folder(path: Path, what: str) -> Path:
    """The folder that holds HEAD and the objects; a linked work tree leads to its repository."""
    git = path / ".git"
    if git.is_file():
        text = git.read_text("utf-8").strip().removeprefix("gitdir:").strip()
        linked = (path / text).resolve()
        common = linked / "commondir"
        git = (linked / common.read_text("utf-8").strip()).resolve() if common.is_file() else linked
    for folder in (git, path):
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
            if (folder / "shallow").is_file():
                raise PairError(f"{path} is a shallow clone: run `git fetch --unshallow` there first")
            return folder.resolve()
    raise PairError(f"{path} is no git repository: give --{what} the path of a clone")
