"""What a change has to show: levels and areas by path rules, risk rules, touched areas, and the toolchain."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.config import Config, RiskRule
from bot.core.gate.facts import PullFact, PullKind
from bot.core.owners import areas_of
from bot.core.paths import matches, matches_name
from bot.core.types import Level

TOUCHED = "area"  # in gate.require_signoff_from: every area that the change touches
_ORDER = tuple(Level)


@dataclass(frozen=True, slots=True)
class Required:
    """The levels in order, each with why; the areas whose owners sign, each with why; the areas touched."""

    levels: tuple[tuple[Level, str], ...]
    areas: tuple[tuple[str, str], ...]
    touched: tuple[str, ...]
    reviewers_of: tuple[str, ...] | None = None


def required(*, config: Config, pull: PullFact) -> Required:
    """What this change has to show. `pull.files` must be known."""
    files = pull.files or ()
    touched = touched_areas(pull, config)
    levels: dict[Level, str] = dict.fromkeys(config.gate.levels, "the file's gate.levels")
    areas: dict[str, str] = {}
    for rule in config.gate.rules:
        if any(matches(path, rule.paths) for path in files):
            why = f"a rule for {', '.join(rule.paths)}"
            levels |= {level: why for level in rule.levels if level not in levels}
            areas |= {area: why for area in rule.areas if area not in areas}
    for risk in config.ingest.risk:
        if hits(risk, pull):
            why = f"risk rule {risk.name}"
            wanted = tuple(Level) if risk.toolchain else risk.levels
            levels |= {level: why for level in wanted if level not in levels}
            areas |= {area: why for area in risk.areas if area not in areas}
    if pull.toolchain:
        levels |= {level: "a toolchain change" for level in Level if level not in levels}
    for name in config.gate.require_signoff_from:
        if name == TOUCHED and name not in config.areas:
            areas |= {area: "the change touches it" for area in touched if area not in areas}
        elif name in touched and name not in areas:
            areas[name] = "the change touches it"
    if Level.L3 in levels and not areas:
        areas = dict.fromkeys(_l3_areas(config, touched), f"L3 is required by {levels[Level.L3]}")
    _below(levels, config)
    ordered = tuple((level, levels[level]) for level in _ORDER if level in levels)
    return Required(ordered, tuple(areas.items()), touched, touched if pull.kind is PullKind.CONFLICT else None)


def hits(risk: RiskRule, pull: PullFact) -> bool:
    """True where the plan named this rule, a label does, or the changed paths or symbols fall under it."""
    return (
        risk.name in (pull.risks or ())
        or f"risk:{risk.name}" in pull.labels
        or any(matches(path, risk.paths) for path in pull.files or ())
        or (bool(risk.symbols) if pull.symbols is None else any(matches_name(s, risk.symbols) for s in pull.symbols))
    )


def touched_areas(pull: PullFact, config: Config) -> tuple[str, ...]:
    """The areas that the change touches; where its symbols are not known, each that names symbols."""
    found = areas_of(pull.files or (), config, pull.symbols or ())
    if pull.symbols is not None:
        return found
    return tuple(name for name, area in config.areas.items() if name in found or area.symbols)


def _below(levels: dict[Level, str], config: Config) -> None:
    """A level needs those below it, as far as the file names suites for them."""
    for higher in (Level.L3, Level.L2):
        if higher in levels:
            for lower in _ORDER[: _ORDER.index(higher)]:
                if lower not in levels and config.validation.of(lower):
                    levels[lower] = f"{higher.value} comes after it"


def _l3_areas(config: Config, touched: tuple[str, ...]) -> tuple[str, ...]:
    """Whose owners sign where no rule says whose: the touched areas with L3 suites, else all with such."""
    named = [suite.area for suite in config.validation.l3 if suite.area]
    named += [
        area for area, value in config.areas.items() if {s.suite for s in config.validation.l3} & set(value.suites)
    ]
    with_suites = tuple(dict.fromkeys(named))
    return tuple(area for area in touched if area in with_suites) or with_suites or touched
