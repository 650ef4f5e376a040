"""The life of a breakage: what it is after what was found, what people did to its issue, and what it was before."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.core.triage.findings import Finding, Kind


class State(StrEnum):
    """Where a breakage stands. DISMISSED: a person closed its issue as not planned or as a duplicate, or deleted it."""

    OPEN = "open"
    BISECTING = "bisecting"
    CULPRIT_KNOWN = "culprit_known"
    FIXED = "fixed"
    FLAKY = "flaky"
    DISMISSED = "dismissed"

    @property
    def red(self) -> bool:
        """True where trunk is broken by it: it blocks where the fork's file says so."""
        return self in (State.OPEN, State.BISECTING, State.CULPRIT_KNOWN)

    @property
    def alive(self) -> bool:
        """True where its issue is to be open."""
        return self.red or self is State.FLAKY


class Change(StrEnum):
    """What happened to it. UNPROVED: its issue was closed and is opened again, since its tests have not passed."""

    NONE = "none"
    OPENED = "opened"
    REOPENED = "reopened"
    FIXED = "fixed"
    BECAME_FLAKY = "became_flaky"
    BECAME_STEADY = "became_steady"
    DISMISSED = "dismissed"
    UNPROVED = "unproved"


class Hand(StrEnum):
    """What others did to the issue since Graft last wrote its state. CLOSED: as done, by a person or by a merge.
    DELETED: there is none any more.
    """

    NOTHING = "nothing"
    CLOSED = "closed"
    DISMISSED = "dismissed"
    REOPENED = "reopened"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Step:
    """The new state and what happened; `state` None: there is no breakage. `by_hand`: a person did it, no run."""

    state: State | None
    change: Change
    why: str = ""
    by_hand: bool = False


def step(*, before: State | None, finding: Finding, hand: Hand = Hand.NOTHING, newer_red: bool = True) -> Step:
    """One step of the life.

    `newer_red`: the cause was seen at a commit newer than the one at which it was last called fixed or closed by hand;
    a late report about an older commit reopens nothing.
    """
    alive = State.FLAKY if finding.kind is Kind.FLAKY else State.OPEN
    if before is None:
        return Step(alive, Change.OPENED, finding.why) if finding.red else Step(None, Change.NONE, finding.why)
    if hand is Hand.DELETED and finding.kind is not Kind.FIXED:
        return _deleted(before, finding, alive, newer_red)
    if hand is Hand.DISMISSED:
        return Step(State.DISMISSED, Change.DISMISSED, "a person closed it as not planned or as a duplicate")
    if hand is Hand.REOPENED and finding.open:
        return Step(alive, Change.REOPENED, "a person reopened it", by_hand=True)
    if before is State.DISMISSED:
        return Step(before, Change.NONE, "a person closed it as not planned or as a duplicate")
    if before is State.FIXED:
        if finding.red and newer_red:
            return Step(alive, Change.REOPENED, finding.why)
        return Step(before, Change.NONE, finding.why)
    if finding.kind is Kind.FIXED:
        return Step(State.FIXED, Change.FIXED, finding.why)
    if hand is Hand.CLOSED and finding.vanished:
        return Step(State.FIXED, Change.FIXED, "its tests are no more, and a person closed it", by_hand=True)
    if hand is Hand.CLOSED:  # a merge's "Fixes #n", or a person: neither is a run in which the tests passed
        return Step(alive if State.FLAKY in (alive, before) else before, Change.UNPROVED, finding.why)
    if alive is State.FLAKY:
        return Step(State.FLAKY, Change.NONE if before is State.FLAKY else Change.BECAME_FLAKY, finding.why)
    if before is State.FLAKY:
        return Step(State.OPEN, Change.BECAME_STEADY, finding.why)
    return Step(before, Change.NONE, finding.why)


def _deleted(before: State, finding: Finding, alive: State, newer_red: bool) -> Step:
    """Without an issue: put by until it fails again, and then told anew, since that one was deleted is no answer."""
    if before.alive:
        return Step(State.DISMISSED, Change.DISMISSED, "a person deleted its issue", by_hand=True)
    if finding.red and newer_red:
        return Step(alive, Change.OPENED, finding.why)
    return Step(before, Change.NONE, "a person deleted its issue")
