"""CODEOWNERS of the fork, as far as it names the fork's own people: a file that came from upstream names upstream's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from bot.context import Forbidden, NotFound
from bot.core.owners import Codeowners, People, parse_codeowners, plain
from handlers.fork import FORK, Fork

PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")  # GitHub takes the first that is there
MOST_OWNERS = 50


async def read_codeowners(fork: Fork) -> Codeowners:
    """The file of the fork's main branch; no rules where there is none."""
    for place in PLACES:
        raw = await asyncio.to_thread(fork.git.read_file, FORK, place)
        if raw is not None:
            return parse_codeowners(raw.decode("utf-8", "replace"))
    return Codeowners()


def named_by(codeowners: Codeowners, paths: Iterable[str]) -> tuple[str, ...]:
    """Whom the file names for these paths."""
    return tuple(dict.fromkeys(owner for path in paths for owner in codeowners.owners(path)))[:MOST_OWNERS]


async def own_people(fork: Fork, named: Sequence[str]) -> People:
    """The named, known as far as they are the fork's: its collaborators, and the teams of its owner in which a
    collaborator is. That someone may read says nothing: anyone may read a public fork.
    """
    if not named:
        return People()
    try:
        there = {plain(user.login) for user in await fork.github.collaborators()}
    except (Forbidden, NotFound):
        there = set()
    logins = {owner: "write" if plain(owner) in there else "none" for owner in named if "/" not in owner}
    teams = {owner: await _members(fork, owner) & there for owner in named if "/" in owner}
    return People.of(logins, teams)


async def _members(fork: Fork, team: str) -> set[str]:
    org, slug = team.split("/", 1)
    if plain(org) != plain(fork.name.split("/", 1)[0]):
        return set()
    try:
        return {plain(member) for member in await fork.github.team_members(org, slug)}
    except (Forbidden, NotFound):
        return set()
