"""The source comes to the runner and no program but the runner has its token, on any of its ways."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from bot.clients.store import Store
from bot.core.config import Suite
from bot.core.types import Outcome
from bot.core.validation import RunRequest
from bot.sandbox.processes import free_port
from runners.relay import relay
from runners.workspace import SourceError, Workspace
from tests.runners.world import REPOSITORY, TOKEN, commit, git, world

SUITE = Suite.model_validate({"suite": "s", "harness": "command", "run": ["cmp", "big", "big"]})


def asked(sha: str) -> RunRequest:
    return RunRequest.model_validate(
        {"run_id": "r", "repository": REPOSITORY, "commit": sha, "level": "l1", "suite": SUITE.model_dump(mode="json"),
         "git_path": "/x"}
    )  # fmt: skip


async def test_git_never_has_the_runners_token(
    tmp_path: Path, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = shutil.which("git")
    log = tmp_path / "git.log"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    # what git's own helpers are given is what git was given
    wrapper.write_text(f'#!/bin/sh\n{{ echo "$0 $*"; env; ls -l /proc/$$/fd; }} >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    async with world(tmp_path, sqlite_store) as bot:
        files = {"big": os.urandom(3_000_000).hex()}
        sha = commit(tmp_path / "fork", files)
        bot.publish(tmp_path / "fork")
        monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
        bot.runner()
        run = await bot.done(await bot.offer(sha, SUITE))
        assert run.outcome == Outcome.PASSED, run.report
        later = commit(tmp_path / "fork", {"small": "x"})  # what is there already is not sent again
        bot.publish(tmp_path / "fork")
        assert (await bot.done(await bot.offer(later, SUITE))).outcome == Outcome.PASSED
    said = log.read_text()
    assert f" +{sha}:refs/graft/{sha}" in said
    assert "http://127.0.0.1:" in said
    assert TOKEN not in said
    assert "Authorization" not in said


async def test_nothing_but_the_repository_can_be_read_through_it_and_only_while_it_lasts(
    tmp_path: Path, sqlite_store: Store
) -> None:
    async with world(tmp_path, sqlite_store) as bot, httpx.AsyncClient() as anybody:
        sha = commit(tmp_path / "fork", {"a": "b"})
        bot.publish(tmp_path / "fork")
        run = await bot.offer(sha, SUITE, push=False)
        assert await bot.store.lease_run(run, "one", bot.context.now(), 600) is not None
        async with relay(f"{bot.url}/runner/git/{REPOSITORY}.git", TOKEN) as way:
            listed = await asyncio.to_thread(git, tmp_path, "ls-remote", way.url)
            assert sha in listed
            home, _, secret = way.url.rpartition("/")
            good = "/info/refs?service=git-upload-pack"
            for path in (f"/{secret[:-1]}{good}", good, f"/{secret}/info/refs?service=git-receive-pack",
                         f"/{secret}/../../hello", f"/{secret}/HEAD", f"/{secret}"):  # fmt: skip
                assert (await anybody.get(home + path)).status_code == 404, path
            for method in ("PUT", "DELETE", "POST"):
                assert (await anybody.request(method, way.url + good)).status_code == 404
            assert (await anybody.post(f"{way.url}/git-receive-pack")).status_code == 404
            assert (await anybody.get(way.url + good)).status_code == 200
        with pytest.raises(httpx.ConnectError):
            await anybody.get(way.url + good)


async def test_what_keeps_the_bot_from_giving_the_source_is_said_by_its_own_address(
    tmp_path: Path, sqlite_store: Store
) -> None:
    workspace = Workspace(tmp_path / "work")
    away = f"http://127.0.0.1:{free_port()}/runner/git/{REPOSITORY}.git"
    with pytest.raises(SourceError) as failed:
        await workspace.fetch(asked("1" * 40), url=away, token=TOKEN)
    assert f"git fetch failed: fatal: unable to access '{away}" in str(failed.value)
    assert "ConnectError" in str(failed.value)
    async with world(tmp_path, sqlite_store) as bot:
        sha = commit(tmp_path / "fork", {"a": "b"})
        bot.publish(tmp_path / "fork")
        url = f"{bot.url}/runner/git/{REPOSITORY}.git"
        # nobody's, and that of a runner that has no run there
        for token, words in (("another", "the bot answers 401"), (TOKEN, "the bot answers 40")):
            with pytest.raises(SourceError) as failed:
                await workspace.fetch(asked(sha), url=url, token=token)
            assert f"fatal: unable to access '{url}" in str(failed.value)
            assert words in str(failed.value)
            assert TOKEN not in str(failed.value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="there is no prctl")
def test_a_runner_is_shut_to_its_user_and_what_it_starts_is_not() -> None:
    ask = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), flush=True)"
    program = (
        "import subprocess, sys\nfrom runners.hidden import hide\nhide()\n"
        f"{ask}\nsubprocess.run([sys.executable, '-c', {ask!r}], check=True)\n"
    )
    for more in ({}, {"SOME_TOKEN": "x"}):  # at once, and after it started itself anew
        env = {"PATH": os.environ["PATH"], **more}
        done = subprocess.run([sys.executable, "-c", program], env=env, check=True, capture_output=True, text=True)
        assert done.stdout.split() == ["0", "1"]
