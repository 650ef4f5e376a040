"""What hangs on a branch that somebody deletes, and a pull request that no webhook told of."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.clients.store.schema import batches
from bot.core.render.pull import read_batch
from handlers.batches import RESTORED
from tests.handlers.pair import FORK, Pair, pair

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


async def test_a_deletion_that_nobody_told_of_is_no_refusal_either(tmp_path: Path) -> None:
    """Every webhook is lost, and at the next look the branch is there again; then the store is lost as well."""
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        gone = {role: p.carrying(p.shas[role])[0] for role in ("one", "clash")}
        refused = p.carrying(p.shas["link1"])[0]
        tip = p.git("rev-parse", "main")
        p.sandbox.faults.drop_deliveries(times=99)
        await p.sandbox.as_user("maria").close(FORK, refused)
        p.sandbox.advance(5)
        p.sandbox.delete_ref(FORK, "main")
        p.git("update-ref", "refs/heads/main", tip)
        await p.settle()
        p.sandbox.faults.clear()
        p.clock.forward(hours=1)
        await p.ask("sweep")
        await p.settle()
        for role, number in gone.items():
            assert p.carrying(p.shas[role]) not in ([], [number]), role
        assert p.carrying(p.shas["link1"]) == [], "what a person closed stays closed"

        # what is told of their ends stands on GitHub
        closed = {number: read_batch(p.repository.issues[number].body) or {} for number in (*gone.values(), refused)}
        assert {number: said.get("closed_why") for number, said in closed.items()} == {
            **dict.fromkeys(gone.values(), "branch_gone"),
            refused: None,
        }
        again = {role: p.carrying(p.shas[role]) for role in gone}
        await lose_batches(p)
        await p.ingest()
        assert {role: p.carrying(p.shas[role]) for role in gone} == again
        assert p.carrying(p.shas["link1"]) == []
        assert await p.failures() == []


async def lose_batches(p: Pair) -> None:
    """The store is lost, as far as it holds batches."""
    async with p.context.store._begin() as connection:
        await connection.execute(sa.delete(batches))
    await p.context.store.remove_note(p.installation, FORK, RESTORED)


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
