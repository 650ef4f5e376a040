"""The loop of a search on this machine: what the engine asks for is run, what it answers is kept with all runs."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bot.cli.probing import Trial
from bot.core.bisect import (
    Ask,
    Inconclusive,
    Missing,
    Next,
    Pair,
    Run,
    Search,
    Seen,
    Step,
    next_paired_step,
    next_step,
    step_of,
)
from bot.core.bisect.paired import ENDS

_TRIES = 3  # of a run that the machine ended


class Probes(Protocol):
    """Runs a commit once."""

    async def probe(self, sha: str) -> Trial:
        """Run it."""
        ...


@dataclass(frozen=True, slots=True)
class Tried:
    """A run with its place (0 the good end) and what the engine was told of it; `host` is one: this machine."""

    position: int
    trial: Trial
    run: Run


@dataclass
class LocalSearch:
    """A search over `shas` (0 the good end, the last one the bad); `tell` hears each run, `minutes` bound the whole."""

    search: Search
    shas: Sequence[str]
    probes: Probes
    tell: Callable[[Tried], None]
    minutes: float = math.inf
    least_step: float = 0.0
    tried: list[Tried] = field(default_factory=list)
    step: Step | None = None
    _pairs: list[Pair] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)

    async def passfail(self) -> Next:
        """Until the engine answers, or the minutes are over."""
        while isinstance(asked := next_step(search=self.search, runs=self._runs()), Ask):
            if self._late():
                return Inconclusive(Missing.TIME)
            await self._try_all(asked.positions)
        return asked

    async def metric(self) -> Next:
        """The same of a metric: each value is divided by one of the good end, measured right before it."""
        while isinstance(asked := self._next_pair(), Ask):
            if self._late():
                return Inconclusive(Missing.TIME)
            for position in asked.positions:
                await self._measure(position)
        if len(self._pairs) >= ENDS and all(pair.run.seen is Seen.VALUE for pair in self._pairs[:ENDS]):
            self.step = step_of(self._pairs[:ENDS])
        return asked

    def _next_pair(self) -> Next:
        return next_paired_step(search=self.search, pairs=self._pairs, least=self.least_step)

    def _runs(self) -> list[Run]:
        return [one.run for one in self.tried]

    def _late(self) -> bool:
        return time.monotonic() - self._began > 60 * self.minutes

    async def _once(self, position: int) -> Trial:
        """A run that shows something; one that the machine ended is tried again, and then shows nothing."""
        for _ in range(_TRIES):
            trial = await self.probes.probe(self.shas[position])
            if trial.seen is not None:
                break
        return trial

    async def _try_all(self, positions: Sequence[int]) -> None:
        """All at once; where one can't go on, the others have ended before it is told.

        What is left to `asyncio.run` to end may be a program just being started, for which asyncio waits for ever.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for position in positions:
                    group.create_task(self._try(position))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _try(self, position: int) -> None:
        trial = await self._once(position)
        self._keep(position, trial, Run(position, trial.seen or Seen.SKIP))

    async def _measure(self, position: int) -> None:
        """A pair; at the good end itself it is one run, held against the one before."""
        last = self._pairs[-1] if self._pairs else None
        before = last.value if last is not None and last.position == 0 else last.base if last is not None else None
        base = None if position == 0 else await self._once(0)
        trial = await self._once(position)
        pair = Pair(position, before if base is None else base.value or None, trial.value or None)
        self._pairs.append(pair)
        shown = trial if base is None or base.value else base  # what went wrong is told of the one it went wrong with
        self._keep(0 if shown is base else position, shown, pair.run)

    def _keep(self, position: int, trial: Trial, run: Run) -> None:
        self.tried.append(Tried(position, trial, run))
        self.tell(self.tried[-1])
