"""Someone pushes between Graft's look and its own push: refused by the lease, nothing lost, and said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.clients.git import Git
from bot.core.batches import BatchState
from tests.handlers.pair import Pair, pair

pytestmark = pytest.mark.timeout(240)


def just_before(monkeypatch: pytest.MonkeyPatch, branch: str, act: Callable[[], Any]) -> list[Any]:
    """Let `act` happen once, at the moment when Graft is about to push to a branch; gives what came of it."""
    happened: list[Any] = []
    push = Git.push

    def pushed(self: Git, url: str, sha: str, ref: str, **more: Any) -> None:
        if ref == f"refs/heads/{branch}" and not happened:
            happened.append(act())
        push(self, url, sha, ref, **more)

    monkeypatch.setattr(Git, "push", pushed)
    return happened


async def said_and_kept(p: Pair, number: int, mine: str) -> None:
    """The person's commit stands, and the pull request tells so, once."""
    await p.ingest()
    pull = p.repository.issues[number]
    assert p.git("rev-parse", f"refs/heads/{pull.pull.head_ref}") == mine
    assert sum("Graft writes here no more" in text for text in p.comments(number)) == 1
    assert {b.number: b.paused for b in await p.batches()}[number]
    assert "the person who pushed to it" in p.dashboard().body
    assert await p.failures() == []


async def test_a_push_while_the_branch_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        bundle = p.pull_with(p.shas["two"])
        happened = just_before(
            monkeypatch, bundle.pull.head_ref, lambda: p.person_pushes(bundle.pull.head_ref, "Mine", {"two.txt": "2\n"})
        )
        p.fork_commits("In the way", {"one.txt": "in the way\n"})
        await p.settle()
        (mine,) = happened
        await said_and_kept(p, bundle.number, mine)
        assert p.carrying(p.shas["two"]) == [bundle.number]


async def test_a_push_while_the_pull_request_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        link = p.pull_with(p.shas["link1"])
        branch = link.pull.head_ref
        happened = just_before(monkeypatch, branch, lambda: p.person_pushes(branch, "Mine", {"mine.txt": "x\n"}))
        await p.says("maria", link.number, f'/wont-port {p.shas["link1"][:10]} reason="our own"')
        (mine,) = happened
        assert link.state == "closed"
        assert p.git("rev-parse", f"refs/heads/{branch}") == mine


async def test_a_branch_of_that_name_that_graft_did_not_build(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        clash = p.pull_with(p.shas["clash"])
        branch = clash.pull.head_ref
        mine = p.person_pushes(branch, "Resolve", {"clash.txt": "mine\n"})
        await p.settle()
        assert any("press **Ready for review**" in text for text in p.comments(clash.number))
        # decided against while a person holds the branch: closed, the person's work is left
        await p.says("maria", clash.number, f'/defer {p.shas["clash"][:10]} reason="later"')
        assert p.repository.issues[clash.number].state == "closed"
        await p.says("maria", 1, f"/pick {p.shas['clash'][:10]}")
        assert p.carrying(p.shas["clash"]) == []
        assert p.git("rev-parse", f"refs/heads/{branch}") == mine
        assert "holds what Graft did not build" in p.dashboard().body
        # out of the way, it goes on
        p.sandbox.delete_ref(p.fork_name, branch)
        await p.ingest()
        (number,) = p.carrying(p.shas["clash"])
        assert {b.number: b.state for b in await p.batches()}[number] is BatchState.DRAFT
        assert "holds what Graft did not build" not in p.dashboard().body
