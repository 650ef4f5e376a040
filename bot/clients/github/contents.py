"""Files, branches, commits, people and what protects a branch."""

from __future__ import annotations

import base64
from typing import Any

from bot.clients.github.api import Api, pages, path_of, segment
from bot.clients.github.errors import Forbidden, NotFound, Validation
from bot.clients.github.models import Branch, Protection, PullCommit, RepositoryInfo, User

PERMISSIONS = ("none", "read", "triage", "write", "maintain", "admin")
_MOST_LISTED = 1_000  # of a folder


class Contents(Api):
    """What the repository holds and who may do what with it."""

    async def info(self) -> RepositoryInfo:
        """The repository itself."""
        return RepositoryInfo.model_validate(await self._get(""))

    async def default_branch(self) -> str:
        """The name of the default branch."""
        return (await self.info()).default_branch

    async def file(self, path: str, ref: str | None = None) -> bytes | None:
        """A file's bytes at a branch, tag or commit (default branch where none is named); None where there is none."""
        try:
            raw = await self._get(f"/contents/{path_of(path)}", {"ref": ref} if ref else None)
        except NotFound:
            return None
        if not isinstance(raw, dict) or raw.get("type") != "file":
            return None
        if raw.get("encoding") != "base64":  # larger than 1 MB: only the blob has it
            raw = await self._get(f"/git/blobs/{raw['sha']}")
        return base64.b64decode(raw["content"])

    async def folder(self, path: str, ref: str | None = None) -> dict[str, str] | None:
        """What a folder holds at a branch, tag or commit, by name, with the blob of each plain file ("" of all else);
        empty where there is no such folder, None where GitHub may not have listed all of it.
        """
        try:
            raw = await self._get(f"/contents/{path_of(path)}", {"ref": ref} if ref else None)
        except NotFound:
            return {}
        if not isinstance(raw, list):
            return {}
        if len(raw) >= _MOST_LISTED:
            return None
        return {str(one["name"]): str(one["sha"]) if one.get("type") == "file" else "" for one in raw}

    async def blob(self, sha: str) -> bytes:
        """The content of a blob, asked for once. Raises NotFound."""
        answer = await self.transport.get(f"{self._root}/git/blobs/{segment(sha)}", self.installation, fixed=True)
        return base64.b64decode(answer.json["content"])

    async def branch(self, name: str) -> Branch | None:
        """A branch, or None."""
        try:
            raw = await self._get(f"/branches/{path_of(name)}")
        except NotFound:
            return None
        return Branch(name=raw["name"], sha=raw["commit"]["sha"], protected=bool(raw.get("protected")))

    async def delete_branch(self, name: str) -> bool:
        """Remove a branch; False where it was gone."""
        async with self._writer() as write:
            try:
                await write.send("DELETE", f"{self._root}/git/refs/heads/{path_of(name)}")
            except NotFound:
                return False
            except Validation as error:
                if "does not exist" in error.message.lower():
                    return False
                raise
        return True

    async def commits(self, ref: str, *, limit: int = 100) -> list[PullCommit]:
        """Commits reachable from a ref, newest first."""
        return [PullCommit.model_validate(raw) for raw in await self._list("/commits", {"sha": ref}, limit=limit)]

    async def permission(self, login: str) -> str:
        """What a person may do here: none, read, triage, write, maintain or admin."""
        try:
            raw = await self._get(f"/collaborators/{segment(login)}/permission")
        except NotFound:
            return "none"
        role, plain = str(raw.get("role_name") or ""), str(raw.get("permission") or "none")
        found = role if role in PERMISSIONS else plain  # a role of the organisation's own counts as what it is based on
        return found if found in PERMISSIONS else "none"

    async def collaborators(self) -> list[User]:
        """Who has access."""
        return [User.model_validate(raw) for raw in await self._list("/collaborators")]

    async def team_members(self, org: str, slug: str) -> list[str]:
        """The logins of a team; NotFound where it does not exist or may not be seen."""
        path = f"/orgs/{segment(org)}/teams/{segment(slug)}/members"
        found: list[Any] = []
        async for page in pages(self.transport, path, self.installation):
            found += page.json
        return [str(raw["login"]) for raw in found]

    async def protection(self, branch: str) -> Protection:
        """What protects a branch, from its protection and the rules; `known` is False where neither may be read."""
        rules = await self._rules(branch)
        try:
            raw = await self._get(f"/branches/{path_of(branch)}/protection")
        except NotFound:
            return rules or Protection()
        except Forbidden:
            return rules or Protection(known=False)
        return _merged(_protection(raw), rules)

    async def _rules(self, branch: str) -> Protection | None:
        try:
            rules = await self._list(f"/rules/branches/{path_of(branch)}")
        except (NotFound, Forbidden):
            return None
        checks: list[str] = []
        strict, approvals = False, 0
        for rule in rules:
            parameters = rule.get("parameters") or {}
            if rule.get("type") == "required_status_checks":
                checks += [str(check["context"]) for check in parameters.get("required_status_checks", [])]
                strict = strict or bool(parameters.get("strict_required_status_checks_policy"))
            if rule.get("type") == "pull_request":
                approvals = max(approvals, int(parameters.get("required_approving_review_count") or 0))
        if not checks and not approvals:
            return None
        return Protection(required_checks=tuple(checks), strict=strict, required_approvals=approvals)

    async def token(self) -> str:
        """A token for git, good for five minutes at least."""
        return await self.transport.token(self.installation)


def _protection(raw: dict[str, Any]) -> Protection:
    status = raw.get("required_status_checks") or {}
    checks = [str(check["context"]) for check in status.get("checks") or []] or list(status.get("contexts") or [])
    reviews = raw.get("required_pull_request_reviews") or {}
    return Protection(
        required_checks=tuple(checks),
        strict=bool(status.get("strict")),
        required_approvals=int(reviews.get("required_approving_review_count") or 0),
        enforce_admins=bool((raw.get("enforce_admins") or {}).get("enabled")),
    )


def _merged(one: Protection, other: Protection | None) -> Protection:
    if other is None:
        return one
    return Protection(
        required_checks=tuple(dict.fromkeys(one.required_checks + other.required_checks)),
        strict=one.strict or other.strict,
        required_approvals=max(one.required_approvals, other.required_approvals),
        enforce_admins=one.enforce_admins,
    )
