from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from bot.clients.github import (
    Annotation,
    Conflict,
    Forbidden,
    GitHubApp,
    NotFound,
    RateLimited,
    Repository,
    Unauthorized,
    Unavailable,
    Validation,
)
from bot.sandbox.driver import Sandbox
from tests.sandbox.fixtures import EVENTS, PERMISSIONS, REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]


@dataclass
class Clock:
    """A clock that moves on when someone sleeps."""

    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=sum(self.slept))

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def client(scene: Scene, clock: Clock, key: str | None = None) -> GitHubApp:
    box = scene.sandbox
    return GitHubApp(
        scene.app.id, key or scene.app.private_key, box.api_url, git_base=box.url, now=clock.now, sleep=clock.sleep
    )


@pytest.fixture
async def github(scene: Scene, clock: Clock) -> AsyncIterator[GitHubApp]:
    async with client(scene, clock) as app:
        yield app


@pytest.fixture
def repo(github: GitHubApp, scene: Scene) -> Repository:
    return github.repository(scene.installation, REPO)


def sent(box: Sandbox) -> Counter[tuple[str, str]]:
    """How often each request (method, path) came to the sandbox."""
    return Counter((method, path.split("?")[0]) for method, path, _ in box.state.requests)


async def open_pull(scene: Scene, branch: str = "topic") -> int:
    dev = scene.sandbox.as_user("dev")
    await dev.push(REPO, scene.checkout.path, branch)
    return int((await dev.open_pull(REPO, branch, title="Topic", body="Adds two."))["number"])


async def test_many_cold_calls_mint_one_token(scene: Scene, repo: Repository) -> None:
    await asyncio.gather(*(repo.info() for _ in range(20)))
    path = f"/app/installations/{scene.installation}/access_tokens"
    assert sent(scene.sandbox)["POST", path] == 1
    assert await repo.token() == await repo.token()


async def test_a_token_that_expired_early_is_renewed_once(scene: Scene, repo: Repository) -> None:
    await repo.info()
    scene.sandbox.faults.expire_tokens()
    await asyncio.gather(*(repo.default_branch() for _ in range(5)))
    path = f"/app/installations/{scene.installation}/access_tokens"
    assert sent(scene.sandbox)["POST", path] == 2


async def test_a_token_is_renewed_before_its_hour_is_over(scene: Scene, clock: Clock, repo: Repository) -> None:
    first = await repo.token()
    clock.slept.append(54 * 60)
    assert await repo.token() == first
    clock.slept.append(2 * 60)
    assert await repo.token() != first


async def test_a_wrong_key_is_said(scene: Scene, clock: Clock) -> None:
    from bot.sandbox import auth

    async with client(scene, clock, auth.key_pair()[0]) as app:
        with pytest.raises(Unauthorized):
            await app.info()


async def test_the_app_knows_itself_and_where_it_is_installed(scene: Scene, github: GitHubApp) -> None:
    info = await github.info()
    assert (info.id, info.login) == (scene.app.id, "graft[bot]")
    (installation,) = await github.installations()
    assert (installation.id, installation.account.login) == (scene.installation, "acme")
    (found,) = await github.installation_repositories(scene.installation)
    assert (found.full_name, found.default_branch, found.archived) == (REPO, "main", False)


async def test_a_comment_is_one_comment(scene: Scene, repo: Repository) -> None:
    number = await open_pull(scene)
    await scene.sandbox.as_user("dev").comment(REPO, number, "someone else's <!-- graft:results -->")
    first = await repo.upsert_comment(number, "<!-- graft:results -->", "one")
    assert first.body == "one\n\n<!-- graft:results -->"
    writes = sum(sent(scene.sandbox).values())
    same = await repo.upsert_comment(number, "<!-- graft:results -->", "one")
    assert same.id == first.id
    assert sum(sent(scene.sandbox).values()) == writes + 1  # it was read, and not written
    second = await repo.upsert_comment(number, "<!-- graft:results -->", "two")
    assert second.id == first.id
    both = await asyncio.gather(*(repo.upsert_comment(number, "<!-- m -->", f"text {n}") for n in range(4)))
    assert len({comment.id for comment in both}) == 1
    assert len(await repo.comments(number)) == 3


async def test_an_older_run_never_overwrites_a_newer_one(scene: Scene, repo: Repository) -> None:
    number = await open_pull(scene)
    await repo.upsert_comment(number, "<!-- m -->", "of run 5", stamp=5)
    await repo.upsert_comment(number, "<!-- m -->", "of run 4", stamp=4)
    (comment,) = await repo.comments(number)
    assert comment.body.startswith("of run 5")
    await repo.upsert_comment(number, "<!-- m -->", "of run 6", stamp=6)
    (comment,) = await repo.comments(number)
    assert comment.body.startswith("of run 6")


