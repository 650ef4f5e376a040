"""A real runner beside the sandbox: it leases from the bot over HTTP, fetches, runs and reports; only nobody rings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.clients.store import Runner, RunState
from handlers.runner import token_hash
from runners.service import RunnerSettings, Service
from tests.handlers.pair import FORK
from tests.handlers.runs import Gated

_TOKEN = "a-runners-token"


@dataclass(frozen=True, slots=True)
class Hired:
    """The runner of a gated fork."""

    fork: Gated
    service: Service

    async def works(self, most: int = 20) -> None:
        """Until no run waits."""
        for _ in range(most):
            waiting = await self.fork.world.context.store.runs(FORK, states=(RunState.QUEUED,), capacity=None)
            if not waiting:
                return
            await self.service.offered(waiting[-1].id)
            await asyncio.gather(*self.service._active)
            await asyncio.sleep(0)  # its slot is free again
            await self.fork.world.settle()
        raise AssertionError("the runs never end")


@asynccontextmanager
async def hired(fork: Gated, work: Path, **settings: Any) -> AsyncIterator[Hired]:
    """A runner with the label `default`."""
    context = fork.world.context
    await context.store.register_runner(Runner("one", token_hash(_TOKEN), ("default",)))
    service = Service(
        RunnerSettings(
            bot=context.settings.public_url,
            token=_TOKEN,
            redis="redis://127.0.0.1:1/0",
            name="one",
            labels=("default",),
            work=work,
            **settings,
        )
    )
    try:
        yield Hired(fork, service)
    finally:
        await service.bot.close()
