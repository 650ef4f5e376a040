"""Cases of real bug reports about trunk (C36, C39, C41, C44, C46, C48), at the handlers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from bot.clients.store import Job, Run
from bot.clients.store.schema import breakages
from bot.core.bisect import stated
from bot.core.triage.searching import Hunt, Standing
from bot.core.types import Outcome
from bot.core.validation import Report, TestOutcome, TestResult
from handlers.fork import open_fork
from handlers.known import known_causes
from handlers.triage import triage
from tests.handlers.pair import FORK
from tests.handlers.runs import report_of
from tests.handlers.trunk import BOOM, CONFIG, Trunk, trunk

A, B, C = (f"tests/core/test_all.py::test_{name}" for name in "abc")


async def job(t: Trunk) -> Job:
    """A job `triage` that no worker has."""
    world = t.world
    job: Job = await world.context.store.enqueue(
        "triage", "trunk", {}, installation=world.installation, repository=FORK, now=world.context.now()
    )
    return job


async def look(t: Trunk) -> None:
    """One look at trunk and nothing else: what a search asks for next does not hang on gates and pages."""
    await triage(t.world.context, await job(t))


def says(run: Run, red: str = "") -> Report:
    """A report in which test A passed, or failed with this text."""
    word = TestOutcome.FAILED if red else TestOutcome.PASSED
    return report_of(run).model_copy(
        update={
            "tests": (TestResult(id=A, outcome=word, message=red),),
            "outcome": Outcome.FAILED if red else Outcome.PASSED,
        }
    )


async def search(t: Trunk, said: Callable[[Run], Report], *, rounds: int = 60) -> tuple[Hunt, dict[str, int]]:
    """Search for the one breakage's culprit with runs that say so; gives the ended search, and how many ran where."""
    store, world = t.world.context.store, t.world
    (row,) = [row for row in await store.breakages(FORK) if "layout" in row.title]
    await world.says("maria", row.number, "/bisect unit")
    counted: dict[str, int] = {}
    for _ in range(rounds):
        hunt = Hunt.of((await t.rows())[row.number].data)
        assert hunt is not None
        if not hunt.running:
            await world.settle()
            return hunt, counted
        waiting = [run for run in await t.fork.waiting(None) if run.suite == "unit" and run.sha in hunt.shas]
        for run in waiting:
            counted[run.sha] = counted.get(run.sha, 0) + 1
            report = said(run)
            await store.finish_run(
                run.id, outcome=report.outcome.value, report=report.model_dump(mode="json"), now=world.context.now()
            )
        await look(t)
    raise AssertionError("the search never ends")


async def broken(t: Trunk, between: int) -> list[str]:
    """Trunk with a good commit, `between` of which nothing is known, and a bad one; gives all."""
    good = await t.moves("Say more", {"docs/text.txt": "two\n"})
    shas = [t.world.fork_commits(f"Own {n}", {f"lib/own{n}.txt": f"{n}\n"}, login="maria") for n in range(between)]
    bad = await t.moves("Choose another layout", {"lib/layout.py": "def choose_layout():\n    pass\n"})
    await t.told(good, green=[A], settle=False)
    await t.told(bad, red={A: BOOM.format(line=3, what="f16")})
    return [good, *shas, bad]


async def test_c36_the_machines_words_are_no_breakage_and_the_codes_are(tmp_path: Path) -> None:
    machines = [
        "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
        "error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly: CANCEL (err 8)",
    ]
    codes = {
        "could not open": "LLVM ERROR: could not open '/ci/llvm-install/lib/libfoo.a': No such file or directory",
        "illegal memory": "RuntimeError: CUDA error: an illegal memory access was encountered",
        "out of memory": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
        "out of resource": "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 262144",
    }
    async with trunk(tmp_path) as t:
        tests = [f"tests/core/test_all.py::test_{n}" for n in range(len(codes))]
        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await t.told(good, green=[*tests, A, B], settle=False)
        bad = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        await t.told(bad, red=dict(zip([*tests, A, B], [*codes.values(), *machines], strict=True)))
        titles = [issue.title.lower() for issue in t.issues()]
        assert len(titles) == len(codes)
        assert all(any(word in title for title in titles) for word in codes), titles
        told = await t.world.context.store.note(t.world.installation, FORK, "trunk:infra")
        assert [note["sha"] for note in told] == [bad]


