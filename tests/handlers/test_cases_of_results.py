"""Cases of results (C33, C64, C75, C76) on the sandbox: what GitHub would take for success, and more than it takes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from bot.core.render.text import BODY_LIMIT, CHECK_LIMIT, read_block
from bot.core.types import Outcome
from bot.core.validation import Artifact, TestOutcome, TestResult
from tests.handlers.pair import FORK
from tests.handlers.runs import GATE, gated, report_of

URL = "https://artifacts.example.com/run/report.json"


async def test_c33_a_check_that_reads_as_success_proves_nothing(tmp_path: Path) -> None:
    """Another App says `graft/l1` was skipped, or was a success: the gate asks what ran, suite by suite."""
    async with gated(tmp_path) as fork:
        world, sandbox = fork.world, fork.world.sandbox
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        head = fork.head(number)
        other = sandbox.create_app("ci", {"checks": "write"}, [], None, "s", owner="maria")
        bot = sandbox.as_app(sandbox.install(other, [FORK]))
        for name in ("graft/l1", GATE):
            for conclusion in ("skipped", "neutral", "success"):
                body = {"name": name, "head_sha": head, "status": "completed", "conclusion": conclusion}
                await bot.request("POST", f"/repos/{FORK}/check-runs", body)
        await world.settle()
        await fork.sweep()
        mine = [run for run in world.repository.check_runs.values() if (run.name, run.app_id) == (GATE, world.app.id)]
        assert [(run.status, run.conclusion) for run in mine] == [("in_progress", None)]
        await fork.ends(number, "side")  # one of two suites is not the level
        assert [(run.status, run.conclusion) for run in mine] == [("in_progress", None)]
        assert "unit is queued" in mine[0].text
        await fork.ends(number, "unit")
        assert [(run.status, run.conclusion) for run in mine] == [("completed", "success")]


async def test_c75_and_c76_two_thousand_failures(tmp_path: Path) -> None:
    """The comment and the check keep GitHub's limits and say what is left out; annotations come in batches."""
    async with gated(tmp_path) as fork:
        world = fork.world
        number = await fork.opens("walter", "broken", {"other.txt": "two\n"})
        (unit,) = [run for run in await fork.waiting(number) if run.suite == "unit"]
        tests = tuple(
            TestResult(
                id=f"tests/test_{n % 7}.py::test_x[{n}]",
                outcome=TestOutcome.FAILED,
                message=f"E   KeyError: '{chr(97 + n % 26)}{chr(97 + n % 25)}_kernel'\n" + 40 * "    in a traceback\n",
                file=f"tests/test_{n % 7}.py",
                line=n + 1,
            )
            for n in range(2_000)
        )
        artifact = Artifact(name="report.json", size=9, sha256="0" * 64, url=URL)
        report = report_of(unit, outcome=Outcome.FAILED, passed=()).model_copy(
            update={"tests": tests, "artifacts": (artifact,), "repeat": "graft run l1 --suite unit"}
        )
        await world.context.store.finish_run(
            unit.id, outcome="failed", report=report.model_dump(mode="json"), now=world.context.now()
        )
        await fork.ends(number, "side")
        (comment,) = [body for body in world.comments(number) if "graft:results" in body]
        assert len(comment) <= BODY_LIMIT
        assert "2000 failed" in comment and "more not shown" in comment
        assert URL in comment and "graft run l1 --suite unit" in comment  # where the whole of it lies is not cut off
        assert comment.count("```") % 2 == 0 and comment.count("<details>") == comment.count("</details>")
        block = read_block("report", comment)
        assert block is not None and len(block["suites"][0]["failed"]) == 100
        check = fork.check(fork.head(number), "graft/l1")
        assert (check.conclusion, len(check.annotations)) == ("failure", 500)
        assert max(len(check.summary), len(check.text)) <= CHECK_LIMIT
        patches = [path for method, path, _ in world.sandbox.state.requests if method in ("PATCH", "POST")]
        assert sum(path.endswith(("/check-runs", f"/check-runs/{check.id}")) for path in patches) >= 10
        assert world.sandbox.state.violations == []
        assert fork.gate(number).startswith("block")
        assert "and 1995 more" in fork.gate(number)


async def test_c64_a_waiver_of_what_is_missing_waives_no_other_reason(tmp_path: Path) -> None:
    """The exemption of a missing test lets an omission pass, not a harness that saw nothing or an exit status."""
    gone = "tests/test_all.py::test_gone"
    async with gated(tmp_path) as fork:
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        await fork.ends(number, "side")
        day = f"{fork.world.clock() + timedelta(days=2):%Y-%m-%d}"
        words = f'/waive {gone} until={day} owner=@olga reason="known" plan="mend it next week"'
        await fork.ends(number, "unit", missing=[gone])
        assert "Waived until" in await fork.world.says("maria", number, words)
        assert fork.gate(number).startswith("allow")
        for outcome in (Outcome.FAILED, Outcome.INFRA, Outcome.TIMED_OUT):
            await fork.world.says("maria", number, "/validate l1")
            await fork.ends(number, "unit", outcome=outcome, missing=[gone])
            assert fork.gate(number).startswith("block: unit"), outcome
