"""The loop of a search on this machine: what the engine asks for is run, what it answers is kept with all runs."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev
from typing import Protocol

from bot.cli.probing import Trial
from bot.core.bisect import Ask, Inconclusive, Missing, Next, Run, Search, Seen, Step, next_metric_step, next_step

_TRIES = 3  # of a run that the machine ended
_ENDS = 5  # runs at each end from which a metric's step and noise are told
_FEW = 1.2  # noise told by few runs is told too small


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
    paired: bool = True
    least_step: float = 0.0
    tried: list[Tried] = field(default_factory=list)
    step: Step | None = None
    _began: float = field(default_factory=time.monotonic)

    async def passfail(self) -> Next:
        """Until the engine answers, or the minutes are over."""
        while isinstance(asked := next_step(search=self.search, runs=self._runs()), Ask):
            if self._late():
                return Inconclusive(Missing.TIME)
            await asyncio.gather(*(self._try(position) for position in asked.positions))
        return asked

    async def metric(self) -> Next:
        """The same of a metric: step and noise are told by runs of both ends in turn, each paired with the good end."""
        good: list[Run] = []
        bad: list[Run] = []
        for _ in range(_ENDS):
            for position, runs in ((0, good), (self.search.n, bad)):
                run = await self._measure(position)
                if run.seen is not Seen.VALUE:
                    missing = Missing.BAD_END_BUILDS if position else Missing.GOOD_END_BUILDS
                    return Inconclusive(missing)
                runs.append(run)
        self.step = step_of(good, bad)
        if abs(self.step.claimed) < self.least_step:
            return Inconclusive(Missing.SIGNAL)
        ends = len(self.tried)
        while True:
            runs = [one.run for one in self.tried[ends:]]
            asked = next_metric_step(search=self.search, step=self.step, runs=runs)
            if not isinstance(asked, Ask):
                return asked
            if self._late():
                return Inconclusive(Missing.TIME)
            for position in asked.positions:
                await self._measure(position)

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

    async def _try(self, position: int) -> None:
        trial = await self._once(position)
        self._keep(position, trial, Run(position, trial.seen or Seen.SKIP))

    async def _measure(self, position: int) -> Run:
        """A value; paired, it is divided by that of the good end, measured right before it on the same machine."""
        base = await self._once(0) if self.paired else None
        trial = await self._once(position)
        if trial.seen is not Seen.VALUE or (base is not None and base.seen is not Seen.VALUE):
            return self._keep(position, trial, Run(position, Seen.SKIP))
        value = trial.value / base.value if base is not None else trial.value
        return self._keep(position, trial, Run(position, Seen.VALUE, value))

    def _keep(self, position: int, trial: Trial, run: Run) -> Run:
        self.tried.append(Tried(position, trial, run))
        self.tell(self.tried[-1])
        return run


def step_of(good: Sequence[Run], bad: Sequence[Run]) -> Step:
    """The step between both ends (medians) and the noise of single runs (pooled, of logarithms)."""
    logs = [[math.log(run.value) for run in runs] for runs in (good, bad)]
    claimed = math.exp(median(logs[1]) - median(logs[0])) - 1
    noise = math.sqrt(fmean(stdev(values) ** 2 for values in logs)) * _FEW
    # far below the step, noise that is told by few runs says more of luck than of the machine
    return Step(claimed=claimed, noise=max(noise, abs(claimed) / 8, 1e-6), good=good, bad=bad)
