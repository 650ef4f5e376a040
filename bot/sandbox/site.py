"""The whole site as one ASGI application: the API below /api, git, the App manifest form, and the pages for people."""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.clients.git_http import GitHttpBackend
from bot.sandbox.cast import Cast
from bot.sandbox.pages import pages
from bot.sandbox.server import api

_NEW_APP = re.compile(r"(?:/organizations/(?P<owner>[^/]+))?/settings/apps/new")


def site(cast: Cast, git: GitHttpBackend) -> ASGIApp:
    """What uvicorn serves."""
    rest, html = api(cast.state), pages(cast.state)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path == "/api" or path.startswith("/api/"):
            await rest({**scope, "path": path[4:] or "/"}, receive, send)
        elif found := _NEW_APP.fullmatch(path):
            response = await _new_app(Request(scope, receive), cast, found["owner"])
            await response(scope, receive, send)
        elif ".git/" in path:
            await git(scope, receive, send)
        else:
            await html(scope, receive, send)

    return application


async def _new_app(request: Request, cast: Cast, owner: str | None) -> Response:
    """Take the form with an App's manifest and lead back with a code, as GitHub does once a person has agreed."""
    form = parse_qs((await request.body()).decode())
    try:
        manifest = json.loads(form["manifest"][0])
        back = str(manifest["redirect_url"])
        code = cast.create_app_from_manifest(manifest, owner=owner)
    except (KeyError, ValueError, LookupError) as error:
        return PlainTextResponse(f"The manifest can't be used: {error!r}\n", 422)
    query = {"code": code, **({"state": request.query_params["state"]} if "state" in request.query_params else {})}
    return RedirectResponse(f"{back}?{urlencode(query)}", 302)
