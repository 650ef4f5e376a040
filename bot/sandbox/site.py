"""The whole site as one ASGI application: the API below /api, git, and the pages for people."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from bot.clients.git_http import GitHttpBackend
from bot.sandbox.pages import pages
from bot.sandbox.server import api
from bot.sandbox.world import World


def site(world: World, git: GitHttpBackend) -> ASGIApp:
    """What uvicorn serves."""
    rest, html = api(world), pages(world)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path == "/api" or path.startswith("/api/"):
            await rest({**scope, "path": path[4:] or "/"}, receive, send)
        elif ".git/" in path:
            await git(scope, receive, send)
        else:
            await html(scope, receive, send)

    return application