async def test_c39_a_run_that_can_not_work_accuses_nobody(tmp_path: Path) -> None:
    texts = {
        4: "ERROR: file or directory not found: tests/core/test_all.py::test_a",
        126: "/ci/run.sh: Permission denied",
        127: "sh: python3: command not found",
        137: "Killed",
    }
    async with trunk(tmp_path) as t:
        shas = await broken(t, 2)
        for status, text in texts.items():
            update = {"outcome": Outcome.FAILED, "exit_code": status, "log_tail": text}

            def said(run: Run, update: dict[str, object] = update) -> Report:
                return report_of(run, passed=()).model_copy(update=update)

            hunt, counted = await search(t, said)
            assert hunt.standing is Standing.INCONCLUSIVE and hunt.culprits == (), status
            assert set(counted) <= {shas[0], shas[-1]}, "the ends come first, and neither showed what it must"
            (issue,) = [issue for issue in t.issues() if "layout" in issue.title]
            assert "**Inconclusive**" in issue.body and "Culprit" not in issue.body


async def test_c41_a_flake_is_no_culprit(tmp_path: Path) -> None:
    """It fails at every commit, now and then: that the good end passed once was luck."""

    def said(run: Run) -> Report:
        fails = random.Random(run.id).random() < 0.5
        return says(run, BOOM.format(line=4, what="f16") if fails else "")

    async with trunk(tmp_path) as t:
        await broken(t, 4)
        hunt, _ = await search(t, said)
        assert hunt.standing is Standing.INCONCLUSIVE
        (issue,) = t.issues()
        assert "**Culprit:**" not in issue.body and "state:culprit-known" not in issue.labels


async def test_c41_a_culprit_that_fails_now_and_then_is_bracketed_with_its_parent(tmp_path: Path) -> None:
    async with trunk(tmp_path) as t:
        shas = await broken(t, 4)
        culprit = shas[3]

        def said(run: Run) -> Report:
            fails = shas.index(run.sha) >= 3 and random.Random(run.id).random() < 0.7
            return says(run, BOOM.format(line=4, what="f16") if fails else "")

        hunt, counted = await search(t, said)
        assert (hunt.standing, hunt.culprits) == (Standing.CULPRIT, (culprit,))
        assert counted[shas[-1]] >= 2, "the bad end says how often it fails"
        assert counted[shas[2]] >= 2 and counted[culprit] >= 1
        (issue,) = t.issues()
        assert f"**Culprit:** `{culprit[:10]}`, with {stated(hunt.confidence)} confidence" in issue.body


