from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import structlog

from bot.clients.github import GitHubApp, HookDelivery
from bot.clients.store import Job, JobState, Store
from bot.context import Context
from bot.settings import Settings
from handlers.redeliver import lost, redeliver
from tests.sandbox.fixtures import REPO, Scene, checkout, listener, sandbox, scene

__all__ = ["checkout", "listener", "sandbox", "scene"]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def entry(number: int, guid: str, seconds: int = 60, event: str = "push") -> HookDelivery:
    return HookDelivery(id=number, guid=guid, event=event, delivered_at=NOW - timedelta(seconds=seconds))


def test_lost() -> None:
    listed = [
        entry(9, "new", seconds=1),
        entry(8, "b"),
        entry(7, "a"),
        entry(6, "ping", event="ping"),
        entry(5, "known"),
        entry(4, "a"),
    ]
    found = lost(listed=listed, known={"known"}, settled_before=(NOW - timedelta(seconds=30)).timestamp())
    assert [(one.id, one.guid) for one in found] == [(7, "a"), (8, "b")]


class Bell:
    wakes = 0

    async def wake(self) -> None:
        self.wakes += 1


@pytest.fixture
async def context(scene: Scene, sqlite_store: Store, tmp_path: Path) -> AsyncIterator[Context]:
    settings = Settings(data=tmp_path, redeliver_after_seconds=0)
    nothing = cast(Any, None)
    async with GitHubApp(scene.app.id, scene.app.private_key, scene.sandbox.api_url) as github:
        yield Context(
            github,
            sqlite_store,
            cast(Any, Bell()),
            settings,
            lambda: datetime.now(UTC),
            nothing,
            structlog.get_logger(),
        )


async def test_a_webhook_that_never_came_is_read_from_github(scene: Scene, context: Context) -> None:
    box, job = scene.sandbox, cast(Job, None)
    issue = (await box.as_user("dev").open_issue(REPO, "x", "y"))["number"]
    await box.settle()
    await redeliver(context, job)  # none of it was stored: all of it is lost
    stored = await context.store.delivery_count()
    assert stored >= 1
    box.faults.drop_deliveries(event="issue_comment")
    await box.as_user("dev").comment(REPO, issue, "/validate l2")
    await box.settle()
    await redeliver(context, job)
    assert await context.store.delivery_count() == stored + 1
    waiting = await context.store.jobs_in([JobState.WAITING])
    delivery = await context.store.delivery(waiting[-1].key)
    assert delivery is not None
    assert (delivery.event, delivery.repository, delivery.sender) == ("issue_comment", REPO, "dev")
    assert delivery.installation == scene.installation
    await redeliver(context, job)
    assert await context.store.delivery_count() == stored + 1
    assert cast(Any, context.queue).wakes == 2


async def test_what_can_not_be_read_is_looked_for_again(scene: Scene, context: Context) -> None:
    job = cast(Job, None)
    await scene.sandbox.as_user("dev").open_issue(REPO, "x", "y")
    await scene.sandbox.settle()
    scene.sandbox.faults.fail("forbidden", method="GET", path=r"^/app/hook/deliveries/\d+$")
    await redeliver(context, job)
    first = await context.store.delivery_count()
    await redeliver(context, job)
    assert await context.store.delivery_count() == first + 1
