"""The gate with branch protection on: what keeps a change from landing, what lets it, and what shuts it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.types import Outcome
from bot.sandbox.person import Refused
from tests.handlers.pair import FORK
from tests.handlers.runs import CONFIG, Gated, gated


async def refused(fork: Gated, number: int) -> str:
    """Merging by the API is refused; gives why."""
    with pytest.raises(Refused) as error:
        await fork.world.sandbox.as_user("maria").merge_pull(FORK, number)
    assert error.value.status == 405
    return error.value.message


async def test_a_persons_change_lands_once_its_level_passed_and_not_before(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        number = await fork.opens("walter", "small", {"other.txt": "two\n"})
        assert fork.gate(number).startswith("pending: ")
        assert "graft/gate" in await refused(fork, number)

        # one suite failed, the other never ran to an end
        await fork.ends(number, "unit", failed=["tests/test_all.py::test_bad"])
        assert fork.gate(number).startswith("block: unit failed: tests/test_all.py::test_bad")
        assert "/waive" in fork.gate(number)
        await fork.ends(number, "side", outcome=Outcome.INFRA, reason="the machine went away")
        assert "side says nothing: infra" in fork.gate(number)
        await refused(fork, number)

        # a retry runs what did not pass; a missing test is no pass either
        await fork.world.says("walter", number, "/retry")
        assert await fork.ends(number, "side") == ["side"]
        await fork.ends(number, "unit", missing=["tests/test_all.py::test_gone"])
        assert "left out what it had to run" in fork.gate(number)
        await refused(fork, number)
        await fork.world.says("walter", number, "/retry")
        await fork.ends(number)
        assert fork.gate(number).startswith("allow")

        # a halt, changes asked for and a draft shut it again, each by its event; and each is undone
        issue = await fork.world.sandbox.as_user("walter").open_issue(FORK, "Stop", labels=["graft:halt"])
        await fork.world.settle()
        assert fork.gate(number).startswith("block: halted by")
        await refused(fork, number)
        await fork.world.sandbox.as_user("walter").close(FORK, issue["number"])
        review = await fork.world.sandbox.as_user("olga").review(FORK, number, "REQUEST_CHANGES", "no")
        await fork.world.settle()
        assert fork.gate(number).startswith("block: olga asked for changes")
        await fork.world.sandbox.as_user("maria").dismiss_review(FORK, number, review["id"], "done")
        await fork.world.sandbox.as_user("walter").convert_to_draft(FORK, number)
        await fork.world.settle()
        assert fork.gate(number).startswith("pending: it is a draft")
        await fork.world.sandbox.as_user("walter").ready_for_review(FORK, number)
        await fork.world.settle()
        assert fork.gate(number).startswith("allow")

        # a broken file shuts it, mended it opens again
        await fork.sets({".github/graft.yml": CONFIG + "gatee: {}\n"})
        assert "did you mean gate" in fork.gate(number)
        answer = await fork.world.says("walter", number, "/retry")
        assert "is broken" in answer
        await refused(fork, number)
        await fork.sets({".github/graft.yml": CONFIG})
        assert fork.gate(number).startswith("allow")

        # a halt whose event was lost is seen by the sweep
        fork.world.sandbox.faults.drop_deliveries(times=20)
        await fork.world.sandbox.as_user("walter").reopen(FORK, issue["number"])
        await fork.world.settle()
        fork.world.sandbox.faults.clear()
        assert fork.gate(number).startswith("allow")
        await fork.sweep()
        assert fork.gate(number).startswith("block: halted by")
        await fork.world.sandbox.as_user("walter").close(FORK, issue["number"])
        await fork.world.settle()

        # a new head starts from nothing (C61): what runs for the old one counts for nobody
        old = fork.head(number)
        await fork.pushes("walter", "small", {"other.txt": "three\n"})
        assert fork.gate(number).startswith("pending: ")
        assert fork.gate_at(old).startswith("allow")
        await refused(fork, number)
        running = await fork.waiting(number)
        await fork.pushes("walter", "small", {"other.txt": "four\n"})
        store = fork.world.context.store
        assert {(await store.run(run.id)).outcome for run in running} == {"cancelled"}  # type: ignore[union-attr]
        assert fork.gate(number).startswith("pending: ")
        await fork.ends(number)
        assert fork.gate(number).startswith("allow")
        await fork.world.merge(number)
        assert fork.world.repository.issues[number].pull.merged_at is not None
        assert not await fork.world.failures()


async def test_nothing_unread_opens_it(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        faults, number = fork.world.sandbox.faults, await fork.opens("walter", "small", {"other.txt": "two\n"})
        # whatever of GitHub fails while the facts are read, the gate does not open on the rest
        fork.world.failing = True
        for path, kind in (
            (r"/pulls/\d+/reviews", "server_error"),
            (r"/issues/\d+/comments", "bad_gateway"),
            (r"/pulls/\d+/files", "forbidden"),
            (r"/contents/.github", "server_error"),
            (r"/check-runs", "abuse"),
        ):
            faults.fail(kind, method="GET" if kind != "abuse" else "P.*", path=path, times=50)
        await fork.ends(number)
        assert not fork.gate(number).startswith("allow")
        faults.clear()
        fork.world.clock.forward(hours=2)
        await fork.world.settle()
        assert fork.gate(number).startswith("allow")

        # the list of files is shorter than GitHub says the change is
        pull = fork.world.repository.issues[number].pull
        await fork.sets({".github/graft-waivers.yml": "waivers: [{scope: unit}]\n"})
        assert fork.gate(number).startswith("block: .github/graft-waivers.yml is broken")
        assert pull.merged_at is None
        await refused(fork, number)


async def test_trunk_that_is_red_holds_what_touches_its_area(tmp_path: Path) -> None:
    async with gated(tmp_path) as fork:
        await fork.ends(None, "side", failed=["docs/test_text.py::test_spelling"])
        issue = next(i for i in fork.world.repository.issues.values() if "trunk-breakage" in i.labels)
        touching = await fork.opens("walter", "touching", {"docs/text.txt": "two\n"})
        beside = await fork.opens("walter", "beside", {"other.txt": "two\n"})
        mending = await fork.opens("walter", "mending", {"docs/text.txt": "three\n"}, body=f"Fixes #{issue.number}")
        for number in (touching, beside, mending):
            await fork.ends(number)
        assert fork.gate(touching).startswith("block: trunk is red in docs")
        assert fork.gate(beside).startswith("allow")
        assert fork.gate(mending).startswith("allow")
        await fork.world.sandbox.as_user("walter").label(FORK, touching, "trunk-breakage")
        await fork.world.settle()
        assert fork.gate(touching).startswith("allow")
        await fork.world.sandbox.as_user("walter").unlabel(FORK, touching, "trunk-breakage")

        # trunk is mended: all see it
        await fork.world.merge(mending)
        await fork.ends(None, passed=["docs/test_text.py::test_spelling", "tests/test_all.py::test_fine"])
        assert fork.gate(touching).startswith("allow")
