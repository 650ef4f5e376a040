"""Files, commits, refs and objects by the API."""

from __future__ import annotations

import base64
from datetime import timedelta

import httpx
import pytest

from bot.sandbox import Refused
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]
R = f"/repos/{REPO}"


async def test_files_are_read_and_written(scene: Scene) -> None:
    box, dev = scene.sandbox, scene.sandbox.as_user("dev")
    found = await dev.get(f"{R}/contents/lib/core.py", ref="topic")
    assert b"def two" in base64.b64decode(found["content"])
    assert [one["name"] for one in await dev.get(f"{R}/contents/lib")] == ["core.py"]
    async with httpx.AsyncClient(base_url=box.api_url, trust_env=False) as http:
        raw = await http.get(f"{R}/contents/README.md", headers={"accept": "application/vnd.github.raw+json"})
        assert raw.text == "hello\n"
    for path, ref in (("none", "main"), ("README.md", "none")):
        with pytest.raises(Refused, match="404"):
            await dev.get(f"{R}/contents/{path}", ref=ref)
    await dev.write_file(REPO, ".github/graft.yml", "mode: observe\n")
    await dev.write_file(REPO, ".github/graft.yml", "mode: propose\n")
    body = {"message": "m", "content": "eA==", "sha": "0" * 40}
    with pytest.raises(Refused, match="409"):
        await dev.request("PUT", f"{R}/contents/README.md", body)
    with pytest.raises(Refused, match="sha"):
        await dev.request("PUT", f"{R}/contents/README.md", {"message": "m", "content": "eA=="})
    with pytest.raises(Refused, match="403"):
        await box.as_app(scene.installation).write_file(REPO, ".github/workflows/x.yml", "on: push\n")
    box.protect(REPO, "main", pull_requests_only=True)
    with pytest.raises(Refused, match="GH006"):
        await dev.write_file(REPO, "README.md", "x")
    await box.settle()
    pushes = scene.listener.of("push")
    assert [one.payload["head_commit"]["added"] for one in pushes] == [[".github/graft.yml"], []]
    assert pushes[1].payload["commits"][0]["modified"] == [".github/graft.yml"]


async def test_a_commit_is_made_from_blobs_and_trees(scene: Scene) -> None:
    bot = scene.sandbox.as_app(scene.installation)
    head = await bot.get(f"{R}/git/ref/heads/main")
    blob = await bot.request(
        "POST", f"{R}/git/blobs", {"content": base64.b64encode(b"\0bin").decode(), "encoding": "base64"}
    )
    assert base64.b64decode((await bot.get(f"{R}/git/blobs/{blob['sha']}"))["content"]) == b"\0bin"
    entries = [
        {"path": "deep/bin", "mode": "100644", "type": "blob", "sha": blob["sha"]},
        {"path": "text", "mode": "100755", "type": "blob", "content": "x\n"},
        {"path": "README.md", "mode": "100644", "type": "blob", "sha": None},
    ]
    tree = await bot.request("POST", f"{R}/git/trees", {"base_tree": head["object"]["sha"], "tree": entries})
    person = {"name": "Ada", "email": "ada@example.com", "date": "2026-01-02T08:34:05+05:30"}
    given = {"message": "Made by hand", "tree": tree["sha"], "parents": [head["object"]["sha"]], "author": person}
    commit = await bot.request("POST", f"{R}/git/commits", given)
    assert (commit["author"]["date"], commit["author"]["name"]) == ("2026-01-02T03:04:05Z", "Ada")
    await bot.request("POST", f"{R}/git/refs", {"ref": "refs/heads/graft/bundle/k3x9", "sha": commit["sha"]})
    listed = await bot.get(f"{R}/git/trees/{commit['sha']}", recursive=1)
    assert {one["path"] for one in listed["tree"]} == {"deep", "deep/bin", "lib", "lib/core.py", "text"}
    with pytest.raises(Refused, match="already exists"):
        await bot.create_branch(REPO, "graft/bundle/k3x9", commit["sha"])
    branch = await bot.get(f"{R}/branches/graft/bundle/k3x9")
    assert (branch["name"], branch["commit"]["sha"]) == ("graft/bundle/k3x9", commit["sha"])
    found = await bot.get(f"{R}/git/matching-refs/heads/graft/")
    assert [one["ref"] for one in found] == ["refs/heads/graft/bundle/k3x9"]
    with pytest.raises(Refused, match="not a fast forward"):
        await bot.request("PATCH", f"{R}/git/refs/heads/topic", {"sha": commit["sha"]})
    await bot.request("PATCH", f"{R}/git/refs/heads/topic", {"sha": commit["sha"], "force": True})
    await bot.delete_branch(REPO, "graft/bundle/k3x9")
    with pytest.raises(Refused, match="404"):
        await bot.get(f"{R}/branches/graft/bundle/k3x9")
    tag = await bot.request(
        "POST", f"{R}/git/tags", {"tag": "v1", "message": "one", "object": commit["sha"], "type": "commit"}
    )
    await bot.request("POST", f"{R}/git/refs", {"ref": "refs/tags/v1", "sha": tag["sha"]})
    assert (await bot.get(f"{R}/commits/v1"))["sha"] == commit["sha"]


