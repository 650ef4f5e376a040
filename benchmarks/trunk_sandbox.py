"""The simulated trunk of triage_trunk.py on the sandbox: real git, real issues, real searches. And a burst's requests.

    python benchmarks/trunk_sandbox.py [--commits 500] [--seed 1] [--json]
    python benchmarks/trunk_sandbox.py --burst 2000 [--causes 12] [--json]

The first pushes commit after commit to a fork under Graft, lets runs end as planted (some late, some out of order, some
the machine's) and answers every run that a search asks for by the truth. Exit 1 where a planted cause has not exactly
one issue with its area and owner, a wrong commit is accused, or an issue has no planted cause. The second lets one run
report many failures at once and counts requests by the minute, with no pause between writes, as is the default; exit 1
where there are more issues than causes, or more of anything in a minute than GitHub's secondary limits allow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sized
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import structlog

from benchmarks.triage_trunk import AREAS, Planted, Simulation, _is_of
from bot.context import Breakage
from bot.core.triage.searching import Hunt, Standing
from bot.core.types import Level, Outcome
from bot.core.validation import Report, TestOutcome, TestResult
from handlers.fork import FORK as TRUNK
from handlers.fork import open_fork
from handlers.triage import triage
from handlers.validate import Target, start_level
from tests.handlers.pair import FORK
from tests.handlers.runs import Gated, gated, report_of

OWNERS = dict(zip(AREAS, ("olga", "walter", "tina", "rita"), strict=True))
POINTS, CREATED = 900, 80  # GitHub's secondary limits by the minute: points (reads 1, writes 5), new things
CONFIG = f"""
upstream: {{repository: up/pkg}}
mode: act
default_owner: mark
areas:
{"".join(f"  {area}: {{paths: [tests/{area}/**, lib/{area}/**], owners: [{OWNERS[area]}]}}{chr(10)}" for area in AREAS)}
validation:
  l1:
{"".join(f"    - {{suite: suite-{area}, area: {area}}}{chr(10)}" for area in AREAS)}
triage: {{searches_per_day: 1000}}
"""


class Trunk:
    """The fork on the sandbox, moved by the simulation."""

    def __init__(self, fork: Gated, simulation: Simulation, *, progress: bool) -> None:
        self.fork, self.simulation, self.progress = fork, simulation, progress
        self.context, self.world = fork.world.context, fork.world
        self.looks: list[float] = []
        self.searched = 0
        self.at: dict[str, int] = {}

    async def run(self) -> None:
        simulation = self.simulation
        self.world.app.webhook_url = None  # each look is asked for below
        late: list[tuple[int, str, Report]] = []
        for at in range(len(simulation.order)):
            sha = self._commit(at)
            opened = await open_fork(self.context, self.world.scope)
            await opened.fetch_fork()
            assert await asyncio.to_thread(opened.git.resolve, TRUNK) == sha
            chosen = [area for area in AREAS if simulation.random.random() < 0.75]
            for run in await start_level(
                opened, Target(sha, sha), Level.L1, suites=tuple(f"suite-{area}" for area in chosen)
            ):
                delay = simulation.random.randint(1, 6) if simulation.random.random() < simulation.late else 0
                late.append((at + delay, run.id, self._report(run.id, sha, run.suite, at)))
            due = [one for one in late if one[0] <= at]
            late = [one for one in late if one[0] > at]
            simulation.random.shuffle(due)
            await self._ends([(run_id, report) for _, run_id, report in due])
            await self._look(at)
            self.world.clock.forward(minutes=40)
            if self.progress and at % 25 == 24:
                print(f"{at + 1} commits, {self.searched} runs of searches", file=sys.stderr)
        await self._ends([(run_id, report) for _, run_id, report in late])
        await self._look(len(simulation.order) - 1)

    def _commit(self, at: int) -> str:
        planned = self.simulation.candidates[at]
        words = " ".join(sorted(planned.words))
        files = dict.fromkeys(planned.files, f"# {at}\n{words}\n")
        sha: str = self.world.fork.commit(planned.subject, files, author="maria <maria@acme.example>")
        self.world.sandbox.push_ref(FORK, "main", source=self.world.fork.path, login="maria")
        self.simulation.order[at], self.at[sha] = sha, at
        return sha

    def _report(self, run_id: str, sha: str, suite: str, now: int) -> Report:
        said = self.simulation.report(self.at[sha], suite.removeprefix("suite-"), when=now)
        subject = said.subject.model_copy(update={"repository": FORK})
        return said.model_copy(update={"run_id": run_id, "subject": subject})

    async def _ends(self, ended: list[tuple[str, Report]]) -> None:
        for run_id, report in ended:
            await self.context.store.finish_run(
                run_id, outcome=report.outcome.value, report=report.model_dump(mode="json"), now=self.context.now()
            )

    async def _look(self, at: int) -> None:
        """Look after trunk, and let what searches ask for run, until they ask for nothing more."""
        while True:
            store, world = self.context.store, self.world
            job = await store.enqueue(
                "triage", "trunk", {}, installation=world.installation, repository=FORK, now=self.context.now()
            )
            begun = time.perf_counter()
            await triage(self.context, job)
            self.looks.append(time.perf_counter() - begun)
            hunts = [Hunt.of(row.data) for row in await store.breakages(FORK)]
            wanted = {(sha, hunt.suite) for hunt in hunts if hunt is not None and hunt.running for sha in hunt.shas}
            asked = [run for run in await self.fork.waiting(None) if (run.sha, run.suite) in wanted]
            asked = [run for run in asked if run.sha in self.at]
            if not asked:
                return
            self.searched += len(asked)
            await self._ends([(run.id, self._report(run.id, run.sha, run.suite, at)) for run in asked])


async def judge(trunk: Trunk) -> dict[str, Any]:
    """What stands on GitHub against what was planted."""
    simulation, world = trunk.simulation, trunk.world
    issues = [i for i in world.repository.issues.values() if i.pull is None and "trunk-breakage" in i.labels]
    rows: dict[int | None, Breakage] = {row.number: row for row in await trunk.context.store.breakages(FORK)}
    found: dict[str, list[Any]] = {}
    stray = []
    for issue in issues:
        text = str(rows[issue.number].data["message"])
        owners = [planted for planted in simulation.planted if _is_of(planted, text)]
        if len(owners) == 1:
            found.setdefault(owners[0].name, []).append(issue)
        else:
            stray.append(issue.title)
    seen = [planted for planted in simulation.planted if planted.seen]
    once = [planted for planted in seen if len(found.get(planted.name, [])) == 1]
    issue_of = {planted.name: found[planted.name][0] for planted in once}
    steady = [planted for planted in once if planted.kind != "flaky"]
    named = {planted.name: _accused(rows[issue_of[planted.name].number]) for planted in once}
    truth = {planted.name: simulation.order[planted.first] for planted in once}
    right = [planted for planted in steady if named[planted.name] == (truth[planted.name],)]
    among = [p for p in steady if len(named[p.name]) > 1 and truth[p.name] in named[p.name]]
    flakes = [planted for planted in once if planted.kind == "flaky" and _searched(rows[issue_of[planted.name].number])]
    wrong = [p for p in steady if named[p.name] and truth[p.name] not in named[p.name]] + flakes
    requests = world.sandbox.state.requests
    return {
        "commits": len(simulation.order),
        "planted": dict(Counter(planted.kind for planted in simulation.planted)),
        "planted and seen failing": len(seen),
        "with exactly one issue": len(once),
        "issues": len(issues),
        "issues without a planted cause": len(stray),
        "right area": sum(f"area:{p.area}" in issue_of[p.name].labels for p in once),
        "right owner": sum(issue_of[p.name].assignees == [OWNERS[p.area]] for p in once),
        "with a culprit that never flakes": len(steady),
        "culprit named, and right": len(right),
        "one of several that can't be told apart, right among them": len(among),
        "culprit left open": sum(not named[planted.name] for planted in steady),
        "wrong accusations": len(wrong),
        "runs that searches asked for": trunk.searched,
        "requests to GitHub": len(requests),
        "seconds a look, median": round(sorted(trunk.looks)[len(trunk.looks) // 2], 2),
        "missed": [planted.name for planted in seen if planted not in once],
        "accused wrongly": [_told(p, rows[issue_of[p.name].number], trunk.at) for p in wrong],
        "left open": [_told(p, rows[issue_of[p.name].number], trunk.at) for p in steady if not named[p.name]],
    }


def _told(planted: Planted, row: Breakage, at: dict[str, int]) -> str:
    """One wrong accusation, or none where one was due, to be looked into."""
    hunt = Hunt.of(row.data)

    def place(sha: str | None) -> int:
        return at.get(sha or "", -1)

    span = f"after {place(row.data.get('after'))} up to {place(row.data['first_bad'])}"
    suspects = [place(one["sha"]) for one in row.data.get("suspects", [])]
    how = f"search over {[place(sha) for sha in hunt.shas]} by {hunt.queued} runs" if hunt else f"suspects {suspects}"
    sure = f", {hunt.confidence:.3f} sure of {[place(sha) for sha in hunt.culprits]}: {hunt.said}" if hunt else ""
    return f"{planted.name} (rate {planted.rate}, from {planted.first}, {row.state}): {span}: {how}{sure}"


def _searched(row: Breakage) -> bool:
    hunt = Hunt.of(row.data)
    return hunt is not None and hunt.standing is Standing.CULPRIT


def _accused(row: Breakage) -> tuple[str, ...]:
    """The commits that the issue accuses: the search's, else the only one that lies between."""
    hunt = Hunt.of(row.data)
    if hunt is not None:
        return hunt.culprits if hunt.standing is Standing.CULPRIT else ()
    suspects = row.data.get("suspects", [])
    return (str(suspects[0]["sha"]),) if len(suspects) == 1 else ()


