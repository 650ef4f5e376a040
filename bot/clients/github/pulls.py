"""Pull requests: found by their head branch, so that the same batch never opens two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bot.clients.github.api import Api
from bot.clients.github.errors import Validation
from bot.clients.github.models import Pull, PullCommit, PullFile, Review


class Pulls(Api):
    """Pull requests of the repository."""

    async def pull(self, number: int) -> Pull:
        """One pull request."""
        return Pull.model_validate(await self._get(f"/pulls/{number}"))

    async def pulls(
        self, state: str = "open", head: str | None = None, base: str | None = None, *, limit: int = 5000
    ) -> list[Pull]:
        """Pull requests, newest first; `head` is a branch of this repository, or owner:branch of a fork of it."""
        params: dict[str, str] = {"state": state}
        if head is not None:
            params["head"] = head if ":" in head else f"{self.owner}:{head}"
        if base is not None:
            params["base"] = base
        return [Pull.model_validate(raw) for raw in await self._list("/pulls", params, limit=limit)]

    async def create_pull(self, *, head: str, base: str, title: str, body: str, draft: bool = False) -> Pull:
        """The open pull request of this head branch, opened where there is none (an open one is not changed)."""

        async def find() -> Pull | None:
            found = await self.pulls("open", head, base)
            return found[0] if found else None

        sent = {"title": title, "head": head, "base": base, "body": body, "draft": draft}
        async with self._writer() as write:
            found = await find()
            if found is not None:
                return found
            try:
                return await write.create(f"{self._root}/pulls", sent, find=find, parse=Pull.model_validate)
            except Validation:
                found = await find()  # "already exists": another process was faster
                if found is None:
                    raise
                return found

    async def update_pull(
        self,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        state: str | None = None,
        base: str | None = None,
    ) -> Pull:
        """Change what is given."""
        given = {"title": title, "body": body, "state": state, "base": base}
        sent = {name: value for name, value in given.items() if value is not None}
        async with self._writer() as write:
            return Pull.model_validate(await write.send("PATCH", f"{self._root}/pulls/{number}", sent))

    async def pull_files(self, number: int) -> list[PullFile]:
        """The files; GitHub gives 3000 at most, so compare with `Pull.changed_files` before relying on it."""
        return [PullFile.model_validate(raw) for raw in await self._list(f"/pulls/{number}/files")]

    async def pull_commits(self, number: int) -> list[PullCommit]:
        """The commits; GitHub gives 250 at most, so compare with `Pull.commits` before relying on it."""
        return [PullCommit.model_validate(raw) for raw in await self._list(f"/pulls/{number}/commits")]

    async def reviews(self, number: int) -> list[Review]:
        """The reviews, oldest first."""
        return [Review.model_validate(raw) for raw in await self._list(f"/pulls/{number}/reviews")]

    async def request_reviewers(self, number: int, reviewers: Sequence[str], teams: Sequence[str] = ()) -> None:
        """Ask people and teams (slugs) to review; Validation where one of them is no collaborator."""
        async with self._writer() as write:
            body = {"reviewers": list(reviewers), "team_reviewers": list(teams)}
            await write.send("POST", f"{self._root}/pulls/{number}/requested_reviewers", body, repeat=True)

    async def merge_pull(
        self, number: int, *, sha: str, method: str = "merge", title: str | None = None, message: str | None = None
    ) -> str:
        """Merge exactly this head; gives the merge commit. Conflict where the head moved or it is not mergeable.

        After an unknown effect the pull request is read before anything is sent again.
        """
        sent: dict[str, Any] = {"sha": sha, "merge_method": method}
        sent |= {"commit_title": title} if title is not None else {}
        sent |= {"commit_message": message} if message is not None else {}

        async def find() -> str | None:
            pull = await self.pull(number)
            return pull.merge_commit_sha if pull.landed else None

        async with self._writer() as write:
            return await write.create(
                f"{self._root}/pulls/{number}/merge", sent, find=find, parse=lambda raw: str(raw["sha"]), method="PUT"
            )

    async def pulls_of_commit(self, sha: str) -> list[Pull]:
        """The pull requests that brought a commit."""
        return [Pull.model_validate(raw) for raw in await self._list(f"/commits/{sha}/pulls")]
