"""Which upstream commits take others back, which bring them in again: by reference, title or reverse diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bot.core.footprint import Footprint
from bot.core.types import Commit


@dataclass(frozen=True, slots=True)
class Link:
    """`sha` reverts (or relands) `targets`; `how`: body, title, diff. Unresolved where `targets` is empty."""

    sha: str
    kind: str
    targets: tuple[str, ...]
    how: str
    partial: bool = False


def revert_links(
    *,
    commits: Sequence[Commit],
    older: Sequence[Commit] = (),
    numbers: Mapping[int, str] | None = None,
    footprints: Mapping[str, Footprint] | None = None,
) -> dict[str, Link]:
    """The reverts and relands among `commits` (upstream, oldest first) by sha.

    Targets are looked for in `commits` and in `older` (those before, landed or not); `numbers` maps pull requests to
    shas; `footprints` allow the reverse diff where nothing is named."""
    raise NotImplementedError


def reverted_but_carried(*, links: Mapping[str, Link], picked: frozenset[str]) -> dict[str, str]:
    """Fork-carried commits that upstream has reverted while the fork has not taken the revert: target → revert."""
    raise NotImplementedError
