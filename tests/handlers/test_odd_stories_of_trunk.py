"""Trunk's breakages where two CIs, two names of a suite, late reports, long texts and full days meet."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.render.text import BODY_LIMIT
from bot.core.turns import Turn
from bot.core.types import Outcome
from bot.core.validation import TestOutcome, TestResult
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.test_bisecting import holds
from tests.handlers.test_other_ci import OTHER, junit, ran
from tests.handlers.test_stories_of_trunk import BAD, FILE, A, B, C, broken, source
from tests.handlers.trunk import CONFIG, Trunk, trunk

KEY = "KeyError: 'num_warps'"


async def pull_fails(t: Trunk, number: int, test: str, text: str) -> str:
    """The pull request's suite ends with one failure; gives what is said of it there."""
    (run,) = [run for run in await t.fork.waiting(number) if run.suite == "unit"]
    tests = (TestResult(id=test, outcome=TestOutcome.FAILED, message=text),)
    report = report_of(run).model_copy(update={"tests": tests, "outcome": Outcome.FAILED})
    await t.world.context.store.finish_run(
        run.id, outcome="failed", report=report.model_dump(mode="json"), now=t.world.context.now()
    )
    await t.fork.ends(number)
    return next(text for text in t.comments(number) if "Validation of" in text)


async def test_one_cause_that_another_ci_sees_too(tmp_path: Path) -> None:
    """It has the command and the search of the suite that Graft can run, and is over once both CIs say so."""
    many = [f"tests/core/test_more.py::test_{n}" for n in range(3)]
    async with trunk(tmp_path, config=OTHER) as t:
        good = await t.moves("Say more", {FILE: source("a")})
        await ran(t, good, "success", {"junit-linux": junit({}, many)})
        await t.told(good, green=[A])
        bad = await t.moves("Choose another layout", {"lib/layout.py": "x = 1\n"})
        await ran(t, bad, "failure", {"junit-linux": junit(dict.fromkeys(many, BAD), [])})
        await t.told(bad, red={A: BAD})
        (issue,) = t.issues("open")
        assert "4 tests of `nightly`, `unit` (l1) fail on trunk" in issue.body
        assert "graft run l1 --suite unit" in issue.body and "gh run rerun" not in issue.body
        assert "The search begins" in await t.world.says("maria", issue.number, "/bisect unit")
        assert {run.suite for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH} == {"unit"}
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 2\n"})
        await t.told(fix, green=[A])
        assert issue.state == "open", "the other CI has not said yet"
        await ran(t, fix, "success", {"junit-linux": junit({}, many)})
        assert issue.state == "closed"
        assert await t.world.failures() == []


async def test_a_suite_that_gets_another_name_while_it_is_red(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        renamed = CONFIG.replace("{suite: unit,", "{suite: kernels,")
        sha = await t.moves("Another name", {".github/graft.yml": renamed})
        await t.told(sha, "kernels", red={A: BAD}, green=[B, C])
        assert (t.issues(), issue.state) == ([issue], "open")
        assert "test that trunk has no more (renamed, deleted, or its suite is not run)" in issue.body
        assert "The search begins" in await t.world.says("maria", issue.number, "/bisect kernels")
        assert {run.suite for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH} == {"kernels"}
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, "kernels", green=[A, B, C])
        assert issue.state == "closed"
        assert await t.world.failures() == []


async def test_what_comes_late_of_a_commit_that_was_mended_since(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {FILE: source("a", "b", "c")})
        await t.told(good, green=[A, B, C])
        bad = await t.moves("Break both", {"lib/layout.py": "x = 1\n"})
        also = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        fix = await t.moves("Mend both", {"lib/layout.py": "x = 2\n"})
        await t.told(bad, red={A: BAD}, green=[B, C])
        (issue,) = t.issues("open")
        await t.told(fix, green=[A, B, C])
        said = t.comments(issue.number)
        assert issue.state == "closed"
        await t.told(also, red={A: BAD, B: KEY}, green=[C])
        assert (t.issues(), issue.state, t.comments(issue.number)) == ([issue], "closed", said)
        assert await t.world.failures() == []


