"""The merge queue: a group lands only where each member may, and L1 passed on the group's own commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.sandbox.person import Refused
from handlers.validate import GROUP
from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG, gated


async def test_a_group_lands_by_its_own_level_one(tmp_path: Path) -> None:
    async with gated(tmp_path, merge_queue=True) as fork:
        world, maria = fork.world, fork.world.sandbox.as_user("maria")
        first = await fork.opens("walter", "first", {"other.txt": "two\n"})
        second = await fork.opens("walter", "second", {"docs/text.txt": "two\n"})
        with pytest.raises(Refused, match="graft/gate"):
            await maria.enqueue(FORK, first)
        for number in (first, second):
            await fork.ends(number)
            assert fork.gate(number).startswith("allow")
        with pytest.raises(Refused):
            await maria.merge_pull(FORK, first)

        # both wait for L1 on the commit that would land; the second is built on the first
        await maria.enqueue(FORK, first)
        await maria.enqueue(FORK, second)
        await world.settle()
        groups = [entry.head_sha for entry in world.repository.queue]
        assert {run.sha for run in await fork.waiting(GROUP)} == set(groups)
        assert [fork.gate_at(sha).partition(":")[0] for sha in groups] == ["pending", "pending"]

        # a failure on the group's own commit sends the first away, and the second is built anew without it
        await fork.ends(GROUP, "unit", sha=groups[0], failed=["tests/test_all.py::test_together"])
        assert fork.gate_at(groups[0]).startswith("block: unit failed")
        assert [entry.number for entry in world.repository.queue] == [second]
        assert {run.sha for run in await fork.waiting(GROUP)} == {world.repository.queue[0].head_sha}
        assert world.repository.issues[first].pull.merged_at is None
        # trunk is not blamed for it
        assert not [i for i in world.repository.issues.values() if "trunk-breakage" in i.labels]

        # a halt while it waits holds the group, and after it the group lands
        issue = await fork.world.sandbox.as_user("walter").open_issue(FORK, "Stop", labels=["graft:halt"])
        await world.settle()
        assert not world.repository.queue
        await fork.world.sandbox.as_user("walter").close(FORK, issue["number"])
        await world.settle()
        await maria.enqueue(FORK, second)
        await world.settle()
        head = world.repository.queue[0].head_sha
        await fork.ends(GROUP)
        assert fork.gate_at(head).startswith("allow")
        assert world.repository.issues[second].pull.merged_at is not None
        assert not world.repository.queue
        assert not await world.failures()


async def test_a_group_under_a_broken_file_does_not_land(tmp_path: Path) -> None:
    async with gated(tmp_path, merge_queue=True) as fork:
        number = await fork.opens("walter", "first", {"other.txt": "two\n"})
        await fork.ends(number)
        await fork.world.sandbox.as_user("maria").enqueue(FORK, number)
        head = fork.world.repository.queue[0].head_sha
        await fork.sets({".github/graft.yml": CONFIG + "nonsense: 1\n"})
        assert fork.gate_at(head).startswith("block: .github/graft.yml of the default branch is broken")
        assert fork.world.repository.issues[number].pull.merged_at is None
