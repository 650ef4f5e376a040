"""The dashboard issue: one, kept in place, its boxes asking for work by those who may."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.types import Disposition
from tests.handlers.pair import FORK, Pair, pair

pytestmark = pytest.mark.timeout(240)


async def tick(p: Pair, words: str, *, login: str) -> None:
    """A person ticks the box with these words."""
    issue = p.dashboard()
    (line,) = [line for line in issue.body.splitlines() if words in line and line.startswith("- [ ]")]
    body = issue.body.replace(line, line.replace("[ ]", "[x]"))
    await p.sandbox.as_user(login).request("PATCH", f"/repos/{FORK}/issues/{issue.number}", {"body": body})
    await p.settle()


async def test_one_issue_kept_in_place_whose_boxes_are_carried_out(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        one, number = p.shas["one"], p.dashboard().number
        await p.says("walter", 1, f'/defer {one[:10]} reason="later" owner=@maria')
        await p.merge(1, "squash")
        hole = p.dashboard().body.partition("### Holes")[2]
        assert f"`{one[:10]}`" in hole
        assert "later" in hole
        assert "`maria`" in hole
        await tick(p, f"Take `{one[:10]}` in next", login="walter")
        assert len(p.carrying(one)) == 1
        assert (await p.entry(one)).disposition is Disposition.PENDING
        assert "[x]" not in p.dashboard().body
        # closed by a person it is opened again, with all that is known
        await p.sandbox.as_user("walter").close(FORK, number)
        await p.ingest()
        assert (p.dashboard().number, p.dashboard().state) == (number, "open")
        # unchanged where nothing happened
        before = p.dashboard().updated_at
        await p.ingest()
        assert p.dashboard().updated_at == before
        # a triager may edit nothing here; what a reader writes elsewhere asks for nothing
        await p.sandbox.as_user("rita").open_issue(FORK, "Mine", p.dashboard().body.replace("[ ]", "[x]"))
        await p.settle()
        assert await p.failures() == []
