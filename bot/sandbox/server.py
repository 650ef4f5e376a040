"""The HTTP side: each request of the API goes through here, from its token to an answer held to the description."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import traceback
from collections import deque
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.sandbox import auth
from bot.sandbox.accounts import at_least
from bot.sandbox.faults import RequestFault
from bot.sandbox.http import OPERATIONS, ApiError, Call, Listing, Operation, Reply, not_found
from bot.sandbox.model import Repository
from bot.sandbox.validation import UNDESCRIBED, description
from bot.sandbox.workflows import BLOB, Blobs
from bot.sandbox.world import World

_NUMERIC = ("_id", "_number")
_GREEDY = frozenset({"path", "ref", "branch", "basehead", "name"})
MAX_BODY = 25_000_000


def api(world: World) -> Starlette:
    """The API below `/api`: one route an operation."""
    import bot.sandbox.routes  # noqa: F401 - registers the operations

    routes = []
    for operation in sorted(OPERATIONS, key=_specific):
        routes.append(Route(_pattern(operation.path), Endpoint(world, operation), methods=[operation.method]))
    routes.append(Route(BLOB, Blobs(world).__call__, methods=["GET"]))
    return Starlette(routes=routes, exception_handlers={404: _nothing_here, 405: _nothing_here})


def _specific(operation: Operation) -> tuple[int, int]:
    tail = operation.path.rsplit("{", 1)
    greedy_last = operation.path.endswith("}") and tail[1].rstrip("}") in _GREEDY
    return (1 if greedy_last else 0, -operation.path.count("/"))


def _pattern(path: str) -> str:
    def parameter(found: re.Match[str]) -> str:
        name = found[1]
        if name in _GREEDY:
            return f"{{{name}:path}}"
        return f"{{{name}:int}}" if name.endswith(_NUMERIC) and name != "workflow_id" else f"{{{name}}}"

    return re.sub(r"\{(\w+)\}", parameter, path)


async def _nothing_here(request: Request, error: Exception) -> Response:
    return _response(Reply(not_found().body(), 404))


class Endpoint:
    """Serves one operation."""

    def __init__(self, world: World, operation: Operation):
        self.world = world
        self.operation = operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or break the connection if a fault says so."""
        request = Request(scope, receive)
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        fault = self.world.faults.request(request.method, path)
        if fault is not None and fault.kind == "slow":
            await asyncio.sleep(fault.retry_after)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        response = _refusal(fault) or self._answer(request, path, body)
        if fault is not None and fault.kind == "bad_gateway_after_write":
            response = _response(Reply({"message": "Server Error"}, 502))
        self.world.requests.append((request.method, path, response.status_code))
        if fault is not None and fault.kind == "reset":
            # a promise of a body that never comes: the server closes the connection under the client
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
            return
        await response(scope, receive, send)

    def _answer(self, request: Request, path: str, raw: bytes) -> Response:
        try:
            actor = auth.authenticate(self.world, request.headers.get("authorization"))
        except auth.Unauthorized as error:
            return _response(Reply(ApiError(401, str(error)).body(), 401))
        limits = self._limits(actor)
        try:
            if int(limits.get("x-ratelimit-remaining", "1")) < 0 and self.operation.path != "/rate_limit":
                limits["x-ratelimit-remaining"] = "0"
                message = (
                    f"API rate limit exceeded for installation ID {actor.installation.id if actor.installation else 0}."
                )
                raise ApiError(403, message)
            self._count_write(actor)
            call = self._call(request, actor, path, raw)
            reply = self._reply(call, self.operation.handler(call))
        except ApiError as error:
            reply = Reply(error.body(), error.status, error.headers)
        except Exception:  # our own fault: told loudly, to the caller and to the tests
            said = f"{self.operation.method} {path} broke: {traceback.format_exc()}"
            self.world.violations.append(said)
            return _response(Reply({"message": f"The sandbox is at fault: {said}"}, 500))
        reply = self._held(reply)
        reply.headers = {**limits, **reply.headers}
        return _conditional(request, reply, actor)

    def _call(self, request: Request, actor: auth.Actor, path: str, raw: bytes) -> Call:
        operation = self.operation
        params = dict(request.path_params)
        query = dict(request.query_params)
        repository = None
        if "owner" in params:
            repository = self._repository(actor, params)
        self._permitted(actor, repository, params)
        if len(raw) > MAX_BODY:
            raise ApiError(413, "Payload too large")
        body = None
        if raw.strip():
            try:
                body = json.loads(raw)
            except ValueError as error:
                raise ApiError(400, "Problems parsing JSON") from error
        if (operation.method, operation.path) not in UNDESCRIBED:
            problems = description().request(operation.method, operation.path, query, body)
            if problems:
                lines = "\n".join(problems)
                raise ApiError(422, f"Invalid request.\n\n{lines}")
        return Call(
            self.world,
            actor,
            operation.method,
            path,
            params,
            query,
            body if body is not None else {},
            request.headers,
            repository,
        )

    def _repository(self, actor: auth.Actor, params: dict[str, Any]) -> Repository:
        found = self.world.repository(f"{params['owner']}/{params['repo']}")
        if found is None or (not auth.may_see(self.world, actor, found) and not actor.is_jwt):
            raise not_found()
        return found

    def _permitted(self, actor: auth.Actor, repository: Repository | None, params: dict[str, Any]) -> None:
        operation = self.operation
        if operation.app == "jwt":
            if not actor.is_jwt:
                raise ApiError(401, "A JSON web token could not be decoded")
            return
        if operation.app == "none":
            return
        if actor.is_jwt:
            raise ApiError(
                403, "You must authenticate with an installation access token in order to access this endpoint"
            )
        reading = operation.method == "GET"
        known = actor.installation is not None or actor.login is not None
        if repository is not None and repository.archived and known and not reading:
            raise ApiError(403, "Repository was archived so is read-only.")
        if actor.installation is not None:
            self._installation_permitted(actor, repository, params, reading=reading)
            return
        if actor.login is None:
            if not reading:
                raise ApiError(401, "Requires authentication")
            if operation.role not in ("read", "none"):
                raise ApiError(401, "Requires authentication")
            return
        if operation.app == "installation":
            raise ApiError(403, "You must authenticate with an installation access token")
        if repository is not None and not at_least(self.world.role(actor.login, repository), operation.role):
            raise (
                ApiError(403, "Must have admin rights to Repository.") if reading else not_found_or_forbidden(operation)
            )

    def _installation_permitted(
        self, actor: auth.Actor, repository: Repository | None, params: dict[str, Any], *, reading: bool
    ) -> None:
        assert actor.installation is not None
        if actor.installation.suspended_at is not None:
            raise ApiError(403, "This installation has been suspended")
        if self.operation.app == "installation" or repository is None:
            general = repository is not None or self.operation.app in ("installation", "metadata:read")
            if not general and not auth.permits(actor, self.operation.app):
                raise ApiError(403, "Resource not accessible by integration")
            return
        if not auth.within(self.world, actor, repository):
            if reading and not repository.private:
                return
            raise ApiError(403, "Resource not accessible by integration")
        number = params.get("issue_number")
        issue = repository.issues.get(number) if number is not None else None
        if "comment_id" in params:
            found = self.world.comment(repository, params["comment_id"])
            issue = found[0] if found else None
        on_pull = issue is not None and issue.pull is not None
        if not auth.permits(actor, self.operation.app, on_pull=on_pull):
            needs = self.operation.app.replace("pull:", "").replace(":", "=").replace("|", "; ")
            raise ApiError(
                403, "Resource not accessible by integration", headers={"x-accepted-github-permissions": needs}
            )

    def _limits(self, actor: auth.Actor) -> dict[str, str]:
        token = actor.token
        if token is None:
            return {}
        now = self.world.now()
        if token.window_ends is None or token.window_ends <= now:
            token.window_ends, token.used = now + timedelta(hours=1), 0
        token.used += 1
        limit = self.world.rate_limit if actor.installation is not None else self.world.user_rate_limit
        return {
            "x-ratelimit-limit": str(limit),
            "x-ratelimit-remaining": str(limit - token.used),
            "x-ratelimit-used": str(token.used),
            "x-ratelimit-reset": str(int(token.window_ends.timestamp())),
            "x-ratelimit-resource": "core",
        }

    def _count_write(self, actor: auth.Actor) -> None:
        """The secondary limit on writing, where it is switched on: so many a minute for each account."""
        allowed = self.world.writes_per_minute
        if allowed is None or self.operation.method == "GET" or actor.installation is None:
            return
        now = self.world.now()
        written = self.world.writes.setdefault(actor.login or "", deque())
        while written and (now - written[0]).total_seconds() >= 60:
            written.popleft()
        if len(written) >= allowed:
            wait = max(1, 60 - int((now - written[0]).total_seconds()))
            message = (
                "You have exceeded a secondary rate limit and have been temporarily blocked from content creation."
            )
            raise ApiError(403, message, headers={"retry-after": str(wait)})
        written.append(now)

    def _reply(self, call: Call, result: Any) -> Reply:
        if isinstance(result, Reply):
            return result
        if isinstance(result, Listing):
            return _page(call, result)
        return Reply(result, 204 if result is None else 200)

    def _held(self, reply: Reply) -> Reply:
        """Hold the answer to the description: one that does not fit is our own fault, and loudly so."""
        operation = self.operation
        if reply.raw is not None or (operation.method, operation.path) in UNDESCRIBED:
            return reply
        problems = description().response(operation.method, operation.path, reply.status, reply.body)
        if not problems:
            return reply
        what = f"{operation.method} {operation.path} answered {reply.status}"
        said = f"{what} against its description: {'; '.join(problems)}"
        self.world.violations.append(said)
        return Reply({"message": f"The sandbox is at fault: {said}"}, 500)


