"""Know which repositories the App may work on, from GitHub's own lists; and keep the store's tables bounded."""

from __future__ import annotations

from datetime import timedelta

from bot.clients.github import Forbidden, NotFound
from bot.clients.store import Job
from bot.context import Context


async def installations(context: Context, job: Job) -> None:
    """Job `installations`: note the repositories of every installation; forget those that are no longer there."""
    now = context.now()
    accessible: dict[int, set[str]] = {}
    for installation in await context.github.installations():
        names: set[str] = set()
        if installation.suspended_at is None:
            try:
                found = await context.github.installation_repositories(installation.id)
            except (Forbidden, NotFound) as error:  # removed or suspended since the list was read
                context.log.warning("an installation can't be read", installation=installation.id, error=str(error))
            else:
                names = {one.full_name for one in found if not one.archived}
        accessible[installation.id] = names
    known = await context.store.repositories()
    async with context.store.transaction() as tx:
        for number, names in accessible.items():
            await tx.save_repositories(number, sorted(names), now)
        for scope in known:
            if scope.repository not in accessible.get(scope.installation, set()):
                await tx.drop_repositories(scope.installation, [scope.repository], now)


async def prune(context: Context, job: Job) -> None:
    """Job `prune`: drop payloads and rows that are older than the settings allow."""
    now = context.now()
    dropped = await context.store.prune(
        payloads_before=now - timedelta(days=context.settings.keep_payload_days),
        rows_before=now - timedelta(days=context.settings.keep_delivery_days),
    )
    context.log.info("pruned", payloads=dropped[0], deliveries=dropped[1], jobs=dropped[2])
