"""Whose turn it is: the order in which queued runs are handed to runners.

First what is asked for: a merge queue's group (it holds up every landing), then what a person asked for by command,
then L1 of pull requests, then trunk's own runs, last the steps of a search for a culprit. What has waited for `STEP`
without a turn counts as one class more urgent, so that nothing waits for ever. Within a class repositories take turns,
and in a repository its pull requests, trunk and the searches: the one that was served longest ago comes first, however
many runs each has. The runs of one of them keep their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum

STEP = timedelta(minutes=30)


class Turn(IntEnum):
    """What a run is for; the smaller goes first."""

    GROUP = 0
    COMMAND = 1
    PULL = 2
    TRUNK = 3
    SEARCH = 4

    @property
    def tells_of_trunk(self) -> bool:
        """Whether such a run, at a commit of trunk and for no pull request, may open, close or feed a breakage."""
        return _TELLS_OF_TRUNK[self]


# each is decided by itself: what a new kind of runs says of trunk is not to be guessed
_TELLS_OF_TRUNK: Mapping[Turn, bool] = {
    Turn.GROUP: False,  # these three measure a commit below a change, to compare the change with
    Turn.COMMAND: False,
    Turn.PULL: False,
    Turn.TRUNK: True,
    Turn.SEARCH: False,  # today's suites at commits long past, where they may not even start
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued run: for whom (`number`: a pull request's, None for trunk), what for, since when, and its place."""

    run: str
    repository: str
    number: int | None
    turn: Turn
    since: datetime
    place: int

    @property
    def line(self) -> Line:
        """The line that it stands in."""
        return Line(self.repository, self.number, self.turn)


@dataclass(frozen=True, slots=True)
class Line:
    """Runs that keep their order among themselves."""

    repository: str
    number: int | None
    turn: Turn

    @property
    def party(self) -> tuple[str, int | None, bool]:
        """Who takes turns with the others of the repository: a pull request, trunk, or the searches."""
        return self.repository, self.number, self.turn is Turn.SEARCH


def in_turn(waiting: Iterable[Waiting], *, served: Mapping[Line, datetime], now: datetime) -> Iterator[Waiting]:
    """The queued runs, the next first, as if each was leased at `now`; `served`: when a run of a line last began."""
    lines: dict[Line, deque[Waiting]] = {}
    for one in sorted(waiting, key=lambda one: one.place):
        lines.setdefault(one.line, deque()).append(one)
    by_line = dict(served)
    by_party: dict[tuple[str, int | None, bool], datetime] = {}
    by_repository: dict[str, datetime] = {}

    def serve(line: Line, at: datetime) -> None:
        by_line[line] = max(at, by_line.get(line, at))
        by_party[line.party] = max(at, by_party.get(line.party, at))
        by_repository[line.repository] = max(at, by_repository.get(line.repository, at))

    for line, at in served.items():
        serve(line, at)
    # who comes anew begins to wait when it comes: it must not pass those who wait already
    came: dict[str, datetime] = {}
    for line, runs in lines.items():
        came[line.repository] = min(runs[0].since, came.get(line.repository, runs[0].since))

    def key(line: Line) -> tuple[int, datetime, datetime, int]:
        head = lines[line][0]
        waits = now - max(head.since, by_line.get(line, head.since))
        return (
            max(0, line.turn - max(0, waits // STEP)),
            max(came[line.repository], by_repository.get(line.repository, came[line.repository])),
            max(head.since, by_party.get(line.party, head.since)),
            head.place,
        )

    moment = now
    while lines:
        line = min(lines, key=key)
        yield lines[line].popleft()
        moment += timedelta.resolution  # one after the other, though nobody looks at the clock in between
        serve(line, moment)
        if not lines[line]:
            del lines[line]
