"""Every operation that the description has is served, and what it answers in a world that has something fits it."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

import bot.sandbox.routes  # noqa: F401 - registers the operations
from bot.sandbox import Refused
from bot.sandbox.http import OPERATIONS
from bot.sandbox.validation import DEVIATIONS, UNDESCRIBED, description
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene
from tests.sandbox.test_auth import bearer

__all__ = ["checkout", "listener", "sandbox", "scene"]


def test_what_is_served_is_what_is_described() -> None:
    served = {(one.method, one.path) for one in OPERATIONS}
    described = {(method.upper(), path) for path, methods in description().paths.items() for method in methods}
    assert served - described == UNDESCRIBED
    assert described - served == set()
    assert {key[:2] for key in DEVIATIONS} <= described
    assert all(DEVIATIONS.values())


async def populated(scene: Scene) -> dict[str, Any]:
    """A world with one of everything, and the names that paths need."""
    box = scene.sandbox
    dev, olga, bot = box.as_user("dev"), box.as_user("olga"), box.as_app(scene.installation)
    box.state.search_lag = box.state.offset
    box.create_team("acme", "tlx", ["dev"])
    box.protect(REPO, "main", {"graft/gate": scene.app.id}, required_reviews=1)
    sha = scene.checkout.git("rev-parse", "topic")
    pull = await dev.open_pull(REPO, "topic", body="text")
    await olga.label(REPO, 1, "graft:bundle")
    await olga.unlabel(REPO, 1, "graft:bundle")
    await olga.label(REPO, 1, "graft:bundle", "area:tlx")
    await olga.assign(REPO, 1, "dev", "olga")
    await dev.update_pull(REPO, 1, title="Another title")
    await olga.lock(REPO, 1)
    comment = await dev.comment(REPO, 1, "hello")
    await olga.react(REPO, comment["id"], "+1")
    await dev.request_review(REPO, 1, "olga")
    await bot.request("POST", f"/repos/{REPO}/pulls/1/requested_reviewers", {"team_reviewers": ["tlx"]})
    review = await olga.review(REPO, 1, "COMMENT", "hm")
    line = {"body": "here", "commit_id": sha, "path": "lib/core.py", "line": 5}
    await olga.request("POST", f"/repos/{REPO}/pulls/1/comments", line)
    note = {"path": "lib/core.py", "start_line": 1, "end_line": 1, "annotation_level": "warning", "message": "m"}
    output = {"title": "t", "summary": "s", "annotations": [note]}
    run = await bot.request(
        "POST",
        f"/repos/{REPO}/check-runs",
        {"name": "graft/l1", "head_sha": sha, "conclusion": "success", "output": output},
    )
    await bot.request("POST", f"/repos/{REPO}/check-suites", {"head_sha": sha})
    await bot.request("POST", f"/repos/{REPO}/statuses/{sha}", {"state": "pending", "context": "ci"})
    workflow = box.add_workflow_run(REPO, "l1.yml", sha, artifacts={"report": b"PK"})
    workflow.jobs.append({"id": 77, "name": "unit"})
    issue = await dev.open_issue(REPO, "An issue", "text")
    await olga.assign(REPO, issue["number"], "olga", "dev")
    await dev.close(REPO, issue["number"])
    await dev.reopen(REPO, issue["number"])
    await box.settle()
    world = box.state
    repo = world.known_repository(REPO)
    store = world.store(repo)
    return {
        "owner": "acme", "repo": "fork", "org": "acme", "team_slug": "tlx", "username": "dev", "branch": "main",
        "ref": "topic", "commit_sha": sha, "sha": sha, "pull_number": pull["number"], "issue_number": pull["number"],
        "comment_id": comment["id"], "review_id": review["id"], "check_run_id": run["id"], "basehead": "main...topic",
        "path": "lib/core.py", "file_sha": store.tree("topic", "README.md")[0].oid, "tree_sha": store.commit(sha).tree,
        "name": "graft:bundle", "run_id": workflow.id, "artifact_id": next(iter(repo.artifacts)),
        "archive_format": "zip", "installation_id": scene.installation, "delivery_id": max(world.deliveries),
    }  # fmt: skip


async def test_every_reading_operation_answers_as_described(scene: Scene) -> None:
    names = await populated(scene)
    special = {
        "/repos/{owner}/{repo}/git/ref/{ref}": {"ref": "heads/topic"},
        "/repos/{owner}/{repo}/git/matching-refs/{ref}": {"ref": "heads/"},
    }
    user = {"authorization": f"Bearer {scene.sandbox.as_user('olga').token}"}
    token = {"authorization": f"Bearer {scene.token()}"}
    asked, bare = 0, []
    async with httpx.AsyncClient(base_url=scene.sandbox.api_url, trust_env=False) as http:
        for operation in OPERATIONS:
            if operation.method != "GET":
                continue
            given = {**names, **special.get(operation.path, {})}
            path = operation.path
            for name in re.findall(r"{(\w+)}", path):
                path = path.replace(f"{{{name}}}", str(given[name]))
            headers = {"jwt": bearer(scene), "installation": token}.get(operation.app, user)
            query = {"q": "text repo:acme/fork is:open"} if path == "/search/issues" else {}
            answer = await http.get(path, headers=headers, params=query)
            asked += 1
            missing = path.endswith("/merge")
            assert answer.status_code == 404 if missing else answer.status_code in (200, 204, 302), (path, answer.text)
            empty = answer.content in (b"[]", b"") or answer.content.startswith(b'{"total_count": 0')
            bare += [path] if empty and not missing else []
    assert scene.sandbox.state.violations == []
    assert asked > 60
    # what is empty proves nothing: only these may be
    assert [path.rsplit("/", 1)[1] for path in bare] == ["dev", "zip", "runners"]


async def test_requests_are_held_to_the_description(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    await dev.open_issue(REPO, "x")
    for method, path, body in (
        ("POST", "issues", {}),
        ("POST", "issues", {"title": "x", "labels": "one"}),
        ("POST", "issues/1/comments", {"text": "x"}),
        ("POST", "pulls", {"title": "x"}),
        ("PATCH", "issues/1", {"state": "done"}),
        ("POST", "git/refs", {"ref": "refs/heads/x"}),
        ("PUT", "issues/1/lock", {"lock_reason": "boredom"}),
    ):
        with pytest.raises(Refused, match="Invalid request") as refused:
            await dev.request(method, f"/repos/{REPO}/{path}", body)
        assert refused.value.status == 422
    with pytest.raises(Refused, match="state: 'ajar' is not one of"):
        await dev.get(f"/repos/{REPO}/issues", state="ajar")
    async with httpx.AsyncClient(base_url=scene.sandbox.api_url, trust_env=False) as http:
        headers = {"authorization": f"Bearer {dev.token}"}
        broken = await http.post(f"/repos/{REPO}/issues", content=b"{", headers=headers)
        assert (broken.status_code, broken.json()["message"]) == (400, "Problems parsing JSON")
        assert (await http.get("/nothing/here", headers=headers)).json()["message"] == "Not Found"
        assert (await http.delete(f"/repos/{REPO}", headers=headers)).status_code == 404
        assert (await http.post(f"/repos/{REPO}/issues", json={"title": "x"})).status_code == 401


def test_an_answer_that_does_not_fit_is_found() -> None:
    path = "/repos/{owner}/{repo}/labels/{name}"
    good = {
        "id": 1,
        "node_id": "x",
        "url": "http://x",
        "name": "n",
        "description": None,
        "color": "ff0000",
        "default": False,
    }
    assert description().response("GET", path, 200, good) == []
    assert description().response("GET", path, 200, {**good, "description": 3})
    assert description().response("GET", path, 200, {key: good[key] for key in good if key != "name"})
    assert description().response("GET", path, 204, None) == ["status 204 is not described, only 200, 404"]


async def test_a_bad_answer_is_loud(scene: Scene) -> None:
    repo = scene.sandbox.state.known_repository(REPO)
    repo.description = 3  # type: ignore[assignment]
    with pytest.raises(Refused, match=r"500: The sandbox is at fault: GET .* answered 200 against its description"):
        await scene.sandbox.as_user("dev").get(f"/repos/{REPO}")
    assert scene.sandbox.state.violations.pop().startswith("GET /repos/")
    repo.issues = None  # type: ignore[assignment]
    with pytest.raises(Refused, match="Traceback"):
        await scene.sandbox.as_user("dev").get(f"/repos/{REPO}/issues")
    assert len(scene.sandbox.state.violations) == 1
    scene.sandbox.state.violations.clear()
