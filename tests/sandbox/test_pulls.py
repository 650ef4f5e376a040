"""Pull requests: mergeability, merge methods, forks, reviews, drafts, what closes what."""

from __future__ import annotations

import pytest

from bot.sandbox import Refused
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]


def tip(scene: Scene, branch: str = "main") -> str:
    world = scene.sandbox.state
    return world.store(world.known_repository(REPO)).ref(f"refs/heads/{branch}") or ""


async def two_commits(scene: Scene) -> int:
    scene.checkout.branch("two")
    scene.checkout.commit("First\n\nWhy.\n\n(cherry picked from commit " + "a" * 40 + ")", {"a": "a\n"})
    scene.checkout.commit("Second", {"b": "b\n"})
    dev = scene.sandbox.as_user("dev")
    await dev.push(REPO, scene.checkout.path, "two")
    return int((await dev.open_pull(REPO, "two", title="Two things"))["number"])


@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
async def test_each_method_makes_its_commits(scene: Scene, method: str) -> None:
    number = await two_commits(scene)
    before = tip(scene)
    answer = await scene.sandbox.as_user("dev").merge_pull(REPO, number, method)
    world = scene.sandbox.state
    store = world.store(world.known_repository(REPO))
    assert answer["sha"] == tip(scene)
    log = store.commits("--first-parent", f"{before}..{answer['sha']}")
    if method == "merge":
        assert [one.message for one in log] == [f"Merge pull request #{number} from acme/two\n\nTwo things"]
        assert len(log[0].parents) == 2
    elif method == "squash":
        assert log[0].message.startswith(f"Two things (#{number})\n\n* First\n\nWhy.")
        assert "Co-authored-by: Mona <mona@example.com>" in log[0].message
        assert (len(log), log[0].author.email) == (1, "dev@example.com")
    else:
        assert [one.message.split("\n")[0] for one in log] == ["Second", "First"]
        assert {one.author.name for one in log} == {"Mona"}
        assert {one.committer.name for one in log} == {"GitHub"}
    assert {entry.path for entry in store.tree(answer["sha"])} == {"README.md", "lib", "a", "b"}


