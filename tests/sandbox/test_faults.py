"""The switches: deliveries that go astray, requests that fail, limits of the real GitHub."""

from __future__ import annotations

import httpx
import pytest

from bot.sandbox import Refused
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene
from tests.sandbox.test_auth import bearer, client

__all__ = ["checkout", "listener", "sandbox", "scene"]


async def comments(scene: Scene, *bodies: str) -> None:
    dev = scene.sandbox.as_user("dev")
    if not scene.sandbox.state.known_repository(REPO).issues:
        await dev.open_issue(REPO, "an issue")
    for body in bodies:
        await dev.comment(REPO, 1, body)


def heard(scene: Scene) -> list[str]:
    return [one.payload["comment"]["body"] for one in scene.listener.of("issue_comment.created")]


async def test_a_dropped_delivery_is_listed_and_can_be_redelivered(scene: Scene) -> None:
    box = scene.sandbox
    box.faults.drop_deliveries(1, event="issue_comment")
    await comments(scene, "lost", "found")
    await box.settle()
    assert heard(scene) == ["found"]
    async with client(scene) as http:
        listed = (await http.get("/app/hook/deliveries", headers=bearer(scene))).json()
        lost = next(one for one in listed if one["status_code"] == 0)
        assert (lost["event"], lost["action"], lost["status"]) == (
            "issue_comment",
            "created",
            "failed to connect to host",
        )
        whole = (await http.get(f"/app/hook/deliveries/{lost['id']}", headers=bearer(scene))).json()
        assert whole["request"]["payload"]["comment"]["body"] == "lost"
        again = await http.post(f"/app/hook/deliveries/{lost['id']}/attempts", headers=bearer(scene))
        assert again.status_code == 202
        await box.settle()
        assert heard(scene) == ["found", "lost"]
        listed = (await http.get("/app/hook/deliveries", headers=bearer(scene), params={"per_page": 1})).json()
        assert [(one["guid"], one["redelivery"], one["status"]) for one in listed] == [(lost["guid"], True, "OK")]


async def test_deliveries_come_twice_late_and_out_of_order(scene: Scene) -> None:
    box = scene.sandbox
    box.faults.duplicate_deliveries(1, event="issue_comment")
    await comments(scene, "twice")
    await box.settle()
    guids = [one.delivery for one in scene.listener.of("issue_comment.created")]
    assert (len(guids), len(set(guids))) == (2, 1)
    box.faults.delay_deliveries(0.3, 1, event="issue_comment")
    await comments(scene, "late", "early")
    await box.settle()
    assert heard(scene)[2:] == ["early", "late"]
    box.faults.reorder_deliveries(3, event="issue_comment")
    await comments(scene, "1", "2", "3")
    await box.settle()
    assert heard(scene)[4:] == ["3", "2", "1"]


async def test_an_app_that_is_down_misses_and_catches_up(scene: Scene) -> None:
    scene.listener.status = 503
    await comments(scene, "while down")
    await scene.sandbox.settle()
    scene.listener.status, before = 202, len(heard(scene))
    assert scene.sandbox.redeliver_failed() >= 2
    await scene.sandbox.settle()
    assert heard(scene)[before:] == ["while down"]
    assert scene.sandbox.redeliver_failed() == 0


@pytest.mark.parametrize(
    ("kind", "status", "written"),
    [
        ("secondary", 403, False),
        ("abuse", 422, False),
        ("forbidden", 403, False),
        ("server_error", 500, False),
        ("bad_gateway", 502, False),
        ("bad_gateway_after_write", 502, True),
    ],
)
async def test_requests_fail_as_asked(scene: Scene, kind: str, status: int, written: bool) -> None:
    dev = scene.sandbox.as_user("dev")
    fault = scene.sandbox.faults.fail(kind, method="POST", path=r"/issues$", retry_after=7)
    async with httpx.AsyncClient(base_url=scene.sandbox.api_url, trust_env=False) as http:
        headers = {"authorization": f"Bearer {dev.token}"}
        answer = await http.post(f"/repos/{REPO}/issues", json={"title": "x"}, headers=headers)
    assert (answer.status_code, fault.hits) == (status, 1)
    if kind == "secondary":
        assert answer.headers["retry-after"] == "7"
        assert "secondary rate limit" in answer.json()["message"]
    if kind == "abuse":
        assert answer.json()["errors"][0]["code"] == "abuse"
    assert len(scene.sandbox.state.known_repository(REPO).issues) == written
    await dev.open_issue(REPO, "y")


