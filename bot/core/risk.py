"""Why an upstream commit is safe, near the fork's own, or risky: typed reasons with evidence and learned weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.core.config import Ingest
from bot.core.divergence import Divergence
from bot.core.footprint import Footprint
from bot.core.types import Reason, Verdict


@dataclass(frozen=True, slots=True)
class Trial:
    """What the trial pick said: clean, empty or conflict; `paths` in conflict; `no_effect`: only paths the fork deleted."""

    kind: str
    conflicts: tuple[str, ...] = ()
    no_effect: bool = False


@dataclass(frozen=True, slots=True)
class Unlanded:
    """What only unlanded upstream commits before this one bring: names and paths with the commit that brings each."""

    symbols: Mapping[str, str] = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RevertFacts:
    """For a revert (or reland): the targets found, and of those the ones the fork has not landed; `known` False: none found."""

    targets: tuple[str, ...] = ()
    unlanded: tuple[str, ...] = ()
    known: bool = True
    partial: bool = False


def assess(
    *,
    footprint: Footprint,
    divergence: Divergence,
    trial: Trial,
    ingest: Ingest | None = None,
    unlanded: Unlanded | None = None,
    revert: RevertFacts | None = None,
    upstream_words: frozenset[str] | None = None,
) -> tuple[Reason, ...]:
    """The reasons, heaviest first; INDEPENDENT alone where nothing speaks against it."""
    raise NotImplementedError


def verdict(reasons: Sequence[Reason], trial: Trial) -> Verdict:
    """What the reasons come to."""
    raise NotImplementedError


def chance_of_hand_work(reasons: Sequence[Reason]) -> float:
    """How likely (0 to 1) the pick needs a change by hand, as learned from history."""
    raise NotImplementedError
