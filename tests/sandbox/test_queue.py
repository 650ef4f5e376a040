"""The merge queue."""

from __future__ import annotations

from typing import Any

import pytest

from bot.sandbox import Refused
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]


async def queued(scene: Scene, *names: str) -> list[dict[str, Any]]:
    box, dev, bot = scene.sandbox, scene.sandbox.as_user("dev"), scene.sandbox.as_app(scene.installation)
    box.protect(REPO, "main", ["graft/gate"], merge_queue=True)
    pulls = []
    for name in names:
        scene.checkout.branch(name)
        scene.checkout.commit(name, {name: "1\n"})
        await dev.push(REPO, scene.checkout.path, name)
        pull = await dev.open_pull(REPO, name)
        with pytest.raises(Refused, match="is expected"):
            await dev.enqueue(REPO, pull["number"])
        await check(bot, pull["head"]["sha"], "success")
        await dev.enqueue(REPO, pull["number"])
        pulls.append(pull)
    await box.settle()
    return pulls


async def check(bot: Any, sha: str, conclusion: str) -> None:
    await bot.request(
        "POST", f"/repos/{REPO}/check-runs", {"name": "graft/gate", "head_sha": sha, "conclusion": conclusion}
    )


def groups(scene: Scene) -> list[dict[str, Any]]:
    return [one.payload["merge_group"] for one in scene.listener.of("merge_group.checks_requested")]


async def test_a_group_lands_when_its_head_passes(scene: Scene) -> None:
    box, bot = scene.sandbox, scene.sandbox.as_app(scene.installation)
    first, second = await queued(scene, "one", "two")
    with pytest.raises(Refused, match="merge queue"):
        await box.as_user("dev").merge_pull(REPO, first["number"])
    one, two = groups(scene)
    assert two["base_sha"] == one["head_sha"]
    assert one["head_ref"].startswith("refs/heads/gh-readonly-queue/main/pr-")
    await check(bot, two["head_sha"], "success")
    assert (await bot.get(f"/repos/{REPO}/pulls/{second['number']}"))["merged"] is False
    await check(bot, one["head_sha"], "success")
    for pull in (first, second):
        assert (await bot.get(f"/repos/{REPO}/pulls/{pull['number']}"))["merged"] is True
    assert (await bot.get(f"/repos/{REPO}/branches/main"))["commit"]["sha"] == two["head_sha"]
    await box.settle()
    assert [one.payload["reason"] for one in scene.listener.of("merge_group.destroyed")] == ["merged", "merged"]


async def test_a_failed_group_goes_and_those_behind_are_built_anew(scene: Scene) -> None:
    box, bot = scene.sandbox, scene.sandbox.as_app(scene.installation)
    first, second = await queued(scene, "one", "two")
    await check(bot, groups(scene)[0]["head_sha"], "failure")
    await box.settle()
    assert scene.listener.of("pull_request.dequeued")[0].payload["number"] == first["number"]
    again = groups(scene)[-1]
    assert again["base_sha"] == (await bot.get(f"/repos/{REPO}/branches/main"))["commit"]["sha"]
    await check(bot, again["head_sha"], "success")
    assert (await bot.get(f"/repos/{REPO}/pulls/{second['number']}"))["merged"] is True
    assert (await bot.get(f"/repos/{REPO}/pulls/{first['number']}"))["state"] == "open"


async def test_leaving_the_queue(scene: Scene) -> None:
    (only,) = await queued(scene, "one")
    dev = scene.sandbox.as_user("dev")
    with pytest.raises(Refused, match="already in the queue"):
        await dev.enqueue(REPO, only["number"])
    await dev.dequeue(REPO, only["number"])
    assert scene.sandbox.state.known_repository(REPO).queue == []
