"""Other CI of trunk on GitHub: its runs become runs of the named suites, by event or by the sweep, each once."""

from __future__ import annotations

import io
import zipfile
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.core.types import Outcome
from tests.handlers.pair import FORK
from tests.handlers.trunk import BOOM, CONFIG, Trunk, trunk

OTHER = (
    CONFIG.partition("triage:")[0]
    + """
triage:
  bisect: manual
  other_ci:
    - {suite: nightly, workflow: tests.yml, artifacts: ["junit-*"], area: core}
    - {suite: bots, checks: ["buildbot/*"], area: docs}
"""
)
A, B = "tests/core/test_all.py::test_a", "tests/core/test_all.py::test_b"


def junit(red: dict[str, str], green: list[str]) -> bytes:
    """A zip with the JUnit file of these tests."""
    cases = []
    for test, text in [*red.items(), *((test, "") for test in green)]:
        file, _, name = test.partition("::")
        bad = f"<failure><![CDATA[{text}]]></failure>" if text else ""
        where = file.removesuffix(".py").replace("/", ".")
        cases.append(f'<testcase classname="{where}" name="{name}">{bad}</testcase>')
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../results/junit.xml", f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
        archive.writestr("core.1234", b"\0" * 1000)
    return out.getvalue()


async def ran(t: Trunk, sha: str, conclusion: str, artifacts: dict[str, bytes], *, heard: bool = True) -> Any:
    """A run of the workflow ends at a commit; nobody hears of it but by the sweep where not `heard`."""
    sandbox = t.world.sandbox
    if not heard:
        return sandbox.add_workflow_run(FORK, "tests.yml", sha, conclusion=conclusion, artifacts=artifacts)
    run = sandbox.add_workflow_run(FORK, "tests.yml", sha, status="in_progress")
    sandbox.end_workflow_run(FORK, run.id, conclusion=conclusion, artifacts=artifacts)
    await t.world.settle()
    return run


async def heard(t: Trunk, suite: str) -> list[tuple[str, str]]:
    """What is stored of a suite, oldest first: commit and outcome."""
    runs = await t.world.context.store.trunk_runs(FORK)
    return [(run.sha, run.outcome) for run in reversed(runs) if run.suite == suite]


