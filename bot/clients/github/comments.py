"""Comments, reactions, labels and issues: upserts by marker and author, found by listing, never by search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from bot.clients.github.api import Api, segment
from bot.clients.github.errors import NotFound, Validation
from bot.clients.github.models import AppInfo, Comment, Issue, IssueEvent, Label, Reaction
from bot.clients.github.transport import Writer

_STAMP = re.compile(r"<!-- graft-stamp: (\d+) -->")


def written_by(app: AppInfo, written: Comment | Issue) -> bool:
    """True where the App wrote it; not every answer names the App, each names its login."""
    by = written.performed_via_github_app
    return by.id == app.id if by is not None and by.id else written.user.login == app.login


class Comments(Api):
    """Comments of issues and pull requests."""

    async def comments(self, number: int) -> list[Comment]:
        """All comments, oldest first."""
        return [Comment.model_validate(raw) for raw in await self._list(f"/issues/{number}/comments")]

    async def all_comments(self, *, limit: int = 50_000) -> list[Comment]:
        """The comments of all issues and pull requests, oldest first."""
        params = {"sort": "created", "direction": "asc"}
        return [Comment.model_validate(raw) for raw in await self._list("/issues/comments", params, limit=limit)]

    async def comment(self, comment_id: int) -> Comment:
        """One comment; NotFound where it was removed."""
        return Comment.model_validate(await self._get(f"/issues/comments/{comment_id}"))

    async def create_comment(self, number: int, body: str) -> Comment:
        """Write a comment; after an unknown effect, one of our own with the same text counts as this one."""

        async def find() -> Comment | None:
            app = await self.identity()
            mine = [one for one in await self.comments(number) if written_by(app, one) and one.body == body]
            return mine[-1] if mine else None

        async with self._writer() as write:
            return await self._create_comment(write, number, body, find)

    async def update_comment(self, comment_id: int, body: str) -> Comment:
        """Replace a comment's text."""
        async with self._writer() as write:
            return await self._update_comment(write, comment_id, body)

    async def upsert_comment(self, number: int, marker: str, body: str, *, stamp: int | None = None) -> Comment:
        """The one comment of ours that holds `marker` gets this text, or is written; unchanged text is not sent.

        With `stamp` (a number that grows with the runs) an older run never overwrites what a newer one wrote.
        """
        text = body if marker in body else f"{body}\n\n{marker}"
        if stamp is not None:
            text += f"\n<!-- graft-stamp: {stamp} -->"

        async def find() -> Comment | None:
            app = await self.identity()
            mine = (one for one in await self.comments(number) if written_by(app, one))
            return next((one for one in mine if marker in one.body), None)

        async with self._writer() as write:
            found = await find()
            if found is None:
                return await self._create_comment(write, number, text, find)
            written = _STAMP.search(found.body)
            newer = stamp is not None and written is not None and int(written[1]) > stamp
            if newer or found.body == text:
                return found
            return await self._update_comment(write, found.id, text)

    async def delete_comment(self, comment_id: int) -> None:
        """Remove a comment; one that is gone is fine."""
        async with self._writer() as write:
            try:
                await write.send("DELETE", f"{self._root}/issues/comments/{comment_id}")
            except NotFound:
                return

    async def react(self, comment_id: int, content: str) -> None:
        """React with +1, -1, laugh, confused, heart, hooray, rocket or eyes; twice is once."""
        async with self._writer() as write:
            path = f"{self._root}/issues/comments/{comment_id}/reactions"
            await write.send("POST", path, {"content": content}, repeat=True)

    async def reactions(self, comment_id: int) -> list[Reaction]:
        """The reactions to a comment."""
        found = await self._list(f"/issues/comments/{comment_id}/reactions")
        return [Reaction.model_validate(raw) for raw in found]

    async def _create_comment(self, write: Writer, number: int, body: str, find: Any) -> Comment:
        path = f"{self._root}/issues/{number}/comments"
        return await write.create(path, {"body": body}, find=find, parse=Comment.model_validate)

    async def _update_comment(self, write: Writer, comment_id: int, body: str) -> Comment:
        path = f"{self._root}/issues/comments/{comment_id}"
        return Comment.model_validate(await write.send("PATCH", path, {"body": body}))


