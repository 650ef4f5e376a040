"""Whose word opens, closes and feeds a breakage: that of trunk's own runs, and of nothing else that runs there."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import handlers
from bot.clients.store.models import Run, RunState
from bot.core.turns import Turn
from bot.core.types import Level, Outcome
from bot.core.validation import TestOutcome, TestResult
from handlers.fork import open_fork
from handlers.validate import GROUP, Target, start_level
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.trunk import BOOM, Trunk, trunk

A = "tests/core/test_all.py::test_a"
OTHERS = [(None, Turn.SEARCH), (None, Turn.COMMAND), (None, Turn.PULL), (None, Turn.GROUP), (GROUP, None), (7, None)]
CANNOT_WORK: dict[str, dict[str, Any]] = {
    "a usage error": {"exit_code": 4, "log_tail": "ERROR: file or directory not found: tests/core/test_all.py"},
    "nothing collected": {"exit_code": 5, "log_tail": "collected 0 items\n\nno tests ran in 0.01s"},
    "no build": {"exit_code": 1, "log_tail": "ninja: build stopped: subcommand failed."},
    "no such suite yet": {"exit_code": 127, "log_tail": "sh: tests/run.sh: No such file or directory"},
    "a harness that fails": {"exit_code": 3, "log_tail": "INTERNALERROR> KeyError: 'num_warps'"},
    "the machine": {"outcome": Outcome.INFRA, "reason": "no report by its deadline"},
}


async def queued(t: Trunk, sha: str, number: int | None, turn: Turn | None) -> Run:
    """A run of the suite at a commit, for somebody else than trunk."""
    fork = await open_fork(t.world.context, t.world.scope)
    target = Target(sha, sha, number)
    (run,) = await start_level(fork, target, Level.L1, suites=("unit",), again=True, turn=turn)
    return run


async def ends(t: Trunk, run: Run, red: str = "", **update: Any) -> None:
    """Its one test fails with that text, or passes; or it ends as told."""
    test = TestResult(id=A, outcome=TestOutcome.FAILED if red else TestOutcome.PASSED, message=red)
    said = {"tests": (test,), "outcome": Outcome.FAILED if red else Outcome.PASSED, **update}
    report = report_of(run).model_copy(update=said)
    await t.world.context.store.finish_run(
        run.id, outcome=report.outcome.value, report=report.model_dump(mode="json"), now=t.world.context.now()
    )
    await t.world.ask("triage", "trunk", {"number": run.number, "sha": run.sha})


async def test_what_runs_for_others_opens_closes_and_feeds_no_breakage(tmp_path: Path) -> None:
    red = BOOM.format(line=3, what="f16")
    async with trunk(tmp_path) as t:
        old = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await t.told(old, green=[A])
        between = t.world.fork_commits("Own", {"lib/own.txt": "1\n"}, login="maria")
        bad = await t.moves("Choose another layout", {"lib/layout.py": "def choose_layout():\n    pass\n"})

        # red, and unable to work, at a commit that trunk knows and at one that it never ran: no issue comes of it
        for number, turn in OTHERS:
            for sha in (old, between):
                await ends(t, await queued(t, sha, number, turn), red)
            for update in CANNOT_WORK.values():
                whole: dict[str, Any] = {"outcome": Outcome.FAILED, "tests": (), **update}
                await ends(t, await queued(t, between, number, turn), **whole)
        await t.world.settle()
        assert (t.issues(), await t.rows()) == ([], {})

        # trunk's own does, though all of them ran there
        await t.told(bad, red={A: red})
        (issue,) = t.issues("open")
        assert f"last seen passing at `{old[:10]}`" in issue.body
        told = issue.body

        # green, it closes nothing, makes nothing flaky and narrows nothing
        for number, turn in OTHERS:
            for sha in (old, between, bad):
                await ends(t, await queued(t, sha, number, turn))
        await t.world.settle()
        assert (issue.state, issue.body) == ("open", told)
        assert "state:open" in issue.labels

        # mended by trunk's own word, red it brings nothing back
        fix = await t.moves("Mend it", {"lib/layout.py": "def choose_layout():\n    return 1\n"})
        await t.told(fix, green=[A])
        assert issue.state == "closed"
        for number, turn in OTHERS:
            for sha in (between, fix):
                await ends(t, await queued(t, sha, number, turn), red)
        await t.world.settle()
        assert [issue.state for issue in t.issues()] == ["closed"]
        assert "state:fixed" in issue.labels
        infra = await t.world.context.store.note(t.world.installation, FORK, "trunk:infra")
        assert not infra, "a machine's trouble with them is none of trunk's"
        assert await t.world.failures() == []


@pytest.mark.parametrize("turn", [turn for turn in Turn if turn is not Turn.TRUNK])
async def test_trunk_is_run_for_itself_where_it_was_run_for_others(tmp_path: Path, turn: Turn) -> None:
    async with trunk(tmp_path) as t:
        world, store = t.world, t.world.context.store
        sha = world.fork_commits("Go on", {"other.txt": "three\n"})
        fork = await open_fork(world.context, world.scope)
        await fork.fetch_fork()
        at = Target(sha, sha)
        (theirs,) = await start_level(fork, at, Level.L1, suites=("unit",), turn=turn)
        (own,) = await start_level(fork, at, Level.L1, suites=("unit",))
        assert (own.turn, own.id == theirs.id) == (Turn.TRUNK, False)
        assert await start_level(fork, at, Level.L1, suites=("unit",)) == []

        # who wants the same meanwhile waits for trunk's own, which stays that, however urgent it is to others
        await store.finish_run(theirs.id, outcome="cancelled", report=None, now=world.context.now())
        assert await start_level(fork, at, Level.L1, suites=("unit",), again=True, turn=turn) == []
        kept = await store.run(own.id)
        assert kept is not None and (kept.turn, kept.state) == (Turn.TRUNK, RunState.QUEUED)


QUEUING = {"start_level", "_queue", "create_run"}
QUEUED = {
    ("arrivals.py", "rerun", "start_level", "Turn.COMMAND"): "a pull request's",
    ("bisecting.py", "_step", "start_level", "Turn.SEARCH"): "a search's",
    ("handing.py", "report", "create_run", ""): "a pull request's, by hand",
    ("gate.py", "gate_group", "start_level", ""): "a merge queue's group",
    ("measuring.py", "_ask", "_queue", ""): "a search's, by its own function",
    ("measuring.py", "_queue", "start_level", "Turn.SEARCH"): "a search's",
    ("orders.py", "retry", "start_level", "Turn.COMMAND"): "a pull request's, and trunk's numbers below it",
    ("orders.py", "validate", "start_level", "Turn.COMMAND"): "a pull request's",
    ("other_ci.py", "_keep", "create_run", "Turn.TRUNK"): "trunk's own, by other CI",
    ("repeating.py", "repeat_spoilt", "start_level", ""): "trunk's own",
    ("validate.py", "_measure_by_schedule", "start_level", ""): "trunk's own",
    ("validate.py", "_measure_trunk", "_queue", "turn"): "trunk's numbers below a pull request",
    ("validate.py", "_queue", "create_run", "turn"): "as queued",
    ("validate.py", "start_level", "_queue", "turn"): "as asked for",
    ("validate.py", "validate", "start_level", ""): "a pull request's",
    ("validate.py", "validate_trunk", "start_level", ""): "trunk's own",
}


def test_every_place_that_queues_a_run_is_known_by_what_it_is_for() -> None:
    """A new one must be decided here: whether it may speak for trunk hangs on its turn alone."""
    found = set()
    for path in Path(handlers.__path__[0]).glob("*.py"):
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.AsyncFunctionDef | ast.FunctionDef):
                continue
            turns = {
                ast.unparse(keyword.value)
                for call in ast.walk(function)
                if isinstance(call, ast.Call) and ast.unparse(call.func) == "Run"
                for keyword in call.keywords
                if keyword.arg == "turn"
            }
            for call in ast.walk(function):
                if not isinstance(call, ast.Call) or ast.unparse(call.func).rpartition(".")[2] not in QUEUING:
                    continue
                said = [ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg == "turn"]
                name = ast.unparse(call.func).rpartition(".")[2]
                found.add((path.name, function.name, name, *(said or sorted(turns) or [""])))
    assert found == set(QUEUED)
