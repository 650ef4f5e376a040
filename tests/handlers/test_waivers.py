"""Waivers in comments and in the fork's file: what they let pass, for how long, and whom a lapsed one holds up."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from bot.core.waivers import read_file
from tests.handlers.runs import gated

BAD = "tests/test_all.py::test_bad"
FILE = ".github/graft-waivers.yml"


def waive(scope: str, until: str, owner: str = "olga") -> str:
    return f'/waive {scope} until={until} owner=@{owner} reason="known" plan="mend it next week"'


async def test_waivers_in_comments(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world = fork.world
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        await fork.ends(number, "side")
        await fork.ends(number, "unit", failed=[BAD], missing=["tests/test_all.py::test_gone"])
        day = f"{world.clock() + timedelta(days=2):%Y-%m-%d}"
        late = f"{world.clock() + timedelta(days=200):%Y-%m-%d}"
        for login, text, why in (
            ("walter", waive(BAD, day), "takes maintain access"),
            ("maria", waive("tests/test_all.py::test_fine", day), "names nothing that failed"),
            ("maria", waive("tests/*::test_bad", day), "wildcards"),
            ("maria", waive("unit", day), "is too much"),
            ("maria", waive(BAD, late), "more than 90 days"),
            ("maria", waive(BAD, "2020-01-01"), "lapsed at"),
            ("maria", f"/waive {BAD} until={day} owner=@olga reason=known", "plan= is missing"),
        ):
            answer = (await world.says(login, number, text)).replace("\\", "")
            assert "❌" in answer, answer
            assert why in answer, answer
            assert not fork.gate(number).startswith("allow")

        # one maintainer is enough for L1; each failure takes a word of its own, what was left out too (C64)
        assert "Waived until the end of" in await world.says("maria", number, waive(BAD, day))
        assert fork.gate(number).startswith("block: unit left out what it had to run: tests/test_all.py::test_gone")
        await world.says("mark", number, waive("tests/test_all.py::test_gone", day))
        assert fork.gate(number).startswith("allow")
        assert "what failed is waived" in fork.gate(number)

        # it ends at 00:00 UTC of the day after; its owner was asked before, once
        asked = [c for c in world.comments(number) if "waiver-ask" in c]
        assert len(asked) == 2
        assert all("@olga" in c for c in asked)
        world.clock.ahead = timedelta()
        end = (world.clock() + timedelta(days=3)).replace(hour=0, minute=0, second=0, microsecond=0)
        world.clock.ahead = end - world.clock() - timedelta(minutes=2)
        await fork.sweep()
        assert fork.gate(number).startswith("allow")
        world.clock.forward(minutes=4)
        await fork.sweep()
        assert fork.gate(number).startswith("block: unit failed")
        assert [c for c in world.comments(number) if "waiver-ask" in c and "done?" in c] == asked

        # L3 takes two; a metric of L3 that breaks its bound is waived by both, then the owner may sign
        core = await fork.opens("olga", "core", {"lib/code.txt": "two\n"})
        await fork.proved(core)
        sign = "/signoff l3 core ne=0.95"
        assert "above 0.9" in await world.says("tina", core, sign)
        day = f"{world.clock() + timedelta(days=20):%Y-%m-%d}"
        first = await world.says("maria", core, waive("model#ne", day))
        assert "two maintainers" in first, first
        assert "above 0.9" in await world.says("tina", core, sign)
        assert "Waived until" in await world.says("mark", core, waive("model#ne", day))
        assert "signed area" in await world.says("tina", core, sign)
        assert fork.gate(core).startswith("allow")
        # a push voids both
        await fork.pushes("olga", "core", {"lib/code.txt": "three\n"})
        assert fork.gate(core).startswith("block")
        assert not await world.failures()


async def test_a_file_that_is_not_there_costs_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with gated(tmp_path) as fork:
        world = fork.world

        def asked() -> list[tuple[str, int]]:
            """What was asked for of the folder of Graft's files, with how it was answered."""
            parts = ("/contents/", "/git/blobs/")
            return [(path, status) for _, path, status in world.sandbox.state.requests if any(p in path for p in parts)]

        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        before = len(asked())
        await fork.ends(number)
        await fork.sweep()
        again = asked()[before:]
        assert {status for _, status in again} == {304}, again
        assert not [path for path, _ in again if FILE in path]

        # once it is there it is heard of
        await fork.sets({FILE: "waivers: [{scope: unit}]\n"})
        assert fork.gate(number).startswith(f"block: {FILE} is broken")
        await fork.sets({FILE: "waivers: []\n"})
        assert fork.gate(number).startswith("allow")

        # a folder with more than GitHub lists is asked for file by file
        monkeypatch.setattr("bot.clients.github.contents._MOST_LISTED", 1)
        await fork.sets({FILE: "waivers: [{scope: unit}]\n"})
        assert fork.gate(number).startswith(f"block: {FILE} is broken")
        await fork.sets({FILE: None})
        assert fork.gate(number).startswith("allow")
        assert not await world.failures()


async def test_a_lapsed_waiver_of_the_file_holds_up_its_owner_and_nobody_else(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world = fork.world
        world.sandbox.create_team("acme", "docs", ["rita"])
        day = world.clock() + timedelta(days=5)
        text = f"""
waivers:
  - {{scope: "docs/test_text.py::test_old", until: {day:%Y-%m-%d}, owner: acme/docs, reason: known, plan: mend it,
     by: [maria, mark]}}
"""
        assert read_file(text)
        await fork.sets({FILE: text})
        by_walter = await fork.opens("walter", "beside", {"other.txt": "two\n"})
        touching = await fork.opens("walter", "docs", {"docs/text.txt": "two\n"})
        by_owner = await fork.opens("rita", "hers", {"other.txt": "three\n"})
        everyone = (by_walter, touching, by_owner)
        await world.says("maria", by_owner, "/ok-to-test")
        for number in everyone:
            await fork.ends(number, "side", failed=["docs/test_text.py::test_old"])
            await fork.ends(number)
            assert fork.gate(number).startswith("allow"), number
        # three days before its end the owner is asked on the dashboard, once, however often it is looked at
        world.clock.ahead = day - timedelta(days=2) - world.clock() + world.clock.ahead
        for _ in range(2):
            await world.ask("waivers")
            await world.settle()
        told = [c.body for c in world.dashboard().comments if "is the plan done?" in c.body]
        assert len(told) == 1
        assert "@acme/docs" in told[0]

        # lapsed: its owner's pull requests and its area are red, the others stay mergeable (C63)
        world.clock.forward(days=4)
        await fork.sweep()
        assert fork.gate(by_walter).startswith("allow"), fork.gate(by_walter)
        assert "acme/docs answers for it, not this change" in fork.gate(by_walter).replace("\\", "")
        assert fork.gate(touching).startswith("block")
        assert fork.gate(by_owner).startswith("block")
        assert "the waiver of docs/test" in fork.gate(by_owner).replace("\\", "")
        await world.ask("waivers")
        await world.settle()
        assert len([c.body for c in world.dashboard().comments if "lapsed at" in c.body]) == 1

        # the pull request that takes it out of the file is not held by it
        mending = await fork.opens("rita", "mend", {FILE: "waivers: []\n"})
        await world.says("maria", mending, "/ok-to-test")
        await fork.ends(mending)
        assert fork.gate(mending).startswith("allow"), fork.gate(mending)
        await world.merge(mending)
        assert fork.gate(touching).startswith("block: side failed")
        assert not await world.failures()
