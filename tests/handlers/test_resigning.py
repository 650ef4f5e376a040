"""Graft is upgraded while trunk is broken: by the new rules each breakage is signed anew, and its issue goes on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import sqlalchemy as sa

import handlers.trunk
from bot.clients.store.schema import breakages, notes, runs
from bot.core.signature import Signature, signature
from bot.core.triage import texts
from bot.core.triage.searching import Hunt
from bot.core.turns import Turn
from bot.core.types import Outcome
from bot.core.validation import ManifestCheck, TestOutcome, TestResult
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.test_bisecting import holds
from tests.handlers.test_stories_of_trunk import BAD, A, B, C, broken
from tests.handlers.trunk import CONFIG, Trunk, trunk

KEY = "KeyError: 'num_warps'"
Rule = Callable[[Signature], str]


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Rule], None]]:
    """A Graft whose rules give other keys, as a process that is started anew has them; after it nothing remembers."""
    now = FunctionType(signature.__code__, signature.__globals__)
    texts._signed.cache_clear()

    def to(made: Rule) -> None:
        def upgraded(text: str, test: str | None = None) -> Signature:
            found: Signature = now(text, test)
            return replace(found, key=hashlib.sha256(made(found).encode()).hexdigest()[:16])

        # the one function, whoever has it by what name
        monkeypatch.setitem(signature.__globals__, "_upgraded", upgraded)
        monkeypatch.setattr(signature, "__code__", _by_new_rules.__code__)
        handlers.trunk._digests.clear()
        texts._signed.cache_clear()

    yield to
    handlers.trunk._digests.clear()
    texts._signed.cache_clear()


def _by_new_rules(text: str, test: str | None = None) -> Signature:
    return _upgraded(text, test)  # type: ignore[name-defined,no-any-return]  # noqa: F821


def other(found: Signature) -> str:
    """Every key is another one."""
    return "2" + found.key


def coarse(found: Signature) -> str:
    """Whatever the code does is of one cause."""
    return "3" + found.cls


def fine(found: Signature) -> str:
    """What was one cause is as many as it has titles."""
    return "4" + found.key + found.title


def titled(t: Trunk, what: str) -> Any:
    """The issue whose title has that."""
    (issue,) = [issue for issue in t.issues() if what in issue.title]
    return issue


async def lose(t: Trunk) -> None:
    """The database is gone."""
    async with t.world.context.store._begin() as connection:
        for table in (breakages, notes, runs):
            await connection.execute(sa.delete(table))


async def test_each_breakage_goes_on_in_its_issue(tmp_path: Path, upgrade: Callable[[Rule], None]) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        missed = await t.moves("Lose one", {"lib/other.py": "x = 0\n"})
        half = ManifestCheck(expected=3, reported=2, missing=(C,))
        await t.told(missed, red={A: BAD, B: KEY}, outcome=Outcome.FAILED, manifest=half)
        open_, keyed, omitted = (titled(t, what) for what in ("layout", "KeyError", "did not report"))
        issues = t.issues()
        closing = {"state": "closed", "state_reason": "not_planned"}
        await t.world.sandbox.as_user("maria").request("PATCH", f"/repos/{FORK}/issues/{keyed.number}", closing)
        await t.world.settle()
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})

        upgrade(other)
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={A: BAD, B: KEY}, outcome=Outcome.FAILED, manifest=half)
        assert t.issues() == issues, "no second issue for what has one"
        assert [issue.state for issue in (open_, keyed, omitted)] == ["open", "closed", "open"], "put by stays put by"
        assert t.comments(open_.number) == []

        # what a pull request fails by is trunk's as it was
        (run,) = [run for run in await t.fork.waiting(number) if run.suite == "unit"]
        tests = (TestResult(id=A, outcome=TestOutcome.FAILED, message=BAD),)
        report = report_of(run).model_copy(update={"tests": tests, "outcome": Outcome.FAILED})
        await t.world.context.store.finish_run(
            run.id, outcome="failed", report=report.model_dump(mode="json"), now=t.world.context.now()
        )
        await t.fork.ends(number)
        comment = next(text for text in t.comments(number) if "Validation of" in text)
        assert f"open on trunk as #{open_.number}" in comment

        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, red={B: KEY}, green=[A, C])
        assert [issue.state for issue in issues] == ["closed", "closed", "closed"]
        assert "Each of its tests ran and passed" in t.comments(open_.number)[-1]

        # upgraded once more while all is mended: what comes back has its issue still
        upgrade(lambda found: "5" + found.key)
        back = await t.moves("Undo it", {"lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: BAD, B: KEY}, green=[C])
        assert t.issues() == issues
        assert [issue.state for issue in (open_, keyed, omitted)] == ["open", "closed", "closed"]
        assert "It is back" in t.comments(open_.number)[-1]
        assert await t.world.failures() == []


async def test_what_two_rows_hold_is_one_cause_now(tmp_path: Path, upgrade: Callable[[Rule], None]) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        more = await t.moves("Break another", {"lib/other.py": "x = 0\n"})
        await t.told(more, red={A: BAD, B: KEY}, green=[C])
        first, second = t.issues("open")
        upgrade(coarse)
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={A: BAD, B: KEY}, green=[C])
        assert t.issues() == [first, second]
        assert (first.state, second.state, second.state_reason) == ("open", "closed", "duplicate")
        assert "2 tests of `unit` (l1) fail on trunk" in first.body
        said = f"by them this is the same as #{first.number}: it goes on there, with the tests of both."
        assert said in t.comments(second.number)[-1] and said in second.body
        assert "state:dismissed" in second.labels and "state:open" not in second.labels
        assert f"#{second.number}" not in t.world.dashboard().body
        half = await t.moves("Mend one", {"lib/layout.py": "x = 1\n"})
        await t.told(half, red={B: KEY}, green=[A, C])
        assert first.state == "open", "closed only where the tests of both have passed"
        whole = await t.moves("Mend all", {"lib/other.py": "x = 2\n"})
        await t.told(whole, green=[A, B, C])
        assert (first.state, second.state) == ("closed", "closed")

        # by rules that tell them apart again the one of its own is a new one: nothing overwrites the other's
        upgrade(other)
        back = await t.moves("Break both", {"lib/layout.py": "x = 3\n"})
        await t.told(back, red={A: BAD, B: KEY}, green=[C])
        assert {issue.number: issue.state for issue in t.issues()}[second.number] == "closed"
        assert len(t.issues("open")) == 2
        assert len({row.key for row in (await t.rows()).values()}) == 3
        assert await t.world.failures() == []


async def test_what_one_row_holds_is_two_causes_now(tmp_path: Path, upgrade: Callable[[Rule], None]) -> None:
    long = BAD.replace("f16", "f32")
    async with trunk(tmp_path) as t:
        upgrade(coarse)
        await broken(t, A)
        more = await t.moves("Go on", {"lib/other.py": "x = 0\n"})
        await t.told(more, red={A: BAD, B: long}, green=[C])
        (issue,) = t.issues("open")
        upgrade(fine)
        await t.world.ask("triage", "trunk")
        await t.world.settle()
        old, new = t.issues("open")
        assert old is issue
        held = {one.number: [test in one.body.split("### Suspects")[0] for test in (A, B)] for one in (old, new)}
        assert sorted(held.values()) == [[False, True], [True, False]], "each has its own tests, and no other's"
        one = await t.moves("Mend one", {"lib/other.py": "x = 1\n"})
        await t.told(one, red={A: BAD}, green=[B, C])
        assert sorted(issue.state for issue in t.issues()) == ["closed", "open"]
        assert await t.world.failures() == []


async def test_the_store_is_lost_and_the_rules_are_others(tmp_path: Path, upgrade: Callable[[Rule], None]) -> None:
    config = CONFIG.replace("trunk_red_blocks: [docs]", "trunk_red_blocks: [core]")
    async with trunk(tmp_path, config=config) as t:
        await broken(t, A)
        more = await t.moves("Break others", {"lib/other.py": "x = 0\n"})
        await t.told(more, red={A: BAD, B: KEY, C: "IndexError: list index out of range"})
        issue, keyed, put_by = (titled(t, what) for what in ("layout", "KeyError", "IndexError"))
        issues = t.issues()
        closing = {"state": "closed", "state_reason": "not_planned"}
        await t.world.sandbox.as_user("maria").request("PATCH", f"/repos/{FORK}/issues/{put_by.number}", closing)
        await t.world.settle()
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})
        await lose(t)
        upgrade(other)
        await t.fork.sweep()
        assert {row: one.state for row, one in (await t.rows()).items()} == {
            issue.number: "open",
            keyed.number: "open",
            put_by.number: "dismissed",
        }
        await t.fork.ends(number)
        assert t.fork.gate(number).startswith("block: trunk is red in core"), "before anything ran again"

        # one is mended by the time that trunk runs again: it is closed though it never failed in this store
        again = await t.moves("Mend one", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={A: BAD, C: "IndexError: list index out of range"}, green=[B])
        assert t.issues() == issues
        assert [one.state for one in (issue, keyed, put_by)] == ["open", "closed", "closed"]
        fix = await t.moves("Mend all", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        assert issue.state == "closed"
        assert f"Each of its tests ran and passed at `{fix[:10]}`" in t.comments(issue.number)[-1]
        assert await t.world.failures() == []


async def test_a_search_goes_on_by_the_new_rules(tmp_path: Path, upgrade: Callable[[Rule], None]) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await t.told(good, green=[A])
        for n in range(3):
            t.world.fork_commits(f"Own {n}", {f"lib/own{n}.txt": f"{n}\n"}, login="maria")
        bad = await t.moves("Go on", {"lib/other.txt": "1\n"})
        await t.told(bad, red={A: BAD})
        (issue,) = t.issues("open")
        await t.world.says("maria", issue.number, "/bisect unit")
        broke = holds(t, "lib/own1.txt")
        for step in range(30):
            waiting = [run for run in await t.fork.waiting(None) if run.turn is Turn.SEARCH]
            if not waiting:
                break
            for run in waiting:
                red = {A: BAD} if broke(run.sha) else {}
                await t.told(run.sha, red=red, green=[] if red else [A], settle=False)
            if step == 1:
                upgrade(other)
            await t.world.settle()
        hunt = Hunt.of((await t.rows())[issue.number].data)
        assert hunt is not None and hunt.standing == "culprit"
        assert broke(hunt.culprits[0]) and len(hunt.culprits) == 1
        assert await t.world.failures() == []


async def test_it_follows_its_last_failure_where_older_ones_are_signed_as_they_were(
    tmp_path: Path, upgrade: Callable[[Rule], None]
) -> None:
    long = BAD.replace("f16", "f32")
    async with trunk(tmp_path) as t:
        upgrade(coarse)
        await broken(t, A)
        (issue,) = t.issues("open")
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        back = await t.moves("Break it otherwise", {"lib/layout.py": "x = 2\n"})
        await t.told(back, red={A: long}, green=[B, C])
        assert (t.issues(), issue.state) == ([issue], "open")
        upgrade(lambda found: coarse(found) + ("f32" if "f32" in found.title else ""))
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={A: long}, green=[B, C])
        assert (t.issues(), issue.state) == ([issue], "open")

        # the other one, by its own signature and beside it, is another cause now: its key is not this one's
        both = await t.moves("Break b too", {"lib/other.py": "x = 2\n"})
        await t.told(both, red={A: long, B: BAD}, green=[C])
        _, new = t.issues("open")
        keys = {row.key for row in (await t.rows()).values()}
        assert len(keys) == 2 and new.number != issue.number
        assert await t.world.failures() == []


async def test_what_is_over_adds_nothing_to_what_is_open(tmp_path: Path, upgrade: Callable[[Rule], None]) -> None:
    async with trunk(tmp_path) as t:
        await broken(t, A)
        (old,) = t.issues("open")
        fix = await t.moves("Mend it", {"lib/layout.py": "x = 1\n"})
        await t.told(fix, green=[A, B, C])
        bad = await t.moves("Break another", {"lib/other.py": "x = 0\n"})
        await t.told(bad, red={B: KEY}, green=[A, C])
        (new,) = t.issues("open")
        upgrade(coarse)
        again = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(again, red={B: KEY}, green=[A, C])
        assert (old.state, new.state) == ("closed", "open"), "the open one goes on, though the other is older"
        assert t.comments(old.number)[-1].startswith("Each of its tests"), "what is closed is left in peace"
        assert "1 test passed since" in new.body, "of the older one it is known that it is over"
        mended = await t.moves("Mend all", {"lib/other.py": "x = 2\n"})
        await t.told(mended, green=[A, B, C])
        assert (old.state, new.state) == ("closed", "closed")
        assert await t.world.failures() == []
