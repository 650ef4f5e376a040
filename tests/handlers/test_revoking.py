"""What was given is taken back: each way of it shuts the gate within one sweep, though every webhook of it is lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.sandbox.person import Refused
from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG, Gated, gated

SIGN = "/signoff l3 core ne=0.8"
BAD = "tests/test_all.py::test_bad"


async def may_land(fork: Gated, number: int, *, queue: bool) -> bool:
    """Whether GitHub would let it land now: the merge button's own answer, or the merge queue's."""
    maria = fork.world.sandbox.as_user("maria")
    if queue:
        try:
            await maria.enqueue(FORK, number)
        except Refused:
            return False
        await maria.dequeue(FORK, number)
        await fork.world.settle()
        return True
    view = await maria.get(f"/repos/{FORK}/pulls/{number}")
    return bool(view["mergeable_state"] != "blocked")


async def signed(fork: Gated, number: int) -> int:
    """The area is signed off, and the change may land; gives the comment."""
    fork.world.sandbox.advance(2)
    comment = await fork.world.sandbox.as_user("tina").comment(FORK, number, SIGN)
    await fork.world.settle()
    assert fork.gate(number).startswith("allow"), fork.gate(number)
    return int(comment["id"])


async def unheard(fork: Gated, act: Callable[[], Awaitable[Any]]) -> None:
    """Something happens of which no webhook tells; then one sweep."""
    fork.world.sandbox.advance(3)
    fork.world.sandbox.faults.drop_deliveries(times=100)
    await act()
    await fork.world.sandbox.settle()
    fork.world.sandbox.faults.clear()
    await fork.sweep()


@pytest.mark.parametrize("queue", [False, True], ids=["merge API", "merge queue"])
async def test_a_sign_off_that_is_taken_back_shuts_the_gate_within_one_sweep(tmp_path: Path, queue: bool) -> None:
    async with gated(tmp_path, merge_queue=queue) as fork:
        world, sandbox = fork.world, fork.world.sandbox
        tina, number = sandbox.as_user("tina"), await fork.opens("olga", "core", {"lib/code.txt": "two\n"})
        await fork.proved(number)
        assert not await may_land(fork, number, queue=queue)

        async def edited(comment: int) -> None:
            await tina.edit_comment(FORK, comment, SIGN + " note=typo")

        async def deleted(comment: int) -> None:
            await tina.delete_comment(FORK, comment)

        async def left(comment: int) -> None:
            sandbox.state.teams["acme", "compilers"].members.clear()

        async def withdrew(comment: int) -> None:
            await tina.comment(FORK, number, "/unsign l3 core")

        async def owns_no_more(comment: int) -> None:
            file = CONFIG.replace("owners: [olga, acme/compilers]", "owners: [olga]")
            world.fork_commits("Owners", {".github/graft.yml": file}, login="maria")

        async def pushed(comment: int) -> None:
            await fork.pushes("olga", "core", {"lib/code.txt": "three\n"}, settle=False)

        told = (
            (edited, "edited the comment"),
            (deleted, "core: not signed off"),
            (left, "does not own core"),
            (withdrew, "took it back"),
            (owns_no_more, "does not own core"),
            (pushed, "not run on this commit"),
        )
        for act, why in told[:: 2 if queue else 1]:
            comment = await signed(fork, number)
            assert await may_land(fork, number, queue=queue)
            await unheard(fork, lambda act=act, comment=comment: act(comment))  # type: ignore[misc]
            assert not fork.gate(number).startswith("allow"), act.__name__
            assert why in fork.gate(number).replace("\\", ""), (act.__name__, fork.gate(number))
            assert not await may_land(fork, number, queue=queue)
            sandbox.state.teams["acme", "compilers"].members["tina"] = "member"
            if act is owns_no_more:
                await fork.sets({".github/graft.yml": CONFIG})
        assert not await world.failures()


async def test_a_waiver_that_is_taken_back_or_lapses_shuts_the_gate_within_one_sweep(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        world, sandbox = fork.world, fork.world.sandbox
        mark, number = sandbox.as_user("mark"), await fork.opens("walter", "small", {"other.txt": "two\n"})
        await fork.ends(number, "side")
        await fork.ends(number, "unit", failed=[BAD])
        day = f"{world.clock() + timedelta(days=1):%Y-%m-%d}"
        text = f'/waive {BAD} until={day} owner=@olga reason="known" plan="mend it"'

        async def edited(comment: int) -> None:
            await mark.edit_comment(FORK, comment, text.replace(day, "2099-01-01"))

        async def deleted(comment: int) -> None:
            await mark.delete_comment(FORK, comment)

        async def no_maintainer(comment: int) -> None:
            sandbox.set_permission(FORK, "mark", "write")

        async def lapsed(comment: int) -> None:
            world.clock.forward(days=2)

        for act in (edited, deleted, no_maintainer, lapsed):
            assert not await may_land(fork, number, queue=False)
            sandbox.set_permission(FORK, "mark", "maintain")
            sandbox.advance(2)
            comment = await mark.comment(FORK, number, text)
            await world.settle()
            assert fork.gate(number).startswith("allow"), (act.__name__, fork.gate(number))
            assert await may_land(fork, number, queue=False)
            await unheard(fork, lambda act=act, comment=comment: act(int(comment["id"])))  # type: ignore[misc]
            assert fork.gate(number).startswith("block: unit failed"), act.__name__
        assert not await world.failures()