async def test_a_workflows_results_open_and_close_a_breakage(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=OTHER) as t:
        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        bad = await t.moves("Choose another layout", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        await ran(t, good, "success", {"junit-linux": junit({}, [A, B]), "logs": b"no zip"})
        broken = await ran(t, bad, "failure", {"junit-linux": junit({A: BOOM.format(line=3, what="f16")}, [B])})
        (issue,) = t.issues()
        assert issue.title == "Trunk is broken: ValueError: no layout for f16 (nightly)"
        assert "area:core" in issue.labels and issue.assignees == ["olga"]
        assert f"last seen passing at `{good[:10]}`" in issue.body
        assert "it changes lib/layout.py, which the failure names" in issue.body
        assert f"gh run rerun {broken.id} --repo acme/pkg" in issue.body
        assert "what runs in other CI can't be searched" in await t.world.says("maria", issue.number, "/bisect nightly")

        # it failed and left nothing, passed and left nothing, was cancelled, ran for a pull request: none says a thing
        sandbox = t.world.sandbox
        quiet = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        gone = await ran(t, quiet, "failure", {"junit-linux": junit({}, [A])}, heard=False)
        for artifact in t.world.repository.artifacts.values():
            artifact.expired = artifact.expired or artifact.run_id == gone.id
        await ran(t, quiet, "failure", {"junit-linux": b"PK\x05 no zip"}, heard=False)
        await ran(t, quiet, "success", {"logs": b"x"}, heard=False)
        await ran(t, quiet, "cancelled", {"junit-linux": junit({}, [A, B])}, heard=False)
        sandbox.add_workflow_run(
            FORK, "tests.yml", quiet, event="pull_request", artifacts={"junit-linux": junit({}, [A, B])}
        )
        sandbox.add_workflow_run(FORK, "tests.yml", quiet, status="in_progress")
        for _ in range(2):
            await t.fork.sweep()
        told = [outcome for sha, outcome in await heard(t, "nightly") if sha == quiet]
        assert sorted(told) == sorted([Outcome.FAILED, Outcome.FAILED, Outcome.OMITTED, Outcome.CANCELLED])
        assert [issue.state for issue in t.issues()] == ["open"], "neither a second issue nor a proof"
        dashboard = t.world.dashboard().body
        assert "Other CI: 3 runs of the last day tell no cause" in dashboard

        # the second attempt passes: its own results count, not those that the first one left
        run = await ran(t, await t.moves("Mend it", {"lib/layout.py": "x = 1\n"}), "failure",
                        {"junit-linux": junit({A: BOOM.format(line=5, what="f16")}, [B])})  # fmt: skip
        await t.world.sandbox.as_user("maria").request("POST", f"/repos/{FORK}/actions/runs/{run.id}/rerun")
        run.created_at += timedelta(seconds=1)
        sandbox.end_workflow_run(FORK, run.id, conclusion="success")
        await t.world.settle()
        assert (await heard(t, "nightly"))[-1] == (run.head_sha, Outcome.OMITTED)
        mended = await t.moves("Mend it more", {"lib/layout.py": "x = 2\n"})
        await ran(t, mended, "success", {"junit-linux": junit({}, [A, B])})
        assert [issue.state for issue in t.issues()] == ["closed"]
        assert await t.world.failures() == []


async def test_the_checks_of_another_app_count_by_name(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=OTHER) as t:
        sandbox = t.world.sandbox
        builder = sandbox.create_app("buildbot", {"checks": "write", "metadata": "read"}, [])
        client = sandbox.as_app(sandbox.install(builder, [FORK]))

        async def says(sha: str, conclusion: str, summary: str = "", name: str = "buildbot/linux") -> None:
            body = {"name": name, "head_sha": sha, "status": "completed", "conclusion": conclusion}
            await client.request(
                "POST", f"/repos/{FORK}/check-runs", {**body, "output": {"title": name, "summary": summary}}
            )
            await t.world.settle()

        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await says(good, "success")
        await says(good, "failure", "whatever", name="lint")  # not named in the file
        bad = await t.moves("Break the build", {"lib/build.cpp": "int x = foo;\n"})
        await says(bad, "failure", "lib/build.cpp:1:9: error: use of undeclared identifier 'foo'")
        (issue,) = t.issues()
        assert "undeclared identifier" in issue.title and "area:docs" in issue.labels
        assert f"last seen passing at `{good[:10]}`" in issue.body and "lib/build.cpp" in issue.body
        assert {suite for suite in ("bots", "lint") if await heard(t, suite)} == {"bots"}
        assert all(name != "graft/l1" for name, _ in await heard(t, "bots"))

        # a branch's checks say nothing of trunk
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})
        await says(t.fork.head(number), "success")
        assert t.issues()[0].state == "open"

        mended = await t.moves("Mend the build", {"lib/build.cpp": "int x = 1;\n"})
        await says(mended, "success")
        assert t.issues()[0].state == "closed"
        assert await t.world.failures() == []


async def test_what_the_app_may_not_read_is_said(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=OTHER) as t:
        installed = t.world.sandbox.state.installations[t.world.installation]
        permissions = dict(installed.permissions)
        installed.permissions.pop("actions")
        t.world.sandbox.faults.expire_tokens()
        await t.fork.sweep()
        assert "Other CI can't be read" in t.world.dashboard().body
        installed.permissions.update(permissions)
        t.world.sandbox.faults.expire_tokens()
        await t.fork.sweep()
        assert "Other CI can't be read" not in t.world.dashboard().body
        assert await t.world.failures() == []