def not_found_or_forbidden(operation: Operation) -> ApiError:
    """What a user hears who may read but not do this."""
    if operation.role in ("admin", "maintain"):
        return ApiError(403, "Must have admin rights to Repository.")
    return ApiError(403, "Must have push access to repository")


def _page(call: Call, listing: Listing) -> Reply:
    number, size = call.page()
    total = len(listing.items)
    rows = [listing.render(item) for item in listing.items[(number - 1) * size : number * size]]
    body = listing.wrap(rows, total) if listing.wrap is not None else rows
    last = max(1, -(-total // size))
    links = []
    wanted = [("prev", number - 1), ("next", number + 1), ("last", last), ("first", 1)]
    for name, page in wanted:
        if (name in ("prev", "first") and number > 1) or (name in ("next", "last") and number < last):
            query = urlencode({**call.query, "page": page})
            links.append(f'<{call.world.url}/api{call.path}?{query}>; rel="{name}"')
    return Reply(body, headers={"link": ", ".join(links)} if links else {})


def _refusal(fault: RequestFault | None) -> Response | None:
    if fault is None:
        return None
    if fault.kind == "secondary":
        message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
        return _response(Reply(ApiError(403, message).body(), 403, {"retry-after": str(fault.retry_after)}))
    if fault.kind == "abuse":
        error = {"resource": "Issue", "code": "abuse", "field": "base", "message": "was submitted too quickly"}
        return _response(Reply(ApiError(422, "Validation Failed", [error]).body(), 422))
    if fault.kind == "forbidden":
        return _response(Reply(ApiError(403, "Resource not accessible by integration").body(), 403))
    if fault.kind == "server_error":
        return _response(Reply({"message": "Server Error"}, 500))
    if fault.kind == "bad_gateway":
        return _response(Reply({"message": "Server Error"}, 502))
    return None


def _conditional(request: Request, reply: Reply, actor: auth.Actor) -> Response:
    response = _response(reply)
    if request.method != "GET" or reply.status != 200:
        return response
    tag = f'W/"{hashlib.sha256(bytes(response.body)).hexdigest()}"'
    if request.headers.get("if-none-match") == tag:
        if actor.token is not None:
            actor.token.used -= 1  # what has not changed costs nothing
        kept = {name: value for name, value in reply.headers.items() if name not in ("link",)}
        return Response(status_code=304, headers={**kept, "etag": tag, "x-github-request-id": "0"})
    response.headers["etag"] = tag
    response.headers["cache-control"] = "private, max-age=60, s-maxage=60"
    return response


_request_number = 0


def _response(reply: Reply) -> Response:
    global _request_number  # noqa: PLW0603 - a running number, nothing reads it
    _request_number += 1
    headers = {
        **reply.headers,
        "x-github-request-id": f"{_request_number:08X}",
        "x-github-media-type": "github.v3; format=json",
        "x-github-api-version-selected": "2022-11-28",
    }
    if reply.raw is not None:
        return Response(reply.raw, reply.status, headers, media_type=reply.media_type)
    if reply.body is None:
        return Response(status_code=reply.status, headers=headers)
    return Response(json.dumps(reply.body), reply.status, headers, media_type=reply.media_type)
