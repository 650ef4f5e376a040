"""What the fork holds that upstream does not: its files, its symbols, and its own code that uses upstream's symbols."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from bot.core.footprint import SymbolTable


@dataclass(frozen=True, slots=True)
class Use:
    """A place in the fork's own code that uses a name."""

    path: str
    line: int
    own_file: bool


@dataclass(frozen=True, slots=True)
class FileDivergence:
    """How one file of the fork differs from every version that upstream ever had of it.

    `kind`: own (upstream never had the path), changed, removed (upstream has it, the fork deleted it)."""

    path: str
    kind: str
    changed: frozenset[str]
    added: frozenset[str]
    removed: frozenset[str]
    own_lines: tuple[tuple[int, int], ...]
    uses: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Divergence:
    """All that the fork holds of its own at one commit.

    `files` has only files that differ from each upstream version since the base; a file that is merely behind is not
    in it. `words` and `defined` are what the fork's whole tree holds: a name that is in neither is nowhere in the fork.
    """

    files: Mapping[str, FileDivergence]
    words: Set[str]
    defined: Set[str]

    def changed_symbols(self) -> Mapping[str, tuple[str, ...]]:
        """Names that the fork defines differently from upstream, or lost, with their paths."""
        raise NotImplementedError

    def uses(self, name: str) -> tuple[Use, ...]:
        """The fork-only places that use `name`, by path and line."""
        raise NotImplementedError


def file_divergence(
    *,
    path: str,
    fork: tuple[bytes, SymbolTable] | None,
    upstream: Mapping[str, tuple[bytes, SymbolTable]],
) -> FileDivergence:
    """How the fork's version (None: the fork has none) differs from all of upstream's versions of it, by blob id."""
    raise NotImplementedError


def divergence(*, files: Mapping[str, FileDivergence], words: Set[str], defined: Set[str]) -> Divergence:
    """The whole, indexed."""
    raise NotImplementedError
