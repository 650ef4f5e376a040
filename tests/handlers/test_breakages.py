"""A breakage's issue among people: closed by a merge or by hand proves nothing, and only the fork's own are asked."""

from __future__ import annotations

from pathlib import Path

from tests.handlers.pair import FORK
from tests.handlers.trunk import BOOM, CONFIG, trunk

A, B = "tests/core/test_all.py::test_a", "tests/core/test_all.py::test_b"
RED = {A: BOOM.format(line=3, what="f16")}


async def test_a_merge_that_says_fixes_is_no_proof(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        maria = t.world.sandbox.as_user("maria")
        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await t.told(good, green=[A, B])
        bad = await t.moves("Choose another layout", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        await t.told(bad, red=RED, green=[B])
        (issue,) = t.issues()
        opened = (await t.rows())[issue.number].data["opened_at"]

        number = await t.fork.opens("walter", "fix", {"other.txt": "two\n"}, body=f"Fixes #{issue.number}")
        await t.fork.ends(number)
        assert t.fork.gate(number).startswith("allow")
        await t.world.merge(number, "squash")
        assert (issue.state, issue.state_reason) == ("open", "reopened")
        (said,) = [text for text in t.comments(issue.number) if "It stays open" in text]
        assert f"`{A}` did not run and pass since it failed at `{bad[:10]}`" in said
        row = (await t.rows())[issue.number]
        assert (row.state, row.data["opened_at"], row.data["reopened"]) == ("open", opened, 0)

        # by hand it is no other thing, and is said once for the same failure
        await maria.close(FORK, issue.number)
        await t.world.settle()
        assert issue.state == "open"
        assert sum("It stays open" in text for text in t.comments(issue.number)) == 1

        # half a proof is none; then each of its tests ran and passed
        merged = t.world.git("rev-parse", "main")
        await t.told(merged, green=[B])
        assert issue.state == "open"
        mended = await t.moves("Mend it", {"lib/layout.py": "def choose_layout():\n    return 1\n"})
        await t.told(mended, green=[A, B])
        assert issue.state == "closed" and "state:fixed" in issue.labels
        assert any(f"Each of its tests ran and passed at `{mended[:10]}`" in text for text in t.comments(issue.number))

        # a person who says that it is a duplicate is believed
        back = await t.moves("Undo it", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        await t.told(back, red=RED, green=[B])
        assert issue.state == "open"
        closing = {"state": "closed", "state_reason": "duplicate"}
        await maria.request("PATCH", f"/repos/{FORK}/issues/{issue.number}", closing)
        await t.world.settle()
        again = await t.moves("Go on", {"lib/other.py": "x = 2\n"})
        await t.told(again, red=RED, green=[B])
        assert (issue.state, (await t.rows())[issue.number].state) == ("closed", "dismissed")
        assert await t.world.failures() == []


async def test_codeowners_counts_as_far_as_it_names_the_forks_own_people(tmp_path: Path) -> None:
    """C66: a file inherited from upstream names upstream's people; anyone may read a public fork."""
    ownerless = CONFIG.replace("owners: [olga, acme/compilers]", "owners: []")
    async with trunk(tmp_path, config=ownerless) as t:
        t.world.sandbox.create_team("acme", "strangers", ["uma"])
        t.world.sandbox.create_team("up", "reviewers", ["walter"])
        files = """
* @uma
/tests/core/** @uma @walter @acme/compilers @acme/strangers @up/reviewers @nobody-here someone@up.example
/tests/inherited/** @uma @up/reviewers
/tests/nobodys/**
"""
        start = await t.moves("Own it", {".github/CODEOWNERS": files})
        tests = {name: f"tests/{name}/test_all.py::test_{name}" for name in ("core", "inherited", "nobodys")}
        await t.told(start, green=list(tests.values()))
        bad = await t.moves("Break all", {"lib/layout.py": "x = 1\n"})
        await t.told(bad, red={test: f"KeyError: 'no {name}'" for name, test in tests.items()})
        bodies = {name: next(i for i in t.issues() if f"no {name}" in i.title) for name in tests}
        assert "@walter @acme/compilers\n" in bodies["core"].body
        assert bodies["core"].assignees == ["walter"]
        for name in ("inherited", "nobodys"):
            assert "@mark\n" in bodies[name].body, "the default owner"
            assert bodies[name].assignees == ["mark"]
        for issue in bodies.values():
            assert "@uma" not in issue.body and "@up/" not in issue.body
        assert "acme/strangers is not known to this fork" in bodies["core"].body
        assert "uma is not known to this fork" in bodies["inherited"].body
        assert await t.world.failures() == []
