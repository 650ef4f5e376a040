"""More of what happens to trunk's breakages: births, flakes, deadlines, halts, files that change, too many searches."""

from __future__ import annotations

import re
from pathlib import Path

from bot.core.turns import Turn
from bot.core.types import Level, Outcome
from bot.core.validation import TestOutcome, TestResult
from handlers.fork import open_fork
from handlers.validate import Target, start_level
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.test_bisecting import FAST, holds
from tests.handlers.test_stories_of_trunk import BAD, FILE, A, B, C, broken, source
from tests.handlers.trunk import CONFIG, Trunk, trunk

KEY = "KeyError: 'num_warps'"


async def close(t: Trunk, number: int, reason: str = "not_planned") -> None:
    """A person closes the issue."""
    closing = {"state": "closed", "state_reason": reason}
    await t.world.sandbox.as_user("maria").request("PATCH", f"/repos/{FORK}/issues/{number}", closing)
    await t.world.settle()


async def test_a_test_that_is_red_from_birth_was_brought_by_the_commit_that_adds_it(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        start = await t.moves("Say more", {FILE: source("a")})
        await t.told(start, green=[A])
        before = [t.world.fork_commits(f"Own {n}", {f"lib/own{n}.txt": f"{n}\n"}, login="maria") for n in range(3)]
        adds = t.world.fork_commits("Try b too", {FILE: source("a", "b")}, login="maria")
        after = await t.moves("Go on", {"lib/late.txt": "1\n"})
        await t.told(after, red={B: BAD}, green=[A])
        (issue,) = t.issues("open")
        assert f"never passed: it is not there yet at `{start[:10]}`" in issue.body
        assert "5 commits after" in issue.body
        await t.world.says("maria", issue.number, "/bisect unit")
        there = holds(t, "lib/late.txt")
        for _ in range(30):
            waiting = [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH]
            if not waiting:
                break
            for run in waiting:
                born = there(run.sha) or run.sha == adds
                await t.told(run.sha, red={B: BAD} if born else {}, green=[A], settle=False)
            await t.world.settle()
        assert f"**Culprit:** `{adds[:10]}`" in issue.body
        assert issue.body.index("### The search") < issue.body.index("### What it masks")
        await t.fork.sweep()
        assert sum("**Culprit:**" in text for text in t.comments(issue.number)) == 1, "heard once"
        assert not any(sha[:10] in issue.body.split("**Culprit:**")[1].split("graft:end")[0] for sha in before)
        assert await t.world.failures() == []


async def test_what_flaps_is_flaky_until_it_is_steady(tmp_path: Path) -> None:
    config = CONFIG.replace("trunk_red_blocks: [docs]", "trunk_red_blocks: [core]")
    async with trunk(tmp_path, config=config) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})
        await t.fork.ends(number)
        assert t.fork.gate(number).startswith("block: trunk is red in core")
        for n in range(5):
            sha = await t.moves(f"Go on {n}", {"lib/other.py": f"x = {n}\n"})
            await t.told(sha, red={} if n % 2 == 0 else {A: BAD}, green=[A, B, C] if n % 2 == 0 else [B, C])
        assert "state:flaky" in issue.labels and issue.state == "open"
        assert "1 test of `unit` (l1) fails now and then on trunk" in issue.body
        assert re.search(r"failed at [23] of [3-6] tested commits since then", issue.body)
        assert sum("It is flaky" in text for text in t.comments(issue.number)) == 1
        assert "to be mended by" not in issue.body
        assert not t.fork.gate(number).startswith("block: trunk is red"), "a flake blocks nobody"
        t.world.clock.forward(days=9)
        await t.fork.sweep()
        assert not any("waits for you" in text for text in t.comments(issue.number))

        # a pull request with the same failure is told so, and is red all the same
        head = await t.fork.pushes("walter", "feature", {"lib/feature.py": "y = 2\n"})
        (run,) = [run for run in await t.fork.waiting(number) if run.suite == "unit"]
        tests = (TestResult(id=A, outcome=TestOutcome.FAILED, message=BAD),)
        report = report_of(run).model_copy(update={"tests": tests, "outcome": Outcome.FAILED})
        await t.world.context.store.finish_run(
            run.id, outcome="failed", report=report.model_dump(mode="json"), now=t.world.context.now()
        )
        await t.fork.ends(number)
        comment = next(text for text in t.comments(number) if "Validation of" in text)
        assert f"#{issue.number}" in comment and "flak" in comment
        assert t.fork.check(head, "graft/l1").conclusion == "failure"

        # steady, it is red like any other, with a deadline of its own
        for n in range(5):
            sha = await t.moves(f"Stay {n}", {"lib/other.py": f"x = {n + 10}\n"})
            await t.told(sha, red={A: BAD}, green=[B, C])
        assert "state:open" in issue.labels and "state:flaky" not in issue.labels
        assert "It is no flake any more" in t.comments(issue.number)[-1], "and nobody is reminded at once"
        assert "to be mended by" in issue.body
        assert "trunk is red in core" in t.fork.gate(number)
        assert await t.world.failures() == []


