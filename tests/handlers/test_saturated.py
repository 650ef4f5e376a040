"""A suite that is proved twice: both must pass, and where they disagree it is said in the comment, check and gate."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.clients.store import Run, Runner, RunState
from bot.core.dispatched import artifact_of
from bot.core.types import Outcome
from bot.core.validation import RunRequest
from handlers.elsewhere import NOTE
from handlers.runner import Refusal, lease
from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG, Gated, gated, report_of

T, U = "t/test_a.py::test_t", "t/test_a.py::test_u"
POOL = CONFIG.replace("{suite: unit, area: core}", "{suite: unit, area: core, second: {runner: [mi350]}}")
FLOW = CONFIG.replace(
    "{suite: unit, area: core}", "{suite: unit, area: core, harness: command, run: [x], second: {workflow: gpu.yml}}"
)
WORKFLOW = """\
on:
  workflow_dispatch:
    inputs:
      graft_run: {required: true}
      commit: {required: true}
      level: {required: true}
      suite: {required: true}
run-name: graft ${{ inputs.graft_run }}
"""


async def runs(fork: Gated, number: int, capacity: str | None = "second") -> list[Run]:
    return await fork.world.context.store.runs(FORK, number=number, capacity=capacity)


async def ends_again(fork: Gated, number: int, **how: Any) -> None:
    """The suite's run on the second capacity comes to an end."""
    for run in await runs(fork, number):
        if run.state is not RunState.DONE:
            report = report_of(run, **how)
            await fork.world.context.store.finish_run(
                run.id,
                outcome=report.outcome.value,
                report=report.model_dump(mode="json"),
                now=fork.world.context.now(),
            )
    await fork.world.ask("results", f"#{number}", {"number": number})
    await fork.world.settle()


async def test_a_disagreement_is_its_own_finding(tmp_path: Path) -> None:
    async with gated(tmp_path, config=POOL) as fork:
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        (second,) = await runs(fork, number)
        assert (second.label, second.suite, second.request["suite"]["second"]) == ("mi350", "unit", None)
        await fork.ends(number, passed=[T, U])
        assert fork.gate(number).startswith("pending") and "unit is queued" in fork.gate(number)
        await ends_again(fork, number, passed=[U], failed=[T])
        check = fork.check(fork.head(number), "graft/l1")
        assert (check.conclusion, check.title) == ("failure", "L1 disagreed")
        assert "unit disagreed: t/test_a.py::test_t (passed on default, failed on mi350)" in fork.gate(number)
        comment = "\n".join(fork.world.comments(number))
        assert "its two runs of this commit disagree about 1 test" in comment
        await fork.world.says("walter", number, "/retry")
        unfinished = [r for r in await runs(fork, number, None) if r.state is not RunState.DONE]
        assert {(r.suite, r.capacity) for r in unfinished} == {("unit", ""), ("unit", "second")}
        await fork.ends(number, passed=[T, U])
        await ends_again(fork, number, passed=[T, U])
        assert fork.gate(number).startswith("allow")
        # the day after, what it cost is on the dashboard
        assert "What each suite cost" not in fork.world.dashboard().body
        fork.world.clock.forward(days=1)
        await fork.world.ask("dashboard")
        await fork.world.settle()
        assert "| l1 `unit` | 4 |" in fork.world.dashboard().body.partition("What each suite cost")[2]


# a workflow of GitHub Actions ----------------------------------------------------------------------------------------


