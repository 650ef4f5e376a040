"""A commit of trunk that takes in several upstream commits, taken apart: applied again one by one on its parent."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bot.context import Git
from bot.core.batches import Batch, key_of
from bot.core.bisect import Line, expand
from bot.core.trailers import parse
from bot.core.types import BatchKind, Commit
from handlers.building import Committer, build
from handlers.fork import FORK, UPSTREAM, Fork
from handlers.moves import read_layout
from handlers.suspecting import carried_by


@dataclass(frozen=True, slots=True)
class Apart:
    """The inside of a bundle: commits made in the mirror from its parent on, and which upstream commit each one is.

    `upstream` is "" for the last place where the bundle itself stands there: it holds more than its upstream commits
    make (resolutions by hand, what did not apply by itself). `left` did not apply by themselves, `empty` changed
    nothing.
    """

    line: Line
    upstream: tuple[str, ...]
    left: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many upstream commits it takes in."""
        return sum(map(bool, self.upstream)) + len(self.left) + len(self.empty)

    def sides(self, upstream: str) -> tuple[str, str] | None:
        """The commits after and before one upstream commit; None where it is not among them."""
        if upstream not in self.upstream:
            return None
        place = self.upstream.index(upstream) + 1
        return self.line.at(place), self.line.at(place - 1)


async def take_apart(fork: Fork, landing: Commit) -> Apart | None:
    """The inside of a commit of trunk, squashed or a merge; None where it takes in fewer than two upstream commits, or
    only one of them applies. Raises GitError.
    """
    carries = await carried_by(fork, landing)
    if len(carries) < 2 or not landing.parents:
        return None
    committer = Committer.of(await fork.login())
    return await asyncio.to_thread(_apart, fork, landing, carries, committer)


def _apart(fork: Fork, landing: Commit, carries: tuple[str, ...], committer: Committer) -> Apart | None:
    git: Git = fork.git
    key = key_of(fork.name, "bisect", landing.sha)
    built = build(
        git,
        batch=Batch(key=key, kind=BatchKind.BUNDLE, commits=carries, branch=""),
        base=landing.parents[0],
        upstream_tip=UPSTREAM,
        config=fork.config,
        committer=committer,
        layout=read_layout(git, upstream=UPSTREAM, base=FORK),
    )
    made = git.commits(built.head, [landing.parents[0]])
    names = [parse(commit.message).picks[-1] for commit in made]
    shas = [commit.sha for commit in made]
    if git.tree_of(built.head) != git.tree_of(landing.sha):
        shas.append(landing.sha)
        names.append("")
    line = expand(landing.sha, parent=landing.parents[0], members=shas)
    if line is None:
        return None
    left, empty = (tuple(one.sha for one in dropped) for dropped in (built.dropped, built.empty))
    return Apart(line, tuple(names), left, empty)


def publish(git: Git, apart: Apart) -> None:
    """Let runners fetch what was made."""
    for sha in apart.line.commits:
        git.set_ref(f"refs/graft/source/{sha}", sha)