async def test_each_time_has_its_own_deadline(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        maria = t.world.sandbox.as_user("maria")
        await maria.request("POST", f"/repos/{FORK}/issues/{issue.number}/assignees", {"assignees": ["walter"]})
        await t.world.settle()
        t.world.clock.forward(days=2, hours=1)
        await t.fork.sweep()
        (said,) = t.comments(issue.number)
        assert said.startswith("@olga @acme/compilers @walter this has been open for 2 days and waits for you.")
        await close(t, issue.number)
        t.world.clock.forward(days=5)
        await maria.reopen(FORK, issue.number)
        await t.world.settle()
        await t.fork.sweep()
        assert sum("waits for you" in text for text in t.comments(issue.number)) == 1, "taken up again just now"
        assert not any("Its owner" in text for text in t.comments(issue.number))
        t.world.clock.forward(days=3)
        await t.fork.sweep()
        assert sum("waits for you" in text for text in t.comments(issue.number)) == 2, "in a comment that is heard"
        t.world.clock.forward(days=2)
        await t.fork.sweep()
        assert sum("Its owner" in text for text in t.comments(issue.number)) == 1
        assert await t.world.failures() == []


async def test_what_waits_for_l1_is_masked_by_what_breaks_it(tmp_path: Path) -> None:
    config = FAST.replace("  l2:\n", "  l2_every: 1h\n  l2:\n")
    async with trunk(tmp_path, config=config) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        t.world.clock.forward(hours=2)
        await t.fork.sweep()
        assert not [run for run in await t.fork.waiting(None) if run.suite == "speed"]
        masks = issue.body.split("### What it masks")[1].split("graft:end")[0]
        assert "Not run on trunk by schedule until l1 passes there: `speed`." in masks
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        await t.told(fix, "side", green=["docs/t.py::d"])
        await t.fork.sweep()
        assert [run.sha for run in await t.fork.waiting(None) if run.suite == "speed"] == [fix], "looked at again"
        assert issue.state == "closed" and "Not run on trunk" not in issue.body
        assert await t.world.failures() == []


async def test_an_area_gets_another_name_and_other_owners_while_it_is_red(tmp_path: Path) -> None:
    config = CONFIG.replace("trunk_red_blocks: [docs]", "trunk_red_blocks: [core]")
    renamed = config.replace("core:", "kernels:").replace("area: core", "area: kernels")
    renamed = renamed.replace("[core]", "[kernels]").replace("[olga, acme/compilers]", "[walter]")
    async with trunk(tmp_path, config=config) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})
        await t.fork.ends(number)
        await t.moves("Another name", {".github/graft.yml": renamed})
        await t.fork.sweep()
        assert "in area `kernels`. @walter" in issue.body and "@olga" not in issue.body
        assert "area:kernels" in issue.labels and "area:core" not in issue.labels
        assert t.fork.gate(number).startswith("block: trunk is red in kernels"), "no gate opens by a rename"
        assert await t.world.failures() == []


async def test_a_day_with_too_many_searches(tmp_path: Path) -> None:
    config = CONFIG.replace("bisect: manual", "bisect: auto, searches_per_day: 1")
    async with trunk(tmp_path, config=config) as t:
        good = await t.moves("Say more", {FILE: source("a", "b", "c")})
        await t.told(good, green=[A, B, C])
        t.world.fork_commits("Own", {"lib/own.txt": "1\n"}, login="maria")
        bad = await t.moves("Two at once", {"lib/layout.py": "x = 1\n"})
        await t.told(bad, red={A: BAD, B: KEY}, green=[C])
        await t.fork.sweep()
        one, two = sorted(t.issues("open"), key=lambda issue: "state:open" in issue.labels)
        assert "state:bisecting" in one.labels and "state:open" in two.labels
        assert "No search yet: 1 search began today: that is the limit. It begins by itself when it may." in two.body
        assert "that is the limit" in await t.world.says("maria", two.number, "/bisect unit")
        assert len({run.id for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH}) == 2
        t.world.clock.forward(days=1)
        await t.fork.sweep()
        assert "state:bisecting" in two.labels and "No search yet" not in two.body
        assert await t.world.failures() == []


async def test_a_storm_of_machines_over_an_open_breakage(tmp_path: Path) -> None:
    """It neither closes it nor brings another, nor does it hide that nothing is known since."""
    busy = "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"
    async with trunk(tmp_path) as t:
        _, bad = await broken(t, A)
        (issue,) = t.issues("open")
        stormy = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(stormy, red={A: busy, B: busy}, green=[C])
        lost = await t.moves("Go on more", {"lib/other.py": "x = 2\n"})
        await t.told(lost, outcome=Outcome.INFRA, reason="no report by its deadline", tests=())
        assert (t.issues(), issue.state) == ([issue], "open")
        assert "1 test did not run since, which proves nothing" in issue.body
        assert f"first seen failing at `{bad[:10]}`" in issue.body
        assert "Machines: 2 runs of the last day had failures of theirs, 1 of them prove nothing" in (
            t.world.dashboard().body
        )
        calm = await t.moves("Calm", {"lib/layout.py": "x = 3\n"})
        await t.told(calm, green=[A, B, C])
        assert issue.state == "closed"
        assert await t.world.failures() == []