@pytest.mark.parametrize("kind", ["bad_gateway_after_write", "bad_gateway", "server_error", "reset"])
async def test_a_write_of_unknown_effect_happens_once(scene: Scene, repo: Repository, kind: str) -> None:
    number = await open_pull(scene)
    faults = scene.sandbox.faults
    faults.fail(kind, method="POST", path=r"/comments$")
    await repo.upsert_comment(number, "<!-- m -->", "text")
    faults.fail(kind, method="POST", path=r"/comments$")
    await repo.create_comment(number, "free text")
    assert [comment.body for comment in await repo.comments(number)] == ["text\n\n<!-- m -->", "free text"]

    faults.fail(kind, method="POST", path=r"/issues$")
    issue = await repo.create_issue("Trunk is broken", "text", marker="<!-- i -->")
    assert [one.number for one in await repo.issues()] == [issue.number]

    head = (await repo.pull(number)).head.sha
    faults.fail(kind, method="POST", path=r"/check-runs$")
    check = await repo.upsert_check(head, "graft/l1", status="in_progress")
    assert [run.id for run in await repo.check_runs(head, name="graft/l1", latest=False)] == [check.id]

    await scene.sandbox.as_user("dev").push(REPO, scene.checkout.path, "topic:graft/bundle/k")
    faults.fail(kind, method="POST", path=r"/pulls$")
    pull = await repo.create_pull(head="graft/bundle/k", base="main", title="Bundle", body="", draft=True)
    assert [one.number for one in await repo.pulls(head="graft/bundle/k", state="all")] == [pull.number]

    faults.fail(kind, method="PUT", path=r"/merge$")
    merged = await repo.merge_pull(number, sha=head, method="squash")
    assert (await repo.pull(number)).merge_commit_sha == merged


async def test_reads_are_repeated_and_give_up_in_the_end(scene: Scene, clock: Clock, repo: Repository) -> None:
    scene.sandbox.faults.fail("server_error", method="GET", path=rf"^/repos/{REPO}$", times=2)
    assert await repo.default_branch() == "main"
    assert clock.slept == [0.5, 1.0]
    scene.sandbox.faults.fail("bad_gateway", method="GET", path=rf"^/repos/{REPO}$", times=99)
    with pytest.raises(Unavailable):
        await repo.info()


@pytest.mark.parametrize("kind", ["secondary", "abuse"])
async def test_a_secondary_limit_is_waited_out_and_loses_nothing(
    scene: Scene, clock: Clock, repo: Repository, kind: str
) -> None:
    number = await open_pull(scene)
    scene.sandbox.faults.fail(kind, method="POST", path=r"/comments$", retry_after=7)
    await asyncio.gather(*(repo.create_comment(number, f"text {n}") for n in range(5)))
    assert sorted(comment.body for comment in await repo.comments(number)) == [f"text {n}" for n in range(5)]
    assert len(clock.slept) == 1  # the others stood behind the one writer
    assert clock.slept[0] == pytest.approx(7 if kind == "secondary" else 60, abs=1)


async def test_the_primary_limit_gives_the_job_back_with_its_time(scene: Scene, clock: Clock, repo: Repository) -> None:
    await repo.info()
    scene.sandbox.faults.exhaust_rate_limit()
    with pytest.raises(RateLimited) as limited:
        await repo.issue(1)
    assert not limited.value.secondary
    assert limited.value.retry_at > clock.now()
    asked = sum(sent(scene.sandbox).values())
    with pytest.raises(RateLimited):
        await repo.issues()
    assert sum(sent(scene.sandbox).values()) == asked  # nobody asks again before the time


async def test_errors_are_sorted(scene: Scene, clock: Clock, repo: Repository) -> None:
    with pytest.raises(NotFound):
        await repo.issue(999)
    with pytest.raises(Validation) as invalid:
        await repo.create_pull(head="no-such-branch", base="main", title="x", body="")
    assert "head" in str(invalid.value)
    scene.sandbox.faults.fail("forbidden", method="POST", path=r"/labels$")
    with pytest.raises(Forbidden, match="not accessible"):
        await repo.ensure_label("graft:bundle")
    number = await open_pull(scene)
    with pytest.raises(Conflict):
        await repo.merge_pull(number, sha="0" * 40)


