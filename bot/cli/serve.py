"""`graft serve`: the webhook and the runners' endpoint, health and metrics, in one process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.terminal import say

if TYPE_CHECKING:
    from bot.settings import Settings


def command(
    host: Annotated[str | None, typer.Option(help="Address to listen on (GRAFT_HOST).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 takes a free one (GRAFT_PORT).")] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log more.")] = False,
) -> None:
    """Serve the webhook and the runners' endpoint, /health and /metrics.

    Settings come from the environment: GRAFT_APP_ID, GRAFT_PRIVATE_KEY_FILE, GRAFT_WEBHOOK_SECRET_FILE and others.
    """
    from bot.clients.store import StoreUnavailable
    from bot.logs import configure
    from bot.settings import Settings, SettingsError

    given: dict[str, Any] = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    try:
        settings = Settings.load(**given)
        settings.require_app()
        log = configure(as_json=settings.log_json, verbose=verbose)
        asyncio.run(_serve(settings, log))
    except (SettingsError, StoreUnavailable, ValueError) as error:
        say(f"graft serve: {error}", err=True)
        raise typer.Exit(2) from None


async def _serve(settings: Settings, log: Any) -> None:
    import uvicorn

    from bot.app import create_app
    from bot.context import open_context

    async with open_context(settings, log) as context:
        app = create_app(context)
        config = uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            loop="uvloop",
            http="httptools",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
        await uvicorn.Server(config).serve()
