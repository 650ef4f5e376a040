"""A trunk of 500 commits with planted regressions, flakes, broken builds, machines' storms, overlaps and masks.

    python benchmarks/triage_trunk.py [--commits 500] [--seed 1] [--late 0.15] [--json]

Every report goes through the same pure core as the bot's: signature, digest, survey, suspects. Reports come late and
out of order. Prints what was planted, what was found, and how long one look takes; exit status 1 where a planted cause
has not exactly one breakage with its area and owner, or a breakage has no planted cause.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bot.core.config import Config
from bot.core.owners import owners_of
from bot.core.triage import (
    Candidate,
    Change,
    Digest,
    Finding,
    Kind,
    Known,
    Remembered,
    State,
    Trunk,
    areas_of_cause,
    digest,
    rank,
    survey,
    words_of,
)
from bot.core.types import Level, Outcome
from bot.core.validation import ManifestCheck, Report, Subject, TestOutcome, TestResult

FEWEST = 101  # commits: what is planted keeps away from both ends
WINDOW = 300
AREAS = ("core", "layouts", "kernels", "tlx")
NOW = datetime(2026, 11, 29, tzinfo=UTC)
CONFIG = Config.of(
    {
        "upstream": {"repository": "up/pkg"},
        "areas": {
            area: {"paths": [f"tests/{area}/**", f"lib/{area}/**"], "owners": [f"owner-of-{area}"]} for area in AREAS
        },
        "validation": {"l1": [{"suite": f"suite-{area}", "area": area} for area in AREAS]},
    }
)
TEXTS = (
    'Traceback (most recent call last):\n  File "/ci/{host}/lib/{area}/pass_{n}.py", line {line}, in run_{word}\n'
    "    check(x)\nValueError: the {word} pass does not know this layout",
    "/ci/{host}/lib/{area}/Lower{n}.cpp:{line}:3: error: '{word}.load' op operand #0 must be a tensor",
    "python: /ci/{host}/lib/{area}/File{n}.cpp:{line}: void {word}Pass::run(): Assertion `{word}Count == 1' failed.",
    'Traceback (most recent call last):\n  File "/ci/{host}/lib/{area}/m{n}.py", line {line}, in get_{word}\n'
    "    return table[key]\nKeyError: '{word}_stages'",
)
_WORDS = (
    "swizzle pipeline coalesce prefetch reduce broadcast transpose gather scatter barrier warp predicate hoist "
    "unroll interleave descriptor multicast cluster epilogue mainloop scale quant rotary softmax"
)
WORDS = _WORDS.split()
STORMS = (
    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
    "error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly: CANCEL (err 8)",
)


@dataclass
class Planted:
    """A cause: which tests fail from which commit to which (exclusive); a flake fails at its rate."""

    name: str
    kind: str
    area: str
    text: str
    tests: list[str]
    first: int
    last: int
    rate: float = 1.0
    word: str = ""
    n: int = 0
    signature: str = ""
    seen: list[int] = field(default_factory=list)

    def strikes(self, at: int, random_: random.Random) -> bool:
        return self.first <= at < self.last and random_.random() < self.rate

    def says(self, random_: random.Random) -> str:
        return self.text.format(
            host=f"agent{random_.randint(1, 40)}",
            line=random_.randint(10, 900),
            area=self.area,
            n=self.n,
            word=self.word,
        )


@dataclass
class Row:
    """A breakage as the store keeps it."""

    state: State
    finding: Finding
    areas: tuple[str, ...]
    opened: int
    changes: Counter[str] = field(default_factory=Counter)
    closed_at: str | None = None
    suspects: tuple[str, ...] = ()
    bounds: tuple[str | None, str | None] = (None, None)


class Simulation:
    """The trunk, its runs, and the bot's memory of it."""

    def __init__(self, commits: int, seed: int, late: float) -> None:
        if commits < FEWEST:
            raise SystemExit(f"--commits {commits}: what is planted needs at least {FEWEST}")
        self.random = random.Random(seed)
        self.late = late
        self.order = [f"{n:040x}" for n in range(1, commits + 1)]
        self.tests = {a: [f"tests/{a}/test_{a}.py::test_{k}[{p}]" for k in range(12) for p in range(5)] for a in AREAS}
        self.planted = list(self._plant(commits))
        self.storms = [self.random.randrange(commits) for _ in range(max(4, commits // 40))]
        self.candidates = [self._candidate(n) for n in range(commits)]
        self.digests: list[Digest] = []
        self.rows: dict[str, Row] = {}
        self.looks: list[float] = []

    def _plant(self, commits: int) -> Iterator[Planted]:
        words = iter(WORDS)
        for n in range(12):
            area = AREAS[n % 4]
            first = self.random.randrange(20, commits - 40)
            length = self.random.choice((8, 20, 60, commits))
            tests = self.random.sample(self.tests[area], self.random.choice((1, 3, 20)))
            yield Planted(
                f"regression {n}", "regression", area, TEXTS[n % 4], tests, first, first + length, word=next(words), n=n
            )
        for n in range(12, 18):
            area = AREAS[n % 4]
            tests = self.random.sample(self.tests[area], 1)
            rate = self.random.choice((0.1, 0.2, 0.3))
            yield Planted(f"flake {n}", "flaky", area, TEXTS[n % 4], tests, 10, commits, rate, next(words), n)
        for n in range(18, 21):
            area = AREAS[n % 4]
            first = self.random.randrange(30, commits - 40)
            yield Planted(f"build {n}", "build", area, TEXTS[1], [], first, first + 6, word=next(words), n=n)
        for n in range(21, 24):  # some of these hide behind a regression in the same tests, or hide one
            area = AREAS[n % 4]
            tests = self.random.sample(self.tests[area], 2)
            first = self.random.randrange(40, commits - 60)
            yield Planted(
                f"overlap {n}", "regression", area, TEXTS[n % 4], tests, first, first + 25, word=WORDS[n], n=n
            )

    def _candidate(self, at: int) -> Candidate:
        """A commit: what brings a planted cause touches its file and name; others touch anything."""
        brought = [p for p in self.planted if p.first == at and p.kind != "flaky"]
        files = [f"lib/{self.random.choice(AREAS)}/other_{self.random.randrange(50)}.py"]
        words = {self.random.choice(WORDS) for _ in range(2)}
        for one in brought:
            files.append(f"lib/{one.area}/pass_{one.n}.py")
            words |= set(words_of(one.text.format(host="h", line=1, area=one.area, n=one.n, word=one.word)))
        if at % 9 == 4 and not brought:
            files = ["docs/notes.md"]
        return Candidate(self.order[at], f"commit {at}", files=tuple(files), words=frozenset(words))

    def run(self) -> None:
        waiting: list[tuple[int, Digest]] = []
        for at in range(len(self.order)):
            for area in AREAS:
                if self.random.random() < 0.75:  # not every suite runs at every commit
                    delay = self.random.randint(1, 6) if self.random.random() < self.late else 0
                    waiting.append((at + delay, self._digest(at, area)))
            due = [one for when, one in waiting if when <= at]
            waiting = [(when, one) for when, one in waiting if when > at]
            self.random.shuffle(due)
            self.digests += due
            self._look(at)
        self.digests += [one for _, one in waiting]
        self._look(len(self.order) - 1)

    def _digest(self, at: int, area: str) -> Digest:
        report = self.report(at, area)
        sha, suite, outcome = report.subject.commit, report.suite, report.outcome
        return digest(run=report.run_id, sha=sha, level=Level.L1, suite=suite, outcome=outcome, report=report)

    def report(self, at: int, area: str, *, when: int | None = None) -> Report:
        """A run of the area's suite at that commit, while trunk stood at commit `when` (None: at this one)."""
        suite, sha = f"suite-{area}", self.order[at]
        results: dict[str, TestResult] = {}
        now = at if when is None else when
        storm = any(start <= now < start + 3 for start in self.storms) and self.random.random() < 0.6
        outcome, tail = Outcome.PASSED, ""
        missing: tuple[str, ...] = ()
        build = next(
            (p for p in self.planted if p.kind == "build" and p.area == area and p.strikes(at, self.random)), None
        )
        if storm and self.random.random() < 0.5:
            outcome = Outcome.INFRA
        elif build is not None:
            build.seen.append(at)
            outcome, tail, missing = Outcome.FAILED, build.says(self.random), tuple(self.tests[area])
        else:
            for test in self.tests[area]:
                results[test] = TestResult(id=test, outcome=TestOutcome.PASSED)
            for one in self.planted:
                if one.area == area and one.kind != "build" and one.strikes(at, self.random):
                    for test in one.tests:
                        if results[test].outcome is TestOutcome.PASSED:
                            message = one.says(self.random)
                            results[test] = TestResult(id=test, outcome=TestOutcome.FAILED, message=message)
                            if not one.seen or one.seen[-1] != at:
                                one.seen.append(at)
            if storm:
                for test in self.random.sample(self.tests[area], 3):
                    if results[test].outcome is TestOutcome.PASSED:
                        text = self.random.choice(STORMS)
                        results[test] = TestResult(id=test, outcome=TestOutcome.FAILED, message=text)
            if any(result.outcome.bad for result in results.values()):
                outcome = Outcome.FAILED
        return Report(
            run_id=f"{sha[-8:]}-{area}",
            subject=Subject(repository="o/n", commit=sha),
            level=Level.L1,
            suite=suite,
            harness="pytest",
            started_at=NOW,
            finished_at=NOW,
            outcome=outcome,
            tests=tuple(results.values()),
            manifest=ManifestCheck(expected=60, reported=len(results), missing=missing),
            log_tail=tail,
            exit_code=0 if outcome is Outcome.PASSED else 1,
        )

    def _look(self, at: int) -> None:
        begun = time.perf_counter()
        order = self.order[max(0, at + 1 - WINDOW) : at + 1]
        trunk = Trunk(order, self.digests)
        remembered = {
            signature: Remembered(
                Known(
                    signature,
                    frozenset(row.finding.red),
                    row.finding.first_red,
                    row.finding.after,
                    row.state is State.FLAKY,
                ),
                row.state,
                row.closed_at,
            )
            for signature, row in self.rows.items()
        }
        for verdict in survey(trunk, remembered):
            finding, state = verdict.finding, verdict.step.state
            assert state is not None
            row = self.rows.get(finding.signature)
            if row is None:
                failures = trunk.failures(finding.signature).values()
                files = {failure.test.split("::")[0] for failure in failures if "::" in failure.test}
                suites = {test.suite for test in finding.tests}
                row = Row(state, finding, areas_of_cause(CONFIG, suites=suites, files=files), at)
                self.rows[finding.signature] = row
            row.changes[verdict.step.change.value] += 1
            row.changes[state.value] += 1
            row.state, row.finding = state, finding
            if verdict.step.change is Change.FIXED:
                row.closed_at = finding.ended or finding.last_red
            bounds = (finding.after, finding.first_red)
            if finding.after in trunk.at and finding.first_red in trunk.at and bounds != row.bounds:
                span = range(self.order.index(finding.after or "") + 1, self.order.index(finding.first_red or "") + 1)
                texts = [failure.message for failure in trunk.failures(finding.signature).values()]
                ranked = rank(
                    candidates=[self.candidates[n] for n in span], tests=[t.id for t in finding.red], texts=texts[:5]
                )
                if verdict.step.change in (Change.OPENED, Change.NONE):
                    row.suspects, row.bounds = tuple(one.sha for one in ranked), bounds
        self.looks.append(time.perf_counter() - begun)


def judge(simulation: Simulation) -> dict[str, Any]:
    """What was found of what was planted."""
    found: dict[str, list[str]] = {}
    stray = []
    for signature in simulation.rows:
        failures = [f for one in simulation.digests for f in one.failures if f.signature == signature]
        text = " ".join(failure.message for failure in failures[:3])
        owners = [p for p in simulation.planted if _is_of(p, text)]
        if len(owners) == 1:
            found.setdefault(owners[0].name, []).append(signature)
        else:
            stray.append(signature)
    seen = [p for p in simulation.planted if p.seen]
    once = [p for p in seen if len(found.get(p.name, [])) == 1]
    rows = {p.name: simulation.rows[found[p.name][0]] for p in once}
    regressions = [p for p in once if p.kind != "flaky"]
    at = {sha: n for n, sha in enumerate(simulation.order)}
    inside = [p for p in regressions if _within(rows[p.name], p, at)]
    top = [p for p in regressions if rows[p.name].suspects[:1] == (simulation.order[p.first],)]
    ended = [p for p in once if p.kind != "flaky" and p.last < len(simulation.order) - 40]
    closed = [p for p in ended if rows[p.name].state in (State.FIXED, State.FLAKY)]
    hidden = [p for p in ended if p not in closed and rows[p.name].finding.elsewhere]
    flakes = [p for p in once if p.kind == "flaky" and len(p.seen) >= 6]
    called = [p for p in flakes if rows[p.name].changes[State.FLAKY.value]]
    mistaken = [p for p in regressions if rows[p.name].finding.kind is Kind.FLAKY and p.rate == 1]
    return {
        "commits": len(simulation.order),
        "runs": len(simulation.digests),
        "planted": dict(Counter(p.kind for p in simulation.planted)),
        "planted and seen failing": len(seen),
        "with exactly one breakage": len(once),
        "breakages": len(simulation.rows),
        "breakages without a planted cause": len(stray),
        "right area": sum(rows[p.name].areas == (p.area,) for p in once),
        "right owner": sum(owners_of(rows[p.name].areas[0], CONFIG) == (f"owner-of-{p.area}",) for p in once),
        "regressions": len(regressions),
        "culprit among the suspects": len(inside),
        "culprit the first suspect": len(top),
        "ended ones": len(ended),
        "ended ones closed": len(closed),
        "ended ones open: their tests fail by others": len(hidden),
        "flakes failing six times or more": len(flakes),
        "called flaky": len(called),
        "regressions called flaky at the end": len(mistaken),
        "milliseconds a look, median": round(1000 * sorted(simulation.looks)[len(simulation.looks) // 2], 1),
        "milliseconds a look, worst": round(1000 * max(simulation.looks), 1),
        "missed": [p.name for p in seen if p not in once],
    }


def _is_of(planted: Planted, text: str) -> bool:
    word = planted.word
    return any(mark in text for mark in (f" {word} ", f"'{word}.", f"{word}Pass", f"'{word}_"))


def _within(row: Row, planted: Planted, at: dict[str, int]) -> bool:
    after, first = row.bounds
    return after is not None and first is not None and at[after] < planted.first <= at[first]


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--late", type=float, default=0.15, help="share of reports that come up to six commits late")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    simulation = Simulation(options.commits, options.seed, options.late)
    simulation.run()
    told = judge(simulation)
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        for name, value in told.items():
            print(f"{name:44} {value}")
    whole = told["with exactly one breakage"] == told["planted and seen failing"]
    right = told["right area"] == told["right owner"] == told["with exactly one breakage"]
    return 0 if whole and right and not told["breakages without a planted cause"] else 1


if __name__ == "__main__":
    sys.exit(main())
