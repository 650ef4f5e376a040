"""Groups of upstream commits that belong together: chains, lanes and the components that a bundle must not cut."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from bot.core.batches import key_of
from bot.core.config import RiskRule
from bot.core.footprint import Footprint
from bot.core.paths import matches, matches_name
from bot.core.reverts import Link
from bot.core.types import Chain, Level, PlannedCommit


class Groups:
    """Disjoint groups of names that only ever grow together (union-find); a group is named by its first member."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        self._sizes: dict[str, int] = {}
        self._order: dict[str, int] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._parent

    def add(self, name: str) -> None:
        """A group of its own for `name`, if it is in none."""
        if name not in self._parent:
            self._parent[name] = name
            self._sizes[name] = 1
            self._order[name] = len(self._order)

    def find(self, name: str) -> str:
        """The group that `name` is in."""
        root = name
        while self._parent[root] != root:
            root = self._parent[root]
        while self._parent[name] != root:
            self._parent[name], name = root, self._parent[name]
        return root

    def join(self, names: Iterable[str]) -> None:
        """One group for all of `names`."""
        roots = {self.find(name) for name in names}
        if roots:
            first = min(roots, key=self._order.__getitem__)
            self._sizes[first] = sum(self._sizes[root] for root in roots)
            for root in roots:
                self._parent[root] = first

    def size(self, name: str) -> int:
        """How many are in the group of `name`."""
        return self._sizes[self.find(name)]

    def members(self) -> list[list[str]]:
        """The groups in the order of their first members, each in the order of adding."""
        found: dict[str, list[str]] = {}
        for name in self._parent:
            found.setdefault(self.find(name), []).append(name)
        return list(found.values())


class Tie(IntEnum):
    """How closely a commit belongs to one before it that it stands on."""

    NEAR = 1
    LEANS = 2
    REPLACES = 3
    FAMILY = 4


def gather(groups: Groups, name: str, mates: Mapping[str, Tie], order: Mapping[str, int], *, longest: int) -> None:
    """Put `name` into the group of those that it belongs to, and join these groups, the closest first.

    Of equally close ones the latest comes first. Groups stay apart where together they had more than `longest` links,
    but for families: a person can't land hundreds in a row, and what merely waits needs no place in the row.
    """
    groups.add(name)
    for mate in sorted(mates, key=lambda mate: (-mates[mate], -order.get(mate, -1))):
        apart = groups.find(mate) != groups.find(name)
        if apart and (mates[mate] is Tie.FAMILY or groups.size(mate) + groups.size(name) <= longest):
            groups.join([name, mate])


def kin(links: Mapping[str, Link], order: Mapping[str, int]) -> dict[str, frozenset[str]]:
    """Commits of the range that revert or reland one another, each with its kin."""
    groups = Groups()
    for sha, link in links.items():
        kin = [name for name in (sha, *link.targets) if name in order]
        if sha in order and len(kin) > 1:
            for name in kin:
                groups.add(name)
            groups.join(kin)
    return {name: frozenset(group) - {name} for group in groups.members() for name in group}


@dataclass
class Unlanded:
    """What the commits that stay out so far bring: names, signatures and paths, each with the first that brings it.

    `definitions` maps (path, qualified name) to all that change it. Of signatures only those count whose name says what
    is meant: `load` or `a` are anybody's. `local` are all other words that are new to the fork, by (path, word).
    """

    symbols: dict[str, str] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    definitions: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    local: dict[tuple[str, str], str] = field(default_factory=dict)
    _definers: dict[str, int] = field(default_factory=dict)

    def add(self, footprint: Footprint, known: Container[str]) -> None:
        """Take in the next commit; `known` are the words that the fork has, those of its bundles too."""
        sha = footprint.sha
        for name in footprint.defined:
            self.symbols.setdefault(name, sha)
        for file in footprint.files:
            if file.status in {"A", "C"}:  # a change to a renamed file finds it under its old name
                self.paths.setdefault(file.path, sha)
            for name in file.refers:
                if name not in known:
                    self.local.setdefault((file.path, name), sha)
                    if global_name(name):
                        self.symbols.setdefault(name, sha)
            for symbol in file.symbols:
                self.definitions.setdefault((file.path, symbol.name), []).append(sha)
                if symbol.what == "signature" and symbol.kind in _CALLED:
                    for name in filter(telling, symbol.names):
                        self.signatures.setdefault(name, sha)
                        self._definers[name] = self._definers.get(name, 0) + 1

    def under(self, footprint: Footprint, words: Container[str]) -> Iterator[tuple[str, str]]:
        """The commits whose names or paths a later commit needs, with why; `words` are what is there already."""
        referred = footprint.referred - footprint.defined
        for name in sorted(referred & self.symbols.keys()):
            if name not in words:
                yield self.symbols[name], f"refers to {name}, brought by {{}}"
        for file in footprint.files:
            for name in sorted(file.refers & referred):
                if (origin := self.local.get((file.path, name))) is not None and name not in words:
                    yield origin, f"refers to {name}, brought by {{}}"
        for path in sorted(footprint.paths & self.paths.keys()):
            yield self.paths[path], f"changes {path}, brought by {{}}"

    def resigned(self, footprint: Footprint) -> Iterator[tuple[str, str]]:
        """The commits that change the signature of what a later commit newly refers to, with its name."""
        for name in sorted(footprint.referred & self.signatures.keys()):
            if self._definers.get(name, 0) <= _FEW:
                yield self.signatures[name], name

    def shared(self, footprint: Footprint) -> Iterator[tuple[str, str]]:
        """The commits that change a definition which this one changes too, with its name."""
        for file in footprint.files:
            for symbol in file.symbols:
                for origin in self.definitions.get((file.path, symbol.name), ()):
                    yield origin, symbol.name


_FEW = 2
_CALLED = frozenset({"function", "class", "def", "operand", "macro"})
_TELLING = 8


def telling(name: str) -> bool:
    """True for a name of several words that is long enough to mean one thing in a whole repository."""
    inner = name.strip("_")[1:]
    return len(name) >= _TELLING and ("_" in inner or "." in inner or any(letter.isupper() for letter in inner))


def global_name(name: str) -> bool:
    """True for a word that means the same in all files though none defines it: an operation, a switch of the build."""
    return "." in name.strip(".") or (name.isupper() and name.strip("_").count("_") >= 2 and not name.startswith("_"))


def chain_of(commits: Sequence[PlannedCommit], rules: Mapping[str, Sequence[RiskRule]], *, lane: bool) -> Chain:
    """The chain of these commits, in upstream order; `rules` are the fork's rules that each commit meets."""
    met = [rule for commit in commits for rule in rules.get(commit.sha, ())]
    named = {level for rule in met for level in rule.levels}
    areas = dict.fromkeys([*(area for rule in met for area in rule.areas), *(a for c in commits for a in c.areas)])
    return Chain(
        key=key_of("chain", commits[0].sha),
        lane=lane,
        commits=tuple(commits),
        levels=tuple(level for level in Level if level in named),
        areas=tuple(areas),
    )


def rules_met(footprint: Footprint, rules: Sequence[RiskRule]) -> tuple[RiskRule, ...]:
    """The fork's rules that name a path or a symbol of this commit."""
    symbols = {name for file in footprint.files for symbol in file.symbols for name in symbol.names}
    return tuple(
        rule
        for rule in rules
        if any(matches(path, rule.paths) for path in footprint.paths)
        or any(matches_name(name, rule.symbols) for name in symbols)
    )
