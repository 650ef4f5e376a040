"""The search for a culprit on the sandbox: on trunk, into a bundle, with runs that end as the truth has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.context import RunState
from bot.core.bisect import Record
from bot.core.triage.searching import Hunt
from bot.core.turns import Turn
from bot.core.types import Disposition, Level, Outcome
from bot.core.validation import TestOutcome, TestResult
from handlers.failing import trunk_reports
from handlers.fork import open_fork
from handlers.trunk import read_before
from handlers.validate import Target, start_level
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.trunk import BOOM, CONFIG, Trunk, trunk

A = "tests/core/test_all.py::test_a"


def _builds(sha: str) -> bool:
    return False


async def let_run(
    t: Trunk, broken: Callable[[str], bool], *, rounds: int = 60, crash: int = -1, dead: Callable[[str], bool] = _builds
) -> int:
    """Waiting runs of trunk end by the truth until none waits; the `crash`th is the machine's, `dead` don't build."""
    count = 0
    for _ in range(rounds):
        waiting = await t.fork.waiting(None)
        if not waiting:
            return count
        for run in waiting:
            red = run.suite == "unit" and broken(run.sha)
            word = TestOutcome.FAILED if red else TestOutcome.PASSED
            tests: tuple[TestResult, ...] = (
                TestResult(id=A, outcome=word, message=BOOM.format(line=count, what="f16") if red else ""),
            )
            outcome = Outcome.FAILED if red else Outcome.PASSED
            if run.suite == "unit" and count == crash:
                outcome, tests = Outcome.INFRA, ()
            log = ""
            if run.suite == "unit" and dead(run.sha):
                outcome, tests, log = Outcome.FAILED, (), "ninja: build stopped: subcommand failed."
            count += run.suite == "unit"
            report = report_of(run).model_copy(update={"tests": tests, "outcome": outcome, "log_tail": log})
            await t.world.context.store.finish_run(
                run.id, outcome=outcome.value, report=report.model_dump(mode="json"), now=t.world.context.now()
            )
        await t.world.ask("triage", "trunk", {"number": None, "sha": waiting[0].sha})
        await t.world.settle()
    raise AssertionError("the search never ends")


async def test_a_search_finds_the_commit_and_then_the_upstream_commit_inside_it(tmp_path: Path) -> None:
    config = CONFIG.replace("bisect: manual", "bisect: auto")
    async with trunk(tmp_path, config=config) as t:
        world = t.world
        start = world.fork_commits("Start", {"docs/text.txt": "two\n"}, login="maria")
        await world.settle()
        await t.told(start, green=[A])
        await t.told(start, "side", green=["docs/t.py::d"])

        # a squashed bundle of five upstream commits, of which the third breaks
        picks = [world.upstream_commits(f"up{n}", f"Upstream {n}", {f"lib/up{n}.txt": f"{n}\n"}) for n in range(5)]
        body = "\n".join(f"(cherry picked from commit {sha})" for sha in picks)
        before = [world.fork_commits(f"Own {n}", {f"lib/own{n}.txt": f"{n}\n"}, login="maria") for n in range(3)]
        bundle = world.fork_commits(
            f"Take in five\n\n{body}", {f"lib/up{n}.txt": f"{n}\n" for n in range(5)}, login="maria"
        )
        after = [world.fork_commits(f"Late {n}", {f"lib/late{n}.txt": f"{n}\n"}, login="maria") for n in range(2)]
        world.fork.time += 1
        await world.ingest()

        def broken(sha: str) -> bool:
            return bool(world.context.mirror(FORK).read_file(sha, "lib/up2.txt"))

        await let_run(t, broken, crash=2)
        (issue,) = t.issues("open")
        text = issue.body.split("### The search for the culprit")[1].split("<!-- graft:end search -->")[0]
        assert f"On trunk it came with `{bundle[:10]}`" in text
        assert f"**Culprit:** upstream `{picks[2][:10]}`" in text
        assert "`/rollback`" in text
        assert "state:culprit-known" in issue.labels
        assert not any(sha[:10] in text for sha in (*before, *after))

        # said again, it is refused or begun; stopped, it ends
        answer = await world.says("walter", issue.number, "/bisect unit")
        assert "The search begins" in answer
        assert "state:bisecting" in t.issues()[0].labels
        assert "is running already" in await world.says("walter", issue.number, "/bisect unit")
        assert "The search ends" in await world.says("walter", issue.number, "/bisect stop")
        assert "stopped by walter" in t.issues()[0].body
        assert "no suite or test of this breakage" in await world.says("walter", issue.number, "/bisect other")
        assert "may not" in await world.says("rita", issue.number, "/bisect unit")
        assert await world.failures() == []


WIDE = CONFIG.replace("bisect: manual", "bisect: auto, runs_per_search: 80") + (
    "ingest: {bundle: {max_commits: 90, max_files: 150}}\n"
)


def holds(t: Trunk, path: str) -> Callable[[str], bool]:
    """Whether a commit's tree has the file."""
    return lambda sha: bool(t.world.context.mirror(FORK).read_file(sha, path))