async def test_c44_and_c48_each_test_has_its_own_last_green_and_an_unknown_base_is_said(tmp_path: Path) -> None:
    generic = "Process completed with exit code 1."
    async with trunk(tmp_path) as t:
        start = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await t.told(start, green=[A, B, C])
        old = await t.moves("Break one", {"lib/layout.py": "def choose_layout():\n    pass\n"})
        for n in range(2):  # it stays red for weeks, others pass all the while
            t.world.clock.forward(days=14)
            await t.told(old if n == 0 else await t.moves("Go on", {"lib/other.py": f"x = {n}\n"}),
                         red={A: BOOM.format(line=3, what="f16")}, green=[B, C], settle=False)  # fmt: skip
        quiet = t.world.git("rev-parse", "main")
        new = await t.moves("Break another", {"lib/kernel.py": "y = 1\n"})
        await t.told(new, red={A: BOOM.format(line=3, what="f16"), B: generic}, green=[C])
        first, second = t.issues()
        assert f"last seen passing at `{start[:10]}`" in first.body
        assert f"last seen passing at `{quiet[:10]}`" in second.body
        suspects = second.body.split("### Suspects")[1].split("graft:end")[0]
        assert new[:10] in suspects and old[:10] not in suspects, "today's suspects are today's"

        # what a pull request is told of trunk's own failures hangs on its base, and a base that is not known is said
        fork = await open_fork(t.world.context, t.world.scope)
        at = {base: await known_causes(fork, base) for base in (new, old, start, "f" * 40)}
        keys = {f"#{first.number}": BOOM, f"#{second.number}": generic}
        assert {cause.name for cause in at[new].values()} == set(keys)
        held = {base: {one.name: one.held for one in found.values()} for base, found in at.items()}
        one, two = keys
        assert held == {
            new: {one: True, two: True},
            old: {one: True, two: False},
            start: {one: False, two: False},
            "f" * 40: {one: None, two: None},
        }

        # a generic line is no cause: another test that fails with it is not trunk's failure
        number = await t.fork.opens("walter", "feature", {"lib/feature.py": "z = 1\n"})
        for run in await t.fork.waiting(number):
            tests = tuple(TestResult(id=test, outcome=TestOutcome.FAILED, message=generic) for test in (B, C))
            report = report_of(run).model_copy(update={"tests": tests, "outcome": Outcome.FAILED})
            if run.suite == "unit":
                await t.world.context.store.finish_run(
                    run.id, outcome="failed", report=report.model_dump(mode="json"), now=t.world.context.now()
                )
        await t.fork.ends(number)
        (comment,) = [text for text in t.comments(number) if "graft:results" in text]
        assert comment.count("**pre-existing**: trunk has had it") == 1 and comment.count("**new**: passed at") == 1

        # a flaky one is shown as that, one that waits for its issue too; one that is over is none
        store = t.world.context.store
        rows = {row.number: row for row in await store.breakages(FORK)}
        async with store._begin() as connection:
            for number_, values in ((first.number, {"state": "flaky"}), (second.number, {"number": None})):
                where = breakages.c.key == rows[number_].key
                await connection.execute(sa.update(breakages).where(where).values(**values))
        flaky, untold = (await known_causes(fork, start)).values()
        assert (flaky.name, flaky.flaky) == (one, True)
        assert untold.name == f"breakage {rows[second.number].key}, which has no issue yet"
        async with store._begin() as connection:
            await connection.execute(sa.update(breakages).values(state="fixed"))
        assert await known_causes(fork, new) == {}


async def test_c46_an_issue_is_found_by_marker_and_list_and_made_once(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=CONFIG) as t:
        good = await t.moves("Say more", {"docs/text.txt": "two\n"})
        await t.told(good, green=[A, B])
        bad = await t.moves("Go on", {"lib/other.py": "x = 1\n"})
        store = t.world.context.store
        (run,) = [run for run in await t.fork.waiting(None) if (run.sha, run.suite) == (bad, "unit")]
        report = says(run, BOOM.format(line=3, what="f16"))
        await store.finish_run(run.id, outcome="failed", report=report.model_dump(mode="json"), now=run.queued_at)
        # two looks at once, as no lock of jobs lets them be: the writer's lock and the marker hold
        both = [await job(t), await job(t)]
        await asyncio.gather(*(triage(t.world.context, one) for one in both))
        (issue,) = t.issues()
        for _ in range(2):  # the store is lost, twice
            async with store._begin() as connection:
                await connection.execute(sa.delete(breakages))
            await asyncio.gather(look(t), look(t))
        assert t.issues() == [issue]
        assert set(await t.rows()) == {issue.number}
        assert not [path for _, path, _ in t.world.sandbox.state.requests if "/search" in path]
        await t.world.settle()
        assert await t.world.failures() == []
