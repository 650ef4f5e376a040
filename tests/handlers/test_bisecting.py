"""The search for a culprit on the sandbox: on trunk, into a bundle, with runs that end as the truth has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from bot.core.types import Outcome
from bot.core.validation import TestOutcome, TestResult
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.trunk import BOOM, CONFIG, Trunk, trunk

A = "tests/core/test_all.py::test_a"


async def let_run(t: Trunk, broken: Callable[[str], bool], *, rounds: int = 60, crash: int = -1) -> int:
    """All waiting runs of trunk end by the truth until none waits; the `crash`th of them is the machine's."""
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
            count += run.suite == "unit"
            report = report_of(run).model_copy(update={"tests": tests, "outcome": outcome})
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
        text = issue.body.split("### The search for the culprit")[1]
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
