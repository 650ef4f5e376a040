"""A person who uses the sandbox: over HTTP, with a token, as the web page's buttons and `git push` do."""

from __future__ import annotations

import asyncio
import base64
import ssl
from pathlib import Path
from typing import Any

import httpx

from bot.sandbox.bare import environment
from bot.sandbox.model import Issue
from bot.sandbox.world import World

Json = dict[str, Any]


# reading the system's certificates takes longer than most tests; on loopback there is no TLS
LOOPBACK = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Refused(Exception):
    """GitHub said no; `status` and `message` as it answered, or what git printed (`status` 0)."""

    def __init__(self, status: int, message: str):
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class UserClient:
    """Acts as one user. Every method goes over HTTP and raises Refused where GitHub refuses."""

    def __init__(self, world: World, login: str, token: str | None = None):
        self.login = login
        self._world = world
        self.token = token or world.user_token(login).value
        headers = {"authorization": f"Bearer {self.token}", "accept": "application/vnd.github+json"}
        self._http = httpx.AsyncClient(
            base_url=f"{world.url}/api", headers=headers, timeout=60, trust_env=False, verify=LOOPBACK
        )

    async def aclose(self) -> None:
        """Close the connection."""
        await self._http.aclose()

    async def request(self, method: str, path: str, body: Any = None, /, **query: Any) -> Any:
        """Any request; gives the JSON of the answer."""
        answer = await self._http.request(method, path, json=body, params=query or None)
        if answer.status_code >= 400:
            try:
                given = answer.json()
                errors = [
                    error.get("message", error) if isinstance(error, dict) else error
                    for error in given.get("errors") or []
                ]
                message = f"{given.get('message')} {errors or ''}".strip()
            except ValueError:
                message = answer.text
            raise Refused(answer.status_code, message)
        return answer.json() if answer.content else None

    async def get(self, path: str, /, **query: Any) -> Any:
        """Read something."""
        return await self.request("GET", path, **query)

    async def comment(self, repository: str, number: int, body: str) -> Json:
        """Comment on an issue or pull request."""
        return await self._json("POST", repository, f"issues/{number}/comments", {"body": body})

    async def edit_comment(self, repository: str, comment_id: int, body: str) -> Json:
        """Change a comment."""
        return await self._json("PATCH", repository, f"issues/comments/{comment_id}", {"body": body})

    async def delete_comment(self, repository: str, comment_id: int) -> None:
        """Delete a comment."""
        await self._repo("DELETE", repository, f"issues/comments/{comment_id}")

    async def react(self, repository: str, comment_id: int, content: str) -> None:
        """React to a comment."""
        await self._repo("POST", repository, f"issues/comments/{comment_id}/reactions", {"content": content})

    async def open_issue(self, repository: str, title: str, body: str = "", *, labels: list[str] | None = None) -> Json:
        """Open an issue."""
        return await self._json("POST", repository, "issues", {"title": title, "body": body, "labels": labels or []})

    async def open_pull(
        self,
        repository: str,
        head: str,
        *,
        base: str = "main",
        title: str | None = None,
        body: str = "",
        draft: bool = False,
    ) -> Json:
        """Open a pull request from a branch, or `owner:branch` of a fork."""
        given = {"head": head, "base": base, "title": title or head, "body": body, "draft": draft}
        return await self._json("POST", repository, "pulls", given)

    async def update_pull(self, repository: str, number: int, **fields: Any) -> Json:
        """Change title, body, base or state."""
        return await self._json("PATCH", repository, f"pulls/{number}", fields)

    async def merge_pull(
        self,
        repository: str,
        number: int,
        method: str = "merge",
        *,
        sha: str | None = None,
        title: str | None = None,
        message: str | None = None,
    ) -> Json:
        """Press the merge button: merge, squash or rebase."""
        given = {"merge_method": method, "sha": sha, "commit_title": title, "commit_message": message}
        body = {name: value for name, value in given.items() if value is not None}
        return await self._json("PUT", repository, f"pulls/{number}/merge", body)

    async def review(
        self, repository: str, number: int, event: str = "APPROVE", body: str = "", *, sha: str | None = None
    ) -> Json:
        """Review: APPROVE, REQUEST_CHANGES or COMMENT."""
        given = {"event": event.upper(), "body": body, **({"commit_id": sha} if sha else {})}
        return await self._json("POST", repository, f"pulls/{number}/reviews", given)

    async def dismiss_review(self, repository: str, number: int, review_id: int, message: str) -> Json:
        """Dismiss a review."""
        path = f"pulls/{number}/reviews/{review_id}/dismissals"
        return await self._json("PUT", repository, path, {"message": message})

    async def close(self, repository: str, number: int) -> Json:
        """Close an issue or pull request."""
        return await self._json("PATCH", repository, f"issues/{number}", {"state": "closed"})

    async def reopen(self, repository: str, number: int) -> Json:
        """Open it again."""
        return await self._json("PATCH", repository, f"issues/{number}", {"state": "open"})

    async def label(self, repository: str, number: int, *names: str) -> None:
        """Put labels on."""
        await self._repo("POST", repository, f"issues/{number}/labels", {"labels": list(names)})

    async def unlabel(self, repository: str, number: int, name: str) -> None:
        """Take a label off."""
        await self._repo("DELETE", repository, f"issues/{number}/labels/{name}")

    async def assign(self, repository: str, number: int, *logins: str) -> None:
        """Assign people."""
        await self._repo("POST", repository, f"issues/{number}/assignees", {"assignees": list(logins)})

    async def request_review(self, repository: str, number: int, *logins: str) -> None:
        """Ask people for a review."""
        await self._repo("POST", repository, f"pulls/{number}/requested_reviewers", {"reviewers": list(logins)})

    async def lock(self, repository: str, number: int) -> None:
        """Lock the conversation."""
        await self._repo("PUT", repository, f"issues/{number}/lock")

    async def update_branch(self, repository: str, number: int) -> None:
        """Press the button that merges the base into the head."""
        await self._repo("PUT", repository, f"pulls/{number}/update-branch", {})

    async def rerequest_check(self, repository: str, check_run_id: int) -> None:
        """Press the re-run button of a check."""
        await self._repo("POST", repository, f"check-runs/{check_run_id}/rerequest")

    async def ready_for_review(self, repository: str, number: int) -> None:
        """Take a pull request out of draft."""
        await self._mutate("markPullRequestReadyForReview", "pullRequestId", repository, number)

    async def convert_to_draft(self, repository: str, number: int) -> None:
        """Make a pull request a draft."""
        await self._mutate("convertPullRequestToDraft", "pullRequestId", repository, number)

    async def enqueue(self, repository: str, number: int) -> None:
        """Press the button "merge when ready" of a branch with a merge queue."""
        await self._mutate("enqueuePullRequest", "pullRequestId", repository, number)

    async def dequeue(self, repository: str, number: int) -> None:
        """Take it out of the queue."""
        await self._mutate("dequeuePullRequest", "id", repository, number)

    async def write_file(
        self, repository: str, path: str, content: str, *, branch: str = "main", message: str = ""
    ) -> str:
        """Edit a file on the web page: one commit on an existing branch; gives the commit."""
        body = {"message": message or f"Update {path}", "branch": branch}
        body["content"] = base64.b64encode(content.encode()).decode()
        try:
            found = await self._repo("GET", repository, f"contents/{path}?ref={branch}")
            body["sha"] = found["sha"]
        except Refused as error:
            if error.status != 404:
                raise
        answer = await self._repo("PUT", repository, f"contents/{path}", body)
        return str(answer["commit"]["sha"])

    async def create_branch(self, repository: str, name: str, sha: str) -> None:
        """A new branch at a commit that the repository has."""
        await self._repo("POST", repository, "git/refs", {"ref": f"refs/heads/{name}", "sha": sha})

    async def delete_branch(self, repository: str, name: str) -> None:
        """Delete a branch."""
        await self._repo("DELETE", repository, f"git/refs/heads/{name}")

    async def push(self, repository: str, source: Path, *refspecs: str, force: bool = False) -> str:
        """`git push` from a repository on this machine; gives what git printed, Refused (0) where it was rejected."""
        url = self._world.url.replace("http://", f"http://{self.login}:{self.token}@") + f"/{repository}.git"
        flags = ["--force"] if force else []
        process = await asyncio.create_subprocess_exec(
            "git",
            "-C",
            str(source),
            "push",
            *flags,
            url,
            *refspecs,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment(),
        )
        output = (await process.communicate())[0].decode(errors="replace").replace(self.token, "***")
        if process.returncode:
            raise Refused(0, output.strip())
        return output

    async def _repo(self, method: str, repository: str, path: str, body: Any = None) -> Any:
        return await self.request(method, f"/repos/{repository}/{path}", body)

    async def _json(self, method: str, repository: str, path: str, body: Any = None) -> Json:
        answer: Json = await self._repo(method, repository, path, body)
        return answer

    async def _mutate(self, mutation: str, field: str, repository: str, number: int) -> None:
        item: Issue = self._world.known_repository(repository).issues[number]
        pull = await self._repo("GET", repository, f"pulls/{item.number}")
        query = f"mutation($id: ID!) {{ {mutation}(input: {{{field}: $id}}) {{ clientMutationId }} }}"
        answer = await self.request("POST", "/graphql", {"query": query, "variables": {"id": pull["node_id"]}})
        if answer.get("errors"):
            raise Refused(200, answer["errors"][0]["message"])