async def test_a_missing_permission_is_named(sandbox: Sandbox, scene: Scene, clock: Clock) -> None:
    weak = sandbox.create_app("weak", {**PERMISSIONS, "issues": "read", "pull_requests": "read"}, EVENTS)
    installation = sandbox.install(weak, [REPO])
    async with GitHubApp(weak.id, weak.private_key, sandbox.api_url, sleep=clock.sleep) as app:
        with pytest.raises(Forbidden) as refused:
            await app.repository(installation, REPO).create_issue("x", "y")
    assert "issues=write" in refused.value.permission
    assert "issues=write" in str(refused.value)


async def test_a_check_is_one_check_until_it_starts_again(scene: Scene, repo: Repository) -> None:
    head = (await repo.pull(await open_pull(scene))).head.sha
    many = [Annotation(path="a.py", start_line=n, end_line=n, message=f"m{n}") for n in range(1, 121)]
    first = await repo.upsert_check(head, "graft/l1", status="in_progress", title="Runs", external_id="run-1")
    done = await repo.upsert_check(
        head, "graft/l1", status="completed", conclusion="failure", title="3 failed", summary="s", text="t",
        annotations=many, external_id="run-1",
    )  # fmt: skip
    assert done.id == first.id
    assert done.output.annotations_count == 120
    writes = sent(scene.sandbox)["PATCH", f"/repos/{REPO}/check-runs/{first.id}"]
    assert writes == 3
    await repo.upsert_check(
        head, "graft/l1", status="completed", conclusion="failure", title="3 failed", summary="s", text="t",
        annotations=many, external_id="run-1",
    )  # fmt: skip
    assert sent(scene.sandbox)["PATCH", f"/repos/{REPO}/check-runs/{first.id}"] == writes
    again = await repo.upsert_check(head, "graft/l1", status="queued", title="Runs again", external_id="run-2")
    assert again.id != first.id
    (latest,) = await repo.check_runs(head, name="graft/l1")
    assert (latest.id, latest.status, latest.external_id) == (again.id, "queued", "run-2")


async def test_the_same_branch_never_has_two_pull_requests(scene: Scene, repo: Repository) -> None:
    await scene.sandbox.as_user("dev").push(REPO, scene.checkout.path, "topic:graft/chain/k/1")
    first = await repo.create_pull(head="graft/chain/k/1", base="main", title="Link 1", body="b", draft=True)
    again = await repo.create_pull(head="graft/chain/k/1", base="main", title="Other", body="c")
    assert (again.number, again.title, again.draft) == (first.number, "Link 1", True)
    changed = await repo.update_pull(first.number, title="Link 1 of 2", state="closed")
    assert (changed.title, changed.state, changed.landed) == ("Link 1 of 2", "closed", False)
    assert await repo.pulls(head="graft/chain/k/1") == []
    files = await repo.pull_files(first.number)
    assert [(one.filename, one.status) for one in files] == [("lib/core.py", "modified")]
    assert [one.commit.message for one in await repo.pull_commits(first.number)] == ["Add two"]


async def test_labels(scene: Scene, repo: Repository) -> None:
    number = await open_pull(scene)
    await asyncio.gather(*(repo.ensure_label("area:tlx", "#ff0000", "Owned by tlx") for _ in range(3)))
    await repo.add_labels(number, ["area:tlx", "risk:llvm"])
    assert {label.name for label in (await repo.pull(number)).labels} == {"area:tlx", "risk:llvm"}
    assert await repo.who_labelled(number, "area:tlx") == ["graft[bot]"]
    await repo.remove_label(number, "area:tlx")
    await repo.remove_label(number, "area:tlx")
    assert await repo.who_labelled(number, "area:tlx") == []
    await scene.sandbox.as_user("dev").label(REPO, number, "area:tlx")
    assert await repo.who_labelled(number, "area:tlx") == ["dev"]


async def test_an_issue_is_found_by_its_marker_open_or_closed(scene: Scene, repo: Repository) -> None:
    await repo.ensure_label("trunk-breakage")
    issue = await repo.upsert_issue("<!-- b1 -->", "Broken", "text", labels=["trunk-breakage"])
    await repo.update_issue(issue.number, state="closed", state_reason="completed")
    again = await repo.upsert_issue("<!-- b1 -->", "Broken again", "text 2", labels=["trunk-breakage"])
    assert (again.number, again.state, again.title) == (issue.number, "open", "Broken again")
    other = await repo.upsert_issue("<!-- b2 -->", "Broken", "text", labels=["trunk-breakage"])
    assert other.number != issue.number
    assigned = await repo.add_assignees(issue.number, ["dev"])
    assert [user.login for user in assigned.assignees] == ["dev"]


