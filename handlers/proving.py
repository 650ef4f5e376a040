"""Prove that what is planned to land early changes nothing of the outcome: built and landed in memory, by tree.

Each bundle is built on the fork's tip, alone. Landing all of them, and then what is clean of the chains in upstream
order, must give byte for byte the tree of picking everything clean in upstream order. What stands in the way is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.context import Git
from bot.core.candidates import Candidate, Draft
from bot.core.footprint import FootprintCache
from bot.core.types import Bundle, Reason, ReasonKind

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Proof:
    """What the proof refuses: what may not land early, with whom it belongs, and what needs one bundle."""

    moved: Mapping[str, tuple[Reason, tuple[str, ...]]] = field(default_factory=dict)
    tied: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """True where nothing is refused."""
        return not self.moved and not self.tied


class _Prover:
    def __init__(
        self,
        git: Git,
        draft: Draft,
        candidates: Sequence[Candidate],
        keep_deleted: frozenset[str],
        kept: FootprintCache | None,
    ) -> None:
        self.git = git
        self.keep = keep_deleted
        self.kept = kept
        self.order = {candidate.commit.sha: index for index, candidate in enumerate(candidates)}
        self.paths = {candidate.commit.sha: candidate.footprint.paths for candidate in candidates}
        self.bundle_of = {c.sha: bundle.key for bundle in draft.bundles for c in bundle.commits}
        self.late = [c.sha for chain in draft.chains for c in chain.commits] + [c.sha for c in draft.held]
        self.late.sort(key=self.order.__getitem__)
        self.moved: dict[str, tuple[Reason, tuple[str, ...]]] = {}
        self.tied: dict[str, frozenset[str]] = {}

    def build(self, bundle: Bundle, fork: str) -> str | None:
        """The bundle's tree on the fork's tip, None where it can't be built alone."""
        tree: str | None = fork
        failed: set[str] = set()
        for result in self.git.picks([c.sha for c in bundle.commits], fork, keep_deleted=self.keep, kept=self.kept):
            if result.kind == "conflict":
                paths = [conflict.path for conflict in result.conflicts]
                # where one that it stands on failed, this is only what follows from that
                if failed.isdisjoint(paths):
                    self._unbuildable(result.commit, paths)
                failed |= self.paths[result.commit]
                tree = None
            elif tree is not None:
                tree = result.tree
        return tree

    def land(self, bundle: Bundle, fork: str, tip: str, tree: str) -> str:
        """The tip after the bundle has been merged into it; unchanged where that conflicts."""
        merge = self.git.merge_trees(base=fork, ours=tip, theirs=tree)
        if merge.clean:
            return merge.tree
        paths = [conflict.path for conflict in merge.conflicts]
        for commit in bundle.commits:
            if self._touches(commit.sha, paths):
                self._unbuildable(commit.sha, paths)
        return tip

    def land_late(self, clean: frozenset[str], tip: str) -> str:
        """The tip after what is clean of chains and held; who overtook is refused where one conflicts."""
        wanted = [sha for sha in self.late if sha in clean]
        for result in self.git.picks(wanted, tip, keep_deleted=self.keep, kept=self.kept):
            if result.kind == "conflict":
                self._overtaken(result.commit, [conflict.path for conflict in result.conflicts])
            elif result.tree is not None:
                tip = result.tree
        return tip

    def differs(self, paths: Sequence[str], *, desperate: bool) -> None:
        """Refuse what may have made these files differ: bundled commits that overtook a late one there."""
        for sha in self.bundle_of:
            if not self._touches(sha, paths) and not desperate:
                continue
            overtaken = [one for one in self.late if self.order[one] < self.order[sha] and self._touches(one, paths)]
            if overtaken or desperate:
                self._move(sha, overtaken[-1:], paths)
        if not self.moved:
            for sha in [sha for sha in self.bundle_of if self._touches(sha, paths)] or list(self.bundle_of):
                self._move(sha, [], paths)

    def _unbuildable(self, sha: str, paths: Sequence[str]) -> None:
        others = [
            other
            for other, key in self.bundle_of.items()
            if key != self.bundle_of[sha] and self.order[other] < self.order[sha] and self._touches(other, paths)
        ]
        if others:
            self.tied[sha] = frozenset(others)
        else:
            before = [late for late in self.late if self.order[late] < self.order[sha] and self._touches(late, paths)]
            self._move(sha, before[-1:], paths)

    def _overtaken(self, late: str, paths: Sequence[str]) -> None:
        after = [sha for sha in self.bundle_of if self.order[sha] > self.order[late] and self._touches(sha, paths)]
        for sha in after or [sha for sha in self.bundle_of if self._touches(sha, paths)] or list(self.bundle_of):
            self._move(sha, [late], paths)

    def _move(self, sha: str, mates: Iterable[str], paths: Sequence[str]) -> None:
        mates = tuple(mates)
        with_whom = f" with {mates[0][:12]}" if mates else ""
        text = f"landing it early does not give what upstream order gives{with_whom}"
        self.moved.setdefault(sha, (Reason(ReasonKind.ORDER_DIFFERS, text, (*mates, *sorted(paths)[:4]), 0.9), mates))

    def _touches(self, sha: str, paths: Sequence[str]) -> bool:
        return not self.paths[sha].isdisjoint(paths)


def prove(
    git: Git,
    *,
    draft: Draft,
    candidates: Sequence[Candidate],
    fork: str,
    reference: str,
    clean: frozenset[str],
    keep_deleted: frozenset[str] = frozenset(),
    kept: FootprintCache | None = None,
    progress: Progress | None = None,
    desperate: bool = False,
) -> Proof:
    """Build and land the draft on `fork` and compare with `reference`, the tree of picking in upstream order.

    `clean` are the commits whose pick in upstream order was no conflict. `desperate` refuses all that may be at fault.
    `kept` holds what git said of picks at other times.
    """
    prover = _Prover(git, draft, candidates, keep_deleted, kept)
    root = git.tree_of(fork)
    tip = root
    for count, bundle in enumerate(draft.bundles, 1):
        tree = prover.build(bundle, root)
        if tree is not None:
            tip = prover.land(bundle, root, tip, tree)
        if progress is not None:
            progress("proof", count, len(draft.bundles))
    if not prover.moved and not prover.tied:
        tip = prover.land_late(clean, tip)
        if not prover.moved and tip != reference:
            paths = [path for change in git.changed_files(tip, reference) for path in change.paths]
            prover.differs(paths, desperate=desperate)
    return Proof(prover.moved, prover.tied)
