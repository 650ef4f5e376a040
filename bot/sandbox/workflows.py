"""What a workflow file says to those who start it, and where the artifacts of its runs lie.

Artifacts lie on another host than the API, as GitHub's do: an address signed for a while, which refuses a token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Any
from urllib.parse import urlsplit

import yaml
from starlette.requests import Request
from starlette.responses import Response

from bot.sandbox.http import ApiError
from bot.sandbox.model import Artifact
from bot.sandbox.world import World

BLOB = "/blobs/{repository_id:int}/{artifact_id:int}/{signature}"
_INPUT = re.compile(r"\$\{\{\s*(?:github\.event\.)?inputs\.([\w-]+)\s*\}\}")


def started_by_hand(content: bytes, inputs: dict[str, Any]) -> tuple[str | None, dict[str, str]]:
    """The name that a run of this workflow bears (None: that of the workflow) and all inputs with their defaults.

    Raises ApiError(422) in GitHub's words where the workflow can't be started so.
    """
    try:
        whole = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise ApiError(422, f"failed to parse workflow: {error}".split("\n", 1)[0]) from error
    document: dict[Any, Any] = whole if isinstance(whole, dict) else {}
    triggers = document.get("on", document.get(True))  # YAML 1.1 reads the bare key `on` as true
    named = [triggers] if isinstance(triggers, str) else list(triggers or ())
    if "workflow_dispatch" not in named:
        raise ApiError(422, "Workflow does not have 'workflow_dispatch' trigger")
    trigger = triggers.get("workflow_dispatch") if isinstance(triggers, dict) else None
    declared: dict[str, Any] = (trigger or {}).get("inputs") or {}
    unexpected = sorted(inputs.keys() - declared.keys())
    if unexpected:
        raise ApiError(422, f"Unexpected inputs provided: {unexpected}")
    given = {}
    for name, about in declared.items():
        value = inputs.get(name, (about or {}).get("default"))
        if value is None and (about or {}).get("required"):
            raise ApiError(422, f"Required input '{name}' not provided")
        given[name] = "" if value is None else str(value)
    title = document.get("run-name")
    return (_INPUT.sub(lambda found: given.get(found[1], ""), str(title)) if title else None), given


def blob_url(world: World, repository_id: int, item: Artifact) -> str:
    """Where an artifact may be read for a while, without a token."""
    there = urlsplit(world.url)
    host = f"{there.scheme}://localhost:{there.port}"
    return f"{host}/api/blobs/{repository_id}/{item.id}/{_signature(item)}"


class Blobs:
    """Serves the artifacts."""

    def __init__(self, world: World) -> None:
        self.world = world

    async def __call__(self, request: Request) -> Response:
        """The zip; 403 with a token or a wrong signature."""
        repositories = [
            one for one in self.world.repositories.values() if one.id == request.path_params["repository_id"]
        ]
        item = repositories[0].artifacts.get(request.path_params["artifact_id"]) if repositories else None
        if item is None:
            return Response(status_code=404)
        if not hmac.compare_digest(_signature(item), request.path_params["signature"]):
            return Response("the signature did not match", 403)
        if request.headers.get("authorization"):
            return Response("a signed address takes no token", 403)
        return Response(item.content, media_type="application/zip")


def _signature(item: Artifact) -> str:
    return hashlib.sha256(item.content + str(item.id).encode()).hexdigest()[:32]