async def test_reactions_and_comments_that_are_gone(scene: Scene, repo: Repository) -> None:
    number = await open_pull(scene)
    comment = await repo.create_comment(number, "text")
    await repo.react(comment.id, "eyes")
    await repo.react(comment.id, "eyes")
    assert [(one.content, one.user.login) for one in await repo.reactions(comment.id)] == [("eyes", "graft[bot]")]
    await repo.delete_comment(comment.id)
    await repo.delete_comment(comment.id)
    with pytest.raises(NotFound):
        await repo.comment(comment.id)


async def test_files_branches_and_people(scene: Scene, repo: Repository) -> None:
    box = scene.sandbox
    await open_pull(scene)
    assert await repo.file("lib/core.py") == b"def one():\n    return 1\n"
    assert b"two" in (await repo.file("lib/core.py", "topic") or b"")
    assert await repo.file("lib/none.py") is None
    assert await repo.file("lib") is None
    branch = await repo.branch("topic")
    assert branch is not None
    assert await repo.branch("graft/none") is None
    assert await repo.delete_branch("topic")
    assert not await repo.delete_branch("topic")
    assert [await repo.permission(login) for login in ("dev", "olga", "stan", "nobody")] == [
        "write", "admin", "read", "none",
    ]  # fmt: skip
    box.set_permission(REPO, "dev", "maintain")
    assert await repo.permission("dev") == "maintain"
    box.create_team("acme", "tlx", ["dev"])
    assert await repo.team_members("acme", "tlx") == ["dev"]
    with pytest.raises(NotFound):
        await repo.team_members("acme", "none")


async def test_a_folder_is_listed_and_a_blob_asked_for_once(
    scene: Scene, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = scene.sandbox.state
    listed = await repo.folder("lib")
    assert listed is not None
    assert set(listed) == {"core.py"}
    before = len(state.requests)
    contents = [await repo.blob(listed["core.py"]) for _ in range(3)]
    assert set(contents) == {await repo.file("lib/core.py")}
    assert [path.rpartition("/")[0] for _, path, _ in list(state.requests)[before:]].count(
        f"/repos/{REPO}/git/blobs"
    ) == 1
    assert await repo.folder("none") == {}
    assert await repo.folder("lib/core.py") == {}
    monkeypatch.setattr("bot.clients.github.contents._MOST_LISTED", 1)
    assert await repo.folder("lib") is None, "it may hold more than GitHub lists"


async def test_protection(scene: Scene, repo: Repository) -> None:
    assert (await repo.protection("main")).required_checks == ()
    scene.sandbox.protect(REPO, "main", ["graft/gate"], strict=True, required_reviews=1)
    found = await repo.protection("main")
    assert (found.required_checks, found.strict, found.required_approvals) == (("graft/gate",), True, 1)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.clients.github.api.PER_PAGE", 5)


@pytest.mark.usefixtures("small_pages")
async def test_pages_are_followed_and_unchanged_ones_cost_nothing(scene: Scene, repo: Repository) -> None:
    number = await open_pull(scene)
    dev = scene.sandbox.as_user("dev")
    for n in range(7):
        await dev.comment(REPO, number, f"comment {n}")
    assert [comment.body for comment in await repo.comments(number)] == [f"comment {n}" for n in range(7)]
    assert len(await repo.comments(number)) == 7
    statuses = [
        status for method, path, status in scene.sandbox.state.requests if "/comments" in path and method == "GET"
    ]
    assert statuses[-2:] == [304, 304]


@pytest.mark.usefixtures("small_pages")
async def test_a_page_that_was_just_full_is_read_again(scene: Scene, repo: Repository) -> None:
    number = await open_pull(scene)
    dev = scene.sandbox.as_user("dev")
    for n in range(5):
        await dev.comment(REPO, number, f"comment {n}")
    assert len(await repo.comments(number)) == 5
    await dev.comment(REPO, number, "comment 5")
    assert len(await repo.comments(number)) == 6


async def test_deliveries_are_listed_read_and_asked_for_again(
    scene: Scene, github: GitHubApp, repo: Repository
) -> None:
    box = scene.sandbox
    number = await open_pull(scene)
    await box.settle()
    before = datetime.now(UTC) - timedelta(minutes=1)
    box.faults.drop_deliveries(event="issue_comment")
    await box.as_user("dev").comment(REPO, number, "/validate l2")
    await box.settle()
    listed = await github.deliveries(before)
    lost = next(one for one in listed if one.event == "issue_comment")
    assert lost.status_code not in range(200, 300)
    assert (await github.delivery_payload(lost.id))["comment"]["body"] == "/validate l2"
    await github.redeliver(lost.id)
    await box.settle()
    assert scene.listener.of("issue_comment.created")[0].payload["comment"]["body"] == "/validate l2"
    assert await github.deliveries(datetime.now(UTC) + timedelta(hours=1)) == []