async def simulated(commits: int, seed: int, late: float) -> dict[str, Any]:
    """The whole trunk."""
    with tempfile.TemporaryDirectory() as folder:
        async with gated(Path(folder), config=CONFIG) as fork:
            trunk = Trunk(fork, Simulation(commits, seed, late), progress=sys.stderr.isatty() or commits > 100)
            await trunk.run()
            return await judge(trunk)


async def burst(failures: int, causes: int) -> dict[str, Any]:
    """One run with so many failures of so many causes."""
    with tempfile.TemporaryDirectory() as folder:
        async with gated(Path(folder), config=CONFIG) as fork:
            world = fork.world
            area = AREAS[0]
            tests = [f"tests/{area}/test_{area}.py::test_all[{n}]" for n in range(failures)]
            await _all_pass(fork, area, tests)
            sha = world.fork_commits("Break all", {f"lib/{area}/all.py": "x = 1\n"}, login="maria")
            await world.settle()
            words = [f"{chr(97 + n % 26)}{chr(97 + n // 26)}_stages" for n in range(causes)]
            red = [
                TestResult(id=test, outcome=TestOutcome.FAILED, message=f"KeyError: '{words[n % causes]}'")
                for n, test in enumerate(tests)
            ]
            (run,) = [one for one in await fork.waiting(None) if one.suite == f"suite-{area}" and one.sha == sha]
            report = report_of(run).model_copy(update={"tests": tuple(red), "outcome": Outcome.FAILED})
            await world.context.store.finish_run(
                run.id, outcome="failed", report=report.model_dump(mode="json"), now=world.context.now()
            )
            world.app.webhook_url = None  # what comes back is an echo of Graft's own writes
            requests = world.sandbox.state.requests
            requests.clear()
            samples: list[tuple[float, int]] = []
            counting = asyncio.create_task(_count(requests, samples))
            begun = time.perf_counter()
            await world.ask("triage", "trunk", {"sha": sha})
            await world.settle(rounds=600)
            seconds = time.perf_counter() - begun
            counting.cancel()
            issues = [i for i in world.repository.issues.values() if i.pull is None and "trunk-breakage" in i.labels]
            worst = _worst(samples, list(requests))
            return {
                "failures": failures,
                "causes": causes,
                "issues": len(issues),
                "requests": len(requests),
                "reads": sum(method == "GET" for method, _, _ in requests),
                "writes": sum(method != "GET" for method, _, _ in requests),
                "refused by a limit": sum(status in (403, 429) for _, _, status in requests),
                "points in the worst minute": worst["points"],
                "new things in the worst minute": worst["created"],
                "seconds": round(seconds, 1),
            }


