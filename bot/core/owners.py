"""Who owns what: areas of paths and symbols, CODEOWNERS as GitHub reads it, and nobody outside the fork asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from bot.core.config import Config
from bot.core.paths import PatternError, compiled, matches, matches_name

MAX_CODEOWNERS = 3 * 1024 * 1024  # bytes; GitHub ignores a larger file
_ORDER = ("none", "read", "triage", "write", "maintain", "admin")
_TOKEN = re.compile(r"(?:\\.|[^\s\\])+")
_OWNER = re.compile(r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})(?:/[A-Za-z0-9._-]{1,100})?")
_EMAIL = re.compile(r"[^\s@<>]+@[^\s@<>]+\.[^\s@<>]+")


@dataclass(frozen=True, slots=True)
class People:
    """What GitHub says of people now: permission by login, members by `org/team`; a missing name has no right.

    Build it by `People.of`, which lowers all names: GitHub does not tell upper from lower case in logins.
    """

    permissions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    teams: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def of(cls, permissions: Mapping[str, str], teams: Mapping[str, Iterable[str]] | None = None) -> People:
        """People from what GitHub answered, in any case of letters."""
        lowered = {plain(login): permission for login, permission in permissions.items()}
        groups = {plain(team): frozenset(map(plain, members)) for team, members in (teams or {}).items()}
        return cls(MappingProxyType(lowered), MappingProxyType(groups))

    def at_least(self, login: str, permission: str) -> bool:
        """True where `login` has this permission or a higher one; an unknown permission counts as none."""
        held = self.permissions.get(plain(login), "none")
        return held in _ORDER and _ORDER.index(held) >= _ORDER.index(permission)

    def can_write(self, login: str) -> bool:
        """True where `login` may push."""
        return self.at_least(login, "write")

    def can_maintain(self, login: str) -> bool:
        """True where `login` maintains or administers the fork."""
        return self.at_least(login, "maintain")

    def is_one_of(self, login: str, owners: Iterable[str]) -> bool:
        """True where `login` is named among the owners, or in one of their teams."""
        name = plain(login)
        return any(name == plain(owner) or name in self.teams.get(plain(owner), ()) for owner in owners)

    def asked_about(self, owner: str) -> bool:
        """True where GitHub was asked about this login or team, whatever it answered."""
        return plain(owner) in (self.teams if "/" in owner else self.permissions)

    def knows(self, owner: str) -> bool:
        """True where a login may read the fork, or a team is there and not empty."""
        return bool(self.teams.get(plain(owner))) if "/" in owner else self.at_least(owner, "read")


def plain(login: str) -> str:
    """A login or `org/team` without its `@`, in lower case."""
    return login.removeprefix("@").lower()


def areas_of(paths: Iterable[str], config: Config, symbols: Iterable[str] = ()) -> tuple[str, ...]:
    """The areas that these paths or symbols belong to, in the file's order."""
    changed, named = tuple(paths), tuple(symbols)
    return tuple(
        name
        for name, area in config.areas.items()
        if any(matches(path, area.paths) for path in changed) or any(matches_name(sym, area.symbols) for sym in named)
    )


def owners_of(area: str, config: Config) -> tuple[str, ...]:
    """The owners of an area; the default owner where it has none or is unknown."""
    known = config.areas.get(area)
    if known is not None and known.owners:
        return known.owners
    return (config.default_owner,) if config.default_owner else ()


@dataclass(frozen=True, slots=True)
class OwnersRule:
    """One line of CODEOWNERS: no owners means that nobody owns what it hits."""

    line: int
    pattern: str
    owners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Codeowners:
    """A CODEOWNERS file: its rules in order, and the lines that GitHub ignores, with the reason."""

    rules: tuple[OwnersRule, ...] = ()
    problems: tuple[str, ...] = ()

    def owners(self, path: str) -> tuple[str, ...]:
        """The owners by the last rule that hits `path`."""
        for rule in reversed(self.rules):
            if compiled(rule.pattern, below=False).fullmatch(path):
                return rule.owners
        return ()


def parse_codeowners(text: str) -> Codeowners:
    """A CODEOWNERS file by GitHub's rules: what is not understood is skipped line by line and told."""
    if len(text.encode()) > MAX_CODEOWNERS:
        return Codeowners(problems=("the file is larger than 3 MB: GitHub ignores it",))
    rules: list[OwnersRule] = []
    problems: list[str] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        tokens = _TOKEN.findall(line.strip())
        comment = next((at for at, token in enumerate(tokens) if token.startswith("#")), len(tokens))
        if not tokens[:comment]:
            continue
        rule = _rule(number, tokens[0], tokens[1:comment])
        if isinstance(rule, str):
            problems.append(f"line {number}: {rule}")
        else:
            rules.append(rule)
    return Codeowners(tuple(rules), tuple(problems))


def _rule(number: int, pattern: str, owners: Sequence[str]) -> OwnersRule | str:
    if pattern.startswith("!"):
        return f"{pattern}: ! is not supported here; give the exception a line of its own below"
    if re.search(r"(?<!\\)[\[\]]", pattern):
        return f"{pattern}: [ ] is not supported here; write one line for each"
    if pattern.startswith("\\#"):
        return f"{pattern}: a pattern that begins with # can't be escaped here"
    wrong = [owner for owner in owners if not _OWNER.fullmatch(owner) and not _EMAIL.fullmatch(owner)]
    if wrong:
        return f"{wrong[0]} is no owner: write @login, @organisation/team or an e-mail address"
    try:
        compiled(pattern, below=False)
    except PatternError as error:
        return str(error)
    return OwnersRule(number, pattern, tuple(owner.removeprefix("@") for owner in owners))


@dataclass(frozen=True, slots=True)
class Responsible:
    """Who may be asked: owners that the fork knows, and a warning for each who could not be resolved."""

    owners: tuple[str, ...]
    warnings: tuple[str, ...] = ()


def mentionable(owners: Iterable[str], *, people: People, default: str | None) -> Responsible:
    """The owners that the fork knows; where none is left, the default owner, with a warning.

    A file inherited from upstream names upstream's people: they have no access here, so they are not mentioned.
    """
    asked = tuple(dict.fromkeys(owners))
    known = tuple(owner for owner in asked if people.knows(owner))
    warnings = [f"{owner} is not known to this fork, so is not asked" for owner in asked if owner not in known]
    if known:
        return Responsible(known, tuple(warnings))
    if default is not None and people.knows(default):
        if asked:
            warnings.append(f"none of them can be asked: {default} is asked instead")
        return Responsible((default,), tuple(warnings))
    missing = "default_owner is not set" if default is None else f"default_owner {default} is not known to this fork"
    return Responsible((), (*warnings, f"nobody can be asked: {missing} in .github/graft.yml"))


def responsible(
    *, paths: Sequence[str], config: Config, people: People, codeowners: Codeowners | None = None,
    symbols: Sequence[str] = (),
) -> Responsible:  # fmt: skip
    """Who answers for a change: its areas' owners, else CODEOWNERS', else the default owner."""
    owners = [owner for area in areas_of(paths, config, symbols) for owner in config.areas[area].owners]
    if not owners and codeowners is not None:
        owners = [owner for path in paths for owner in codeowners.owners(path) if not _EMAIL.fullmatch(owner)]
    return mentionable(owners, people=people, default=config.default_owner)
