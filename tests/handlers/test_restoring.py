"""The store is lost, GitHub is not: its issues make the breakages whole again, and nobody else's text does."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from bot.clients.store.schema import breakages, notes, runs
from tests.handlers.pair import FORK
from tests.handlers.test_stories_of_trunk import BAD, A, B, C, broken
from tests.handlers.trunk import Trunk, trunk

KEY = "KeyError: 'num_warps'"


async def lose(t: Trunk) -> None:
    """The database is gone."""
    async with t.world.context.store._begin() as connection:
        for table in (breakages, notes, runs):
            await connection.execute(sa.delete(table))


async def test_only_grafts_own_issues_are_believed(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A, B)
        (issue,) = t.issues("open")
        maria = t.world.sandbox.as_user("maria")
        path = f"/repos/{FORK}/issues"
        # a person's copy of it under another key, and what a person made of Graft's own
        forged = issue.body.replace(f'"key":"{(await t.rows())[issue.number].key}"', '"key":"another1"')
        forged = forged.replace("breakage ", "breakage x", 1)
        await maria.request("POST", path, {"title": "Mine", "body": forged, "labels": ["trunk-breakage"]})
        await t.world.settle()
        await lose(t)
        await t.fork.sweep()
        assert set(await t.rows()) == {issue.number}

        broken_block = issue.body.replace('"key"', '"kez"')
        await maria.request("PATCH", f"{path}/{issue.number}", {"body": broken_block})
        await t.world.settle()
        await lose(t)
        await t.fork.sweep()
        assert await t.rows() == {}
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={A: BAD, B: BAD}, green=[C])
        assert set(await t.rows()) == {issue.number}, "found by its marker where its block is gone"
        assert '"key"' in issue.body
        assert await t.world.failures() == []


async def test_what_was_mended_long_ago_was_not_mended_today(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        more = await t.moves("Break another", {"lib/other.py": "x = 0\n"})
        await t.told(more, red={A: BAD, B: KEY}, green=[C])
        fix = await t.moves("Mend one", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, red={B: KEY}, green=[A, C])
        mended = next(issue for issue in t.issues() if issue.state == "closed")
        open_ = next(issue for issue in t.issues() if issue.state == "open")
        t.world.clock.forward(days=3)
        age = (await t.rows())[open_.number].data["red_since"]
        await lose(t)
        await t.world.ingest()
        await t.fork.sweep()
        rows = await t.rows()
        assert (rows[open_.number].state, rows[mended.number].state) == ("open", "fixed")
        assert rows[open_.number].data["red_since"] == age
        day = t.world.dashboard().body.split("### Trunk on")[1]
        assert f"| `core` | #{open_.number} | – | – | – | – | 3 d |" in day

        # its deadline passed while nothing was known of it: reminded once, as ever
        now = await t.moves("Go on", {"lib/other.py": "x = 5\n"})
        await t.told(now, red={B: KEY}, green=[A, C])
        assert sum("waits for you" in text for text in t.comments(open_.number)) == 1

        # and what was mended comes back to its issue
        back = await t.moves("Undo it", {"lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: BAD, B: KEY}, green=[C])
        assert mended.state == "open" and len(t.issues()) == 2
        assert await t.world.failures() == []


async def test_a_store_that_is_an_older_copy_learns_what_was_opened_since(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        more = await t.moves("Break another", {"lib/other.py": "x = 0\n"})
        await t.told(more, red={A: BAD, B: KEY}, green=[C])
        newer = next(issue for issue in t.issues() if "KeyError" in issue.title)
        async with t.world.context.store._begin() as connection:
            await connection.execute(sa.delete(breakages).where(breakages.c.number == newer.number))
            await connection.execute(sa.delete(runs).where(runs.c.sha == more))
        fix = await t.moves("Mend one", {"lib/other.py": "x = 1\n"})
        await t.told(fix, red={A: BAD}, green=[B, C])
        assert newer.state == "closed", "though nothing of it was stored"
        assert len(t.issues("open")) == 1 and len(t.issues()) == 2
        assert await t.world.failures() == []