async def _count(requests: Sized, samples: list[tuple[float, int]]) -> None:
    """Keep when so many requests had come, ten times a second."""
    while True:
        samples.append((time.monotonic(), len(requests)))
        await asyncio.sleep(0.1)


def _worst(samples: list[tuple[float, int]], requests: list[tuple[str, str, int]]) -> dict[str, int]:
    points, created, start = 0, 0, 0
    for end, (at, upto) in enumerate(samples):
        while at - samples[start][0] > 60:
            start += 1
        inside = requests[samples[start][1] : upto if end < len(samples) - 1 else len(requests)]
        points = max(points, sum(1 if method == "GET" else 5 for method, _, _ in inside))
        created = max(created, sum(method == "POST" for method, _, _ in inside))
    return {"points": points, "created": created}


async def _all_pass(fork: Gated, area: str, tests: list[str]) -> None:
    for run in await fork.waiting(None):
        passed = tests if run.suite == f"suite-{area}" else ["tests/other.py::test_fine"]
        report = report_of(run, passed=passed)
        await fork.world.context.store.finish_run(
            run.id, outcome="passed", report=report.model_dump(mode="json"), now=fork.world.context.now()
        )
    await fork.world.ask("triage", "trunk", {})
    await fork.world.settle()


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late", type=float, default=0.15, help="share of reports that come up to six commits late")
    parser.add_argument("--burst", type=int, default=0, help="so many failures in one run instead")
    parser.add_argument("--causes", type=int, default=12)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    if options.burst:
        told = asyncio.run(burst(options.burst, options.causes))
        good = told["issues"] == options.causes and not told["refused by a limit"]
        good = (
            good and told["points in the worst minute"] <= POINTS and told["new things in the worst minute"] <= CREATED
        )
    else:
        told = asyncio.run(simulated(options.commits, options.seed, options.late))
        seen = told["planted and seen failing"]
        good = told["with exactly one issue"] == told["right area"] == told["right owner"] == seen == told["issues"]
        good = good and not told["wrong accusations"]
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        for name, value in told.items():
            print(f"{name:60} {value}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