async def test_a_connection_breaks_after_the_write(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    scene.sandbox.faults.fail("reset", path=r"/issues$")
    with pytest.raises(httpx.TransportError):
        await dev.open_issue(REPO, "x")
    assert len(scene.sandbox.state.known_repository(REPO).issues) == 1


async def test_the_primary_limit_counts_and_ends(scene: Scene) -> None:
    box = scene.sandbox
    async with httpx.AsyncClient(base_url=box.api_url, trust_env=False) as http:
        headers = {"authorization": f"Bearer {scene.token()}"}
        first = await http.get(f"/repos/{REPO}", headers=headers)
        assert (first.headers["x-ratelimit-limit"], first.headers["x-ratelimit-remaining"]) == ("5000", "4999")
        same = await http.get(f"/repos/{REPO}", headers={**headers, "if-none-match": first.headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")
        box.faults.exhaust_rate_limit(1)
        assert (await http.get(f"/repos/{REPO}", headers=headers)).headers["x-ratelimit-remaining"] == "0"
        over = await http.get(f"/repos/{REPO}", headers=headers)
        assert (over.status_code, over.headers["x-ratelimit-remaining"]) == (403, "0")
        assert "API rate limit exceeded" in over.json()["message"]
        left = (await http.get("/rate_limit", headers=headers)).json()["resources"]["core"]
        assert left["remaining"] == 0
        assert left["reset"] == int(over.headers["x-ratelimit-reset"])
        box.advance(3540)
        assert (
            await http.get(f"/repos/{REPO}", headers={"authorization": f"Bearer {scene.token()}"})
        ).status_code == 200


async def test_texts_that_are_too_long(scene: Scene) -> None:
    dev, bot = scene.sandbox.as_user("dev"), scene.sandbox.as_app(scene.installation)
    sha = scene.checkout.git("rev-parse", "topic")
    await comments(scene)
    await dev.comment(REPO, 1, "x" * 65_536)
    note = {"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
    run = {"name": "c", "head_sha": sha}
    checks = f"/repos/{REPO}/check-runs"
    for body, path, message in (
        ({"body": "x" * 65_537}, f"/repos/{REPO}/issues/1/comments", "body is too long"),
        ({"body": " "}, f"/repos/{REPO}/issues/1/comments", "missing_field"),
        ({"title": "x" * 257}, f"/repos/{REPO}/issues", "title is too long"),
        ({**run, "output": {"title": "t", "summary": "x" * 65_536}}, checks, "summary"),
        ({**run, "output": {"title": "t", "summary": "s", "text": "x" * 65_536}}, checks, "text"),
        ({**run, "output": {"title": "t", "summary": "s", "annotations": [note] * 51}}, checks, "50"),
        ({**run, "status": "completed"}, checks, "conclusion"),
        ({**run, "head_sha": "0" * 40}, checks, "No commit found"),
        ({"name": "c"}, checks, "head_sha"),
        ({**run, "conclusion": "great"}, checks, "conclusion"),
    ):
        with pytest.raises(Refused, match=message) as refused:
            await bot.request("POST", path, body)
        assert refused.value.status == 422
    made = await bot.request(
        "POST", checks, {**run, "output": {"title": "t", "summary": "s", "annotations": [note] * 50}}
    )
    more = {"output": {"title": "t", "summary": "s", "annotations": [note] * 5}}
    assert (await bot.request("PATCH", f"{checks}/{made['id']}", more))["output"]["annotations_count"] == 55


async def test_lists_come_in_pages(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    for at in range(7):
        await dev.open_issue(REPO, f"issue {at}")
    async with httpx.AsyncClient(trust_env=False) as http:
        url, seen = f"{scene.sandbox.api_url}/repos/{REPO}/issues?per_page=3&state=all", []
        while True:
            answer = await http.get(url)
            seen.append([one["number"] for one in answer.json()])
            if "next" not in answer.links:
                break
            url = answer.links["next"]["url"]
        assert seen == [[7, 6, 5], [4, 3, 2], [1]]
        assert answer.links["first"]["url"].endswith("page=1")
        assert (await http.get(url, params={"per_page": "x"})).status_code == 422


async def test_comparisons_stop_at_300_files(scene: Scene) -> None:
    dev = scene.sandbox.as_user("dev")
    scene.checkout.branch("wide")
    scene.checkout.commit("Many", {f"many/{at:03}": f"{at}\n" for at in range(305)})
    await dev.push(REPO, scene.checkout.path, "wide")
    compared = await dev.get(f"/repos/{REPO}/compare/main...wide")
    assert (len(compared["files"]), compared["status"], compared["ahead_by"]) == (300, "ahead", 1)
    number = (await dev.open_pull(REPO, "wide"))["number"]
    pages = [len(await dev.get(f"/repos/{REPO}/pulls/{number}/files", per_page=100, page=page)) for page in (1, 4)]
    assert pages == [100, 5]


async def test_too_many_writes_in_a_minute(scene: Scene) -> None:
    box, bot = scene.sandbox, scene.sandbox.as_app(scene.installation)
    box.faults.limit_writes(2)
    for title in ("one", "two"):
        await bot.open_issue(REPO, title)
    with pytest.raises(Refused, match="secondary rate limit"):
        await bot.open_issue(REPO, "three")
    await bot.get(f"/repos/{REPO}/issues")
    box.advance(61)
    await bot.open_issue(REPO, "three")
    box.faults.limit_writes(None)