def zipped(**files: str | bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


class Flow:
    """A pull request whose suite is proved once more by a workflow."""

    def __init__(self, fork: Gated, number: int) -> None:
        self.fork, self.number, self.world = fork, number, fork.world

    async def run(self) -> Run:
        (run, *_) = await runs(self.fork, self.number)
        return run

    async def request(self) -> RunRequest:
        run = await self.run()
        return RunRequest.model_validate(run.request).model_copy(update={"attempt": run.attempt})

    async def started(self) -> list[Any]:
        """The workflow's runs for this pull request."""
        ids = {run.id for run in await runs(self.fork, self.number)}
        found = self.world.repository.workflow_runs.values()
        return [run for run in found if str(run.inputs.get("graft_run", "")).rpartition("-")[0] in ids]

    async def noted(self) -> dict[str, Any]:
        """What is known of the workflow's runs for this pull request."""
        ids = {run.id for run in await runs(self.fork, self.number)}
        note = await self.world.context.store.note(self.world.installation, FORK, NOTE) or {}
        return {key: value for key, value in note.items() if key in ids}

    async def report(self, **how: Any) -> dict[str, Any]:
        run = await self.run()
        report = report_of(run, **how).model_dump(mode="json")
        local = {"run_id": "local-unit-1", "subject": {**report["subject"], "repository": "local/pkg"}}
        local["manifest"] = {**report["manifest"], "canary": True}
        return {"level": "l1", "commit": run.sha, "outcome": report["outcome"], "reports": [{**report, **local}]}

    async def ends(self, conclusion: str = "success", *, name: str | None = None, **files: str | bytes) -> Run:
        """The workflow's newest run ends with an artifact of these files (none: without one)."""
        name = name or artifact_of(await self.request())
        artifacts = {name: zipped(**files)} if files else None
        newest = (await self.started())[-1]
        self.world.sandbox.end_workflow_run(FORK, newest.id, conclusion=conclusion, artifacts=artifacts)
        await self.world.settle()  # the event of its end is enough
        return await self.run()

    async def look(self) -> None:
        await self.world.ask("elsewhere")
        await self.world.settle()


@asynccontextmanager
async def flow(tmp_path: Path, config: str = FLOW) -> AsyncIterator[Flow]:
    async with gated(tmp_path, config=config) as fork:
        await fork.sets({".github/workflows/gpu.yml": WORKFLOW})
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        yield Flow(fork, number)


async def test_a_workflow_is_started_once_and_known_by_its_id(tmp_path: Path) -> None:
    async with flow(tmp_path) as one:
        run = await one.run()
        (started,) = await one.started()
        assert run.state is RunState.LEASED and run.runner == "GitHub Actions gpu.yml"
        assert started.inputs == {"graft_run": f"{run.id}-1", "commit": run.sha, "level": "l1", "suite": "unit"}
        assert started.head_branch == "main"  # the workflow is trunk's, never the pull request's
        await one.look()
        assert len(await one.started()) == 1
        await one.fork.ends(one.number)
        assert one.fork.gate(one.number).startswith("pending")
        runner = Runner(name="r", token_hash="r", labels=("default", "github-actions:gpu.yml"))
        with pytest.raises(Refusal) as refused:  # it is no runner's, whatever labels it says it has
            await lease(one.world.context, runner, run.id)
        assert refused.value.status == 410
        ended = await one.ends(report__json=json.dumps(await one.report()))
        assert (ended.outcome, ended.attempt) == (Outcome.PASSED, 1)
        assert one.fork.gate(one.number).startswith("allow")
        assert await one.noted() == {}


async def test_two_dispatches_race_and_each_is_known_by_its_own_id(tmp_path: Path) -> None:
    """C82: the newest run is another's; one that nobody told the id of is found by its name alone."""
    async with flow(tmp_path) as one:
        run = await one.run()
        mine = (await one.started())[0]
        store, installation = one.world.context.store, one.world.installation
        await store.put_note(installation, FORK, NOTE, {}, one.world.context.now())  # GitHub told no id, or it got lost
        other = one.world.sandbox.add_workflow_run(
            FORK,
            "gpu.yml",
            mine.head_sha,
            event="workflow_dispatch",
            artifacts={f"graft-{run.id}-1": zipped(report__json="{}")},
        )
        other.title = f"graft {run.id}-11"
        one.world.sandbox.end_workflow_run(
            FORK, mine.id, artifacts={f"graft-{run.id}-1": zipped(report__json=json.dumps(await one.report()))}
        )
        await one.look()
        assert (await one.run()).outcome == Outcome.PASSED


RED = """<testsuite name="s" tests="1" failures="1">
<testcase classname="t.test_a" name="test_t"><failure message="no"/></testcase></testsuite>"""


async def test_a_red_workflow_disagrees_with_a_green_runner(tmp_path: Path) -> None:
    async with flow(tmp_path) as one:
        await one.fork.ends(one.number, passed=[T])
        ended = await one.ends("failure", commit=(await one.run()).sha, junit__xml=RED)
        assert ended.outcome == Outcome.FAILED
        assert (
            "unit disagreed: t/test_a.py::test_t (passed on default, failed on github-actions:gpu.yml)"
            in one.fork.gate(one.number)
        )


async def test_what_proves_nothing_is_infra_never_green(tmp_path: Path) -> None:
    """Another's artifact, a report that the workflow's own end belies, an expired artifact, a run that is gone: each is
    tried again under an id of its own.
    """
    async with flow(tmp_path, FLOW.replace("harness: command,", "harness: command, retries: 3,")) as one:
        await one.fork.ends(one.number)
        run = await one.ends(name="graft-another-1", report__json=json.dumps(await one.report()))
        assert (run.attempt, run.outcome) == (2, None)
        run = await one.ends("failure", report__json=json.dumps(await one.report()))
        assert (run.attempt, run.outcome) == (3, None)
        newest = (await one.started())[-1]
        one.world.sandbox.end_workflow_run(FORK, newest.id, artifacts={f"graft-{run.id}-3": zipped(commit=run.sha)})
        for artifact in one.world.repository.artifacts.values():
            artifact.expired = True
        await one.look()
        run = await one.run()
        assert (run.attempt, run.state) == (4, RunState.LEASED)
        started = await one.started()
        assert [other.title for other in started] == [f"graft {run.id}-{n}" for n in (1, 2, 3, 4)]
        del one.world.repository.workflow_runs[started[-1].id]
        await one.look()
        run = await one.run()
        assert run.outcome == Outcome.INFRA
        assert run.report is not None and "was deleted" in run.report["reason"]
        assert one.fork.gate(one.number).startswith("block")
        assert "unit says nothing: infra" in one.fork.gate(one.number)


async def test_results_left_over_from_an_earlier_run_prove_nothing(tmp_path: Path) -> None:
    """A self-hosted machine still holds yesterday's file, and the workflow uploads it beside today's commit."""
    async with flow(tmp_path, FLOW.replace("harness: command,", "harness: command, retries: 2,")) as one:
        await one.fork.ends(one.number)
        now, commit = one.world.context.now(), (await one.run()).sha

        def junit(at: datetime) -> str:
            cases = "".join(f'<testcase classname="t.test_a" name="{name}"/>' for name in ("test_t", "test_u"))
            return f'<testsuite name="pytest" tests="2" timestamp="{at.isoformat()}">{cases}</testsuite>'

        run = await one.ends(commit=commit, junit__xml=junit(now - timedelta(days=1)))
        assert (run.attempt, run.outcome) == (2, None)
        said = await one.report()
        said["reports"][0]["started_at"] = (now - timedelta(days=1)).isoformat()
        run = await one.ends(report__json=json.dumps(said))
        assert (run.attempt, run.outcome) == (3, None)
        assert one.fork.gate(one.number).startswith("pending")
        run = await one.ends(commit=commit, junit__xml=junit(now + timedelta(minutes=1)))
        assert run.outcome == Outcome.PASSED
        assert one.fork.gate(one.number).startswith("allow")


async def test_what_nobody_waits_for_is_cancelled_on_github(tmp_path: Path) -> None:
    async with flow(tmp_path) as one:
        first, old = (await one.started())[0], one.fork.head(one.number)
        await one.fork.pushes("walter", "small", {"other.txt": "three\n"})
        voided = [run for run in await runs(one.fork, one.number, None) if run.sha == old and run.suite == "unit"]
        assert {(run.capacity, run.outcome) for run in voided} == {("", "cancelled"), ("second", "cancelled")}
        assert (first.status, first.conclusion) == ("completed", "cancelled")
        second = (await one.started())[-1]
        assert second.status == "queued"
        one.world.clock.forward(hours=7)  # the suite's deadline has passed
        await one.world.ask("expire_runs")
        await one.world.settle()
        await one.look()
        assert (await one.run()).outcome == Outcome.INFRA
        assert (second.status, second.conclusion) == ("completed", "cancelled")
        assert "GitHub Actions gpu.yml is silent" in one.fork.check(one.fork.head(one.number), "graft/l1").summary


async def test_a_workflow_that_github_does_not_start_is_said(tmp_path: Path) -> None:
    async with gated(tmp_path, config=FLOW) as fork:
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        (run,) = await runs(fork, number)
        assert (run.outcome, run.attempt) == (Outcome.INFRA, 2)
        assert run.report is not None and "GitHub did not start gpu.yml on main: Not Found" in run.report["reason"]


async def test_a_dispatch_of_unknown_effect_is_found_by_its_name(tmp_path: Path) -> None:
    async with flow(tmp_path) as one:
        fault = one.world.sandbox.faults.fail("bad_gateway_after_write", method="POST", path=r"/dispatches$")
        await one.fork.pushes("walter", "small", {"other.txt": "three\n"})
        assert fault.hits == 1
        run = await one.run()
        assert run.state is RunState.LEASED
        assert len([r for r in (await one.started()) if f"{run.id}-1" in (r.title or "")]) == 1
        ended = await one.ends(report__json=json.dumps(await one.report()))
        assert (ended.outcome, ended.attempt) == (Outcome.PASSED, 1)
