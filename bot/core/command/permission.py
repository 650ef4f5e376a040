"""Who may give which command where: one answer with its reason before anything is done (case C67)."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.command.table import BY_NAME, Role, Where
from bot.core.command.values import Command, Signoff, Unsign, Validate
from bot.core.config import Config
from bot.core.owners import People, owners_of, plain


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a comment stands: `trusted` is True where someone with write access gave /ok-to-test for this head."""

    where: Where
    open: bool = True
    author: str = ""
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not; `silent` for those who are ignored (bots), whom an answer would only set off again."""

    text: str
    silent: bool = False


def refusal(
    *, command: Command, by: str, is_bot: bool, people: People, standing: Standing, config: Config | None
) -> Refusal | None:
    """None where the command may be carried out; signing is also judged by `signoff.standing`, on the facts then."""
    spec = BY_NAME[command.name]
    if is_bot:
        return Refusal("bots give no commands", silent=True)
    if standing.where not in spec.where:
        places = " or ".join(_PLACES[where] for where in Where if where in spec.where)
        return Refusal(f"/{command.name} works on {places}, not here")
    if not standing.open and spec.role is not Role.ANYONE and command.name != "rollback":
        return Refusal(f"/{command.name} does nothing here: this is closed")
    if isinstance(command.args, Validate) and command.args.force and not people.can_maintain(by):
        return Refusal("force=yes sets the order of levels aside: a maintainer may, you may not")
    if spec.role is Role.WRITE:
        return _write(command, by, people, standing)
    if spec.role is Role.MAINTAIN and not people.can_maintain(by):
        return Refusal(f"/{command.name} takes a maintainer of this fork")
    if spec.role is Role.OWNER:
        return _owner(command, by, people, config)
    return None


def _write(command: Command, by: str, people: People, standing: Standing) -> Refusal | None:
    if people.can_write(by):
        return None
    if command.name in ("validate", "retry") and standing.trusted and plain(by) == plain(standing.author):
        return None
    hint = ", or /ok-to-test on this head commit by someone who has it" if command.name in ("validate", "retry") else ""
    return Refusal(f"/{command.name} takes write access to this fork{hint}")


def _owner(command: Command, by: str, people: People, config: Config | None) -> Refusal | None:
    if not people.can_write(by) and not people.at_least(by, "read"):
        return Refusal(f"/{command.name} takes an owner of the area who has access to this fork")
    area = command.args.area if isinstance(command.args, Signoff | Unsign) else None
    if area is None:
        return None
    if config is None:
        return Refusal("the file .github/graft.yml is broken: nobody can be told to own an area until it is mended")
    if area not in config.areas:
        return Refusal(f"there is no area {area!r}; there are: {', '.join(config.areas) or 'none'}")
    owners = owners_of(area, config)
    if not people.is_one_of(by, owners):
        return Refusal(f"{area} is owned by {', '.join(owners) or 'nobody'}: one of them may /{command.name}")
    return None


_PLACES = {Where.PULL: "a pull request", Where.ISSUE: "an issue", Where.DASHBOARD: "the dashboard issue"}
