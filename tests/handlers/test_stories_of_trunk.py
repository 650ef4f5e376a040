"""What people see of trunk's breakages while things happen that nobody planned: told step by step."""

from __future__ import annotations

from pathlib import Path

from bot.core.types import Outcome
from tests.handlers.pair import FORK
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
        assert (issue.state, issue.state_reason) == ("closed", "completed")
        said = t.comments(issue.number)[-1]
        assert f"Its tests are no more at `{gone[:10]}`, so that nothing can tell whether they would pass" in said
        assert "its tests are no more" in issue.body
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
        left = await t.moves("No unit any more", {".github/graft.yml": without})
        await t.fork.sweep()
        assert issue.state == "closed"
        assert f"Its tests are no more at `{left[:10]}`" in t.comments(issue.number)[-1]
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
