"""Who may what, as GitHub says now: permissions of the people concerned and members of the teams that own areas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from bot.context import Forbidden, NotFound
from bot.core.owners import People, plain
from bot.core.waivers import JudgedWaiver
from handlers.fork import Fork


async def people(fork: Fork, logins: Iterable[str], *, waivers: Iterable[JudgedWaiver] = ()) -> People:
    """The permissions of `logins` and of all single owners, and the members of every team that owns an area or one of
    the `waivers`.
    """
    owners = {owner for area in fork.config.areas.values() for owner in area.owners}
    owners |= {judged.waiver.owner for judged in waivers}
    if fork.config.default_owner:
        owners.add(fork.config.default_owner)
    named = {plain(name) for name in (*owners, *logins) if name}
    persons = sorted(name for name in named if "/" not in name)
    teams = sorted(name for name in named if "/" in name)
    held = await asyncio.gather(*(fork.github.permission(login) for login in persons))
    members = await asyncio.gather(*(_members(fork, team) for team in teams))
    known = {team: found for team, found in zip(teams, members, strict=True) if found is not None}
    return People.of(dict(zip(persons, held, strict=True)), known)


async def _members(fork: Fork, team: str) -> tuple[str, ...] | None:
    """The members of a team; none of one that is gone, None where the App may not ask."""
    org, slug = team.split("/", 1)
    try:
        return tuple(await fork.github.team_members(org, slug))
    except NotFound:
        return ()
    except Forbidden:
        return None
