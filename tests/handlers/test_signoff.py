"""Sign-offs on real comments: who may, what they bind to, and all that takes them back."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.sandbox.person import Refused
from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG, gated

SIGN = "/signoff l3 core ne=0.8012"


async def test_only_an_owner_of_the_area_opens_it_and_only_for_this_commit(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world, sandbox = fork.world, fork.world.sandbox
        number = await fork.opens("olga", "core", {"lib/code.txt": "two\n"})
        await fork.proved(number)
        assert fork.gate(number).startswith("block: core: not signed off")
        assert "/signoff l3 core ne=…" in fork.gate(number)
        with pytest.raises(Refused):
            await sandbox.as_user("maria").merge_pull(FORK, number)

        # a maintainer who does not own it, its author, a stranger, a bad number, a missing one, an unknown area
        for login, text, why in (
            ("mark", SIGN, "mark does not own core"),
            ("olga", SIGN, "olga wrote this change"),
            ("sam", SIGN, "sam does not own core"),
            ("tina", "/signoff l3 core ne=0.95", "above 0.9"),
            ("tina", "/signoff l3 core", "ne is missing"),
            ("tina", "/signoff l3 cor ne=0.8", "no area"),
            ("tina", "/signoff l3 core ne=nan", "ne"),
        ):
            answer = await world.says(login, number, text)
            assert why in answer.replace("\\", ""), answer
            assert "❌" in answer
            assert not fork.gate(number).startswith("allow"), (login, text)

        # a member of the team that owns it, in a comment of several lines with carriage returns
        answer = await world.says("tina", number, f'Looks good.\r\n{SIGN} note="offline run"\r\n\r\nthanks')
        assert "tina signed area" in answer
        assert fork.gate(number).startswith("allow")

        # lost membership takes it back within one sweep, even where no event came
        team = sandbox.state.teams["acme", "compilers"]
        members = team.members
        kept = members.copy()
        members.clear()
        await fork.sweep()
        assert fork.gate(number).startswith("block: core: not signed off")
        assert "tina does not own core" in fork.gate(number)
        members.update(kept) if isinstance(members, (set, dict)) else members.extend(kept)
        await fork.sweep()
        assert fork.gate(number).startswith("allow")

        # /unsign, and signing anew
        assert "Taken back" in await world.says("tina", number, "/unsign l3 core")
        assert "took it back" in fork.gate(number)
        await world.says("tina", number, SIGN)
        assert fork.gate(number).startswith("allow")

        # an edit voids it, whatever the edit says
        comment = await sandbox.as_user("tina").comment(FORK, number, SIGN)
        await world.settle()
        sandbox.advance(5)
        await sandbox.as_user("tina").edit_comment(FORK, comment["id"], SIGN + " ")
        await sandbox.as_user("tina").edit_comment(FORK, comment["id"], "/signoff l3 core ne=0.7")
        await world.settle()
        signed = [c for c in world.repository.issues[number].comments if c.user == "tina" and SIGN in c.body]
        for one in signed:
            await sandbox.as_user("tina").delete_comment(FORK, one.id)
        await world.settle()
        assert fork.gate(number).startswith("block: core: not signed off")
        assert "edited the comment" in fork.gate(number)

        # deleted without any event: the sweep sees it
        comment = await sandbox.as_user("tina").comment(FORK, number, SIGN)
        await world.settle()
        assert fork.gate(number).startswith("allow")
        sandbox.faults.drop_deliveries(times=5)
        await sandbox.as_user("tina").delete_comment(FORK, comment["id"])
        await world.settle()
        sandbox.faults.clear()
        assert fork.gate(number).startswith("allow")
        await fork.sweep()
        assert fork.gate(number).startswith("block: core: not signed off")

        # signed again; trunk moves elsewhere: it stands
        await world.says("tina", number, SIGN)
        await fork.sets({"other.txt": "moved\n"})
        await fork.sweep()
        assert fork.gate(number).startswith("allow")
        await sandbox.as_user("olga").update_branch(FORK, number)
        await world.settle()
        await fork.proved(number)
        assert fork.gate(number).startswith("allow"), fork.gate(number)

        # a push voids it, with the reason
        await fork.pushes("olga", "core", {"docs/more.txt": "more\n"})
        await fork.proved(number)
        assert "pushed since" in fork.gate(number)
        assert fork.gate(number).startswith("block: core: not signed off")
        await world.says("tina", number, SIGN)
        assert fork.gate(number).startswith("allow")
        await world.merge(number)
        assert world.repository.issues[number].pull.merged_at is not None
        assert not await world.failures()


async def test_where_the_file_says_so_a_push_beside_the_area_keeps_it(tmp_path: Path) -> None:
    async with gated(tmp_path, config=CONFIG + "  keep_signoff_outside_area: true\n  self_signoff: true\n") as fork:
        number = await fork.opens("olga", "core", {"lib/code.txt": "two\n"})
        await fork.proved(number)
        # its owners are asked, once, by name and with what they have to measure; and reminded
        (request,) = [c for c in fork.world.comments(number) if "l3-request" in c]
        assert "@olga @acme/compilers" in request
        assert "`model: ne`" in request
        assert "`/signoff l3 core ne=…`" in request
        for _ in range(2):
            fork.world.clock.forward(days=2)
            for _ in range(2):
                await fork.sweep()
        assert len([c for c in fork.world.comments(number) if "l3-reminder" in c]) == 2
        answer = await fork.world.says("olga", number, SIGN)
        assert "olga signed area" in answer
        (request,) = [c for c in fork.world.comments(number) if "l3-request" in c]
        assert "Every area that has to has signed" in request
        assert "A push that does not touch the area keeps it" in answer
        await fork.pushes("olga", "core", {"docs/more.txt": "more\n"})
        await fork.proved(number)
        assert fork.gate(number).startswith("allow"), fork.gate(number)
        await fork.pushes("olga", "core", {"lib/code.txt": "three\n"})
        await fork.proved(number)
        assert "pushed since" in fork.gate(number)

        # what it measures is held against trunk: 100 ms there, and 3 % more are allowed
        await fork.world.says("olga", number, SIGN)
        assert fork.gate(number).startswith("allow")
        await fork.world.says("maria", number, "/validate l2")
        await fork.ends(number, level="l2", measured={"ms": [104.0]})
        assert "speed#ms (100 became 104, 4.00% worse, the budget is 3.00%)" in fork.gate(number).replace("\\", "")
        await fork.world.says("maria", number, "/validate l2")
        await fork.ends(number, level="l2", measured={"ms": [90.0, 101.0, 250.0]}, gpu="another GPU")
        assert "no value on trunk" in fork.gate(number)
        await fork.world.says("maria", number, "/validate l2")
        await fork.ends(number, level="l2", measured={})
        assert "speed#ms (not measured)" in fork.gate(number).replace("\\", "")
        await fork.world.says("maria", number, "/validate l2")
        await fork.ends(number, level="l2", measured={"ms": [90.0, 101.0, 250.0]})
        assert fork.gate(number).startswith("allow")