async def test_an_issue_that_people_filled_to_the_brim(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        full = issue.body + "\n" + "x" * (BODY_LIMIT - len(issue.body) - 1)
        await t.world.sandbox.as_user("maria").request("PATCH", f"/repos/{FORK}/issues/{issue.number}", {"body": full})
        await t.world.settle()
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        assert issue.state == "closed" and "state:fixed" in issue.labels
        assert issue.body.endswith("x" * 1_000) and len(issue.body) <= BODY_LIMIT
        assert await t.world.failures() == []


async def test_a_pull_request_fails_by_what_has_no_issue_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many broke that some wait for their issue: it is trunk's all the same, and is said to be."""
    async with trunk(tmp_path) as t:
        await broken(t, A)
        monkeypatch.setattr("handlers.triage.ISSUES_A_DAY", 1)
        t.world.sandbox.delete_issue(FORK, t.issues()[0].number)
        await t.world.settle()
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={A: BAD}, green=[B, C])
        ((number, row),) = (await t.rows()).items()
        assert (number, row.state, t.issues()) == (None, "open", [])
        pull = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})
        said = await pull_fails(t, pull, A, BAD)
        assert f"breakage {row.key}, which has no issue yet" in said
        t.world.clock.forward(days=1)
        await t.fork.sweep()
        (issue,) = t.issues("open")
        await t.world.ask("results", f"#{pull}", {"number": pull})
        await t.world.settle()
        said = next(text for text in t.comments(pull) if "Validation of" in text)
        assert f"#{issue.number}" in said and "no issue yet" not in said
        assert await t.world.failures() == []


async def test_a_crash_that_hides_what_was_broken_before(tmp_path: Path) -> None:
    """Both say so: what hides, and what is hidden; mended, it is looked at again."""
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (old,) = t.issues("open")
        crash = await t.moves("Crash", {"lib/crash.py": "x = 1\n"})
        await t.told(crash, red={B: "Fatal Python error: Segmentation fault"}, exit_code=-11)
        _, new = t.issues("open")
        await t.fork.sweep()
        assert f"tests of #{old.number} among them" in new.body
        assert f"Nothing can be known of it while it is masked by #{new.number}." in old.body
        assert old.state == "open"
        mended = await t.moves("No crash", {"lib/crash.py": "x = 2\n"})
        await t.told(mended, red={C: KEY}, green=[A, B])
        assert (old.state, new.state) == ("closed", "closed")
        (third,) = t.issues("open")
        assert f"Some of its tests stood behind #{new.number}" in third.body
        assert crash[:10] in third.body.split("### Suspects")[1], "it may be as old as what hid it"
        assert await t.world.failures() == []


async def test_who_brought_it_hears_of_it(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {FILE: source("a")})
        await t.told(good, green=[A])
        t.world.fork_commits("Own", {"lib/own.txt": "1\n"}, login="maria")
        number = await t.fork.opens("walter", "feature", {"lib/layout.py": "x = 1\n"})
        await t.fork.ends(number)
        await t.world.merge(number, "squash")
        bad = t.world.git("rev-parse", "main")
        await t.told(bad, red={A: BAD})
        (issue,) = t.issues("open")
        await t.world.says("maria", issue.number, "/bisect unit")
        for _ in range(30):
            waiting = [run for run in await t.fork.waiting(None) if run.suite == "unit"]
            if not waiting:
                break
            for run in waiting:
                red = {A: BAD} if holds(t, "lib/layout.py")(run.sha) else {}
                await t.told(run.sha, red=red, green=[] if red else [A], settle=False)
            await t.world.settle()
        (said,) = [text for text in t.comments(issue.number) if f"**Culprit:** `{bad[:10]}`" in text]
        assert f"@walter, it came with #{number}." in said
        assert await t.world.failures() == []
