"""Which suites a `/validate` means: names are told from politeness, and a misspelt name is never silently dropped."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches

from bot.core.config import Config, Suite
from bot.core.types import Level

_NAME_LIKE = re.compile(r"(?=.*[-_.0-9])[A-Za-z0-9][A-Za-z0-9_.-]*[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class SuiteChoice:
    """The suites to run; `ignored` words were taken for prose; with a `problem` nothing runs."""

    suites: tuple[Suite, ...] = ()
    ignored: tuple[str, ...] = ()
    problem: str | None = None


def choose_suites(*, config: Config, level: Level, words: tuple[str, ...]) -> SuiteChoice:
    """The suites that the words after `/validate <level>` name, all of the level where they name none."""
    there = {suite.suite: suite for suite in config.validation.of(level)}
    if not there:
        return SuiteChoice(problem=f"the file .github/graft.yml names no suite of {level.value}")
    lower = {name.lower(): name for name in there}
    chosen: dict[str, Suite] = {}
    ignored: list[str] = []
    for word in words:
        name = lower.get(word.lower())
        if name is not None:
            chosen[name] = there[name]
            continue
        near = get_close_matches(word.lower(), lower, 1, 0.7)
        if near or _NAME_LIKE.fullmatch(word):
            meant = f"did you mean {lower[near[0]]}?" if near else f"there are: {', '.join(there)}"
            return SuiteChoice(problem=f"no suite of {level.value} is called {word!r}; {meant}")
        ignored.append(word)
    return SuiteChoice(tuple(chosen.values()) if chosen else tuple(there.values()), tuple(ignored))
