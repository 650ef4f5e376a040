"""Trunk of the gated pair as triage's tests move it: commits are pushed, and their runs end as told."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bot.clients.store.models import RunState
from bot.core.types import Outcome
from bot.core.validation import TestOutcome, TestResult
from tests.handlers.pair import FORK
from tests.handlers.runs import Gated, gated, report_of

CONFIG = """
upstream: {repository: up/pkg}
mode: act
default_owner: mark
areas:
  core: {paths: [lib/**, tests/core/**], owners: [olga, acme/compilers]}
  docs: {paths: [docs/**], owners: [walter]}
validation:
  l1:
    - {suite: unit, area: core}
    - {suite: side, area: docs}
gate:
  trunk_red_blocks: [docs]
triage: {bisect: manual, remind_after: 2d, escalate_after: 4d, escalate_to: [maria, nobody-here]}
"""
BOOM = (
    'Traceback (most recent call last):\n  File "/ci/lib/layout.py", line {line}, in choose_layout\n'
    "    raise ValueError(text)\nValueError: no layout for {what}"
)


class Trunk:
    """Trunk of the gated pair: commits are pushed, and their runs end as told."""

    def __init__(self, fork: Gated) -> None:
        self.fork = fork

    @property
    def world(self) -> Any:
        return self.fork.world

    async def moves(self, subject: str, files: Mapping[str, str], *, settle: bool = True) -> str:
        """A commit on trunk; its runs wait then."""
        sha = self.world.fork_commits(subject, files, login="maria")
        if settle:
            await self.world.settle()
        return str(sha)

    async def told(
        self,
        sha: str,
        suite: str = "unit",
        *,
        red: Mapping[str, str] | None = None,
        green: Sequence[str] = (),
        settle: bool = True,
        capacity: str = "",
        **more: Any,
    ) -> None:
        """The suite's waiting run at the commit ends: which tests failed, with what text, and which passed."""
        store, world = self.world.context.store, self.world
        (run,) = [
            run
            for run in await store.runs(FORK, sha, capacity=capacity)
            if run.suite == suite and run.number is None and run.state is not RunState.DONE
        ]
        tests = [TestResult(id=test, outcome=TestOutcome.FAILED, message=text) for test, text in (red or {}).items()]
        tests += [TestResult(id=test, outcome=TestOutcome.PASSED) for test in green]
        outcome = Outcome.FAILED if red else Outcome.PASSED
        report = report_of(run).model_copy(
            update={"tests": tuple(tests), "outcome": outcome, "repeat": f"graft run l1 --suite {suite}", **more}
        )
        await store.finish_run(
            run.id, outcome=report.outcome.value, report=report.model_dump(mode="json"), now=world.context.now()
        )
        await world.ask("triage", "trunk", {"number": None, "sha": sha})
        if settle:
            await world.settle()

    def issues(self, state: str | None = None) -> list[Any]:
        """The breakages' issues, oldest first."""
        found = [i for i in self.world.repository.issues.values() if "trunk-breakage" in i.labels and i.pull is None]
        return sorted((i for i in found if state in (None, i.state)), key=lambda issue: int(issue.number))

    def comments(self, number: int) -> list[str]:
        return [comment.body for comment in self.world.repository.issues[number].comments]

    async def rows(self) -> dict[int | None, Any]:
        return {row.number: row for row in await self.world.context.store.breakages(FORK)}


@asynccontextmanager
async def trunk(root: Path, *, config: str = CONFIG) -> AsyncIterator[Trunk]:
    """The gated pair with this file of Graft's."""
    async with gated(root, config=config) as fork:
        yield Trunk(fork)


def plain(body: str, *shas: str) -> str:
    """The text without what differs from run to run."""
    for index, sha in enumerate(shas):
        body = body.replace(sha, f"<commit {index}>").replace(sha[:10], f"<commit {index}>")
    body = re.sub(r"breakage [0-9a-z]+ -->", "breakage <key> -->", body)
    body = re.sub(r'"(key|signature|opened_at|red_since)":"[^"]+"', r'"\1":"<\1>"', body)
    return re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "<time>", body)
