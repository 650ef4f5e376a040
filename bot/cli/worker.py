"""`graft worker`: works off what the webhooks and the schedule ask for."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.terminal import say

if TYPE_CHECKING:
    from bot.settings import Settings


def command(verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False) -> None:
    """Work off what the webhooks and the schedule ask for.

    Any number of workers may run; settings come from the environment, the same as those of `graft serve`.
    """
    from bot.clients.store import StoreUnavailable
    from bot.logs import configure
    from bot.settings import Settings, SettingsError

    try:
        settings = Settings.load()
        settings.require_app()
        asyncio.run(_work(settings, configure(as_json=settings.log_json, verbose=verbose)))
    except (SettingsError, StoreUnavailable, ValueError) as error:
        say(f"graft worker: {error}", err=True)
        raise typer.Exit(2) from None


async def _work(settings: Settings, log: Any) -> None:
    from bot.context import open_context
    from bot.worker import Worker

    async with open_context(settings, log) as context:
        worker = Worker(context)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, worker.stop)
        log.info("works", name=worker.name)
        await worker.run()