async def test_a_halt_over_a_breakage_that_comes_and_one_that_goes(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        told = issue.body
        maria = t.world.sandbox.as_user("maria")
        halt = await maria.request(
            "POST", f"/repos/{FORK}/issues", {"title": "Wait", "body": "", "labels": ["graft:halt"]}
        )
        await t.world.settle()
        both = await t.moves("Mend one, break one", {"lib/layout.py": "x = 1\n"})
        await t.told(both, red={B: KEY}, green=[A, C])
        t.world.clock.forward(days=3)
        await t.fork.sweep()
        assert [one for one in t.issues() if one.title != "Wait"] == [issue]
        assert (issue.state, issue.body, t.comments(issue.number)) == ("open", told, [])
        await maria.request("PATCH", f"/repos/{FORK}/issues/{halt['number']}", {"state": "closed"})
        await t.world.settle()
        await t.fork.sweep()
        assert issue.state == "closed", "what was missed is made up for"
        (new,) = t.issues("open")
        assert "KeyError" in new.title
        assert await t.world.failures() == []


async def test_one_cause_in_suites_of_two_levels(tmp_path: Path) -> None:
    """It is one breakage; level, command and search are those of the one suite that is named."""
    config = CONFIG.replace("gate:\n", "  l2:\n    - {suite: big, area: docs}\ngate:\n")
    tests = [f"tests/core/test_big.py::test_{n}" for n in range(4)]
    async with trunk(tmp_path, config=config) as t:
        fork = await open_fork(t.world.context, t.world.scope)
        good = await t.moves("Say more", {FILE: source("a")})
        await t.told(good, green=[A])
        await start_level(fork, Target(good, good), Level.L2)
        await t.told(good, "big", green=tests)
        bad = await t.moves("Choose another layout", {"lib/layout.py": "x = 1\n"})
        await t.told(bad, red={A: BAD})
        await start_level(fork, Target(bad, bad), Level.L2)
        await t.told(bad, "big", red=dict.fromkeys(tests, BAD))
        (issue,) = t.issues("open")
        assert "5 tests of `unit`, `big` (l2) fail on trunk" in issue.body
        assert "level:l2" in issue.labels and "level:l1" not in issue.labels
        assert f"Repeat it at `{bad[:10]}` with:\n\n```sh\ngraft run l1 --suite big\n```" in issue.body
        await t.world.says("maria", issue.number, "/bisect big")
        asked = [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH]
        assert {(run.suite, run.level) for run in asked} == {("big", "l2")}

        # the suite goes to another level while it is searched: what can't be run any more is not waited for
        await t.moves("All of it at once", {".github/graft.yml": config.replace("  l2:\n", "")})
        await t.fork.sweep()
        assert "ended without an answer: big is no suite of level l2 any more" in issue.body
        assert [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH] == []
        assert await t.world.failures() == []


async def test_a_metrics_search_whose_suite_leaves_the_file_holds_up_nothing(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=FAST) as t:
        world = t.world
        shas = [world.fork_commits(f"Own {n}", {f"lib/own{n}.txt": f"{n}\n"}, login="maria") for n in range(4)]
        await world.settle()
        fork = await open_fork(world.context, world.scope)
        for sha, value in ((shas[0], 100.0), (shas[3], 106.0)):
            (run,) = await start_level(fork, Target(sha, sha), Level.L2)
            report = report_of(run, measured={"ms": [value]})
            await world.context.store.finish_run(
                run.id, outcome="passed", report=report.model_dump(mode="json"), now=world.context.now()
            )
        board = world.dashboard().number
        await world.says("walter", board, "/bisect speed#ms")
        await t.moves("No speed", {".github/graft.yml": CONFIG})
        await t.fork.sweep()
        told = next(text for text in world.comments(board) if "### What moved" in text)
        assert "It ended without an answer: speed is no suite of level l2 any more" in told
        bad = await t.moves("Break it", {"lib/layout.py": "x = 1\n"})
        await t.told(bad, red={A: BAD})
        assert len(t.issues("open")) == 1, "trunk is looked after"
        assert await t.world.failures() == []


async def test_it_is_nobodys_when_it_comes_back(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        path = f"/repos/{FORK}/issues/{issue.number}/assignees"
        await t.world.sandbox.as_user("maria").request("DELETE", path, {"assignees": ["olga"]})
        await t.world.settle()
        assert issue.assignees == []
        back = await t.moves("Undo it", {"lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: BAD}, green=[B, C])
        assert issue.state == "open" and issue.assignees == ["olga"]
        assert await t.world.failures() == []
