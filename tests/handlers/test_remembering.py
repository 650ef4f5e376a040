"""What people did to a breakage's issue: one that was deleted is no answer, and no flood comes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.handlers.pair import FORK
from tests.handlers.test_stories_of_trunk import BAD, FILE, A, B, C, broken, source
from tests.handlers.trunk import Trunk, trunk


async def deleted(t: Trunk, number: int) -> None:
    """A person deletes the issue."""
    t.world.sandbox.delete_issue(FORK, number)
    await t.world.settle()


async def red(t: Trunk, what: int) -> str:
    """One more commit at which A fails."""
    sha = await t.moves(f"Go on {what}", {"lib/other.py": f"x = {what}\n"})
    await t.told(sha, red={A: BAD}, green=[B, C])
    return sha


async def test_an_issue_that_is_deleted_is_told_once_more_and_then_left_alone(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        _, bad = await broken(t, A)
        (first,) = t.issues("open")
        await deleted(t, first.number)
        await t.fork.sweep()
        assert t.issues() == [], "nothing new was seen"
        assert "Issues that people deleted: of 1 cause" not in t.world.dashboard().body

        await red(t, 1)
        (second,) = t.issues("open")
        assert f"- #{first.number}, its issue before this one, was deleted, which is no answer" in second.body
        assert f"first seen failing at `{bad[:10]}`" in second.body
        assert "state:open" in second.labels and second.assignees == ["olga"]
        await red(t, 2)
        assert t.issues() == [second]

        # deleted again, it was read: while it goes on nobody is told
        await deleted(t, second.number)
        for what in (3, 4):
            await red(t, what)
        assert t.issues() == []
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        await t.fork.sweep()
        assert t.issues() == []

        # mended and broken again, it is another matter
        back = await t.moves("Undo it", {"lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: BAD}, green=[B, C])
        (third,) = t.issues("open")
        assert f"- #{first.number}, #{second.number}, its issues before this one, were deleted" in third.body
        assert await t.world.failures() == []


@pytest.mark.parametrize("reason", ["not_planned", "duplicate"])
async def test_what_was_put_by_and_then_deleted_is_told_when_it_returns(tmp_path: Path, reason: str) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (first,) = t.issues("open")
        closing = {"state": "closed", "state_reason": reason}
        await t.world.sandbox.as_user("maria").request("PATCH", f"/repos/{FORK}/issues/{first.number}", closing)
        await t.world.settle()
        await red(t, 1)
        assert (t.issues(), first.state) == ([first], "closed")
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        await deleted(t, first.number)
        assert t.issues() == []
        back = await t.moves("Undo it", {"lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: BAD}, green=[B, C])
        (second,) = t.issues("open")
        assert f"#{first.number}, its issue before this one, was deleted" in second.body
        assert await t.world.failures() == []


async def test_what_was_mended_and_whose_issue_is_gone_is_told_when_it_returns(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (first,) = t.issues("open")
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        await deleted(t, first.number)
        back = await t.moves("Undo it", {"lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: BAD}, green=[B, C])
        (second,) = t.issues("open")
        assert f"#{first.number}, its issue before this one, was deleted" in second.body
        assert "came back 1 time" in second.body
        assert await t.world.failures() == []


async def test_many_that_are_deleted_make_no_flood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait like new ones: those that were never told before, and those of a fork whose issues were off, too."""
    names = "abcdefgh"
    tests = {f"{FILE}::test_{name}": f"KeyError: 'key_{name}_x'" for name in names}
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {FILE: source(*names)})
        await t.told(good, green=[*tests])
        bad = await t.moves("Break all", {"lib/layout.py": "x = 1\n"})
        await t.told(bad, red=tests)
        assert len(t.issues("open")) == len(names)
        for issue in t.issues():
            t.world.sandbox.delete_issue(FORK, issue.number)
        await t.world.settle()
        monkeypatch.setattr("handlers.triage.ISSUES_A_DAY", len(names) + 3)
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red=tests)
        assert len(t.issues("open")) == 3
        assert "5 more causes broke trunk without an issue yet" in t.world.dashboard().body
        t.world.clock.forward(days=1)
        await t.fork.sweep()
        assert len(t.issues("open")) == len(names)
        assert await t.world.failures() == []