async def test_what_a_search_runs_is_no_word_of_trunks(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        world = t.world
        good = await t.moves("Good", {"lib/code.txt": "1\n"})
        await t.told(good, green=[A])
        await t.told(good, "side", green=["docs/t.py::d"])
        bad = await t.moves("Bad", {"lib/code.txt": "2\n"})
        await t.told(bad, red={A: BOOM.format(line=1, what="f16")})
        await t.told(bad, "side", green=["docs/t.py::d"])
        (issue,) = t.issues("open")
        red = t.fork.check(bad, "graft/l1")
        assert red.conclusion == "failure"
        await world.says("walter", issue.number, "/bisect unit")
        steps = [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH]
        assert {(run.sha, run.suite) for run in steps} == {(good, "unit"), (bad, "unit")}
        # a flake: it passes at the bad end
        for run in steps:
            await t.told(run.sha, green=[A])
        fork = await open_fork(world.context, world.scope)
        (value,) = await trunk_reports(fork, Level.L1, "unit")
        assert value.run_id not in {run.id for run in steps}
        assert (await fork.note("trunk") or {})["green"] == good
        assert t.fork.check(bad, "graft/l1").conclusion == "failure"


async def test_a_search_begins_with_what_trunks_own_runs_told_before(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Good", {"lib/code.txt": "0\n"})
        for n in range(1, 4):
            await t.told(good, green=[A])
            await t.told(good, "side", green=["docs/t.py::d"])
            good = await t.moves(f"Good {n}", {"lib/code.txt": f"{n}\n"})
        await t.told(good, green=[A])
        bad = await t.moves("Bad", {"lib/code.txt": "9\n"})
        await t.told(bad, red={A: BOOM.format(line=1, what="f16")})
        (issue,) = t.issues("open")
        await t.world.says("walter", issue.number, "/bisect unit")
        (row,) = await t.world.context.store.breakages(FORK)
        hunt = Hunt.of(row.data)
        assert hunt is not None
        assert hunt.record == Record(passes=4)
        # the runs of the search itself are no record, and the next search has as much of one
        steps = [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH]
        assert {run.sha for run in steps} == {good, bad}
        await t.told(good, green=[A])
        fork = await open_fork(t.world.context, t.world.scope)
        ended = [run for run in await t.world.context.store.runs(FORK) if run.state is RunState.DONE]
        before = await read_before(fork, good, ended, level="l1", series="unit")
        assert len(before) == 4


async def test_a_search_ends_where_its_runs_took_too_long(tmp_path: Path) -> None:
    config = CONFIG.replace("bisect: manual", "bisect: manual, runner_time_per_search: 90m")
    async with trunk(tmp_path, config=config) as t:
        world, store = t.world, t.world.context.store
        good = await t.moves("Good", {"lib/code.txt": "1\n"})
        await t.told(good, green=[A])
        await t.told(good, "side", green=["docs/t.py::d"])
        bad = await t.moves("Bad", {"lib/code.txt": "2\n"})
        await t.told(bad, red={A: BOOM.format(line=1, what="f16")})
        (issue,) = t.issues("open")
        await world.says("walter", issue.number, "/bisect unit")
        steps = [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH]
        for run in steps:
            await store.lease_run(run.id, "r", world.context.now(), 7200)
        world.clock.forward(hours=1)
        for run in steps:
            red = {A: BOOM.format(line=1, what="f16")} if run.sha == bad else {}
            await t.told(run.sha, red=red, green=[] if red else [A])
        text = t.issues("open")[0].body
        assert "**Inconclusive** after 2 runs of at most 40" in text
        assert "more runner time: its runs took 2.0 hours" in text


async def test_the_one_of_sixty_in_a_squash_is_named_and_taken_back_alone(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=WIDE) as t:
        world = t.world
        ours = world.fork_commits("Start", {"lib/both.txt": "ours\n", "docs/text.txt": "two\n"}, login="maria")
        await world.settle()
        await t.told(ours, green=[A])
        await t.told(ours, "side", green=["docs/t.py::d"])
        # two of the sixty meet the fork's own text, two do not build by themselves, the one in the middle breaks
        picks = []
        for n in range(60):
            files = {f"lib/up{n}.txt": f"{n}\n"}
            if n in (9, 30):
                files = {"lib/both.txt": f"theirs {n}\n"}
            picks.append(world.upstream.commit(f"Upstream {n} (#{900 + n})", files))
        world.sandbox.push_ref("up/pkg", "main", source=world.upstream.path)
        body = "\n".join(f"(cherry picked from commit {sha})" for sha in picks)
        files = {f"lib/up{n}.txt": f"{n}\n" for n in range(60) if n not in (9, 30)} | {"lib/both.txt": "by hand\n"}
        bundle = world.fork_commits(f"Take in sixty\n\n{body}", files, login="maria")
        world.fork_commits("Late", {"lib/late.txt": "1\n"}, login="maria")
        await world.ingest()

        def dead(sha: str) -> bool:
            # 20 needs 21: with one of them alone nothing builds
            return holds(t, "lib/up20.txt")(sha) != holds(t, "lib/up21.txt")(sha)

        count = await let_run(t, holds(t, "lib/up36.txt"), dead=dead)
        (issue,) = t.issues("open")
        text = issue.body.split("### The search for the culprit")[1]
        assert f"**Culprit:** upstream `{picks[36][:10]}`" in text
        assert f"On trunk it came with `{bundle[:10]}`" in text
        assert "which takes in 60 upstream commits" in text
        assert f"Skipped: upstream `{picks[9][:10]}`, `{picks[30][:10]}` do not apply by themselves" in text
        assert f"`/rollback` here opens the pull request that takes just upstream `{picks[36][:10]}` back" in text
        assert count <= 45

        assert "may not" in await world.says("walter", issue.number, "/rollback")
        assert "Name one upstream commit" in await world.says("maria", issue.number, f"/rollback {picks[3][:10]}")
        answer = await world.says("maria", issue.number, "/rollback")
        (pull,) = [pull for pull in world.pulls() if "Roll back" in pull.title]
        assert f"#{pull.number} takes just upstream" in answer
        assert f"Fixes #{issue.number}" in pull.body
        assert f"#{pull.number}" in await world.says("maria", issue.number, f"/rollback {picks[36][:10]}")  # once
        changed = world.git("diff", "--name-status", "main", f"refs/pull/{pull.number}/head").splitlines()
        assert changed == ["D\tlib/up36.txt"]
        await t.fork.ends(pull.number)
        await world.merge(pull.number, "squash")
        await world.ingest()
        found = {n: (await world.entry(sha)).disposition for n, sha in enumerate(picks)}
        assert {n for n, word in found.items() if word is not Disposition.PICKED} == {36}
        assert found[36] is Disposition.REVERTED
        assert await world.failures() == []


@pytest.mark.parametrize("method", ["merge", "rebase"])
async def test_a_bundle_of_grafts_that_landed_otherwise(tmp_path: Path, method: str) -> None:
    async with trunk(tmp_path, config=WIDE) as t:
        world = t.world
        start = world.fork_commits("Start", {"docs/text.txt": "two\n"}, login="maria")
        await world.settle()
        await t.told(start, green=[A])
        await t.told(start, "side", green=["docs/t.py::d"])
        picks = [world.upstream.commit(f"Upstream {n} (#{n + 1})", {f"lib/up{n}.txt": f"{n}\n"}) for n in range(9)]
        world.sandbox.push_ref("up/pkg", "main", source=world.upstream.path)
        await world.ingest()
        number = world.pull_with(picks[5]).number
        await t.fork.ends(number)
        await world.merge(number, method)
        world.fork_commits("Late", {"lib/late.txt": "1\n"}, login="maria")
        await world.settle()
        await let_run(t, holds(t, "lib/up5.txt"))
        (issue,) = t.issues("open")
        text = issue.body.split("### The search for the culprit")[1]
        named = f"upstream `{picks[5][:10]}`"
        assert named in text.split("**Culprit:**")[1].split(",  with")[0]
        assert ("On trunk it came with" in text) is (method == "merge")
        for where, said in ((issue.number, "/rollback"), (number, f"/rollback {picks[5][:10]}")):
            answer = await world.says("maria", where, said)
            (pull,) = [pull for pull in world.pulls() if "Roll back" in pull.title]
            assert f"#{pull.number} takes just {named} back" in answer
        changed = world.git("diff", "--name-status", "main", f"refs/pull/{pull.number}/head").splitlines()
        assert changed == ["D\tlib/up5.txt"]
        await t.fork.ends(pull.number)
        await world.merge(pull.number, "squash")
        await world.ingest()
        found = [(await world.entry(sha)).disposition for sha in picks]
        assert [n for n, word in enumerate(found) if word is not Disposition.PICKED] == [5]
        assert found[5] is Disposition.REVERTED
        assert await world.failures() == []


SPEED = "    - {suite: speed, area: core, budget: {default: {regression: 3%, better: lower}}}\n"
FAST = CONFIG.replace("gate:\n", f"  l2:\n{SPEED}gate:\n")


async def measure(t: Trunk, slow: Callable[[str], bool], *, rounds: int = 60) -> int:
    """All waiting runs of the suite end with a time: on machines up to a fifth apart, 6 % more where it is slow."""
    count = 0
    for _ in range(rounds):
        waiting = [run for run in await t.fork.waiting(None) if run.suite == "speed"]
        if not waiting:
            return count
        machine = 100 + count * 7 % 20
        for run in waiting:
            count += 1
            value = machine * (1.06 if slow(run.sha) else 1.0) * (1 + (count * 7919 % 11 - 5) / 1000)
            report = report_of(run, measured={"ms": [value]})
            outcome = Outcome.INFRA if count == 7 else report.outcome
            await t.world.context.store.finish_run(
                run.id, outcome=outcome.value, report=report.model_dump(mode="json"), now=t.world.context.now()
            )
        await t.world.ask("triage", "trunk", {"number": None, "sha": waiting[0].sha})
        await t.world.settle()
    raise AssertionError("the search never ends")


async def test_the_commit_that_made_a_metric_worse(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=FAST) as t:
        world = t.world
        shas = [world.fork_commits(f"Own {n}", {f"lib/own{n}.txt": f"{n}\n"}, login="maria") for n in range(9)]
        await world.settle()
        fork = await open_fork(world.context, world.scope)
        board = world.dashboard().number
        slow = holds(t, "lib/own5.txt")
        assert "has no run of `speed`" in await world.says("walter", board, "/bisect speed#ms")
        for sha in (shas[0], shas[8]):
            (run,) = await start_level(fork, Target(sha, sha), Level.L2)
            report = report_of(run, measured={"ms": [106.0 if slow(sha) else 100.0]})
            await world.context.store.finish_run(
                run.id, outcome="passed", report=report.model_dump(mode="json"), now=world.context.now()
            )
        assert "did not measure" in await world.says("walter", board, "/bisect speed#qps")
        assert "no suite" in await world.says("walter", board, "/bisect other#ms")
        assert "The search begins over 8 commits" in await world.says("walter", board, "/bisect speed#ms")
        assert "is running already" in await world.says("walter", board, "/bisect speed#ms")
        assert {run.turn for run in await t.fork.waiting(None) if run.suite == "speed"} == {Turn.SEARCH}
        count = await measure(t, slow)
        told = next(text for text in world.comments(board) if "### What moved `ms` of `speed`" in text)
        assert f"**Culprit:** `{shas[5][:10]}`, with" in told
        assert "% confidence" in told
        assert count <= 40
        # what was measured on the way is no value of trunk's
        assert len(await trunk_reports(fork, Level.L2, "speed")) == 2

        assert "The search begins" in await world.says("walter", board, "/bisect speed#ms")
        assert "The search ends" in await world.says("walter", board, "/bisect stop speed#ms")
        told = next(text for text in world.comments(board) if "### What moved" in text)
        assert "stopped by walter" in told
        assert "No search is running" in await world.says("walter", board, "/bisect stop speed#ms")
        assert await world.failures() == []
