"""Trunk breaks and is mended on GitHub: each cause has one issue, and its issue tells the truth."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.clients.store.schema import breakages
from bot.core.types import Outcome
from bot.core.validation import ManifestCheck, TestOutcome, TestResult
from tests.golden import same_as_golden
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.trunk import BOOM, plain, trunk

A, B, C = (f"tests/core/test_all.py::test_{name}" for name in "abc")
D = "docs/test_docs.py::test_links"


async def test_a_cause_lives_from_its_first_red_to_its_return(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await t.told(good, green=[A, B, C])
        await t.told(good, "side", green=[D])
        harmless = await t.moves("Write it down", {"docs/read.md": "more\n"})
        bad = await t.moves("Choose another layout", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        await t.told(bad, red={A: BOOM.format(line=3, what="f16"), B: BOOM.format(line=9, what="f16")}, green=[C])
        await t.told(bad, "side", green=[D])

        (issue,) = t.issues()
        assert issue.title == "Trunk is broken: ValueError: no layout for f16 (unit)"
        assert sorted(issue.labels) == ["area:core", "level:l1", "state:open", "trunk-breakage"]
        assert issue.assignees == ["olga"]
        assert "@olga @acme/compilers" in issue.body
        assert f"last seen passing at `{good[:10]}`" in issue.body
        assert "it changes lib/layout.py, which the failure names" in issue.body
        assert "2 commits after" in issue.body and "1 can't break anything" in issue.body
        assert harmless[:10] not in issue.body.split("### Suspects")[1].split("graft:end")[0]
        same_as_golden("breakage_open.md", plain(issue.body, good, bad))
        assert t.fork.check(bad, "graft/l1").conclusion == "failure"

        # people write around the sections; two more reports change only what Graft wrote
        maria = t.world.sandbox.as_user("maria")
        text = issue.body.replace("<!-- graft:section suspects -->", "I look at it.\n\n<!-- graft:section suspects -->")
        await maria.request("PATCH", f"/repos/{FORK}/issues/{issue.number}", {"body": text + "\n\nNotes of mine."})
        await t.world.settle()
        next_ = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        half = ManifestCheck(expected=3, reported=2, missing=(B,))
        await t.told(next_, green=[A, C], outcome=Outcome.OMITTED, manifest=half)  # B is gone: nothing is proved
        assert t.issues()[0].state == "open"
        assert "I look at it." in t.issues()[0].body and t.issues()[0].body.endswith("Notes of mine.")
        assert "1 test passed since" in t.issues()[0].body
        omitted = t.issues()[1]
        assert "did not report" in omitted.title

        # a green of an older commit comes late: it closes nothing, and narrows the suspects
        await t.told(harmless, green=[A, B, C])
        assert [issue.state for issue in t.issues()] == ["open", "open"]
        assert f"last seen passing at `{harmless[:10]}`" in t.issues()[0].body
        assert "it is the only commit between last green and first red" in t.issues()[0].body

        fix = await t.moves("Mend it", {"lib/layout.py": "def choose_layout():\n    return 1\n"})
        await t.told(fix, green=[A, B, C])
        assert [issue.state for issue in t.issues()] == ["closed", "closed"]
        assert "state:fixed" in t.issues()[0].labels and "state:open" not in t.issues()[0].labels
        assert any(f"Each of its tests ran and passed at `{fix[:10]}`" in text for text in t.comments(issue.number))

        back = await t.moves("Undo it", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        await t.told(back, red={A: BOOM.format(line=3, what="f16")}, green=[B, C])
        first, _ = t.issues()
        assert first.state == "open" and "state:open" in first.labels, "it came back: the same issue"
        assert "came back 1 time" in first.body
        assert any("It is back" in text for text in t.comments(first.number))

        # the owner is reminded once, then others are told once
        t.world.clock.forward(days=3)
        for _ in range(2):
            await t.fork.sweep()
        assert sum("waits for you" in text for text in t.comments(first.number)) == 1
        t.world.clock.forward(days=2)
        for _ in range(2):
            await t.fork.sweep()
        told = [text for text in t.comments(first.number) if "Its owner:" in text]
        assert len(told) == 1 and told[0].startswith("@maria this has been open")

        # not planned, said by a person, is respected
        closing = {"state": "closed", "state_reason": "not_planned"}
        await maria.request("PATCH", f"/repos/{FORK}/issues/{first.number}", closing)
        await t.world.settle()
        again = await t.moves("Go on again", {"lib/other.py": "x = 2\n"})
        await t.told(again, red={A: BOOM.format(line=3, what="f16")}, green=[B, C])
        assert t.issues()[0].state == "closed"
        assert (await t.rows())[first.number].state == "dismissed"
        await maria.reopen(FORK, first.number)
        await t.world.settle()
        assert (await t.rows())[first.number].state in ("open", "flaky")
        assert len(t.issues()) == 2
        assert await t.world.failures() == []


async def test_bursts_machines_masks_and_pull_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with trunk(tmp_path) as t:
        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        many = [f"tests/core/test_all.py::test_a[{n}]" for n in range(2_000)]
        await t.told(good, green=[*many, B, C], settle=False)
        await t.told(good, "side", green=[D])

        # a machine's trouble is no breakage, and is said
        stormy = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        busy = "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"
        await t.told(stormy, red={B: busy}, green=[*many, C], settle=False)
        await t.told(stormy, "side", outcome=Outcome.INFRA, reason="no report by its deadline", tests=())
        assert t.issues() == []
        assert len(await t.world.context.store.note(t.world.scope.installation, FORK, "trunk:infra")) == 2

        # 2,000 failures of two causes are two issues
        bad = await t.moves("Choose another layout", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        red = {test: BOOM.format(line=n, what="f16") for n, test in enumerate(many)}
        await t.told(bad, red=red | {C: "KeyError: 'num_warps'"}, green=[B], settle=False)
        await t.told(bad, "side", green=[D])
        issues = t.issues("open")
        assert len(issues) == 2
        burst = next(issue for issue in issues if "layout" in issue.title)
        assert "2000 tests of `unit`" in burst.body and len(burst.body) < 65_536
        keyed = next(issue for issue in issues if issue is not burst)

        # a pull request with the same failure shows the issue, and is still red
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "y = 1\n"})
        head = t.fork.head(number)
        (run,) = [run for run in await t.fork.waiting(number) if run.suite == "unit"]
        tests = (TestResult(id=C, outcome=TestOutcome.FAILED, message="KeyError: 'num_warps'"),)
        report = report_of(run).model_copy(update={"tests": tests, "outcome": Outcome.FAILED})
        await t.world.context.store.finish_run(
            run.id, outcome="failed", report=report.model_dump(mode="json"), now=t.world.context.now()
        )
        await t.fork.ends(number)
        comment = next(text for text in t.comments(number) if "Validation of" in text)
        assert f"open on trunk as #{keyed.number}" in comment
        assert t.fork.check(head, "graft/l1").conclusion == "failure"

        # the suite does not even start: what it hides is said, and both breakages stay open
        broken = await t.moves("Break the build", {"lib/build.cpp": "int x = foo;\n"})
        text = "/ci/lib/build.cpp:1:9: error: use of undeclared identifier 'foo'"
        await t.told(broken, outcome=Outcome.FAILED, log_tail=text, exit_code=2)
        build = next(issue for issue in t.issues("open") if "undeclared" in issue.title)
        assert "Nothing can be known of 2002 tests because of it" in build.body
        assert f"#{burst.number}" in build.body and f"#{keyed.number}" in build.body
        assert len(t.issues("open")) == 3
        same_as_golden("breakage_masks.md", plain(build.body, stormy, broken, bad))

        # it is mended, and what it hid is looked at again: one cause is gone, one is not, one is new
        mended = await t.moves("Mend the build", {"lib/build.cpp": "int x = 1;\n"})
        await t.told(mended, red={C: "KeyError: 'num_warps'", B: "IndexError: list index out of range"}, green=many)
        assert {issue.title.split(":")[1].strip() for issue in t.issues("open")} == {"KeyError", "IndexError"}
        new = next(issue for issue in t.issues("open") if "IndexError" in issue.title)
        assert f"stood behind #{build.number}" in new.body
        assert f"last seen passing at `{bad[:10]}`" in new.body
        assert "`" + broken[:10] + "`" in new.body.split("### Suspects")[1]

        # the database is lost, GitHub is not: the same issues are found again, by their marker
        numbers = [issue.number for issue in t.issues()]
        async with t.world.context.store._begin() as connection:
            await connection.execute(sa.delete(breakages))
        await t.world.ask("triage", "trunk")
        await t.world.settle()
        assert [issue.number for issue in t.issues()] == numbers
        assert set(await t.rows()) == {issue.number for issue in t.issues("open")}

        # a flood of causes is one event: so many issues a day, the dashboard tells of the rest
        monkeypatch.setattr("handlers.triage.NEW_ISSUES", 2)
        monkeypatch.setattr("handlers.triage.ISSUES_A_DAY", 10)
        flood = await t.moves("Break all", {"lib/all.py": "x = 3\n"})
        await t.told(flood, red={f"tests/core/test_all.py::test_{n}": f"KeyError: 'key_{n}_x'" for n in "abcdefghi"})
        opened = len(t.issues()) - len(numbers)
        note = await t.world.context.store.note(t.world.scope.installation, FORK, "trunk:opened")
        assert 2 < opened < 9 and note["waiting"] > 0
        assert "broke trunk without an issue yet" in t.world.dashboard().body
        assert await t.world.failures() == []
