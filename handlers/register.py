"""Know which repositories Graft may work in: asked of GitHub, whatever the webhook said."""

from __future__ import annotations

from bot.context import Context, Forbidden, Job, NotFound, Unauthorized


async def register(ctx: Context, job: Job) -> None:
    """Job `register`: every installation with its repositories; those that are gone are worked on no more."""
    known = await ctx.store.repositories()
    there: set[tuple[int, str]] = set()
    for installation in await ctx.github.installations():
        if installation.suspended_at is not None:
            continue
        try:
            repositories = await ctx.github.installation_repositories(installation.id)
        except (Forbidden, NotFound, Unauthorized) as error:
            ctx.log.warning("an installation can't be read", installation=installation.id, error=str(error))
            there |= {(s.installation, s.repository) for s in known if s.installation == installation.id}
            continue
        names = [r.full_name for r in repositories if not r.archived]
        fresh = [name for name in names if name not in {s.repository for s in known}]
        await ctx.store.save_repositories(installation.id, names, ctx.now())
        there |= {(installation.id, name) for name in names}
        for name in fresh:  # a first look now, not when the schedule comes round
            await ctx.store.enqueue(
                "sweep", "repository", {}, installation=installation.id, repository=name, now=ctx.now()
            )
    for scope in known:
        if (scope.installation, scope.repository) not in there:
            await ctx.store.drop_repositories(scope.installation, [scope.repository], ctx.now())
