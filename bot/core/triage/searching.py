"""What a run tells a search for a breakage's culprit, and the search as it is stored between runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from bot.core.bisect import Culprit, Inconclusive, Next, NoCulprit, Record, Run, Search, Seen
from bot.core.triage.runs import Digest

RECORDED = 20  # runs; older ones tell little more, and of another time
_END_TRIES = 3  # both ends ran before, on trunk: what stands in their way now may pass


class Standing(StrEnum):
    """How a search stands."""

    RUNNING = "running"
    CULPRIT = "culprit"
    INCONCLUSIVE = "inconclusive"
    STOPPED = "stopped"


class Hunt(BaseModel):
    """One search: `shas` from the last good (place 0) to the known bad; `probes` the tests that show the cause.

    `record` is what trunk's own runs told before. `queued` are the runs that it asked for, `heard` those that told
    something, be they another search's. `before` are runs that were there already: only what the search asked for
    itself counts, on one class of runners. `bundle` is the commit that is searched inside, `names` then the upstream
    commit of each place ("" where the bundle itself stands), `left` those that did not apply by themselves, `dead` the
    places that could not be tried. `takes` are the upstream commits that the answer names, `landed` the commit of trunk
    that they came with.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    signature: str
    suite: str
    level: str
    shas: tuple[str, ...]
    probes: tuple[str, ...]
    by: str
    started: str
    before: tuple[str, ...] = ()
    weights: tuple[float, ...] | None = None
    never: tuple[int, ...] = ()
    max_runs: int = 40
    record: Record = Record()
    queued: int = 0
    heard: int = 0
    standing: Standing = Standing.RUNNING
    said: str = ""
    confidence: float = 0.0
    culprits: tuple[str, ...] = ()
    bundle: str | None = None
    names: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    dead: tuple[int, ...] = ()
    takes: tuple[str, ...] = ()
    landed: str = ""
    outer: str = ""

    @classmethod
    def of(cls, data: dict[str, Any]) -> Self | None:
        """The search of a stored breakage; None where there was none."""
        raw = data.get("hunt")
        return cls.model_validate(raw) if raw else None

    @property
    def running(self) -> bool:
        """True while it asks for runs."""
        return self.standing is Standing.RUNNING

    def search(self) -> Search:
        """The search as the engine takes it."""
        return Search(
            n=len(self.shas) - 1,
            suspects=list(self.weights) if self.weights else None,
            never=frozenset(self.never),
            max_runs=self.max_runs,
            end_tries=_END_TRIES,
            record=self.record,
        )

    def runs(self, digests: Iterable[Digest]) -> list[Run]:
        """What the runs told so far, oldest first."""
        place = {sha: index for index, sha in enumerate(self.shas)}
        known = frozenset(self.before)
        found = []
        for one in digests:
            if one.sha not in place or one.suite != self.suite or one.level.value != self.level or one.run in known:
                continue
            seen = seen_of(one, signature=self.signature, probes=self.probes)
            if seen is not None:
                found.append(Run(place[one.sha], seen))
        return found

    def ended(self, step: Next) -> Hunt:
        """The search after its answer."""
        if isinstance(step, Culprit):
            shas = tuple(self.shas[position] for position in step.positions)
            update: dict[str, Any] = {"standing": Standing.CULPRIT, "culprits": shas, "confidence": step.confidence}
            if self.bundle:
                takes = tuple(name for position in step.positions if (name := self.names[position - 1]))
                update |= {"takes": takes, "landed": self.bundle}
            return self.model_copy(update=update)
        said = "nothing between the two ends did it: the bad end is as good as the good one"
        confidence = 0.0
        best: tuple[int, ...] = ()
        if isinstance(step, NoCulprit):
            confidence = step.confidence
        if isinstance(step, Inconclusive):
            said, confidence, best = step.missing.value, step.confidence, step.best
        update = {
            "standing": Standing.INCONCLUSIVE,
            "said": said,
            "confidence": confidence,
            "culprits": tuple(self.shas[position] for position in best),
        }
        return self.model_copy(update=update)


def seen_of(run: Digest, *, signature: str, probes: Sequence[str]) -> Seen | None:
    """What one run shows; None where it proves nothing (a machine's failure, of the run or of a probe): it is asked
    again.

    Only the cause itself is a fail, and it shows in each probe: where one of them passes it is not there, whatever
    else fails the others. Another failure of all that ran, or a suite that does not come to run them, is skipped, never
    bad.
    """
    if not run.judged:
        return None
    if any(failure.signature == signature for failure in run.failures):
        return Seen.FAIL
    if any(probe in run.passed for probe in probes):
        return Seen.PASS
    failed = {failure.test for failure in run.failures}
    masked, silent = (any(probe in tests for probe in probes) for tests in (failed, run.silent))
    if silent and run.infra and not run.crashed and not masked:
        return None
    if run.crashed or silent or masked or not run.passed:
        return Seen.SKIP
    return Seen.ABSENT


def record_of(runs: Iterable[Digest], *, signature: str, probes: Sequence[str]) -> Record:
    """What trunk's own runs before the range, the newest first, tell of the test. Where it failed twice in a row it was
    broken, not unlucky: from there on nothing is counted.
    """
    told: list[Seen] = []
    for run in runs:
        seen = seen_of(run, signature=signature, probes=probes)
        if seen is Seen.FAIL and told and told[-1] is Seen.FAIL:
            del told[-1]
            break
        if seen in (Seen.PASS, Seen.FAIL):
            told.append(seen)
        if len(told) == RECORDED:
            break
    return Record(fails=told.count(Seen.FAIL), passes=told.count(Seen.PASS))
