"""What hangs on a branch that somebody deletes, and a pull request that no webhook told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.handlers.pair import FORK, pair

pytestmark = pytest.mark.timeout(240)


async def test_a_deleted_base_is_no_refusal_of_what_was_open(tmp_path: Path) -> None:
    """As C86: GitHub closes the pull requests whose base is deleted; nobody said no to their commits."""
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        open_before = {role: p.carrying(p.shas[role]) for role in ("one", "link1", "clash")}
        tip = p.git("rev-parse", "main")
        p.failing = True
        p.sandbox.delete_ref(FORK, "main")
        await p.settle()
        assert p.pulls() == []
        p.git("update-ref", "refs/heads/main", tip)
        p.clock.forward(hours=1)
        await p.ingest()
        after = {role: p.carrying(p.shas[role]) for role in open_before}
        assert all(len(numbers) == 1 for numbers in after.values())
        assert not set(map(tuple, after.values())) & set(map(tuple, open_before.values()))
        assert all(b.state.in_flight for b in await p.batches())


async def test_c81_checks_appear_where_every_webhook_was_lost(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        p.fork.get(str(p.repository.path), "main")
        sha = p.fork.commit("A change", {"new.txt": "x\n"}, author="walter <walter@acme.example>")
        p.sandbox.faults.drop_deliveries(times=9)
        p.sandbox.push_ref(FORK, "topic", source=p.fork.path, rev=sha, login="walter")
        await p.sandbox.as_user("walter").open_pull(FORK, "topic", title="A change")
        await p.settle()
        assert not [c for c in p.repository.check_runs.values() if c.head_sha == sha]
        p.sandbox.faults.clear()
        await p.ask("sweep")
        await p.settle()
        (gate,) = [c for c in p.repository.check_runs.values() if c.head_sha == sha and c.name == "graft/gate"]
        assert (gate.status, bool(gate.title)) in (("completed", True), ("in_progress", True), ("queued", True))
