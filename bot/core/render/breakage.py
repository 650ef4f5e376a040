"""The issue of one trunk breakage: what fails, since when, whose it is, how to repeat it; sections renewed in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.core.render.text import BODY_LIMIT, TITLE_LIMIT, block, code, details, fence, fit, line, marker, plural, short

LABEL = "trunk-breakage"


@dataclass(frozen=True, slots=True)
class BreakageFacts:
    """All that the issue says. `mentions` are logins and teams of the fork's own people, without the @."""

    key: str
    title: str
    level: str
    suite: str
    area: str | None
    tests: Sequence[str]
    message: str
    first_bad: str
    last_good: str | None
    first_seen: datetime
    owners: Sequence[str]
    mentions: Sequence[str]
    repeat: str
    warnings: Sequence[str] = ()


def breakage_marker(key: str) -> str:
    """The hidden line by which the issue is found again."""
    return marker(f"breakage {key}")


def breakage_title(facts: BreakageFacts) -> str:
    """A title under GitHub's limit, free of mentions."""
    title = f"Trunk is broken: {line(facts.title, 150).replace(chr(92), '')} ({facts.suite})"
    return title if len(title) < TITLE_LIMIT else title[: TITLE_LIMIT - 2] + "…"


def breakage_body(facts: BreakageFacts) -> str:
    """The issue's text."""
    who = " ".join(f"@{login}" for login in facts.mentions)
    area = f" in area {code(facts.area)}" if facts.area else ""
    what = f"{plural(len(facts.tests), 'test')} of {code(facts.suite)} ({facts.level}) fail on trunk{area}."
    parts = [
        breakage_marker(facts.key),
        f"{what} {who}".rstrip(),
        f"- first seen failing at {short(facts.first_bad)}, {facts.first_seen:%Y-%m-%d %H:%M} UTC\n"
        f"- last seen passing at {short(facts.last_good)}",
        "### What fails\n\n" + fence(facts.message[:4_000] or "no message"),
    ]
    names = fence("\n".join(facts.tests[:300]))
    parts.append(names if len(facts.tests) <= 5 else details(f"{len(facts.tests)} tests", names))
    if facts.repeat:
        parts.append("### Repeat it\n\n" + fence(facts.repeat, "sh"))
    parts += [f"> {line(warning, 300)}" for warning in facts.warnings]
    data = {"key": facts.key, "tests": list(facts.tests[:100]), "first_bad": facts.first_bad, "suite": facts.suite}
    return fit(parts, block("breakage", data), BODY_LIMIT - 100)