async def test_history_and_comparison(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    topic, main = scene.checkout.git("rev-parse", "topic"), scene.checkout.git("rev-parse", "main")
    assert [one["sha"] for one in await dev.get(f"{R}/commits", sha="topic")] == [topic, main]
    assert [one["sha"] for one in await dev.get(f"{R}/commits", sha="topic", path="README.md")] == [main]
    one = await dev.get(f"{R}/commits/{topic[:10]}")
    assert (one["sha"], one["stats"]["additions"], [file["filename"] for file in one["files"]]) == (
        topic,
        4,
        ["lib/core.py"],
    )
    for pair, status in (("main...topic", "ahead"), ("topic...main", "behind"), ("main...main", "identical")):
        assert (await dev.get(f"{R}/compare/{pair}"))["status"] == status
    await dev.write_file(REPO, "other", "1\n")
    seen = await dev.get(f"{R}/compare/main...topic")
    assert (seen["status"], seen["ahead_by"], seen["behind_by"], seen["merge_base_commit"]["sha"]) == (
        "diverged",
        1,
        1,
        main,
    )
    with pytest.raises(Refused, match="404"):
        await dev.get(f"{R}/compare/main...none")
    with pytest.raises(Refused, match="No commit found for SHA"):
        await dev.get(f"{R}/commits/none")
    merged = await dev.request("POST", f"{R}/merges", {"base": "main", "head": "topic"})
    assert len(merged["parents"]) == 2
    assert await dev.request("POST", f"{R}/merges", {"base": "main", "head": "topic"}) is None


async def test_actions_are_listed_and_dispatched(scene: Scene) -> None:
    box, dev = scene.sandbox, scene.sandbox.as_user("dev")
    workflow = "on: {workflow_dispatch: {inputs: {key: {required: false}}}}\nrun-name: 'for ${{ inputs.key }}'\n"
    await dev.write_file(REPO, ".github/workflows/l1.yml", workflow)
    await dev.write_file(REPO, ".github/workflows/push.yml", "on: push\n")
    dispatch = f"{R}/actions/workflows/l1.yml/dispatches"
    assert await dev.request("POST", dispatch, {"ref": "main"}) is None
    told = await dev.request("POST", dispatch, {"ref": "main", "inputs": {"key": "k3x9"}, "return_run_details": True})
    runs = await dev.get(f"{R}/actions/runs", event="workflow_dispatch")
    assert (runs["total_count"], runs["workflow_runs"][0]["id"]) == (2, told["workflow_run_id"])
    assert runs["workflow_runs"][0]["display_title"] == "for k3x9"
    with pytest.raises(Refused, match="Unexpected inputs provided"):
        await dev.request("POST", dispatch, {"ref": "main", "inputs": {"other": "x"}})
    with pytest.raises(Refused, match="does not have 'workflow_dispatch' trigger"):
        await dev.request("POST", f"{R}/actions/workflows/push.yml/dispatches", {"ref": "main"})
    await dev.request("POST", f"{R}/actions/runs/{told['workflow_run_id']}/cancel")
    with pytest.raises(Refused, match="409"):
        await dev.request("POST", f"{R}/actions/runs/{told['workflow_run_id']}/cancel")
    await dev.request("POST", f"{R}/actions/runs/{told['workflow_run_id']}/rerun")
    with pytest.raises(Refused, match="404"):
        await dev.request("POST", f"{R}/actions/workflows/none.yml/dispatches", {"ref": "main"})
    run = box.add_workflow_run(REPO, "l1.yml", scene.checkout.git("rev-parse", "main"), artifacts={"report": b"PK\x05"})
    artifacts = (await dev.get(f"{R}/actions/runs/{run.id}/artifacts", name="report"))["artifacts"]
    async with httpx.AsyncClient(trust_env=False, follow_redirects=True) as http:
        answer = await http.get(artifacts[0]["archive_download_url"], headers={"authorization": f"Bearer {dev.token}"})
        assert answer.content == b"PK\x05"
        next(iter(box.state.known_repository(REPO).artifacts.values())).expired = True
        assert (await http.get(artifacts[0]["archive_download_url"])).status_code == 410
    await dev.request("POST", f"{R}/dispatches", {"event_type": "upstream-moved", "client_payload": {"a": 1}})
    await box.settle()
    assert scene.listener.of("repository_dispatch.upstream-moved")[0].payload["client_payload"] == {"a": 1}


async def test_checks_are_asked_for_again(scene: Scene) -> None:
    box, bot, dev = scene.sandbox, scene.sandbox.as_app(scene.installation), scene.sandbox.as_user("dev")
    sha = scene.checkout.git("rev-parse", "topic")
    run = await bot.request("POST", f"{R}/check-runs", {"name": "l1", "head_sha": sha, "external_id": "run-7"})
    other = box.create_app("other", {"checks": "write", "contents": "read"}, ["check_run"])
    stranger = box.as_app(box.install(other, [REPO]))
    with pytest.raises(Refused, match="Invalid app_id"):
        await stranger.request("PATCH", f"{R}/check-runs/{run['id']}", {"status": "in_progress"})
    with pytest.raises(Refused, match="authenticate via a GitHub App"):
        await dev.request("POST", f"{R}/check-runs", {"name": "l1", "head_sha": sha})
    await dev.rerequest_check(REPO, run["id"])
    again = await bot.request("POST", f"{R}/check-runs", {"name": "l1", "head_sha": sha, "conclusion": "skipped"})
    listed = await dev.get(f"{R}/commits/topic/check-runs", check_name="l1")
    assert [one["id"] for one in listed["check_runs"]] == [again["id"]]
    assert (await dev.get(f"{R}/commits/topic/check-runs", filter="all"))["total_count"] == 2
    suites = await dev.get(f"{R}/commits/topic/check-suites")
    assert [(one["status"], one["conclusion"]) for one in suites["check_suites"]] == [("completed", "skipped")]
    await box.settle()
    assert scene.listener.of("check_run.rerequested")[0].payload["check_run"]["external_id"] == "run-7"


async def test_search_is_off_or_behind(scene: Scene) -> None:
    box, dev = scene.sandbox, scene.sandbox.as_user("dev")
    await dev.open_issue(REPO, "Trunk is broken")
    with pytest.raises(Refused, match="503"):
        await dev.get("/search/issues", q="broken")
    box.state.search_lag = timedelta(minutes=1)
    assert (await dev.get("/search/issues", q="broken"))["total_count"] == 0
    box.advance(61)
    assert (await dev.get("/search/issues", q="broken is:issue"))["total_count"] == 1


async def test_labels_have_their_rules(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    made = await dev.request("POST", f"{R}/labels", {"name": "graft:halt", "color": "B60205", "description": "stop"})
    assert made["color"] == "b60205"
    for body, message in (
        ({"name": "GRAFT:HALT"}, "already_exists"),
        ({"name": "x", "color": "red"}, "invalid"),
        ({"name": "x" * 51}, "too long"),
        ({"name": "x", "description": "y" * 101}, "too long"),
    ):
        with pytest.raises(Refused, match=message):
            await dev.request("POST", f"{R}/labels", body)
    await dev.open_issue(REPO, "x", labels=["Graft:Halt", "new"])
    assert [one["name"] for one in await dev.get(f"{R}/issues/1/labels")] == ["graft:halt", "new"]
    with pytest.raises(Refused, match="Label does not exist"):
        await dev.unlabel(REPO, 1, "none")
    await dev.request("PUT", f"{R}/issues/1/labels", {"labels": []})
    assert await dev.get(f"{R}/issues/1/labels") == []
