"""The search for the commit that moved a metric of trunk, as it is stored between runs."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from bot.core.bisect import Culprit, Inconclusive, Next, NoCulprit, Pair, Search, next_paired_step
from bot.core.triage.searching import Standing

Place = tuple[str, str | None, str | None, str | None, str | None]


class Round(BaseModel):
    """Two runs side by side: of the good end (`base`) and at `position`; at the good end `base` is an older one."""

    model_config = ConfigDict(frozen=True)

    position: int
    base: str
    run: str


class MetricHunt(BaseModel):
    """One search: `shas` from the last good (place 0) to the known bad, `place` what is measured there, `least` the
    relative step that its budget allows. `asked` are runs that were queued; `told` the issue that hears of it.

    `bundle` is the commit that is searched inside, `names` then the upstream commit of each place.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    suite: str
    level: str
    place: Place
    shas: tuple[str, ...]
    by: str
    told: int
    least: float = 0.0
    max_runs: int = 40
    asked: int = 0
    rounds: tuple[Round, ...] = ()
    standing: Standing = Standing.RUNNING
    said: str = ""
    confidence: float = 0.0
    culprits: tuple[str, ...] = ()
    bundle: str = ""
    names: tuple[str, ...] = ()
    outer: str = ""

    @property
    def running(self) -> bool:
        """True while it asks for runs."""
        return self.standing is Standing.RUNNING

    def next(self, values: Mapping[str, float | None]) -> Next:
        """What to measure next, or the answer, from the value of each run (None: it measured nothing)."""
        pairs = [Pair(one.position, values.get(one.base), values.get(one.run)) for one in self.rounds]
        search = Search(n=len(self.shas) - 1, max_runs=self.max_runs // 2)
        return next_paired_step(search=search, pairs=pairs, least=self.least)

    def ended(self, step: Next) -> MetricHunt:
        """The search after its answer."""
        if isinstance(step, Culprit):
            shas = tuple(self.shas[position] for position in step.positions)
            update = {"standing": Standing.CULPRIT, "culprits": shas, "confidence": step.confidence}
            return self.model_copy(update=update)
        said, confidence = "nothing between the two ends moved it", 0.0
        best: tuple[str, ...] = ()
        if isinstance(step, NoCulprit):
            confidence = step.confidence
        elif isinstance(step, Inconclusive):
            said, confidence = step.missing.value, step.confidence
            best = tuple(self.shas[position] for position in step.best)
        update = {"standing": Standing.INCONCLUSIVE, "said": said, "confidence": confidence, "culprits": best}
        return self.model_copy(update=update)
