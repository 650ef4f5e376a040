"""What Graft's mirror of a fork keeps by refs of its own, for as long as somebody works with it and no longer."""

from __future__ import annotations

import re
from pathlib import Path

import handlers
from bot.core.triage.searching import Hunt
from handlers import refs
from handlers.fork import UPSTREAM as UPSTREAM_REF
from handlers.rewritten import REWRITTEN_REF
from tests.handlers.pair import FORK, UPSTREAM, Pair, pair
from tests.handlers.test_bisecting import WIDE, holds
from tests.handlers.test_cases_of_trunk import look, says
from tests.handlers.trunk import BOOM, Trunk, trunk

A = "tests/core/test_all.py::test_a"
MAIN = {"refs/graft/fork", "refs/graft/upstream"}


def kept(world: Pair) -> set[str]:
    """The refs of the mirror."""
    return set(world.context.mirror(FORK).refs("refs/"))


async def until_inside(t: Trunk, number: int) -> Hunt:
    """Let the search's runs end by the truth until it goes on inside the bundle."""
    store = t.world.context.store
    for _ in range(40):
        hunt = Hunt.of((await t.rows())[number].data)
        assert hunt is not None and hunt.running
        if hunt.bundle:
            return hunt
        for run in await t.fork.waiting(None):
            report = says(run, BOOM.format(line=4, what="f16") if holds(t, "lib/up1.txt")(run.sha) else "")
            await store.finish_run(
                run.id, outcome=report.outcome.value, report=report.model_dump(mode="json"), now=t.world.context.now()
            )
        await look(t)
    raise AssertionError("the bundle is never looked into")


async def test_what_a_search_made_goes_with_it(tmp_path: Path) -> None:
    async with trunk(tmp_path, config=WIDE) as t:
        world = t.world
        good = await t.moves("Start", {"docs/text.txt": "two\n"})
        await t.told(good, green=[A])
        await t.told(good, "side", green=["docs/t.py::d"])
        picks = [world.upstream_commits(f"up{n}", f"Upstream {n}", {f"lib/up{n}.txt": f"{n}\n"}) for n in range(3)]
        body = "\n".join(f"(cherry picked from commit {sha})" for sha in picks)
        await world.ingest()
        bad = await t.moves(f"Take in three\n\n{body}", {f"lib/up{n}.txt": f"{n}\n" for n in range(3)})
        await t.told(bad, red={A: BOOM.format(line=4, what="f16")})
        (issue,) = t.issues("open")
        hunt = await until_inside(t, issue.number)
        made = {f"{refs.SOURCE}{sha}" for sha in hunt.shas[1:]}
        assert made <= kept(world)
        await t.fork.sweep()
        assert made <= kept(world), "it is still searched"

        await world.says("maria", issue.number, "/bisect stop")
        for run in await t.fork.waiting(None):  # what waited already comes to its end first
            assert f"{refs.SOURCE}{run.sha}" in made | {f"{refs.SOURCE}{sha}" for sha in (good, bad)}
        await t.fork.ends(None)
        await t.fork.sweep()
        assert not {ref for ref in kept(world) if ref.startswith(refs.SOURCE)}
        assert await world.failures() == []


async def test_what_was_fetched_for_a_pull_request_goes_with_it_and_a_branch_with_its_branch(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        mirror = p.context.mirror(FORK)
        one, clash = (p.pull_with(p.shas[role]) for role in ("one", "clash"))
        branches = {
            issue.number: f"refs/graft/branches/{issue.pull.head_ref[len('graft/') :]}" for issue in (one, clash)
        }
        for issue in (one, clash):
            mirror.set_ref(f"{refs.PULL}{issue.number}", issue.pull.head_sha)
            mirror.set_ref(f"{refs.SOURCE}{issue.pull.head_sha}", issue.pull.head_sha)
        # what a crash left behind
        stray = mirror.resolve("refs/graft/fork")
        assert stray is not None
        mirror.set_ref(f"{refs.PULL}999", stray)
        mirror.set_ref(f"{refs.SOURCE}{stray}", stray)
        await p.ask("sweep")
        await p.ingest()
        mine = {f"{refs.PULL}{i.number}" for i in (one, clash)} | {
            f"{refs.SOURCE}{i.pull.head_sha}" for i in (one, clash)
        }
        assert mine | MAIN | set(branches.values()) <= kept(p)
        assert {ref for ref in kept(p) if ref.startswith((refs.PULL, refs.SOURCE))} == mine

        p.sandbox.faults.drop_deliveries(times=99)
        await p.sandbox.as_user("maria").close(FORK, one.number)
        p.sandbox.delete_ref(FORK, one.pull.head_ref)
        await p.ask("sweep")
        await p.ingest()
        assert {ref for ref in kept(p) if ref.startswith((refs.PULL, refs.SOURCE))} == {
            f"{refs.PULL}{clash.number}",
            f"{refs.SOURCE}{clash.pull.head_sha}",
        }
        assert branches[one.number] not in kept(p)
        assert branches[clash.number] in kept(p)

        # a branch that is not there takes none of the others with it
        p.failing = True
        tip = p.git("rev-parse", "main")
        p.sandbox.delete_ref(FORK, "main")
        await p.ingest()
        assert kept(p) >= MAIN
        p.git("update-ref", "refs/heads/main", tip)


async def test_the_mirror_is_packed_once_a_day(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        objects = p.context.mirror(FORK).path / "objects"

        def loose() -> int:
            return len(list(objects.glob("[0-9a-f][0-9a-f]/*")))

        async def sweep() -> None:
            await p.ask("sweep")
            await p.settle()

        assert loose(), "batches were built here"
        p.clock.forward(days=1)
        await sweep()
        assert loose() == 0
        p.context.mirror(FORK).write_blob(b"of the same day")
        await sweep()
        assert loose() == 1
        p.clock.forward(days=1)
        await sweep()
        assert loose() == 0
        assert await p.failures() == []


async def test_a_rewritten_upstream_is_kept_while_it_is_to_be_decided(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        p.failing = True
        before, clone = p.upstream.git("rev-parse", "main"), p.upstream
        clone.git("checkout", "-q", "-B", "other", "main~2")
        other = clone.commit("Other", {"other.txt": "x\n"})
        p.sandbox.push_ref(UPSTREAM, "main", source=clone.path, rev="other")
        await p.ingest()
        assert p.context.mirror(FORK).refs(REWRITTEN_REF) == {REWRITTEN_REF: other}
        p.sandbox.push_ref(UPSTREAM, "main", source=clone.path, rev=before)
        p.clock.forward(hours=1)
        await p.ingest()
        assert p.context.mirror(FORK).refs(REWRITTEN_REF) == {}
        assert p.context.mirror(FORK).resolve(UPSTREAM_REF) == before


def test_every_kind_of_ref_has_an_end() -> None:
    """Whoever makes a new kind says in the table of `handlers.refs` what ends it."""
    made = re.compile(r"refs/graft/[a-z]+")
    told = set(made.findall(refs.__doc__ or ""))
    places = Path(handlers.__path__[0]).glob("*.py")
    assert {name for path in places for name in made.findall(path.read_text(encoding="utf-8"))} == told
