"""The driver itself: setting up, waiting, and the sandbox as a process."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bot.sandbox import Sandbox
from bot.sandbox.testing import Checkout
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]


def test_importing_the_package_is_cheap() -> None:
    code = "import sys, bot.sandbox; print([name for name in ('starlette', 'httpx', 'jwt') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_a_branch_is_pushed_from_this_machine(scene: Scene) -> None:
    box = scene.sandbox
    await box.as_user("dev").open_pull(REPO, "topic")
    scene.checkout.git("checkout", "-q", "topic")
    sha = scene.checkout.commit("More", {"more": "1\n"})
    assert box.push_ref(REPO, "topic", source=scene.checkout.path, login="dev") == sha
    box.push_ref(REPO, "upstream", source=scene.checkout.path, rev=sha)
    await box.wait_for(lambda: scene.listener.of("pull_request.synchronize"), "synchronize")
    await box.settle()
    assert [one.payload["sender"]["login"] for one in scene.listener.of("push")] == ["dev", "acme"]
    box.delete_ref(REPO, "topic")
    assert box.state.known_repository(REPO).issues[1].state == "closed"
    with pytest.raises(LookupError, match="has no commit 'nowhere'"):
        box.push_ref(REPO, "x", source=scene.checkout.path, rev="nowhere")


async def test_waiting_in_vain_says_for_what(sandbox: Sandbox) -> None:
    sandbox.create_user("dev")
    with pytest.raises(Exception, match="404"):
        await sandbox.as_user("dev").get("/repos/dev/none")
    with pytest.raises(TimeoutError, match=r"waited 0\.05 s for a comment in vain; .*GET /repos/dev/none 404"):
        await sandbox.wait_for(lambda: False, "a comment", timeout=0.05)

    async def there() -> str:
        return "yes"

    assert await sandbox.wait_for(there) == "yes"


def test_mistakes_are_told(tmp_path: Path) -> None:
    box = Sandbox(tmp_path / "box")
    box.create_user("dev")
    for call, message in (
        (lambda: box.create_user("dev"), "exists already"),
        (lambda: box.create_user("no good"), "is no login"),
        (lambda: box.create_repository("dev", "a b"), "is no name for a repository"),
        (lambda: box.faults.fail("fire"), "unknown fault 'fire'"),
        (lambda: box.install(box.create_app("a", {}, []), []), "install on which repositories"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for wrong, message in (
        (lambda: box.create_repository("nobody", "x"), "has no account 'nobody'"),
        (lambda: box.protect("dev/none"), "has no repository 'dev/none'; there are: none"),
    ):
        with pytest.raises(LookupError, match=message):
            wrong()


async def test_the_sandbox_as_a_process(tmp_path: Path) -> None:
    work = Checkout(tmp_path / "work")
    work.commit("Begin", {"a": "a\n"})
    world = {
        "users": ["olga", "dev"],
        "orgs": {"acme": {"owners": ["olga"]}},
        "teams": {"acme/tlx": ["dev"]},
        "repositories": {"acme/fork": {"from_git": str(work.path)}},
        "permissions": {"acme/fork": {"dev": "write", "acme/tlx": "maintain"}},
        "apps": {"graft": {"permissions": {"contents": "write"}, "install": ["acme/fork"]}},
        "protect": {"acme/fork": {"main": {"required_checks": ["graft/gate"]}}},
    }
    (tmp_path / "world.json").write_text(json.dumps(world))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot.sandbox", "--root", str(tmp_path / "box"), "--json", "--world",
        str(tmp_path / "world.json"), stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    told = json.loads(await process.stdout.readline())
    try:
        assert "BEGIN RSA PRIVATE KEY" in told["apps"]["graft"]["private_key"]
        async with httpx.AsyncClient(trust_env=False) as http:
            headers = {"authorization": f"Bearer {told['tokens']['dev']}"}
            seen = (await http.get(f"{told['api']}/repos/acme/fork", headers=headers)).json()
            assert seen["permissions"]["maintain"] is True
            assert (await http.get(f"{told['api']}/repos/acme/fork/branches/main")).json()["protected"] is True
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def test_a_world_that_is_wrong_is_told(tmp_path: Path) -> None:
    (tmp_path / "world.json").write_text('{"user": []}')
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bot.sandbox", "--root", str(tmp_path / "box"), "--world", str(tmp_path / "world.json"),
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, said = await process.communicate()
    assert process.returncode == 2
    assert said.decode().startswith("sandbox: unknown key 'user' in the world; known are users, orgs, teams,")
