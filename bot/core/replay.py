"""Picks of the past: the file that lists them, and what the planner's decisions on them come to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.core.types import Verdict

_SHA = r"^[0-9a-f]{40}$"


class PicksError(ValueError):
    """A list of picks that can't be read: what is wrong, where, and how to mend it."""


class Pick(BaseModel):
    """One pick of the past: the upstream commit, the fork's commit that landed it, and that one's parent."""

    model_config = ConfigDict(frozen=True)

    upstream: str = Field(pattern=_SHA)
    fork: str = Field(pattern=_SHA)
    fork_parent: str = Field(pattern=_SHA)
    landed: str | None = None


class Picks(BaseModel):
    """A file of picks; what else it holds is not read."""

    model_config = ConfigDict(frozen=True)

    picks: tuple[Pick, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Result:
    """One decision and what came of it. `identical` is None where Graft would have landed nothing."""

    upstream: str
    pr: int | None
    verdict: Verdict
    identical: bool | None
    resolved_by_hand: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of picks. `reproduced`: identical without a person, whatever the verdict; `hand_work`: merged, but landed
    otherwise; `foreseen`: of those, the ones not called safe; `conflicts_foreseen`: of those that a person resolved.
    """

    picks: int
    merged: int
    reproduced: int
    safe: int
    safe_identical: int
    watch: int
    watch_identical: int
    risky: int
    risky_identical: int
    conflicts: int
    empty: int
    resolved: int
    conflicts_foreseen: int
    hand_work: int
    foreseen: int

    @property
    def shares(self) -> dict[str, float | None]:
        """The counts as shares (0 to 1), None where there is nothing to share."""
        both = self.safe + self.watch
        both_identical = self.safe_identical + self.watch_identical
        return {
            "reproduced": share(self.reproduced, self.picks),
            "merged_identical": share(self.reproduced, self.merged),
            "safe_precision": share(self.safe_identical, self.safe),
            "safe_recall": share(self.safe_identical, self.reproduced),
            "safe_or_watch_precision": share(both_identical, both),
            "safe_or_watch_recall": share(both_identical, self.reproduced),
            "conflicts_foreseen": share(self.conflicts_foreseen, self.resolved),
            "hand_work_foreseen": share(self.foreseen, self.hand_work),
        }

    def as_dict(self) -> dict[str, Any]:
        """Counts and shares, for JSON."""
        return {**asdict(self), "shares": self.shares}


def read_picks(raw: Mapping[str, Any]) -> tuple[Pick, ...]:
    """The picks of a file's JSON; raises PicksError."""
    try:
        return Picks.model_validate(raw).picks
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise PicksError(
            f"{where}: {first['msg']}. Each pick needs upstream, fork and fork_parent, full hashes; as in"
            ' {"picks": [{"upstream": "…", "fork": "…", "fork_parent": "…"}]}'
        ) from None


def summarise(results: Sequence[Result]) -> Summary:
    """What the decisions come to."""

    def count(verdict: Verdict, identical: bool | None = None) -> int:
        return sum(r.verdict is verdict and (identical is None or r.identical is identical) for r in results)

    resolved = [r for r in results if r.resolved_by_hand]
    by_hand = [r for r in results if r.identical is False]
    return Summary(
        picks=len(results),
        merged=sum(r.identical is not None for r in results),
        reproduced=sum(r.identical is True for r in results),
        safe=count(Verdict.SAFE),
        safe_identical=count(Verdict.SAFE, True),
        watch=count(Verdict.WATCH),
        watch_identical=count(Verdict.WATCH, True),
        risky=count(Verdict.RISKY),
        risky_identical=count(Verdict.RISKY, True),
        conflicts=count(Verdict.CONFLICT),
        empty=count(Verdict.EMPTY),
        resolved=len(resolved),
        conflicts_foreseen=sum(r.verdict in {Verdict.CONFLICT, Verdict.RISKY} for r in resolved),
        hand_work=len(by_hand),
        foreseen=sum(r.verdict is not Verdict.SAFE for r in by_hand),
    )


def share(part: int, whole: int) -> float | None:
    """`part` of `whole`, None of nothing."""
    return round(part / whole, 4) if whole else None
