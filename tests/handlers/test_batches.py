"""Opening, landing in each way, what comes next; closed, reopened, pushed to: batches through their whole life."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.batches import BatchState, ClosedWhy
from bot.core.types import BatchKind, Disposition
from tests.handlers.pair import CONFIG, FORK, Clone, lines, numbers, pair

pytestmark = pytest.mark.timeout(240)


async def test_a_bundle_a_link_and_a_conflict_are_opened_once(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        assert await p.failures() == []
        bundle, link, clash = p.pulls()
        # one commit for each upstream commit, as it was written, with an inert message and a trailer that resolves
        commits = p.git("log", "--reverse", "--format=%H%x09%an%x09%ae%x09%ad%x09%cn", f"main..{bundle.pull.head_sha}")
        authors = [line.split("\t")[1:] for line in commits.splitlines()]
        upstream = [p.upstream.git("log", "-1", "--format=%an%x09%ae%x09%ad", p.shas[r]) for r in ("one", "two")]
        assert authors == [[*line.split("\t"), "graft[bot]"] for line in upstream]
        message = p.git("log", "-1", "--format=%B", bundle.pull.head_sha)
        assert f"(cherry picked from commit {p.shas['two']})" in message
        assert "Co-authored-by: Bo <bo@up.example>" in message
        assert "@someone" not in message
        assert "#8592" not in message
        assert "#12" not in message
        assert "up/pkg#\u200b12" in message
        # the body says what is in it, why, the pins, and the way back
        for part in ("2 commits of `up/pkg`", "### Picked", "### Pins", "roll-back point", "/defer <commit>"):
            assert part in bundle.body
        assert f"roll-back point | `{p.git('rev-parse', 'main')[:10]}`" in bundle.body
        assert link.body.count("this pull request") == 1
        assert "opens when the one before has landed" in link.body
        assert list(bundle.labels) == ["graft:bundle"]
        assert set(link.labels) == {"graft:chain", "risk:chained"}
        assert set(clash.labels) == {"graft:conflict"}
        # a conflict is a draft whose first commit is upstream's as it came, with both sides and the base
        assert (bundle.pull.draft, link.pull.draft, clash.pull.draft) == (False, False, True)
        first = p.git("rev-list", "--reverse", f"main..{clash.pull.head_sha}").split()[0]
        marked = p.git("show", f"{first}:clash.txt")
        assert all(part in marked for part in ("<<<<<<<", "|||||||", "=======", ">>>>>>>", "ours", "theirs"))
        assert "git cherry-pick -x" in clash.body
        # looking again opens nothing and writes nothing (C25)
        before = {i.number: (i.updated_at, len(i.comments)) for i in p.repository.issues.values()}
        await p.ingest()
        await p.ask("sweep")
        await p.settle()
        assert {i.number: (i.updated_at, len(i.comments)) for i in p.repository.issues.values()} == before
        # Graft's own pushes, labels and comments set nothing off (C80)
        assert (await p.context.store.job_counts()).keys() == {"done"}


async def test_landing_by_merge_squash_and_rebase_is_recognised(tmp_path: Path) -> None:
    def make(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
        for number in range(1, 7):
            shas[f"c{number}"] = upstream.commit(f"Add {number} (#{number})", {f"f{number}.txt": f"{number}\n"})

    config = CONFIG + "ingest: {bundle: {max_commits: 2}}\n"
    async with pair(tmp_path, make=make, config=config) as p:
        p.install()
        await p.settle()
        assert numbers(p.pulls()) == [1, 2, 3]
        user = p.sandbox.as_user("maria")
        await user.merge_pull(FORK, 1, "merge")
        # the person who squashes throws the message away, with all trailers (C18)
        await user.merge_pull(FORK, 2, "squash", title="Take two in", message="as reviewed")
        await user.merge_pull(FORK, 3, "rebase")
        await p.settle()
        assert await p.failures() == []
        plan = await p.plan()
        assert {entry.disposition for entry in plan.ledger.entries} == {Disposition.PICKED}
        assert plan.ledger.pin == plan.ledger.frontier == p.shas["c6"]
        assert plan.ledger.metrics.days_behind == 0
        assert plan.ledger.metrics.backlog == 0
        assert {b.state for b in await p.batches()} == {BatchState.MERGED}
        kinds = [row.kind for row in await p.context.store.audit_entries(FORK)]
        assert kinds.count("sync") == 3
        assert numbers(p.pulls(None)) == [1, 2, 3]
        # a revert in the fork makes the commit pending again, and the revert of the revert takes it back in (C4)
        merged = p.git("log", "--format=%H", f"--grep=cherry picked from commit {p.shas['c5']}", "main")
        p.fork.get(p.repository.path, "main")
        p.fork.git("revert", "--no-edit", merged.split()[0])
        p.sandbox.push_ref(FORK, "main", source=p.fork.path, login="maria")
        await p.settle()
        entry = await p.entry(p.shas["c5"])
        assert entry.disposition is Disposition.REVERTED
        assert (await p.plan()).ledger.metrics.backlog == 1
        assert p.pulls() == []  # it comes again when somebody asks for it
        assert "the fork took it back" in p.dashboard().body
        p.fork.git("revert", "--no-edit", "HEAD")
        p.sandbox.push_ref(FORK, "main", source=p.fork.path, login="maria")
        await p.settle()
        assert (await p.entry(p.shas["c5"])).disposition is Disposition.PICKED
        assert (await p.plan()).ledger.metrics.backlog == 0


async def test_the_next_link_opens_once_the_one_before_has_landed(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        await p.merge(2, "squash")
        link = p.pull_with(p.shas["link2"])
        assert "link 2 of 2" in link.title
        assert link.body.count("picked") >= 1
        assert link.pull.head_ref == p.pulls(None)[1].pull.head_ref[:-1] + "2"
        (before, after) = [b for b in await p.batches() if b.kind is BatchKind.CHAIN]
        assert (before.position, after.position, before.key) == (1, 2, after.key)
        # a person resolves the conflict with a push, and lands it
        clash = p.pull_with(p.shas["clash"])
        p.person_pushes(clash.pull.head_ref, "Resolve the conflict", {"clash.txt": lines((15, "both"))})
        await p.settle()
        await p.sandbox.as_user("walter").ready_for_review(FORK, clash.number)
        await p.merge(clash.number, "squash")
        assert (await p.entry(p.shas["clash"])).disposition is Disposition.PICKED
        await p.merge(link.number, "rebase")
        await p.merge(1, "merge")
        plan = await p.plan()
        assert {e.disposition for e in plan.ledger.entries} == {Disposition.PICKED}
        assert plan.ledger.pin == p.shas["clash"]
        assert await p.failures() == []


async def test_two_that_land_at_once_are_both_noted_and_nothing_comes_twice(tmp_path: Path) -> None:
    """C29."""
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        user = p.sandbox.as_user("maria")
        for number in (1, 2):
            await user.merge_pull(FORK, number, "squash", title=f"Take #{number}", message="no trailers")
        p.fork_commits("Meanwhile", {"meanwhile.txt": "x\n"})
        await p.settle()
        assert p.carrying(p.shas["one"], None) == [1]
        assert p.carrying(p.shas["link1"], None) == [2]
        assert (await p.plan()).ledger.pin == p.shas["link1"]
        carried = p.git("log", "--format=%B", "main").count(p.shas["one"])
        assert carried == 0  # GitHub holds it in the body alone
        assert (await p.entry(p.shas["one"])).disposition is Disposition.PICKED


async def test_a_closed_one_stays_closed_until_asked_for(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        await p.sandbox.as_user("walter").close(FORK, 1)
        await p.settle()
        await p.ingest()
        assert p.carrying(p.shas["one"]) == []
        assert "closed by a person" in p.dashboard().body
        answer = await p.says("walter", 1, "/retry")
        assert "✅" in answer
        (again,) = p.carrying(p.shas["one"])
        assert again != 1
        # opened again by a person it is looked after as before
        await p.sandbox.as_user("walter").close(FORK, again)
        await p.settle()
        await p.sandbox.as_user("walter").reopen(FORK, again)
        await p.settle()
        assert p.carrying(p.shas["one"]) == [again]
        assert {b.number: b.state for b in await p.batches()}[again] is BatchState.OPEN
        assert await p.failures() == []


async def test_a_persons_push_is_never_overwritten(tmp_path: Path) -> None:
    """C27."""
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        bundle = p.pulls()[0]
        mine = p.person_pushes(bundle.pull.head_ref, "My own touch", {"one.txt": "one, mended\n"})
        await p.settle()
        p.fork_commits("In the way", {"one.txt": "in the way\n"})
        await p.settle()
        assert bundle.pull.head_sha == mine
        paused = [c for c in p.comments(1) if "Graft writes here no more" in c]
        assert len(paused) == 1
        assert "the person who pushed to it" in p.dashboard().body
        # what is decided against while a person holds the branch is left to the person
        answer = await p.says("maria", 1, f'/defer {p.shas["two"][:10]} reason="later"')
        assert "a person pushed to it" in answer
        assert bundle.pull.head_sha == mine
        assert "may not" in await p.says("rita", 1, "/rebase")
        answer = await p.says("walter", 1, "/rebase")
        assert "planned again" in answer  # nothing of it applies: `one` conflicts by now, `two` is deferred
        assert p.repository.issues[1].state == "closed"
        assert p.carrying(p.shas["one"]) != []
        assert "Conflict" in p.pull_with(p.shas["one"]).title


async def test_a_moved_base_is_followed_under_a_lease_and_said(tmp_path: Path) -> None:
    """C28."""
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        bundle, link = p.pulls()[:2]
        before, branch = bundle.pull.head_sha, link.pull.head_ref
        # what does not meet the batch leaves it alone: its reviews stand
        p.fork_commits("Elsewhere", {"elsewhere.txt": "x\n"})
        await p.settle()
        assert bundle.pull.head_sha == before
        p.fork_commits("Take one's place", {"one.txt": "ours\n", "chain.txt": lines((10, "ours"))})
        await p.settle()
        assert bundle.pull.head_sha != before
        assert p.carrying(p.shas["one"]) != [1]  # it conflicts now, and has a draft of its own
        assert p.carrying(p.shas["two"]) == [1]
        assert any("Built anew on" in body and "no longer applied" in body for body in p.comments(1))
        assert "conflicts on the present base" in bundle.body
        # a link that conflicts comes back as a draft on a branch of the same name
        assert link.state == "closed"
        assert any("a draft for its resolution follows" in body for body in p.comments(link.number))
        draft = p.pull_with(p.shas["link1"])
        assert (draft.pull.draft, draft.pull.head_ref) == (True, branch)
        closed = [b for b in await p.batches() if b.number == link.number]
        assert all(b.closed_why is not ClosedWhy.PERSON for b in closed)
        # and once the reason is gone, it is no draft any more
        p.fork_commits("Out of the way", {"chain.txt": lines()})
        await p.settle()
        after = p.pull_with(p.shas["link1"])
        assert after.number != draft.number
        assert not after.pull.draft
        assert await p.failures() == []


async def test_what_landed_otherwise_is_closed_with_the_reason(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        p.fork.get(p.repository.path, "main")
        p.fork.git("fetch", "-q", str(p.upstream.path), "main")
        for role in ("one", "link1"):
            p.fork.git("cherry-pick", "-x", p.shas[role])
        p.fork.commit("By hand, without a trailer", {"two.txt": "two\n"})
        p.sandbox.push_ref(FORK, "main", source=p.fork.path, login="walter")
        await p.settle()
        bundle, link = p.repository.issues[1], p.repository.issues[2]
        assert (bundle.state, link.state) == ("closed", "closed")
        assert any("is in the fork already" in c and "changes nothing in the fork" in c for c in p.comments(1))
        assert p.carrying(p.shas["link2"]) != []
        assert "graft/bundle" not in p.git("branch", "--list", bundle.pull.head_ref)
        assert await p.failures() == []
