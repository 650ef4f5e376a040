"""The commands on upstream commits and on Graft's pull requests: role, answer, record, and what comes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.batches import BatchState, ClosedWhy
from bot.core.types import Disposition
from tests.handlers.pair import CONFIG, FORK, RISK, Clone, pair

pytestmark = pytest.mark.timeout(240)


async def test_deciding_against_a_commit_takes_it_out_of_what_is_open(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        bundle = p.pulls()[0]
        one, two = p.shas["one"], p.shas["two"]
        assert "takes write access" in await p.says("rita", 1, f'/defer {one[:10]} reason="no"')
        assert "names no upstream commit" in await p.says("walter", 1, '/defer 0123456789 reason="no"')
        assert "❌" in await p.says("walter", 1, f"/defer {one[:10]}")
        assert p.carrying(one) == [1]
        answer = await p.says("walter", 1, '/defer #11 reason="waits for @maria, fixes #3" owner=@maria')
        assert "is **deferred** now" in answer
        assert "#1 is built anew without it" in answer
        assert "waits for @\u200bmaria, fixes #\u200b3" in answer
        # the branch, the body and the title follow, under a lease
        assert p.git("log", "--format=%B", f"main..{bundle.pull.head_sha}").count("cherry picked") == 1
        assert "one.txt" not in p.git("ls-tree", "-r", "--name-only", bundle.pull.head_sha).split()
        assert p.carrying(one) == []
        assert p.carrying(two) == [1]
        assert "1 upstream commit" in bundle.title
        assert "Deferred" in bundle.body
        assert any("was deferred" in text for text in p.comments(1))
        entry = await p.entry(one)
        assert (entry.disposition, entry.owner, entry.by) == (Disposition.DEFERRED, "maria", "walter")
        # the last of it: the pull request is closed with the reason
        answer = await p.says("maria", 1, f'/wont-port {two[:10]} reason="ours is better"')
        assert "#1 is closed" in answer
        assert bundle.state == "closed"
        assert any("won't be ported" in text and "ours is better" in text for text in p.comments(1))
        assert (await p.entry(two)).disposition is Disposition.WONT_PORT
        # the chain ends where nothing can lean on it; /skip is final too
        answer = await p.says("maria", 2, f'/skip {p.shas["link1"][:10]} reason="no effect here"')
        assert "✅" in answer
        assert p.repository.issues[2].state == "closed"
        assert (await p.entry(p.shas["link1"])).disposition is Disposition.SKIPPED
        # /pick takes a decision back
        answer = await p.says("walter", 2, f"/pick {one}")  # on a closed pull request nothing but a few is understood
        assert "closed" in answer
        answer = await p.says("walter", p.dashboard().number, f"/pick {one}")
        assert "✅" in answer
        assert len(p.carrying(one)) == 1
        assert (await p.entry(one)).disposition is Disposition.PENDING
        again = await p.says("walter", p.dashboard().number, f"/pick {one}")
        assert "carries" in again
        commands = await p.context.store.commands(FORK)
        assert all(command.answer for command in commands)
        audited = [row for row in await p.context.store.audit_entries(FORK) if row.kind == "command"]
        assert len(audited) == len(commands)
        assert await p.failures() == []


async def test_split_explain_and_retry(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        one, two = p.shas["one"], p.shas["two"]
        answer = await p.says("rita", 1, f"/explain {one[:10]}")
        assert "verdict: **safe**" in answer
        assert "waits for" in await p.says("rita", 1, f"/explain {p.shas['link2'][:10]}")
        assert "Name commits of this bundle" in await p.says("walter", 1, f"/split {p.shas['link1'][:10]}")
        assert "Only a bundle" in await p.says("walter", 2, "/split")
        answer = await p.says("walter", 1, f"/split {two[:10]}")
        assert "1 commit of it come" in answer
        assert p.repository.issues[1].state == "closed"
        assert p.carrying(one) != p.carrying(two)
        assert [len(p.carrying(sha)) for sha in (one, two)] == [1, 1]
        split = next(b for b in await p.batches() if b.number == 1)
        assert (split.closed_why, split.apart) == (ClosedWhy.SPLIT, (two,))
        assert "Nothing failed" in await p.says("walter", p.carrying(one)[0], "/retry")
        assert "Looking at both sides" in await p.says("walter", p.dashboard().number, "/retry")
        assert await p.failures() == []


@pytest.mark.parametrize("method", ["squash", "rebase"])
async def test_rollback_and_what_comes_of_it(tmp_path: Path, method: str) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        one, two = p.shas["one"], p.shas["two"]
        assert "has not landed" in await p.says("maria", 1, "/rollback")
        before = p.git("rev-parse", "main^{tree}")
        await p.merge(1, method)
        assert "takes" in await p.says("rita", 1, "/rollback")  # may not
        answer = await p.says("maria", 1, "/rollback")
        assert "✅" in answer
        revert = p.pulls()[-1]
        assert revert.title == "[graft] Roll back #1"
        assert "Roll-back point" in revert.body
        again = await p.says("maria", 1, "/rollback")  # asked twice is one
        assert f"#{revert.number}" in again
        assert p.pulls()[-1].number == revert.number
        await p.merge(revert.number, "squash")
        assert p.git("rev-parse", "main^{tree}") == before
        assert {(await p.entry(sha)).disposition for sha in (one, two)} == {Disposition.REVERTED}
        await p.ingest()
        assert p.carrying(one) + p.carrying(two) == []  # not opened again on its own account
        assert (await p.plan()).ledger.metrics.backlog == 2
        assert "the fork took it back" in p.dashboard().body
        landed = next(b for b in await p.batches() if b.number == 1)
        assert landed.state is BatchState.MERGED
        answer = await p.says("walter", 1, "/retry")
        assert "2 commits of it" in answer
        assert [len(p.carrying(sha)) for sha in (one, two)] == [1, 1]
        for sha in (one, two):
            await p.merge(p.carrying(sha)[0], method)
        assert {(await p.entry(sha)).disposition for sha in (one, two)} == {Disposition.PICKED}
        assert {b.number: b.state for b in await p.batches()}[1] is BatchState.MERGED
        assert await p.failures() == []


async def test_a_rollback_that_conflicts_says_how_by_hand(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        await p.merge(1, "squash")
        p.fork_commits("Lean on it", {"one.txt": "one and more\n"})
        await p.settle()
        answer = await p.says("maria", 1, "/rollback")
        assert "conflicts with what has landed since" in answer
        assert "git revert" in answer


async def test_an_urgent_commit_comes_alone(tmp_path: Path) -> None:
    def make(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
        for number in range(1, 5):
            shas[f"c{number}"] = upstream.commit(f"Add {number} (#{number})", {f"f{number}.txt": f"{number}\n"})

    config = CONFIG + RISK + "  caps: {pull_requests_per_day: 0}\n"
    async with pair(tmp_path, make=make, config=config) as p:
        p.install()
        await p.settle()
        assert p.pulls() == []
        await p.says("walter", p.dashboard().number, "/pick #4")
        (pull,) = p.pulls()
        assert p.carrying(p.shas["c4"]) == [pull.number]
        assert p.carrying(p.shas["c1"]) == []
        await p.merge(pull.number, "squash")
        # far beyond the frontier, it moves nothing (C22)
        plan = await p.plan()
        assert plan.ledger.frontier is None
        assert plan.ledger.metrics.backlog == 0
        assert (await p.entry(p.shas["c4"])).disposition is Disposition.PICKED
