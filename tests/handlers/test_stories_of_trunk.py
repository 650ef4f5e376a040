"""What people see of trunk's breakages while things happen that nobody planned: told step by step."""

from __future__ import annotations

import re
from pathlib import Path

import sqlalchemy as sa

from bot.clients.store.schema import breakages
from bot.core.turns import Turn
from bot.core.types import Outcome
from tests.handlers.pair import FORK
from tests.handlers.test_bisecting import holds
from tests.handlers.trunk import BOOM, CONFIG, Trunk, trunk

FILE = "tests/core/test_all.py"
A, A2, B, C = (f"{FILE}::test_{name}" for name in ("a", "a2", "b", "c"))
BAD = BOOM.format(line=3, what="f16")


def source(*names: str) -> str:
    """A file of tests with these functions."""
    return "\n".join(f"def test_{name}():\n    work('{name}')\n\n" for name in names)


async def broken(t: Trunk, *tests: str) -> tuple[str, str]:
    """Trunk with a good commit and one at which these tests fail by one cause."""
    good = await t.moves("Say more", {"docs/text.txt": "two\n", FILE: source("a", "b", "c")})
    await t.told(good, green=[A, B, C])
    await t.told(good, "side", green=["docs/t.py::d"])
    bad = await t.moves("Choose another layout", {"lib/layout.py": "def choose_layout():\n    pass\n"})
    await t.told(bad, red=dict.fromkeys(tests, BAD), green=[test for test in (A, B, C) if test not in tests])
    return good, bad


