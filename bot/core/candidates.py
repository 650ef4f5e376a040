"""What the planner is given, undecided commits with what was found out about them, and the partition that it gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from bot.core.config import Config, Ingest
from bot.core.divergence import Divergence
from bot.core.footprint import Footprint
from bot.core.lineage import Below
from bot.core.paths import matches
from bot.core.reverts import Link
from bot.core.risk import Trial
from bot.core.signals import Signal
from bot.core.types import Bundle, Chain, Commit, PlannedCommit, Reason


@dataclass(frozen=True, slots=True)
class Candidate:
    """An undecided upstream commit with what was found out about it.

    `below`: earlier commits whose lines it touches or comes near. `trial`: its pick in upstream order.
    `kept_deleted`: files that it changes and that the fork deleted. `error`: why git could not try it at all.
    """

    commit: Commit
    footprint: Footprint
    trial: Trial
    below: Below = field(default_factory=Below)
    kept_deleted: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A partition of the candidates, not yet proved."""

    bundles: tuple[Bundle, ...]
    chains: tuple[Chain, ...]
    held: tuple[PlannedCommit, ...]
    settled: tuple[PlannedCommit, ...]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What holds for all candidates: the fork's own, its file, reverts, and what was decided of other commits.

    `absent` are upstream commits that are not in the fork and not to be planned (deferred by a person, not to be
    ported), `given_up` those of them that are never to come; `landed` those in the fork. `moved` maps commits that the
    proof refused to the reason and to those they belong with, `tied` commits to those that they must share a bundle
    with.
    """

    divergence: Divergence
    config: Config | None = None
    links: Mapping[str, Link] = field(default_factory=dict)
    landed: Collection[str] = frozenset()
    absent: Mapping[str, Footprint] = field(default_factory=dict)
    given_up: Collection[str] = frozenset()
    moved: Mapping[str, tuple[Reason, tuple[str, ...]]] = field(default_factory=dict)
    tied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    upstream_words: frozenset[str] | None = None
    signals: dict[str, tuple[Signal, ...]] = field(default_factory=dict, compare=False)
    """What was found of each commit, for the next draft with the same divergence."""


def skipped_by_rule(paths: Collection[str], ingest: Ingest) -> bool:
    """True where a commit touches only what the fork's file says to skip."""
    return bool(paths) and bool(ingest.skip) and all(matches(path, ingest.skip) for path in paths)
