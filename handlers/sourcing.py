"""Have the source of a commit where runners fetch it: in the repository's mirror."""

from __future__ import annotations

import asyncio

from bot.context import Context, FetchError, Scope


async def ensure_source(ctx: Context, scope: Scope, sha: str, number: int | None) -> None:
    """See to it that the mirror holds a commit (of pull request `number`, where it is one's) under a ref of its own.

    Raises FetchError.
    """
    git = ctx.mirror(scope.repository)
    if await asyncio.to_thread(git.resolve, f"{sha}^{{commit}}") is not None:
        return
    repository = ctx.github.repository(scope.installation, scope.repository)
    token = await repository.token()
    try:
        await asyncio.to_thread(git.fetch, repository.git_url, [f"+{sha}:refs/graft/source/{sha}"], token=token)
    except FetchError:
        if not number:
            raise
        pull = f"+refs/pull/{number}/head:refs/graft/pull/{number}"
        await asyncio.to_thread(git.fetch, repository.git_url, [pull], token=token)
    if await asyncio.to_thread(git.resolve, f"{sha}^{{commit}}") is None:
        raise FetchError("missing", f"{sha} is not in {scope.repository} any more")
