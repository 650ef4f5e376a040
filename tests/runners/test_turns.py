"""Which run a runner gets when it asks, over HTTP with real runners: by turn, whatever it was woken for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from bot.clients.store import Run, RunState, Store
from bot.core.config import Suite
from bot.core.turns import Turn
from bot.core.validation import PROTOCOL
from tests.runners.world import TOKEN, World, commit, world

STUB = Suite.model_validate({"suite": "stub", "harness": "command", "run": ["true"], "timeout": "60s"})


@pytest.fixture
async def bot(tmp_path: Path, sqlite_store: Store) -> AsyncIterator[World]:
    async with world(tmp_path, sqlite_store, tokens=f"one={TOKEN},two=token-of-the-second", lease=60) as made:
        yield made


@pytest.fixture
def sha(bot: World, tmp_path: Path) -> str:
    made = commit(tmp_path / "fork", {"a": "b"})
    bot.publish(tmp_path / "fork")
    return made


async def queue(bot: World, sha: str, name: str, *, labels: tuple[str, ...] = ("default",), **changes: Any) -> str:
    """A queued run; nobody is woken for it yet."""
    suite = STUB.model_copy(update={"runner": labels})
    run = await bot.store.run(await bot.offer(sha, suite, push=False))
    assert run is not None
    request = {**run.request, "run_id": name}
    made = replace(run, id=name, request=request, **changes)
    await bot.store.finish_run(run.id, outcome="cancelled", report=None, now=datetime.now(UTC))
    assert await bot.store.create_run(made)
    return name


async def say(bot: World, path: str, body: dict[str, Any], token: str = TOKEN) -> httpx.Response:
    async with httpx.AsyncClient(base_url=bot.url, trust_env=False) as http:
        return await http.post(path, json={"protocol": PROTOCOL, **body}, headers={"authorization": f"Bearer {token}"})


async def lease(bot: World, run: str, *active: str, token: str = TOKEN) -> str | int:
    """The run that was given, or the status of the refusal."""
    answer = await say(bot, f"/runner/runs/{run}/lease", {"active": list(active)}, token)
    return str(answer.json()["run_id"]) if answer.status_code == 200 else answer.status_code


async def hello(bot: World, *labels: str, token: str = TOKEN) -> None:
    assert (await say(bot, "/runner/hello", {"labels": list(labels), "facts": {}}, token)).status_code == 200


async def test_a_runner_gets_the_run_whose_turn_it_is(bot: World, sha: str) -> None:
    await hello(bot, "default")
    for n in range(3):
        await queue(bot, sha, f"many{n}", number=1)
    await queue(bot, sha, "one", number=2)
    await queue(bot, sha, "asked", number=3, turn=Turn.COMMAND)
    got: list[str] = []
    for _ in range(5):
        given = await lease(bot, "many2", *got)
        assert isinstance(given, str)
        got.append(given)
    assert got == ["asked", "many0", "one", "many1", "many2"]
    assert await lease(bot, "many2", *got) == 409
    assert await lease(bot, "nothing", *got) == 404


async def test_an_older_runner_gets_what_it_asks_for(bot: World, sha: str) -> None:
    await hello(bot, "default")
    await queue(bot, sha, "first")
    await queue(bot, sha, "second")
    answer = await say(bot, "/runner/runs/second/lease", {})
    assert answer.json()["run_id"] == "second"
    assert (await say(bot, "/runner/runs/first/lease", {"active": "second"})).status_code == 400


async def test_an_answer_that_got_lost_is_given_again(bot: World, sha: str) -> None:
    await hello(bot, "default")
    await hello(bot, "default", token="token-of-the-second")
    await queue(bot, sha, "a", number=1)
    await queue(bot, sha, "b", number=2)
    assert await lease(bot, "b") == "a"
    assert await lease(bot, "b", token="token-of-the-second") == "b"
    assert await lease(bot, "b") == "a"  # it never heard of it
    run = await bot.store.run("a")
    assert run is not None and (run.runner, run.attempt) == ("one", 1)
    held = await say(bot, "/runner/runs/a/heartbeat", {"attempt": 1})
    assert held.json() == {"stop": None}
    assert await lease(bot, "b") == 409  # it holds it on: what it works on is not given a second time


async def test_labels_and_bounds_hold_whatever_the_turn(bot: World, sha: str) -> None:
    await hello(bot, "gpu")
    await queue(bot, sha, "big", labels=("gpu", "h100"), turn=Turn.GROUP, label="gpu")
    await queue(bot, sha, "small", labels=("gpu",), label="gpu")
    assert await lease(bot, "big") == "small"
    assert await lease(bot, "big", "small") == 403
    await hello(bot, "gpu", "h100", token="token-of-the-second")
    assert await lease(bot, "small", token="token-of-the-second") == "big"


async def test_a_wake_up_spent_on_another_run_is_made_up_for(bot: World, sha: str) -> None:
    """The one that was woken for the run with more labels takes the other: both are done, without the sweep's help."""
    for n in range(4):
        await queue(bot, sha, f"plain{n}", labels=("gpu",), label="gpu", number=n + 1)
        await queue(bot, sha, f"h100-{n}", labels=("h100", "gpu"), label="gpu", number=n + 1)
    runs = list(await bot.store.queued_runs())
    for run in reversed(runs):
        await bot.push(run)
    bot.runner("gpu")
    bot.runner("gpu", "h100", token="token-of-the-second", name="two")
    done = [await bot.done(run.id) for run in runs]
    assert {run.outcome for run in done} == {"passed"}
    assert {run.attempt for run in done} == {1}
    assert {run.runner for run in done if run.id.startswith("h100")} == {"two"}


async def test_two_slots_of_one_runner_and_of_another_do_each_run_once(bot: World, sha: str) -> None:
    for n in range(12):
        await queue(bot, sha, f"r{n}", number=n % 3)
    runs = await bot.store.queued_runs()
    for run in runs:
        await bot.push(run)
    bot.runner(gpus=(None, None))
    bot.runner(token="token-of-the-second", name="two", gpus=(None, None))
    done: list[Run] = await asyncio.gather(*(bot.done(run.id) for run in runs))
    assert [(run.outcome, run.attempt, run.state) for run in done] == [("passed", 1, RunState.DONE)] * 12
    logs = [len(list((bot.context.settings.data / "runs" / run.id).glob("*.log"))) for run in done]
    assert logs == [1] * 12
    started = {number: [run.started_at for run in done if run.number == number] for number in range(3)}
    for times in started.values():
        assert times == sorted(time or datetime.max for time in times)


async def test_a_run_that_failed_on_this_machine_does_not_hold_up_the_others(bot: World, sha: str) -> None:
    await hello(bot, "default")
    await hello(bot, "default", token="token-of-the-second")
    await queue(bot, sha, "bad", number=1)
    await queue(bot, sha, "good", number=2)
    assert await lease(bot, "bad") == "bad"
    answer = await say(bot, "/runner/runs/bad/report?attempt=1", {"no": "report"})
    assert answer.json()["again"] is True
    await bot.store.runner_seen("two", datetime.now(UTC) + timedelta(seconds=1))
    assert await lease(bot, "bad") == "good"
    assert await lease(bot, "bad", "good") == 423
    assert await lease(bot, "good", token="token-of-the-second") == "bad"
