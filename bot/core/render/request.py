"""The request to the owners of areas for their L3 numbers: who, which workload, how and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.core.render.text import code, line, marker, short, table

REQUEST = "l3-request"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One area whose sign-off is missing: who may be asked, what is to be measured, the very command."""

    area: str
    mentions: tuple[str, ...]
    workload: tuple[str, ...]
    command: str
    warnings: tuple[str, ...] = ()


def request_body(*, head: str, wanted: Sequence[Wanted], deadline: datetime) -> str:
    """The request, kept up to date in one comment; with nobody left to ask it says that all have signed."""
    hidden = marker(REQUEST)
    if not wanted:
        return f"{hidden}\n### L3\n\nEvery area that has to has signed {short(head)} off."
    rows = [
        [
            code(one.area),
            " ".join(f"@{name}" for name in one.mentions) or "nobody can be asked",
            ", ".join(map(code, one.workload)) or "no suite is named: by review",
            code(one.command),
        ]
        for one in wanted
    ]
    warnings = "".join(f"\n\n⚠️ {line(text)}" for one in wanted for text in one.warnings)
    return (
        f"{hidden}\n### L3: sign-offs wanted\n\nThe levels below passed on {short(head)}. Wanted by "
        f"{deadline:%Y-%m-%d %H:%M} UTC:\n\n"
        + table(["area", "owners", "workload", "how"], rows)
        + f"\n\nA push voids what was signed before it.{warnings}"
    )


def reminder_body(*, head: str, wanted: Sequence[Wanted], deadline: datetime, nth: int) -> str:
    """One reminder after a deadline has passed."""
    hidden = marker(f"l3-reminder {head[:12]} {nth}")
    names = " ".join(dict.fromkeys(f"@{name}" for one in wanted for name in one.mentions))
    areas = ", ".join(code(one.area) for one in wanted)
    return f"{hidden}\n{names} L3 of {areas} is still not signed off for {short(head)}; next look {deadline:%Y-%m-%d}."