async def test_a_test_that_is_renamed_while_its_breakage_is_open(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        renamed = await t.moves("Rename it", {FILE: source("a2", "b", "c")})
        await t.told(renamed, red={A2: BAD}, green=[B, C])
        assert t.issues() == [issue]
        assert "1 test that trunk has no more (renamed, deleted, or its suite is not run)" in issue.body
        assert "did not run since" not in issue.body
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A2, B, C])
        assert (issue.state, issue.state_reason) == ("closed", "completed")
        (said,) = [text for text in t.comments(issue.number) if "Each of its tests" in text]
        assert f"Each of its tests ran and passed, or is no more, at `{fix[:10]}`" in said
        assert f"is not run any more: `{A}`" in said
        await t.fork.sweep()
        assert issue.state == "closed"

        # it comes back under its old name: the same issue
        back = await t.moves("Undo both", {FILE: source("a", "b", "c"), "lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: BAD}, green=[B, C])
        assert (t.issues(), issue.state) == ([issue], "open")
        assert await t.world.failures() == []


async def test_a_test_that_is_deleted_and_one_that_only_does_not_report(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A, B)
        (issue,) = t.issues("open")
        # B's function is there, and no run of it: nothing is proved
        deleted = await t.moves("Drop it", {FILE: source("b", "c")})
        await t.told(deleted, green=[C])
        assert issue.state == "open"
        assert "did not run since, which proves nothing" in issue.body
        # a crash says nothing of what is there
        crashed = await t.moves("Drop more", {FILE: source("c")})
        await t.told(
            crashed, outcome=Outcome.FAILED, exit_code=139, log_tail="Fatal Python error: Segmentation fault", tests=()
        )
        assert issue.state == "open"
        gone = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(gone, green=[C])
        assert issue.state == "open", "that nobody looks any more is no proof"
        assert "its tests are no more, so that nothing can tell whether they would pass" in issue.body
        assert "did not run since" not in issue.body
        await t.world.sandbox.as_user("olga").request(
            "PATCH", f"/repos/{FORK}/issues/{issue.number}", {"state": "closed", "state_reason": "completed"}
        )
        await t.world.settle()
        await t.fork.sweep()
        assert issue.state == "closed" and "state:fixed" in issue.labels
        assert "A person closed it; nothing can tell whether its tests would pass" in t.comments(issue.number)[-1]
        assert await t.world.failures() == []


async def test_a_test_that_is_renamed_and_mended_in_one(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        text = source("a", "b", "c").replace("def test_a(", "def test_a2(")
        both = await t.moves("Mend and rename", {FILE: text, "lib/layout.py": "x = 1\n"})
        await t.told(both, green=[A2, B, C])
        assert (issue.state, issue.state_reason) == ("closed", "completed")
        assert f"or is no more, at `{both[:10]}`" in t.comments(issue.number)[-1]
        assert await t.world.failures() == []


async def test_a_suite_that_leaves_the_file_while_its_breakage_is_open(tmp_path: Path) -> None:
    config = CONFIG.replace("trunk_red_blocks: [docs]", "trunk_red_blocks: [core]")
    without = config.replace("    - {suite: unit, area: core}\n", "")
    async with trunk(tmp_path, config=config) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})
        await t.fork.ends(number)
        assert t.fork.gate(number).startswith("block: trunk is red in core")
        await t.moves("No unit any more", {".github/graft.yml": without})
        await t.fork.sweep()
        assert issue.state == "open"
        assert "its tests are no more, so that nothing can tell whether they would pass" in issue.body
        assert t.fork.gate(number).startswith("block: trunk is red in core"), "a gate opens by no such way"
        await t.world.sandbox.as_user("olga").request(
            "PATCH", f"/repos/{FORK}/issues/{issue.number}", {"state": "closed", "state_reason": "completed"}
        )
        await t.world.settle()
        await t.fork.sweep()
        assert issue.state == "closed"
        assert not t.fork.gate(number).startswith("block: trunk is red")
        t.world.clock.forward(days=9)
        await t.fork.sweep()
        assert not [text for text in t.comments(issue.number) if "waits for you" in text], "nobody is asked for it"

        # it is run again, and is as bad as it was
        again = await t.moves("Unit again", {".github/graft.yml": config})
        await t.told(again, red={A: BAD}, green=[B, C])
        assert (t.issues(), issue.state) == ([issue], "open")
        assert await t.world.failures() == []


async def test_trunk_is_rewritten_while_a_breakage_is_open(tmp_path: Path) -> None:
    """The commit that broke it comes again under another name: what passed before it proves nothing of it."""
    async with trunk(tmp_path) as t:
        good, bad = await broken(t, A)
        (issue,) = t.issues("open")
        clone = t.world.fork
        clone.get(str(t.world.repository.path), "main")
        clone.git("reset", "-q", "--hard", good)
        again = clone.commit(
            "Choose another layout, said better", {"lib/layout.py": "def choose_layout():\n    pass\n"}
        )
        t.world.sandbox.push_ref(FORK, "main", source=clone.path, login="maria")
        await t.world.settle()
        await t.fork.sweep()
        assert issue.state == "open", "only what is older than the breakage is green"
        await t.told(again, red={A: BAD}, green=[B, C])
        assert (t.issues(), issue.state) == ([issue], "open")
        assert f"first seen failing at `{again[:10]}`" in issue.body
        assert not [text for text in t.comments(issue.number) if "It is back" in text]
        assert bad[:10] not in issue.body.split("### Suspects")[1].split("graft:end")[0]
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        assert issue.state == "closed"
        assert f"Each of its tests ran and passed at `{fix[:10]}`" in t.comments(issue.number)[-1]
        assert await t.world.failures() == []


async def test_it_is_reverted_while_its_culprit_is_searched_and_comes_back(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        await t.world.says("maria", issue.number, "/bisect unit")
        assert "It searches 1 commit on trunk" in issue.body
        reverted = await t.moves("Revert it", {"lib/layout.py": "x = 1\n"})
        await t.told(reverted, green=[A, B, C])
        assert issue.state == "closed" and "state:fixed" in issue.labels
        assert "ended without an answer: it is mended" in issue.body, "nobody is told that it goes on"
        assert [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH] == [], "nobody waits for them"

        # it comes back by another commit: what was searched then is told as of then
        back = await t.moves("Choose it again", {"lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: BAD}, green=[B, C])
        assert issue.state == "open"
        search = issue.body.split("### The search for the culprit")[1]
        assert "Of the last time that it broke trunk, not of this one" in search
        assert "The search begins" in await t.world.says("maria", issue.number, "/bisect unit")
        assert "not of this one" not in issue.body
        assert await t.world.failures() == []


async def test_trunk_is_rewritten_while_a_culprit_is_searched(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        good, _ = await broken(t, A)
        (issue,) = t.issues("open")
        await t.world.says("maria", issue.number, "/bisect unit")
        clone = t.world.fork
        clone.get(str(t.world.repository.path), "main")
        clone.git("reset", "-q", "--hard", good)
        again = clone.commit("Another history", {"lib/z.txt": "1\n"})
        t.world.sandbox.push_ref(FORK, "main", source=clone.path, login="maria")
        await t.world.settle()
        await t.fork.sweep()
        assert "ended without an answer: trunk was rewritten, and what was searched is on it no more" in issue.body
        assert "state:open" in issue.labels and "state:bisecting" not in issue.labels
        await t.told(again, green=[A, B, C])
        assert issue.state == "closed"
        assert await t.world.failures() == []


async def test_what_people_do_to_the_issue_by_hand(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        maria = t.world.sandbox.as_user("maria")
        mine = {"title": "Layouts: mine", "body": "I look at it.", "labels": ["mine"], "assignees": ["walter"]}
        await maria.request("PATCH", f"/repos/{FORK}/issues/{issue.number}", mine)
        await maria.lock(FORK, issue.number)
        await t.world.settle()
        assert await t.world.failures() == []
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={A: BAD, B: BAD}, green=[C])
        assert t.issues() == [issue], "its own label is there again: by it the issue is found"
        assert {"mine", "state:open", "trunk-breakage"} <= set(issue.labels)
        assert issue.title == "Layouts: mine" and issue.assignees == ["walter"]
        assert "I look at it." in issue.body and "2 tests of `unit` (l1) fail on trunk" in issue.body

        # the store is lost: it is this issue still
        async with t.world.context.store._begin() as connection:
            await connection.execute(sa.delete(breakages))
        await t.fork.sweep()
        assert t.issues() == [issue]
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        assert issue.state == "closed" and issue.title == "Layouts: mine"
        assert await t.world.failures() == []


async def test_an_issue_that_is_deleted_keeps_no_other_from_being_looked_after(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {FILE: source("a", "b", "c")})
        await t.told(good, green=[A, B, C])
        bad = await t.moves("Break both", {"lib/layout.py": "x = 1\n"})
        await t.told(bad, red={A: BAD, B: "KeyError: 'num_warps'"}, green=[C])
        first, second = sorted(t.issues("open"), key=lambda issue: "layout" not in issue.title)
        t.world.sandbox.delete_issue(FORK, first.number)
        await t.world.settle()
        assert await t.world.failures() == []
        rows = await t.rows()
        assert (rows[None].state, rows[second.number].state) == ("dismissed", "open")
        fix = await t.moves("Mend one", {"lib/layout.py": "x = 2\n"})
        await t.told(fix, red={A: BAD}, green=[B, C])
        assert [(issue.title == first.title, issue.state) for issue in t.issues()] == [
            (False, "closed"),
            (True, "open"),
        ]
        assert await t.world.failures() == []


async def test_a_fork_without_issues_is_looked_after_all_the_same(tmp_path: Path) -> None:
    """GitHub gives a fork none at first: no dashboard and no breakages' issues, but gates that know of them."""
    config = CONFIG.replace("trunk_red_blocks: [docs]", "trunk_red_blocks: [core]")
    async with trunk(tmp_path, config=config) as t:
        t.world.sandbox.switch_issues(FORK, on=False)
        _, bad = await broken(t, A)
        assert await t.world.failures() == []
        assert t.issues() == []
        ((_, row),) = (await t.rows()).items()
        assert (row.number, row.state) == (None, "open")
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})
        await t.fork.ends(number)
        assert t.fork.gate(number).startswith("block: trunk is red in core")
        await t.world.ingest()
        await t.fork.sweep()
        assert await t.world.failures() == []

        # switched on, the issue is opened as ever; switched off once more, trunk is mended nevertheless
        t.world.sandbox.switch_issues(FORK, on=True)
        await t.fork.sweep()
        (issue,) = t.issues("open")
        assert f"first seen failing at `{bad[:10]}`" in issue.body
        t.world.sandbox.switch_issues(FORK, on=False)
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        assert (await t.rows())[issue.number].state == "fixed"
        assert not t.fork.gate(number).startswith("block: trunk is red")
        assert await t.world.failures() == []


async def test_a_person_closes_it_while_it_is_searched_and_takes_it_up_again(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        _, bad = await broken(t, A)
        (issue,) = t.issues("open")
        maria = t.world.sandbox.as_user("maria")
        await t.world.says("maria", issue.number, "/bisect unit")
        closing = {"state": "closed", "state_reason": "not_planned"}
        await maria.request("PATCH", f"/repos/{FORK}/issues/{issue.number}", closing)
        await t.world.settle()
        assert issue.state == "closed"
        assert "state:dismissed" in issue.labels and "state:bisecting" not in issue.labels
        assert "**dismissed**: a person closed it as not planned or as a duplicate" in issue.body
        assert "ended without an answer: a person closed the issue" in issue.body
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={A: BAD}, green=[B, C])
        assert issue.state == "closed"

        await maria.reopen(FORK, issue.number)
        await t.world.settle()
        assert "state:open" in issue.labels and "state:dismissed" not in issue.labels
        assert [text.splitlines()[0] for text in t.comments(issue.number)][-1] == (
            "Looked after again: a person reopened it."
        )
        assert "came back" not in issue.body and "not of this one" not in issue.body
        assert f"first seen failing at `{bad[:10]}`" in issue.body
        assert await t.world.failures() == []


async def test_nobody_of_the_fork_is_left_to_ask(tmp_path: Path) -> None:
    config = CONFIG.replace("[olga, acme/compilers]", "[gone-away, acme/no-team]").replace("mark", "also-gone")
    async with trunk(tmp_path, config=config) as t:
        await broken(t, A)
        (issue,) = t.issues("open")
        assert issue.assignees == [] and "@" not in issue.body
        for who in ("gone-away", "acme/no-team", "default\\_owner also-gone"):
            assert f"{who} is not known to this fork" in issue.body
        t.world.clock.forward(days=3)
        await t.fork.sweep()
        (said,) = t.comments(issue.number)
        assert said.startswith("This has been open for 3 days, and nobody can be asked")
        assert await t.world.failures() == []


async def test_two_causes_that_one_commit_brings(tmp_path: Path) -> None:
    """Each has its issue and its search; the searches share their runs, and each says what it stands on."""
    key = "KeyError: 'num_warps'"
    async with trunk(tmp_path, config=CONFIG.replace("bisect: manual", "bisect: auto")) as t:
        good = await t.moves("Say more", {FILE: source("a", "b", "c")})
        await t.told(good, green=[A, B, C])
        t.world.fork_commits("Own", {"lib/own.txt": "1\n"}, login="maria")
        bad = await t.moves("Two at once", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        await t.told(bad, red={A: BAD, B: key}, green=[C])
        asked = 0
        for _ in range(20):
            waiting = [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH]
            if not waiting:
                break
            for run in waiting:
                asked += 1
                red = {A: BAD, B: key} if holds(t, "lib/layout.py")(run.sha) else {}
                await t.told(run.sha, red=red, green=[C] if red else [A, B, C], settle=False)
            await t.world.settle()
        issues = t.issues("open")
        assert len(issues) == 2
        for issue in issues:
            assert "state:culprit-known" in issue.labels
            assert f"**Culprit:** `{bad[:10]}`" in issue.body
            (runs,) = re.findall(r"after (\d+) runs of at most 40", issue.body)
            assert 4 <= int(runs) <= asked, "not those alone that it queued itself"

        # one of them is mended: the other is not
        half = await t.moves("Mend one", {"lib/other.py": "x = 1\n"})
        await t.told(half, red={A: BAD}, green=[B, C])
        assert sorted((issue.state, "KeyError" in issue.title) for issue in issues) == [
            ("closed", True),
            ("open", False),
        ]
        assert await t.world.failures() == []


async def test_a_fix_after_which_the_same_test_fails_otherwise(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        fix = await t.moves("Mend it, nearly", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, red={A: "KeyError: 'num_warps'"}, green=[B, C])
        old, new = t.issues("open")
        assert f"`{A}` fails by another cause now: #{new.number}." in old.body
        assert f"Some of its tests stood behind #{old.number}" in new.body
        assert f"tests of #{old.number} among them" in new.body
        whole = await t.moves("Mend all", {"lib/layout.py": "x = 2\n"})
        await t.told(whole, green=[A, B, C])
        assert [issue.state for issue in t.issues()] == ["closed", "closed"]
        assert await t.world.failures() == []


async def test_an_issue_that_can_not_be_written_keeps_no_other_waiting(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        faults = t.world.sandbox.faults
        good = await t.moves("Say more", {FILE: source("a", "b", "c")})
        await t.told(good, green=[A, B, C])
        bad = await t.moves("Break both", {"lib/layout.py": "x = 1\n"})
        await t.told(bad, red={A: BAD, B: "KeyError: 'num_warps'"}, green=[C])
        shut, free = t.issues("open")
        faults.fail("forbidden", method="PATCH", path=rf"/issues/{shut.number}$", times=99)
        faults.fail("forbidden", method="POST", path=rf"/issues/{free.number}/comments", times=99)
        fix = await t.moves("Mend both", {"lib/layout.py": "x = 2\n"})
        await t.told(fix, green=[A, B, C])
        assert (shut.state, free.state) == ("open", "closed")
        assert t.comments(free.number) == [], "its text says it all the same"
        assert (await t.rows())[shut.number].state == "open", "nothing is taken for told that was not"
        assert await t.world.failures() == []
        faults.clear()
        await t.fork.sweep()
        assert shut.state == "closed" and "state:fixed" in shut.labels
        assert sum(f"ran and passed at `{fix[:10]}`" in text for text in t.comments(shut.number)) == 1
        assert await t.world.failures() == []
