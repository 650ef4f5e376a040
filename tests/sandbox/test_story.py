"""One pull request from push to merge, as people and an App see it."""

from __future__ import annotations

import pytest

from bot.sandbox import Refused
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]


async def test_a_pull_request_from_push_to_merge(scene: Scene) -> None:
    box, dev, olga = scene.sandbox, scene.sandbox.as_user("dev"), scene.sandbox.as_user("olga")
    box.protect(REPO, "main", ["graft/gate"])
    scene.checkout.branch("feature")
    first = scene.checkout.commit("Add three", {"three.py": "3\n"})
    await dev.push(REPO, scene.checkout.path, "feature")
    pull = await dev.open_pull(REPO, "feature", title="Three", body="Adds three.")
    assert (pull["mergeable"], pull["mergeable_state"], pull["commits"]) == (True, "blocked", 1)

    await olga.comment(REPO, pull["number"], "/validate l2")
    second = scene.checkout.commit("Add four", {"four.py": "4\n"})
    await dev.push(REPO, scene.checkout.path, "feature")
    pull = await dev.get(f"/repos/{REPO}/pulls/{pull['number']}")
    assert (pull["head"]["sha"], pull["changed_files"], first != second) == (second, 2, True)

    with pytest.raises(Refused, match='Required status check "graft/gate" is expected') as refused:
        await dev.merge_pull(REPO, pull["number"])
    assert refused.value.status == 405
    with pytest.raises(Refused, match="GH006: Protected branch update failed for refs/heads/main"):
        await dev.push(REPO, scene.checkout.path, "feature:main")

    app = box.as_app(scene.installation)
    run = await app.request("POST", f"/repos/{REPO}/check-runs", {"name": "graft/gate", "head_sha": second})
    assert (run["status"], run["app"]["slug"]) == ("queued", "graft")
    with pytest.raises(Refused, match="in progress"):
        await dev.merge_pull(REPO, pull["number"])
    await app.request("PATCH", f"/repos/{REPO}/check-runs/{run['id']}", {"conclusion": "success"})

    with pytest.raises(Refused, match="Head branch was modified") as moved:
        await dev.merge_pull(REPO, pull["number"], sha=first)
    assert moved.value.status == 409
    merged = await dev.merge_pull(REPO, pull["number"], "squash", sha=second)
    tip = box.state.store(box.state.known_repository(REPO)).commit(merged["sha"])
    assert tip.message.splitlines()[0] == "Three (#1)"
    pull = await dev.get(f"/repos/{REPO}/pulls/{pull['number']}")
    assert (pull["merged"], pull["state"], pull["merged_by"]["login"]) == (True, "closed", "dev")

    await box.settle()
    names = scene.listener.names()
    assert all(one.signed for one in scene.listener.received)
    for name in (
        "installation.created",
        "push",
        "pull_request.opened",
        "issue_comment.created",
        "pull_request.synchronize",
        "check_suite.requested",
        "check_run.created",
        "check_run.completed",
        "check_suite.completed",
        "pull_request.closed",
    ):
        assert name in names, name
    comment = scene.listener.of("issue_comment.created")[0].payload
    assert comment["installation"]["id"] == scene.installation
    assert (comment["sender"]["login"], comment["repository"]["full_name"]) == ("olga", REPO)
    assert comment["organization"]["login"] == "acme"
    assert "pull_request" in comment["issue"]


async def test_labels_issues_reactions_and_edits(scene: Scene) -> None:
    box, dev, stan = scene.sandbox, scene.sandbox.as_user("dev"), scene.sandbox.as_user("stan")
    issue = await stan.open_issue(REPO, "It broke", "badly", labels=["ignored: a stranger sets none"])
    assert issue["labels"] == []
    await dev.label(REPO, issue["number"], "trunk-breakage", "area:tlx")
    await dev.assign(REPO, issue["number"], "dev", "stan")
    comment = await stan.comment(REPO, issue["number"], "please look")
    await dev.react(REPO, comment["id"], "eyes")
    await stan.edit_comment(REPO, comment["id"], "please look soon")
    with pytest.raises(Refused, match="403"):
        await stan.label(REPO, issue["number"], "nope")
    seen = await dev.get(f"/repos/{REPO}/issues/{issue['number']}")
    assert [label["name"] for label in seen["labels"]] == ["trunk-breakage", "area:tlx"]
    assert [user["login"] for user in seen["assignees"]] == ["dev"]
    comments = await dev.get(f"/repos/{REPO}/issues/{issue['number']}/comments")
    assert (comments[0]["body"], comments[0]["reactions"]["eyes"]) == ("please look soon", 1)
    await stan.delete_comment(REPO, comment["id"])
    await dev.lock(REPO, issue["number"])
    with pytest.raises(Refused, match="locked"):
        await stan.comment(REPO, issue["number"], "hello?")
    scene.sandbox.state.known_repository(REPO).archived = True
    for work in (
        dev.close(REPO, issue["number"]),
        dev.comment(REPO, issue["number"], "hello?"),
        dev.label(REPO, issue["number"], "late"),
        dev.open_issue(REPO, "Late"),
    ):
        with pytest.raises(Refused, match=r"403.*archived"):
            await work
    assert (await dev.get(f"/repos/{REPO}/issues/{issue['number']}"))["state"] == "open"
    scene.sandbox.state.known_repository(REPO).archived = False
    await dev.close(REPO, issue["number"])
    found = await dev.get(f"/repos/{REPO}/issues", state="all", labels="trunk-breakage")
    assert [one["state"] for one in found] == ["closed"]
    assert await dev.get(f"/repos/{REPO}/issues/{issue['number']}/events")
    await box.settle()
    for name in (
        "issues.opened",
        "issues.labeled",
        "issues.assigned",
        "issue_comment.edited",
        "issue_comment.deleted",
        "issues.closed",
    ):
        assert name in scene.listener.names(), name
