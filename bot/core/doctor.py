"""What is wrong with a deployment, judged from its facts: each finding says what, where, and how to mend it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class FindingKind(StrEnum):
    """What kind of thing is wrong."""

    STORE = "store"
    REDIS = "redis"
    GITHUB = "github"
    PARKED = "parked"
    STALE_LEASE = "stale_lease"
    NO_WORKER = "no_worker"
    INGEST = "ingest"
    UNANSWERED = "unanswered"
    NO_RUNNER = "no_runner"
    SICK_RUNNER = "sick_runner"
    GPU_BUDGET = "gpu_budget"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    kind: FindingKind
    where: str
    text: str
    mend: str


@dataclass(frozen=True, slots=True)
class JobFact:
    """A job that is parked, or whose lease ran out."""

    id: int
    kind: str
    key: str
    repository: str
    attempts: int
    error: str
    since: datetime

    @property
    def name(self) -> str:
        """The job as a person would say it."""
        return f"{self.kind} {self.repository} {self.key}".strip()


@dataclass(frozen=True, slots=True)
class IngestFact:
    """When upstream was last read well for a fork (None: never), and what went wrong since."""

    repository: str
    good_at: datetime | None
    known_since: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class BudgetFact:
    """An area's GPU budget of this month as it was last counted; `spent` where nothing more is started on demand."""

    repository: str
    area: str
    text: str
    spent: bool


@dataclass(frozen=True, slots=True)
class RunFact:
    """A run that has ended: of a pull request or (`trunk`) not, what it came to, GPU and machine time in seconds."""

    repository: str
    level: str
    suite: str
    trunk: bool
    commit: str
    outcome: str
    gpu_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class SuiteCost:
    """What a suite cost and what it found: commits that it alone or with others kept from landing, or found on trunk.

    `caught` are commits of pull requests at which it failed, left out or timed out; `escaped` are those of trunk;
    `wasted` are runs that ended as `infra` or cancelled. Times in hours.
    """

    repository: str
    level: str
    suite: str
    runs: int
    gpu_hours: float
    hours: float
    caught: int
    only: int
    escaped: int
    wasted: int

    @property
    def per_catch(self) -> float | None:
        """GPU hours (machine hours where no GPU was used) for each commit caught; None where nothing was."""
        found = self.caught + self.escaped
        return (self.gpu_hours or self.hours) / found if found else None


_CATCHES = frozenset({"failed", "omitted", "timed_out", "not_run"})
_WASTE = frozenset({"infra", "cancelled"})


def suite_costs(runs: Sequence[RunFact]) -> tuple[SuiteCost, ...]:
    """Value against cost of each suite, the most expensive first; `only`: caught by no other suite of that commit."""
    bad: dict[tuple[str, str], set[tuple[str, str]]] = {}
    groups: dict[tuple[str, str, str], list[RunFact]] = {}
    for run in runs:
        groups.setdefault((run.repository, run.level, run.suite), []).append(run)
        if run.outcome in _CATCHES:
            bad.setdefault((run.repository, run.commit), set()).add((run.level, run.suite))
    costs = []
    for (repository, level, suite), mine in groups.items():
        caught = {run.commit for run in mine if run.outcome in _CATCHES and not run.trunk}
        costs.append(
            SuiteCost(
                repository=repository,
                level=level,
                suite=suite,
                runs=len(mine),
                gpu_hours=sum(run.gpu_seconds for run in mine) / 3600,
                hours=sum(run.seconds for run in mine) / 3600,
                caught=len(caught),
                only=sum(len(bad[repository, commit]) == 1 for commit in caught),
                escaped=len({run.commit for run in mine if run.outcome in _CATCHES and run.trunk}),
                wasted=sum(run.outcome in _WASTE for run in mine),
            )
        )
    return tuple(sorted(costs, key=lambda c: (-c.gpu_hours, -c.hours, c.repository, c.level, c.suite)))


