"""A fork under the gate, with branch protection on, and runs that end as a test says, without a runner."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.clients.store.models import Run, RunState
from bot.core.types import Level, Outcome
from bot.core.validation import Gpu, ManifestCheck, Measurement, Report, Subject, TestOutcome, TestResult
from tests.handlers.pair import FORK, Clone, Files, Pair, pair

GATE = "graft/gate"
PEOPLE = {
    "maria": "admin",
    "mark": "maintain",
    "olga": "write",
    "tina": "read",
    "walter": "write",
    "rita": "read",
    "sam": "none",
}
CONFIG = """
upstream: {repository: up/pkg}
mode: act
default_owner: mark
areas:
  core: {paths: [lib/**], owners: [olga, acme/compilers]}
  docs: {paths: [docs/**], owners: [walter]}
validation:
  l1:
    - {suite: unit, area: core}
    - {suite: side, area: docs}
  l2:
    - {suite: speed, harness: command, run: [speed], area: core, metrics: [ms],
       budget: {default: {regression: 3%, better: lower}}}
  l3:
    - {suite: model, area: core, metrics: [ne], manual: true, budget: {default: {max: 0.9}}}
gate:
  rules:
    - {paths: [lib/**], levels: [l1, l3], areas: [core]}
  trunk_red_blocks: [docs]
"""


def _nothing(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
    fork.commit("Our own", {"lib/code.txt": "one\n", "docs/text.txt": "one\n", "other.txt": "one\n"})


class Gated:
    """The pair, and short words for what people, runners and the clock do."""

    def __init__(self, world: Pair) -> None:
        self.world = world

    async def start(self, *, merge_queue: bool = False) -> None:
        """Install the App; main is protected by the gate."""
        sandbox = self.world.sandbox
        sandbox.create_team("acme", "compilers", ["tina"])
        sandbox.protect(FORK, "main", {GATE: self.world.app.id}, merge_queue=merge_queue)
        self.world.install()
        await self.world.settle()

    async def opens(self, login: str, branch: str, files: Files, *, body: str = "", base: str = "main") -> int:
        """A person's pull request; gives its number once all is settled."""
        self.world.fork.get(str(self.world.repository.path), base)
        self._commit(login, branch, files)
        pull = await self.world.sandbox.as_user(login).open_pull(FORK, branch, title=branch, body=body)
        await self.world.settle()
        return int(pull["number"])

    async def pushes(self, login: str, branch: str, files: Files, *, settle: bool = True) -> str:
        """One more commit on a branch."""
        self.world.sandbox.advance(1)  # GitHub tells seconds: what comes within one has no order
        self.world.fork.get(str(self.world.repository.path), branch)
        sha = self._commit(login, branch, files)
        if settle:
            await self.world.settle()
        return sha

    def _commit(self, login: str, branch: str, files: Files) -> str:
        clone = self.world.fork
        sha = clone.commit(f"Change {branch}", files, author=f"{login} <{login}@acme.example>")
        self.world.sandbox.push_ref(FORK, branch, source=clone.path, rev=sha, login=login)
        return sha

    async def sets(self, files: Files) -> None:
        """Change trunk, past the gate, as an administrator may."""
        self.world.fork_commits("Set up anew", files, login="maria")
        await self.world.settle()

    def head(self, number: int) -> str:
        return str(self.world.repository.issues[number].pull.head_sha)

    def check(self, sha: str, name: str = GATE) -> Any:
        """The newest check of that name at a commit."""
        found = [run for run in self.world.repository.check_runs.values() if (run.head_sha, run.name) == (sha, name)]
        return max(found, key=lambda run: int(run.id), default=None)

    def gate(self, number: int) -> str:
        """What the gate says now: allow, pending or block, with the reason."""
        return self.gate_at(self.head(number))

    def gate_at(self, sha: str) -> str:
        run = self.check(sha)
        if run is None:
            return "none"
        word = str(run.title).partition(":")[0]
        expected = {
            "allow": ("completed", "success"),
            "block": ("completed", "failure"),
            "pending": ("in_progress", None),
        }
        assert (run.status, run.conclusion) == expected[word], (run.status, run.conclusion, run.title)
        return f"{run.title}\n{run.text}"

    async def waiting(self, number: int | None, level: str | None = None) -> list[Run]:
        store = self.world.context.store
        found = [r for r in await store.runs(FORK, level=level) if r.number == number and r.state is not RunState.DONE]
        return sorted(found, key=lambda run: run.suite)

    async def ends(
        self,
        number: int | None,
        *suites: str,
        level: str = "l1",
        settle: bool = True,
        sha: str | None = None,
        **how: Any,
    ) -> list[str]:
        """All waiting runs of that pull request (None: trunk) and level, or the named ones, come to an end."""
        world = self.world
        ended = []
        for run in await self.waiting(number, level):
            if (suites and run.suite not in suites) or sha not in (None, run.sha):
                continue
            report = report_of(run, **how)
            await world.context.store.finish_run(
                run.id, outcome=report.outcome.value, report=report.model_dump(mode="json"), now=world.context.now()
            )
            kind, key = ("triage", "trunk") if number is None else ("results", f"#{number}")
            await world.ask(kind, key, {"number": number, "sha": run.sha})
            ended.append(run.suite)
        if settle:
            await world.settle()
        return ended

    async def sweep(self) -> None:
        """One sweep, and all that it asks for."""
        await self.world.ask("sweep")
        await self.world.settle()

    async def proved(self, number: int) -> None:
        """L1 and L2 pass, with trunk measured."""
        await self.ends(number)
        await self.world.says("maria", number, "/validate l2")
        await self.ends(None, level="l2", measured={"ms": [100.0]})
        await self.ends(number, level="l2", measured={"ms": [101.0]})


def report_of(
    run: Run,
    *,
    outcome: Outcome = Outcome.PASSED,
    failed: Sequence[str] = (),
    missing: Sequence[str] = (),
    passed: Sequence[str] = ("tests/test_all.py::test_fine",),
    measured: Mapping[str, Sequence[float]] | None = None,
    gpu: str = "",
    reason: str = "",
) -> Report:
    """The report of a run that went so."""
    if outcome is Outcome.PASSED and (failed or missing):
        outcome = Outcome.FAILED if failed else Outcome.OMITTED
    tests = [TestResult(id=test, outcome=TestOutcome.FAILED, message=f"E  {test} broke") for test in failed]
    tests += [TestResult(id=test, outcome=TestOutcome.PASSED) for test in passed]
    report = Report(
        run_id=run.id,
        subject=Subject(repository=run.repository, commit=run.sha, base=run.base),
        level=Level(run.level),
        suite=run.suite,
        harness="pytest",
        started_at=run.queued_at,
        finished_at=run.queued_at,
        outcome=outcome,
        reason=reason,
        tests=tuple(tests),
        manifest=ManifestCheck(expected=len(tests) + len(missing), reported=len(tests), missing=tuple(missing)),
        measurements=tuple(
            Measurement(metric=name, samples=tuple(samples)) for name, samples in (measured or {}).items()
        ),
    )
    if gpu:
        environment = report.environment.model_copy(update={"gpus": (Gpu(index=0, model=gpu),)})
        report = report.model_copy(update={"environment": environment})
    return report


@asynccontextmanager
async def gated(root: Path, *, config: str = CONFIG, merge_queue: bool = False) -> AsyncIterator[Gated]:
    """The fork, served, its main branch protected, the App installed and settled."""
    async with pair(root, make=_nothing, config=config, people=PEOPLE) as world:
        fork = Gated(world)
        await fork.start(merge_queue=merge_queue)
        yield fork
