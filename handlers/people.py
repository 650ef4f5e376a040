"""Who may what, as GitHub says now: permissions of the people concerned and members of the teams that own areas."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from bot.clients.github import NotFound
from bot.core.owners import People
from handlers.fork import Fork


async def people(fork: Fork, logins: Iterable[str]) -> People:
    """The permissions of `logins` and of all single owners, and the members of every team that owns an area."""
    owners = {owner for area in fork.config.areas.values() for owner in area.owners}
    if fork.config.default_owner:
        owners.add(fork.config.default_owner)
    owners = {owner.removeprefix("@") for owner in owners}
    persons = sorted({login for login in logins if login} | {owner for owner in owners if "/" not in owner})
    teams = sorted(owner for owner in owners if "/" in owner)
    held = await asyncio.gather(*(fork.github.permission(login) for login in persons))
    members = await asyncio.gather(*(_members(fork, team) for team in teams))
    return People.of(dict(zip(persons, held, strict=True)), dict(zip(teams, members, strict=True)))


async def _members(fork: Fork, team: str) -> tuple[str, ...]:
    org, slug = team.split("/", 1)
    try:
        return tuple(await fork.github.team_members(org, slug))
    except NotFound:
        return ()  # a team that is gone, or that the App may not see, has nobody who could sign
