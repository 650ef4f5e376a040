"""A runner's disk: what goes when it is too much, what is left alone; no run begins or goes on without room."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from bot.clients.store import RunState, Store
from bot.core.config import Suite
from bot.core.types import Level, Outcome
from bot.core.validation import Report, RunRequest
from runners.disk import GIB, Bounds, Janitor, size_of
from runners.execute import Work, execute
from runners.workspace import Workspace
from tests.runners.world import commit, git, world

SUITE = Suite.model_validate({"suite": "q", "harness": "command", "run": ["true"], "timeout": "60s"})
A_DAY_AGO = 100_000.0


def fill(workspace: Workspace, names: Iterable[str], size: int = 100_000) -> None:
    """Folders with a file of so many bytes, each a minute older than the one before."""
    for minutes, name in enumerate(names):
        folder = workspace.root / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "file").write_bytes(os.urandom(size))
        age(folder, 60.0 * minutes)


def age(folder: Path, seconds: float) -> None:
    when = folder.parent.stat().st_mtime - seconds
    os.utime(folder, (when, when))


def left(workspace: Workspace) -> set[str]:
    return {
        str(path.relative_to(workspace.root))
        for pattern in ("builds/*", "caches/*/*", "runs/*", "trees/*")
        for path in workspace.root.glob(pattern)
    }


async def test_what_is_too_many_goes_but_for_what_is_in_use(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    fill(workspace, ["builds/new", "builds/old", "builds/used", "caches/a+b/c1", "caches/a+b/c2", "caches/a+b/c3"])
    fill(workspace, ["runs/now-1", "trees/now-1"])
    fill(workspace, ["runs/left-1", "trees/left-1"])
    for name in ("runs/left-1", "trees/left-1"):
        age(tmp_path / name, A_DAY_AGO)
    handle = os.open(tmp_path / "builds/used/lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        age(tmp_path / "builds/used", 7200)
        await Janitor(workspace, Bounds(least_free=0, builds=1)).tidy({"c3"})
    finally:
        os.close(handle)
    assert left(workspace) == {
        "builds/new",
        "builds/used",
        "caches/a+b/c1",
        "caches/a+b/c3",
        "runs/now-1",
        "trees/now-1",
    }


async def test_what_is_too_much_goes_the_oldest_first(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    fill(workspace, ["builds/b1", "caches/a+b/c1", "builds/b2", "caches/a+b/c2"], 300_000)
    janitor = Janitor(workspace, Bounds(most=800_000, least_free=0))
    await janitor.tidy(())
    assert left(workspace) == {"builds/b1", "caches/a+b/c1"}
    assert size_of(tmp_path) <= 800_000
    assert janitor.facts()["low"] is False


async def test_fetched_commits_are_forgotten_when_that_is_not_enough(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "work")
    source = tmp_path / "fork"
    shas = [commit(source, {"a": str(number)}, f"change {number}") for number in range(4)]
    requests = [
        RunRequest(run_id="r", repository="a/b", commit=sha, level=Level.L1, suite=SUITE, git_path="/x") for sha in shas
    ]
    for request in requests:
        bare = await workspace.fetch(request, url=str(source), token=None)
    await workspace.trim_objects(frozenset(shas[:1]), keep=2)
    kept = git(bare, "for-each-ref", "--format=%(objectname)").split()
    assert len(kept) == 3
    assert shas[0] in kept
    for request in requests:  # what was forgotten is fetched again
        await workspace.fetch(request, url=str(source), token=None)
        async with workspace.tree(request, bare) as (place, _):
            assert git(place, "rev-parse", "HEAD") == request.commit


async def test_a_build_that_was_dropped_while_waited_for_is_made_again(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "work")
    sha = commit(tmp_path / "fork", {"a": "b"})
    suite = SUITE.model_copy(update={"build": ("true",)})
    request = RunRequest(run_id="r", repository="a/b", commit=sha, level=Level.L1, suite=suite, git_path="/x")
    bare = await workspace.fetch(request, url=str(tmp_path / "fork"), token=None)
    folder = workspace.root / "builds" / workspace.build_key(request)
    folder.mkdir()
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)

    async def use() -> bool:
        async with workspace.tree(request, bare) as (place, built):
            return not built and (place / "a").is_file()

    task = asyncio.create_task(use())
    await asyncio.sleep(0.3)
    (folder / "lock").unlink()
    folder.rmdir()
    os.close(handle)
    assert await task is True


async def test_no_run_begins_without_room_and_the_bot_hears_why(tmp_path: Path, sqlite_store: Store) -> None:
    async with world(tmp_path, sqlite_store) as bot:
        sha = commit(tmp_path / "fork", {"a": "b"})
        bot.publish(tmp_path / "fork")
        full = bot.runner(bounds=Bounds(least_free=1 << 60))
        async with asyncio.timeout(60):
            while not await bot.store.runners():  # noqa: ASYNC110 - the runner is in another task
                await asyncio.sleep(0.02)
        (known,) = await bot.store.runners()
        assert "the disk is nearly full: " in known.facts["health"]
        assert known.facts["disk"]["low"] is True
        assert known.facts["healthy"] is False
        run_id = await bot.offer(sha, SUITE)
        await asyncio.sleep(1)
        waiting = await bot.store.run(run_id)
        assert waiting is not None
        assert waiting.state is RunState.QUEUED
        await bot.stop(full)
        bot.runner()
        await bot.offer(sha, SUITE)  # rings again: the one that waits has its turn first
        run = await bot.done(run_id)
        assert run.outcome == Outcome.PASSED
        assert Report.model_validate(run.report).artifacts == ()


@pytest.mark.parametrize("build", [(), ("sleep", "600")])
async def test_a_run_that_fills_the_disk_is_ended_and_is_infra(tmp_path: Path, build: tuple[str, ...]) -> None:
    suite = SUITE.model_copy(update={"run": ("sleep", "600"), "build": build})
    request = RunRequest(run_id="r", repository="a/b", commit="1" * 40, level=Level.L1, suite=suite, git_path="/x")
    (tmp_path / "results").mkdir()
    looks: list[int] = []

    def short() -> bool:
        looks.append(1)
        return len(looks) > 1

    work = Work(request=request, source=tmp_path, folder=tmp_path, cache=tmp_path / "c", short=short)
    report = await execute(work)
    assert (report.outcome, "all but full" in report.reason) == (Outcome.INFRA, True), report
    assert Janitor(Workspace(tmp_path), Bounds(least_free=1 << 60)).out_of_room()
    assert not Janitor(Workspace(tmp_path), Bounds(least_free=0)).out_of_room()


def test_sizes_count_blocks_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_bytes(os.urandom(1_000_000))
    (tmp_path / "link").symlink_to("/")
    assert 1_000_000 <= size_of(tmp_path) < 1_200_000 < GIB
    assert size_of(tmp_path / "nothing") == 0
