"""The store deleted in the middle: all is read back from git and GitHub, and nothing is opened twice."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bot.cli.ledger import app
from bot.core.batches import Batch, BatchState
from bot.core.types import Disposition
from tests.handlers.pair import CONFIG, FORK, RISK, Clone, Pair, bot, make_usual, pair

pytestmark = pytest.mark.timeout(240)


def make(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
    make_usual(upstream, fork, shas)
    for number in range(3, 9):
        shas[f"c{number}"] = upstream.commit(f"Add {number} (#{number + 20})", {f"f{number}.txt": f"{number}\n"})


def told(batch: Batch) -> tuple[Any, ...]:
    """What of a batch must survive."""
    return (
        batch.number,
        batch.key,
        batch.position,
        batch.state,
        batch.commits,
        batch.closed_why,
        batch.paused,
        batch.head,
    )


async def live(p: Pair) -> None:
    """A life with all that can happen to a batch."""
    p.install()
    await p.settle()
    await p.sandbox.as_user("maria").merge_pull(FORK, p.carrying(p.shas["one"])[0], "squash", message="no trailers")
    await p.settle()
    await p.sandbox.as_user("walter").close(FORK, p.carrying(p.shas["c3"])[0])
    await p.says("walter", p.carrying(p.shas["c5"])[0], f'/defer {p.shas["c5"][:10]} reason="later" owner=@maria')
    await p.says("maria", p.carrying(p.shas["clash"])[0], f'/wont-port {p.shas["clash"][:10]} reason="ours"')
    await p.says("walter", p.carrying(p.shas["c7"])[0], "/split")
    p.person_pushes(p.pull_with(p.shas["c6"]).pull.head_ref, "A person's", {"f6.txt": "six\n"})
    await p.settle()
    assert await p.failures() == []


async def test_a_deleted_store_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = CONFIG + RISK + "  bundle: {max_commits: 2}\n"
    async with pair(tmp_path, make=make, config=config) as p:
        await live(p)
        before = {e.sha: (e.disposition, e.by, e.reason, e.owner) for e in (await p.plan()).ledger.entries}
        batches = sorted(told(b) for b in await p.batches())
        pulls = {i.number: (i.state, i.pull.head_sha) for i in p.pulls(None)}
        pin, frontier = (await p.plan()).ledger.pin, (await p.plan()).ledger.frontier
        assert {d for d, *_ in before.values()} >= {Disposition.PICKED, Disposition.DEFERRED, Disposition.WONT_PORT}

        old = p.context
        async with bot(tmp_path / "elsewhere", p.sandbox, p.app) as (context, clock):
            p.context, p.clock = context, clock
            # by itself, at the first look
            await p.ask("ingest")
            await p.settle()
            assert await p.failures() == []
            plan = await p.plan()
            assert {e.sha: (e.disposition, e.by, e.reason, e.owner) for e in plan.ledger.entries} == before
            assert (plan.ledger.pin, plan.ledger.frontier) == (pin, frontier)
            assert sorted(told(b) for b in await p.batches()) == batches
            assert {i.number: (i.state, i.pull.head_sha) for i in p.pulls(None)} == pulls
            closed = [b for b in await p.batches() if b.state is BatchState.CLOSED]
            assert len({b.closed_why for b in closed}) == 3

        # on purpose, by command; and the store that was never lost says the same as git and GitHub
        p.context = old
        environment(monkeypatch, p, tmp_path / "third")
        code, out = await called("rebuild", "--json")
        assert code == 0, out
        (one,) = json.loads(out)
        assert (one["repository"], one["decisions"]) == (FORK, 2)
        assert {e["sha"]: e["disposition"] for e in one["ledger"]["entries"]} == {
            sha: disposition.value for sha, (disposition, *_) in before.items()
        }
        code, out = await called("verify")
        assert (code, out) == (0, f"{FORK}: 0 found\n")
        environment(monkeypatch, p, tmp_path / "data")
        assert (await called("verify"))[0] == 0
        # a decision that stands nowhere but in the store is found
        await p.context.store.remove_decision(FORK, p.shas["clash"])
        code, out = await called("verify", "--json")
        assert code == 1
        assert "wont_port by git and GitHub" in out
        code, out = await called("rebuild", "-r", "acme/other")
        assert code == 2
        assert "acme/other is not among" in out


async def test_what_a_crash_left_unnoted_is_found_again(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        before = sorted(told(b) for b in await p.batches())
        # opened and not noted; pushed and not noted
        with sqlite3.connect(tmp_path / "data" / "graft.db") as database:
            assert database.execute("DELETE FROM batches WHERE number = 1").rowcount == 1
            assert database.execute("UPDATE batches SET head = ? WHERE number > 1", ("0" * 40,)).rowcount == 2
        await p.ingest()
        assert sorted(told(b) for b in await p.batches()) == before
        assert [pull.number for pull in p.pulls(None)] == [1, 2, 3]
        assert not any("Someone pushed" in text for number in (1, 2, 3) for text in p.comments(number))
        # what somebody made of the block by hand is not believed
        await p.sandbox.as_user("walter").update_pull(FORK, 1, body='<!-- graft:batch {"commits":[1],"kind":7} -->')
        with sqlite3.connect(tmp_path / "data" / "graft.db") as database:
            database.execute("DELETE FROM batches WHERE number = 1")
        await p.ingest()
        assert await p.failures() == []
        assert [pull.number for pull in p.pulls(None)] == [1, 2, 3]
        assert p.carrying(p.shas["one"]) == [1]


def environment(monkeypatch: pytest.MonkeyPatch, p: Pair, data: Path) -> None:
    """The settings of a deployment, as `graft serve` has them."""
    for name, value in {
        "APP_ID": p.app.id,
        "PRIVATE_KEY": p.app.private_key,
        "WEBHOOK_SECRET": "x",
        "GITHUB_API": p.sandbox.api_url,
        "GITHUB_GIT": p.sandbox.url,
        "DATA": data,
    }.items():
        monkeypatch.setenv(f"GRAFT_{name}", str(value))


async def called(*arguments: str) -> tuple[int, str]:
    """`graft ledger …`, beside the loop that serves the sandbox."""
    result = await asyncio.to_thread(CliRunner().invoke, app, list(arguments))
    return result.exit_code, result.stdout if result.exit_code < 2 else result.output