async def test_conflicts_are_found_and_refused(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    pull = await dev.open_pull(REPO, "topic")
    scene.checkout.git("checkout", "-q", "main")
    scene.checkout.commit("Other two", {"lib/core.py": "def one():\n    return 1\n\n\ndef deux():\n    return 2\n"})
    await dev.push(REPO, scene.checkout.path, "main")
    seen = await dev.get(f"/repos/{REPO}/pulls/{pull['number']}")
    assert (seen["mergeable"], seen["mergeable_state"]) == (False, "dirty")
    with pytest.raises(Refused, match="405: Pull Request is not mergeable"):
        await dev.merge_pull(REPO, pull["number"])
    with pytest.raises(Refused, match="merge conflict"):
        await dev.update_branch(REPO, pull["number"])


async def test_mergeability_may_come_late(scene: Scene) -> None:
    scene.sandbox.state.lazy_mergeability = True
    dev = scene.sandbox.as_user("dev")
    pull = await dev.open_pull(REPO, "topic")
    assert (pull["mergeable"], pull["mergeable_state"]) == (None, "unknown")
    seen = await dev.get(f"/repos/{REPO}/pulls/{pull['number']}")
    assert (seen["mergeable"], seen["mergeable_state"]) == (True, "clean")


async def test_a_draft_waits(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    pull = await dev.open_pull(REPO, "topic", draft=True)
    assert (pull["draft"], pull["mergeable_state"]) == (True, "draft")
    with pytest.raises(Refused, match="still a draft"):
        await dev.merge_pull(REPO, pull["number"])
    await dev.ready_for_review(REPO, pull["number"])
    await dev.convert_to_draft(REPO, pull["number"])
    await dev.ready_for_review(REPO, pull["number"])
    with pytest.raises(Refused, match="not accessible"):
        await scene.sandbox.as_user("stan").convert_to_draft(REPO, pull["number"])
    await dev.merge_pull(REPO, pull["number"])


async def test_a_pull_request_from_a_fork(scene: Scene) -> None:
    box, stan = scene.sandbox, scene.sandbox.as_user("stan")
    box.create_fork(REPO, "stan")
    scene.checkout.branch("idea")
    scene.checkout.commit("An idea", {"idea": "1\n"})
    await stan.push("stan/fork", scene.checkout.path, "idea")
    pull = await stan.open_pull(REPO, "stan:idea")
    assert (pull["head"]["repo"]["full_name"], pull["author_association"]) == ("stan/fork", "NONE")
    assert pull["maintainer_can_modify"] is True
    with pytest.raises(Refused, match="already exists for stan:idea"):
        await stan.open_pull(REPO, "stan:idea")
    sha = scene.checkout.commit("More", {"idea": "2\n"})
    await stan.push("stan/fork", scene.checkout.path, "idea")
    seen = await stan.get(f"/repos/{REPO}/pulls/{pull['number']}")
    assert (seen["head"]["sha"], seen["commits"]) == (sha, 2)
    with pytest.raises(Refused, match="403"):
        await stan.merge_pull(REPO, pull["number"])
    await box.as_user("dev").merge_pull(REPO, pull["number"])
    listed = await stan.get(f"/repos/{REPO}/pulls", head="stan:idea", state="all")
    assert [one["number"] for one in listed] == [pull["number"]]


async def test_reviews_count_as_protection_says(scene: Scene) -> None:
    box, dev, olga, stan = scene.sandbox, *(scene.sandbox.as_user(name) for name in ("dev", "olga", "stan"))
    box.protect(REPO, "main", required_reviews=1, dismiss_stale_reviews=True)
    number = (await dev.open_pull(REPO, "topic"))["number"]
    with pytest.raises(Refused, match="Can not approve your own pull request"):
        await dev.review(REPO, number)
    await stan.review(REPO, number)
    with pytest.raises(Refused, match="At least 1 approving review is required"):
        await dev.merge_pull(REPO, number)
    review = await olga.review(REPO, number, "REQUEST_CHANGES", "no")
    with pytest.raises(Refused, match="Changes have been requested"):
        await dev.merge_pull(REPO, number)
    await olga.dismiss_review(REPO, number, review["id"], "settled")
    await olga.review(REPO, number)
    scene.checkout.git("checkout", "-q", "topic")
    scene.checkout.commit("A late change", {"late": "1\n"})
    await dev.push(REPO, scene.checkout.path, "topic")
    with pytest.raises(Refused, match="At least 1"):
        await dev.merge_pull(REPO, number)
    await dev.request_review(REPO, number, "olga")
    await olga.review(REPO, number, "approve")
    await dev.merge_pull(REPO, number)
    states = [one["state"] for one in await dev.get(f"/repos/{REPO}/pulls/{number}/reviews")]
    assert states == ["DISMISSED", "DISMISSED", "DISMISSED", "APPROVED"]


async def test_strict_protection_wants_the_newest_base(scene: Scene) -> None:
    box, dev = scene.sandbox, scene.sandbox.as_user("dev")
    box.protect(REPO, "main", strict=True)
    number = (await dev.open_pull(REPO, "topic"))["number"]
    box.protect(REPO, "main")
    await dev.write_file(REPO, "other.txt", "1\n")
    box.protect(REPO, "main", strict=True)
    assert (await dev.get(f"/repos/{REPO}/pulls/{number}"))["mergeable_state"] == "behind"
    with pytest.raises(Refused, match="out of date"):
        await dev.merge_pull(REPO, number)
    await dev.update_branch(REPO, number)
    await dev.merge_pull(REPO, number)


async def test_keywords_close_issues_when_they_land(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    for title in ("one", "two", "three"):
        await dev.open_issue(REPO, title)
    body = "Fixes #1, resolves acme/fork#2 but not triton-lang/triton#3"
    number = (await dev.open_pull(REPO, "topic", body=body))["number"]
    await dev.merge_pull(REPO, number)
    states = {one["number"]: one["state"] for one in await dev.get(f"/repos/{REPO}/issues", state="all")}
    assert states == {1: "closed", 2: "closed", 3: "open", 4: "closed"}


async def test_what_cannot_be_opened(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    scene.checkout.git("checkout", "-q", "main")
    await dev.push(REPO, scene.checkout.path, "main:same")
    for head, base, message in (
        ("same", "main", "No commits between main and same"),
        ("nowhere", "main", "Validation Failed"),
        ("topic", "nowhere", "Validation Failed"),
        ("nobody:topic", "main", "Validation Failed"),
    ):
        with pytest.raises(Refused, match=message) as refused:
            await dev.open_pull(REPO, head, base=base)
        assert refused.value.status == 422


async def test_files_commits_and_the_commit_s_pulls(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    number = await two_commits(scene)
    files = await dev.get(f"/repos/{REPO}/pulls/{number}/files")
    assert [(one["filename"], one["status"], one["patch"]) for one in files] == [
        ("a", "added", "@@ -0,0 +1 @@\n+a"),
        ("b", "added", "@@ -0,0 +1 @@\n+b"),
    ]
    commits = await dev.get(f"/repos/{REPO}/pulls/{number}/commits")
    assert [one["commit"]["message"].split("\n")[0] for one in commits] == ["First", "Second"]
    found = await dev.get(f"/repos/{REPO}/commits/{commits[0]['sha']}/pulls")
    assert [one["number"] for one in found] == [number]
    merged = await dev.merge_pull(REPO, number, "squash")
    found = await dev.get(f"/repos/{REPO}/commits/{merged['sha']}/pulls")
    assert [one["number"] for one in found] == [number]
    assert len(await dev.get(f"/repos/{REPO}/pulls/{number}/files")) == 2
