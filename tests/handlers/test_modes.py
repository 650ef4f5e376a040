"""Modes, caps, the halt issue, a broken file, what can't be read: what Graft does when it may not, or can't."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.core.types import Disposition
from tests.handlers.pair import CONFIG, FORK, RISK, UPSTREAM, Clone, pair

pytestmark = pytest.mark.timeout(240)


def many(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
    for number in range(1, 9):
        shas[f"c{number}"] = upstream.commit(f"Add {number} (#{number})", {f"f{number}.txt": f"{number}\n"})


async def test_a_first_run_far_behind_opens_no_more_than_the_caps(tmp_path: Path) -> None:
    caps = "ingest: {bundle: {max_commits: 1}, caps: {open_bundles: 4, pull_requests_per_day: 2}}\n"
    async with pair(tmp_path, make=many, config=CONFIG + caps) as p:
        p.install()
        await p.settle()
        assert len(p.pulls()) == 2
        assert "the day's cap is reached" in p.dashboard().body
        await p.ingest()
        assert len(p.pulls()) == 2
        p.clock.forward(days=1)
        await p.ingest()
        assert len(p.pulls()) == 4
        p.clock.forward(days=1)
        await p.ingest()
        assert len(p.pulls()) == 4
        assert "as many are open as the file allows" in p.dashboard().body
        # an urgent one passes the caps
        answer = await p.says("walter", p.pulls()[0].number, f"/pick {p.shas['c8'][:12]}")
        assert "✅" in answer
        assert len(p.carrying(p.shas["c8"])) == 1
        assert (await p.plan()).ledger.frontier is None


async def test_observe_writes_nothing_but_the_dashboard_and_propose_opens_drafts(tmp_path: Path) -> None:
    async with pair(tmp_path, config=CONFIG.replace("act", "observe") + RISK) as p:
        p.install()
        await p.settle()
        assert p.pulls(None) == []
        assert "the mode is observe" in p.dashboard().body
        assert p.git("branch", "--list", "graft/*") == ""
        p.fork_commits("Propose", {".github/graft.yml": CONFIG.replace("act", "propose") + RISK})
        await p.settle()
        assert {pull.pull.draft for pull in p.pulls()} == {True}
        # back to observing, even what is open is left alone
        p.fork_commits("Observe", {".github/graft.yml": CONFIG.replace("act", "observe") + RISK, "one.txt": "x\n"})
        await p.settle()
        assert [pull.state for pull in p.pulls(None)] == ["open"] * 3
        bundle = p.pulls()[0]
        assert not any("Built anew" in text for text in p.comments(bundle.number))
        assert "mode is observe" in await p.says("maria", bundle.number, "/rebase")
        assert await p.failures() == []


async def test_only_someone_with_write_access_halts(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.sandbox.set_permission(FORK, "rita", "triage")
        issue = await p.sandbox.as_user("rita").open_issue(FORK, "Stop")
        await p.sandbox.as_user("walter").open_issue(FORK, "Make the label", labels=["graft:halt"])
        await p.sandbox.as_user("walter").close(FORK, issue["number"] + 1)
        await p.sandbox.as_user("rita").label(FORK, issue["number"], "graft:halt")
        p.install()
        await p.settle()
        assert len(p.pulls()) == 3
        await p.sandbox.as_user("walter").reopen(FORK, issue["number"] + 1)
        await p.settle()
        assert "Halted by" in p.dashboard().body
        bundle = p.pulls()[0]
        head = bundle.pull.head_sha
        p.fork_commits("In the way", {"one.txt": "ours\n"})
        await p.settle()
        assert bundle.pull.head_sha == head
        assert "halted" in await p.says("maria", bundle.number, "/rebase")
        assert "halted" in await p.says("maria", bundle.number, "/split")
        await p.sandbox.as_user("walter").close(FORK, issue["number"] + 1)
        await p.settle()
        await p.ingest()
        assert bundle.pull.head_sha != head
        assert "Halted" not in p.dashboard().body


async def test_a_broken_file_is_said_with_the_line_and_what_was_known_stands(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        before = len(p.pulls())
        p.fork_commits("Break it", {".github/graft.yml": CONFIG + "ingset: {}\n"})
        await p.settle()
        body = p.dashboard().body
        assert "is broken" in body
        assert "ingset" in body
        assert "ingest" in body  # the near match
        assert "Days Behind Upstream" in body
        assert len(p.pulls()) == before
        assert await p.failures() == []
        p.fork_commits("Mend it", {".github/graft.yml": CONFIG + RISK})
        await p.settle()
        assert "is broken" not in p.dashboard().body


async def test_upstream_that_cant_be_read_makes_the_metrics_stale_never_zero(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        days = (await p.plan()).ledger.metrics.days_behind
        assert days > 0
        good = f"{p.clock():%Y-%m-%d %H:}"
        # rewritten (C23): not followed, said, and what stands is marked with the time of the last good reading
        p.failing = True
        p.upstream.git("checkout", "-q", "--orphan", "other")
        p.upstream.commit("Another history", {"x.txt": "x\n"})
        p.sandbox.push_ref(UPSTREAM, "main", source=p.upstream.path, rev="other")
        await p.ingest()
        body = p.dashboard().body
        assert f"stale since {good}" in body
        assert "its history was rewritten" in body
        assert f"**{days:.1f}**" in body
        assert (await p.plan()).ledger.metrics.days_behind == days
        assert len(p.pulls()) == 3
        # renamed
        p.sandbox.delete_ref(UPSTREAM, "main")
        p.clock.forward(minutes=30)
        await p.ingest()
        assert "was it renamed or deleted?" in p.dashboard().body
        assert f"stale since {good}" in p.dashboard().body
        # one alarm, on a path of its own, and not again each time (C89)
        for _ in range(3):
            p.clock.forward(hours=7)
            await p.ask("sweep")
            await p.settle()
        alarms = [i for i in p.repository.issues.values() if "graft:alarm" in i.body]
        assert len(alarms) == 1
        assert alarms[0].state == "open"
        assert "was it renamed" in alarms[0].body
        # and all is well again once it is back
        p.upstream.git("checkout", "-q", "main")
        p.upstream.commit("Go on (#20)", {"more.txt": "x\n"})
        p.sandbox.push_ref(UPSTREAM, "main", source=p.upstream.path)
        await p.ingest()
        await p.ask("sweep")
        await p.settle()
        assert "stale" not in p.dashboard().body.replace("stale_since", "")
        assert alarms[0].state == "closed"


async def test_the_forks_own_branch_gone_is_said_as_such(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        p.failing = True
        p.fork_commits("Name another", {".github/graft.yml": CONFIG + "fork: {branch: trunk}\n"})
        await p.ingest()
        assert "acme/pkg, branch trunk: it is not there" in p.dashboard().body
        assert [pull.state for pull in p.pulls(None)] == ["open"] * 3


async def test_a_refused_push_names_the_missing_permission_and_holds_up_no_other(tmp_path: Path) -> None:
    """C15."""

    def make(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
        shas["flow"] = upstream.commit("Change the flow", {".github/workflows/ci.yml": "on: push\n", "a.txt": "a\n"})
        shas["free"] = upstream.commit("Add free", {"free.txt": "x\n"})

    config = CONFIG + "ingest: {bundle: {max_commits: 1}, caps: {open_bundles: 1}}\n"
    async with pair(tmp_path, make=make, config=config) as p:
        p.app.permissions.pop("workflows", None)
        p.install()
        await p.settle()
        # what can't be pushed takes no place from what can
        (free,) = p.carrying(p.shas["free"])
        assert p.carrying(p.shas["flow"]) == []
        body = p.dashboard().body
        assert "Workflows (write)" in body
        assert "conflict" not in body.partition("### Open")[0].lower()
        assert (await p.entry(p.shas["flow"])).disposition is Disposition.PENDING
        p.sandbox.state.installations[p.installation].permissions["workflows"] = "write"
        p.sandbox.faults.expire_tokens()
        await p.merge(free)
        assert len(p.carrying(p.shas["flow"])) == 1
        assert "Workflows (write)" not in p.dashboard().body


async def test_limits_lose_nothing(tmp_path: Path) -> None:
    """C77."""
    async with pair(tmp_path) as p:
        p.sandbox.faults.fail("secondary", method="POST", path="/pulls$", times=1, retry_after=1)
        p.sandbox.faults.fail("abuse", method="POST", path="/pulls$", times=1, retry_after=1)
        p.sandbox.faults.fail("bad_gateway_after_write", method="POST", path="/pulls$", times=1)
        p.sandbox.faults.fail("secondary", method="POST", path="/labels$", times=1, retry_after=1)
        p.install()
        await p.settle()
        await p.settle()
        assert {role: len(p.carrying(p.shas[role], None)) for role in ("one", "link1", "clash")} == {
            "one": 1,
            "link1": 1,
            "clash": 1,
        }
        assert all(pull.labels for pull in p.pulls())


async def test_locked_and_archived(tmp_path: Path) -> None:
    async with pair(tmp_path) as p:
        p.install()
        await p.settle()
        await p.sandbox.as_user("maria").lock(FORK, 1)
        p.fork_commits("In the way", {"one.txt": "ours\n", "two.txt": "two\n"})
        await p.settle()
        assert p.repository.issues[1].state == "closed"  # `one` conflicts and `two` is there: nothing is left of it
        p.repository.archived = p.failing = True
        p.upstream_commits("three", "Add three", {"three.txt": "3\n"})
        before = p.dashboard().body
        await p.ingest()
        assert p.carrying(p.shas["three"]) == []
        # nothing can be written, not even the dashboard: the job is parked with the reason, for `graft doctor` to show
        assert p.dashboard().body == before
        assert any(text.startswith("ingest") and "archived" in text for text in await p.failures())
        blocked = await p.context.store.note(p.installation, FORK, "blocked")
        assert [("the repository is archived" in text) for text in blocked.values()] == [True]
        # nor is it looked after any more
        await p.ask("register")
        await p.settle()
        assert p.scope not in await p.context.store.repositories()
        p.repository.archived = False
        await p.ask("register")
        await p.settle()
        await p.ingest()
        assert len(p.carrying(p.shas["three"])) == 1
        assert p.dashboard().body != before
