"""Git itself against the sandbox: clone, fetch, push, and what is refused."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import httpx
import pytest

from bot.sandbox import Refused
from bot.sandbox.bare import environment
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]


async def git(*arguments: str) -> str:
    def run() -> str:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, env=environment(), check=False)
        return f"{done.returncode} {done.stdout}{done.stderr}"

    return await asyncio.to_thread(run)


async def test_clone_fetch_and_shallow(scene: Scene, tmp_path: Path) -> None:
    box = scene.sandbox
    url = f"{box.url}/{REPO}.git"
    assert (await git("clone", "-q", url, str(tmp_path / "one"))).startswith("0")
    assert (tmp_path / "one" / "lib" / "core.py").exists()
    assert (await git("clone", "-q", "--depth", "1", url, str(tmp_path / "two"))).startswith("0")
    pull = await box.as_user("dev").open_pull(REPO, "topic")
    refs = await git("ls-remote", url, "refs/pull/1/*")
    assert f"{pull['head']['sha']}\trefs/pull/1/head" in refs
    assert "refs/pull/1/merge" in refs


async def test_a_private_repository_asks_for_a_token(scene: Scene, tmp_path: Path) -> None:
    box = scene.sandbox
    box.create_repository("acme", "secret", from_git=scene.checkout.path, private=True)
    host = box.url.removeprefix("http://")
    assert not (await git("ls-remote", f"http://{host}/acme/secret.git")).startswith("0")
    assert (
        "not found" in (await git("ls-remote", f"http://x:{box.as_user('stan').token}@{host}/acme/secret.git")).lower()
    )
    assert (await git("ls-remote", f"http://x:{box.as_user('olga').token}@{host}/acme/secret.git")).startswith("0")
    assert not (await git("ls-remote", f"http://x-access-token:{scene.token()}@{host}/acme/secret.git")).startswith("0")
    scene.sandbox.state.installations[scene.installation].repositories = None
    assert (await git("ls-remote", f"http://x-access-token:{scene.token()}@{host}/acme/secret.git")).startswith("0")


async def test_pushes_that_are_refused(scene: Scene) -> None:
    box, work = scene.sandbox, scene.checkout
    dev, bot = box.as_user("dev"), box.as_app(scene.installation)
    work.git("checkout", "-q", "topic")
    work.commit("A workflow", {".github/workflows/ci.yml": "on: push\n"})
    with pytest.raises(Refused, match="without `workflows` permission"):
        await bot.push(REPO, work.path, "topic")
    await dev.push(REPO, work.path, "topic")
    with pytest.raises(Refused, match="deny updating a hidden ref"):
        await dev.push(REPO, work.path, "topic:refs/pull/9/head")
    with pytest.raises(Refused, match="403"):
        await box.as_user("stan").push(REPO, work.path, "topic")
    box.protect(REPO, "main", pull_requests_only=True)
    with pytest.raises(Refused, match="Changes must be made through a pull request"):
        await dev.push(REPO, work.path, "topic:main")
    box.protect(REPO, "main")
    work.git("checkout", "-q", "--orphan", "lonely")
    work.commit("Other history", {"z": "z\n"})
    with pytest.raises(Refused, match="Cannot force-push to this branch"):
        await dev.push(REPO, work.path, "lonely:main", force=True)
    with pytest.raises(Refused, match="Cannot delete a protected branch"):
        await dev.push(REPO, work.path, ":main")
    store = box.state.store(box.state.known_repository(REPO))
    assert store.ref("refs/heads/main") == work.git("rev-parse", "main")


async def test_one_push_moves_some_and_not_others(scene: Scene) -> None:
    box, work = scene.sandbox, scene.checkout
    box.protect(REPO, "main", ["ci"])
    with pytest.raises(Refused, match="remote rejected"):
        await box.as_user("dev").push(REPO, work.path, "topic:main", "topic:fresh")
    store = box.state.store(box.state.known_repository(REPO))
    assert store.ref("refs/heads/fresh") == work.git("rev-parse", "topic")
    assert store.ref("refs/heads/main") == work.git("rev-parse", "main")
    await box.settle()
    assert [one.payload["ref"] for one in scene.listener.of("push")] == ["refs/heads/fresh"]


async def test_a_push_that_brings_required_checks_passes(scene: Scene) -> None:
    box, work = scene.sandbox, scene.checkout
    box.protect(REPO, "main", {"graft/gate": scene.app.id})
    bot = box.as_app(scene.installation)
    sha = work.git("rev-parse", "topic")
    await bot.request("POST", f"/repos/{REPO}/statuses/{sha}", {"context": "graft/gate", "state": "success"})
    with pytest.raises(Refused, match="is expected"):
        await bot.push(REPO, work.path, "topic:main")
    await bot.request(
        "POST", f"/repos/{REPO}/check-runs", {"name": "graft/gate", "head_sha": sha, "conclusion": "success"}
    )
    await bot.push(REPO, work.path, "topic:main")


async def test_paths_outside_and_the_dumb_protocol(scene: Scene) -> None:
    async with httpx.AsyncClient(base_url=scene.sandbox.url, trust_env=False) as http:
        for path in (
            "/acme/../../etc.git/info/refs?service=git-upload-pack",
            "/acme/none.git/info/refs?service=git-upload-pack",
            f"/{REPO}.git/config",
            f"/{REPO}.git/hooks/update",
        ):
            assert (await http.get(path)).status_code in (401, 404), path
        assert (await http.get(f"/{REPO}.git/info/refs")).status_code == 403
        assert (await http.get(f"/{REPO}.git/HEAD")).status_code == 403


async def test_a_branch_that_goes_closes_its_pull_request(scene: Scene) -> None:
    box, dev = scene.sandbox, scene.sandbox.as_user("dev")
    pull = await dev.open_pull(REPO, "topic")
    await dev.push(REPO, scene.checkout.path, ":topic")
    assert (await dev.get(f"/repos/{REPO}/pulls/{pull['number']}"))["state"] == "closed"
    with pytest.raises(Refused, match="branch has been deleted"):
        await dev.update_pull(REPO, pull["number"], state="open")
    await dev.push(REPO, scene.checkout.path, "topic")
    assert (await dev.update_pull(REPO, pull["number"], state="open"))["state"] == "open"
    await dev.push(REPO, scene.checkout.path, "topic:main")
    seen = await dev.get(f"/repos/{REPO}/pulls/{pull['number']}")
    assert (seen["state"], seen["merged"]) == ("closed", True)
    await box.settle()
    assert {"delete", "create"} <= set(scene.listener.names())