@dataclass(frozen=True, slots=True)
class Facts:
    """What the doctor looked at. The texts of `store`, `redis` and `github` are "" where all is well."""

    store: str = ""
    redis: str = ""
    github: str = ""
    parked: tuple[JobFact, ...] = ()
    stale: tuple[JobFact, ...] = ()
    jobs: Mapping[str, int] | None = None
    waiting_since: datetime | None = None
    ingests: tuple[IngestFact, ...] = ()
    unanswered: tuple[str, ...] = ()
    waiting_labels: Mapping[str, datetime] | None = None
    seen_labels: Mapping[str, datetime] | None = None
    sick_runners: Mapping[str, str] | None = None
    last_delivery: datetime | None = None
    costs: tuple[SuiteCost, ...] = ()
    gpu_budgets: tuple[BudgetFact, ...] = ()


def diagnose(
    *, facts: Facts, now: datetime, ingest_after: timedelta, late: timedelta = timedelta(minutes=5)
) -> tuple[Finding, ...]:
    """What is wrong; nothing where all is well. `late` is how long work may wait, `ingest_after` how old upstream."""
    found = [
        Finding(kind, kind.value, text, mend)
        for kind, text, mend in (
            (FindingKind.STORE, facts.store, "look at GRAFT_DATABASE_URL, the disk and the database's own log"),
            (FindingKind.REDIS, facts.redis, "look at GRAFT_REDIS_URL; work goes on without it, only later"),
            (FindingKind.GITHUB, facts.github, "look at GRAFT_APP_ID, GRAFT_PRIVATE_KEY and GRAFT_GITHUB_API"),
        )
        if text
    ]
    for job in facts.parked:
        text = f"given up after {job.attempts} tries: {_first_line(job.error)}"
        found.append(Finding(FindingKind.PARKED, job.name, text, f"mend the cause, then graft doctor --retry {job.id}"))
    for job in facts.stale:
        if now - job.since > late:
            text = f"its worker is silent since {_time(job.since)} and no other took it over"
            found.append(Finding(FindingKind.STALE_LEASE, job.name, text, "start `graft worker`"))
    if facts.waiting_since is not None and now - facts.waiting_since > late:
        text = f"the oldest job is due since {_time(facts.waiting_since)}"
        found.append(Finding(FindingKind.NO_WORKER, "jobs", text, "start `graft worker`, or more of them"))
    found += _ingests(facts.ingests, now, ingest_after)
    found += [
        Finding(FindingKind.UNANSWERED, where, "a command was accepted and not answered", "look at the worker's log")
        for where in facts.unanswered
    ]
    mend = "a maintainer says `/gpu-budget <area> add=<hours>`, or raises gpu_hours_per_month in .github/graft.yml"
    found += [
        Finding(FindingKind.GPU_BUDGET, f"{one.repository} {one.area}", f"used up this month: {one.text}", mend)
        for one in facts.gpu_budgets
        if one.spent
    ]
    return (*found, *_runners(facts, now, late))


def _ingests(ingests: Sequence[IngestFact], now: datetime, after: timedelta) -> list[Finding]:
    found = []
    for one in ingests:
        last = one.good_at or one.known_since
        if last is not None and now - last > after:
            read = f"since {_time(one.good_at)}" if one.good_at else "ever"
            why = f": {_first_line(one.error)}" if one.error else ""
            text = f"upstream was not read {read}{why}"
            found.append(Finding(FindingKind.INGEST, one.repository, text, "look at the worker's log and upstream"))
    return found


def _runners(facts: Facts, now: datetime, late: timedelta) -> list[Finding]:
    seen = facts.seen_labels or {}
    found = []
    for label, since in sorted((facts.waiting_labels or {}).items()):
        last = seen.get(label)
        if now - since > late and (last is None or now - last > late):
            heard = f"last heard of at {_time(last)}" if last else "none was ever heard of"
            text = f"runs wait since {_time(since)} for a runner with this label; {heard}"
            found.append(Finding(FindingKind.NO_RUNNER, label, text, f"start `graft runner` with the label {label}"))
    for name, said in sorted((facts.sick_runners or {}).items()):
        found.append(Finding(FindingKind.SICK_RUNNER, name, _first_line(said), "look at that machine"))
    return found


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0][:300] or "no reason was kept"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
