"""Upstream's history rewritten: what is gone, what stands there instead, and what of the record is kept for it."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.core.trailers import pull_number
from bot.core.types import Commit, Disposition, LedgerEntry

_PLACES = re.compile(r"^(?:index [0-9a-f]+\.\.[0-9a-f]+.*|@@ .*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Upstream as Graft knows it (`old`) and as it is now (`new`), where the one does not go on from the other.

    `base` is where they part, None where they have nothing in common; `gone` and `fresh` are the commits of each side
    since then, oldest first; `twins` names for a gone commit the fresh one that stands for it.
    """

    old: str
    new: str
    base: str | None
    gone: tuple[Commit, ...] = ()
    fresh: tuple[Commit, ...] = ()
    twins: Mapping[str, str] = field(default_factory=dict)

    def picked(self, entries: Sequence[LedgerEntry]) -> tuple[LedgerEntry, ...]:
        """What the fork holds of the commits that are gone."""
        gone = {commit.sha for commit in self.gone}
        return tuple(e for e in entries if e.sha in gone and e.disposition is Disposition.PICKED)


def patch_identity(diff: str) -> str | None:
    """What tells a change whatever stands around it: git's patch without its places; None for no change."""
    text = _PLACES.sub("", diff).strip()
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() if text else None


def twins(
    *, gone: Sequence[Commit], fresh: Sequence[Commit], patches: Mapping[str, str | None]
) -> dict[str, str]:  # fmt: skip
    """For each gone commit the fresh one that stands for it, where there is just one such pair.

    The same patch says it first, then author, author's date and subject, then the pull request's number. `patches`
    holds the identity of each commit's patch.
    """
    found: dict[str, str] = {}
    signs: tuple[Callable[[Commit], Hashable], ...] = (
        lambda commit: patches.get(commit.sha),
        lambda commit: (commit.author_email, commit.author_time, commit.subject),
        lambda commit: pull_number(commit.message),
    )
    for sign in signs:
        taken = set(found.values())
        sides: tuple[dict[Hashable, list[str]], dict[Hashable, list[str]]] = (defaultdict(list), defaultdict(list))
        for side, commits in zip(sides, (gone, fresh), strict=True):
            for commit in commits:
                if commit.sha not in found and commit.sha not in taken and (key := sign(commit)) is not None:
                    side[key].append(commit.sha)
        for key, old in sides[0].items():
            new = sides[1].get(key, [])
            if len(old) == len(new):  # several of one kind keep their order
                found |= zip(old, new, strict=True)
    return found


_TOLD = frozenset({Disposition.SKIPPED, Disposition.WONT_PORT, Disposition.EMPTY, Disposition.DEFERRED})


def kept(rewrite: Rewrite, entries: Sequence[LedgerEntry], *, passed_over: str) -> tuple[LedgerEntry, ...]:
    """The decisions that a twin takes over; `passed_over` is what `by` says of a deferral that nobody decided.

    What the fork picked is in it under the twin's name too: EMPTY. What it took back is left for a person.
    """
    by_sha = {entry.sha: entry for entry in entries}
    result = []
    for old, new in rewrite.twins.items():
        entry = by_sha.get(old)
        if entry is None or old == new:
            continue
        was = f"as {old[:10]} before upstream's history was rewritten"
        if entry.disposition is Disposition.PICKED:
            reason = f"picked {was}, by {entry.by[:10]}"
            result.append(LedgerEntry(new, Disposition.EMPTY, entry.subject, entry.by, reason))
        elif entry.disposition is Disposition.REVERTED:
            reason = f"the fork took it back ({was})"
            result.append(LedgerEntry(new, Disposition.DEFERRED, entry.subject, entry.by, reason, entry.owner))
        elif entry.disposition in _TOLD and entry.by not in (passed_over, "planner"):
            reason = f"{entry.reason} ({was})".strip()
            result.append(LedgerEntry(new, entry.disposition, entry.subject, entry.by, reason, entry.owner))
    return tuple(result)