class Labels(Api):
    """Labels of the repository and on its issues and pull requests."""

    async def labels(self) -> list[Label]:
        """The repository's labels."""
        return [Label.model_validate(raw) for raw in await self._list("/labels")]

    async def ensure_label(self, name: str, color: str = "ededed", description: str = "") -> None:
        """Create the label where it is missing; one that is there keeps its color and text."""
        if await self._has_label(name):
            return
        body = {"name": name, "color": color.lstrip("#"), "description": description[:100]}
        async with self._writer() as write:
            try:
                await write.send("POST", f"{self._root}/labels", body, repeat=True)
            except Validation:
                if not await self._has_label(name):
                    raise

    async def add_labels(self, number: int, names: Sequence[str]) -> None:
        """Put labels on an issue or pull request, beside those that are there."""
        if names:
            async with self._writer() as write:
                await write.send("POST", f"{self._root}/issues/{number}/labels", {"labels": list(names)}, repeat=True)

    async def who_labelled(self, number: int, name: str) -> list[str]:
        """Who put the label on that is on now: the last one to do so, as a list; empty where it is not on."""
        who: list[str] = []
        for raw in await self._list(f"/issues/{number}/events"):
            if (raw.get("label") or {}).get("name") == name and raw.get("event") in ("labeled", "unlabeled"):
                who = [str((raw.get("actor") or {}).get("login") or "ghost")] if raw["event"] == "labeled" else []
        return who

    async def remove_label(self, number: int, name: str) -> None:
        """Take a label off; one that is not there is fine."""
        async with self._writer() as write:
            try:
                await write.send("DELETE", f"{self._root}/issues/{number}/labels/{segment(name)}")
            except NotFound:
                return

    async def _has_label(self, name: str) -> bool:
        try:
            await self._get(f"/labels/{segment(name)}")
        except NotFound:
            return False
        return True


class Issues(Comments):
    """Issues."""

    async def issue(self, number: int) -> Issue:
        """One issue (or the issue side of a pull request)."""
        return Issue.model_validate(await self._get(f"/issues/{number}"))

    async def issues(self, labels: Sequence[str] = (), state: str = "open", *, limit: int = 5000) -> list[Issue]:
        """Issues without pull requests, newest first, that carry all of these labels; state open, closed or all."""
        params = {"state": state, **({"labels": ",".join(labels)} if labels else {})}
        found = [Issue.model_validate(raw) for raw in await self._list("/issues", params, limit=limit)]
        return [issue for issue in found if issue.pull_request is None]

    async def events(self, number: int) -> list[IssueEvent]:
        """The history of an issue or a pull request, oldest first."""
        return [IssueEvent.model_validate(raw) for raw in await self._list(f"/issues/{number}/events")]

    async def create_issue(
        self,
        title: str,
        body: str,
        *,
        labels: Sequence[str] = (),
        assignees: Sequence[str] = (),
        marker: str = "",
        listed: Sequence[str] | None = None,
    ) -> Issue:
        """Open an issue. With a marker, one of ours (open or closed) that holds it is given back instead; it is looked
        for among those that carry the labels in `listed` (None: all of `labels`), which must never be taken off.
        """
        text = body if not marker or marker in body else f"{body}\n\n{marker}"

        async def find() -> Issue | None:
            app = await self.identity()
            found = await self.issues(labels if listed is None else listed, "all")
            mine = [issue for issue in found if written_by(app, issue)]
            return next((issue for issue in mine if (marker in issue.body if marker else issue.body == text)), None)

        sent: dict[str, Any] = {"title": title, "body": text, "labels": list(labels), "assignees": list(assignees)}
        async with self._writer() as write:
            found = await find() if marker else None
            if found is not None:
                return found
            return await write.create(f"{self._root}/issues", sent, find=find, parse=Issue.model_validate)

    async def upsert_issue(self, marker: str, title: str, body: str, *, labels: Sequence[str] = ()) -> Issue:
        """The one issue of ours that holds `marker` gets this title and text, and is opened where it is not."""
        text = body if marker in body else f"{body}\n\n{marker}"
        issue = await self.create_issue(title, text, labels=labels, marker=marker)
        if issue.title == title and issue.body == text and issue.state == "open":
            return issue
        return await self.update_issue(issue.number, title=title, body=text, state="open")

    async def update_issue(
        self,
        number: int,
        *,
        title: str | None = None,
        body: str | None = None,
        state: str | None = None,
        state_reason: str | None = None,
        labels: Sequence[str] | None = None,
        assignees: Sequence[str] | None = None,
    ) -> Issue:
        """Change what is given; labels and assignees replace those that are there."""
        given = {"title": title, "body": body, "state": state, "state_reason": state_reason}
        sent: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        sent |= {"labels": list(labels)} if labels is not None else {}
        sent |= {"assignees": list(assignees)} if assignees is not None else {}
        async with self._writer() as write:
            return Issue.model_validate(await write.send("PATCH", f"{self._root}/issues/{number}", sent))

    async def add_assignees(self, number: int, logins: Sequence[str]) -> Issue:
        """Assign people beside those who are assigned; GitHub passes silently over those who can't be."""
        async with self._writer() as write:
            path = f"{self._root}/issues/{number}/assignees"
            return Issue.model_validate(await write.send("POST", path, {"assignees": list(logins)}, repeat=True))
