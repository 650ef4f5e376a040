"""All that a breakage's issue says, gathered: whom it is given to, what of its tests is known, what it hides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from bot.context import Breakage
from bot.core.config import Config
from bot.core.owners import People, Responsible, mentionable, responsible
from bot.core.render.breakage import BreakageFacts
from bot.core.triage import Finding, State, Step, Suspect, Test, capacity_of
from bot.core.types import Level
from handlers.bisecting import search_text
from handlers.codeowners import named_by
from handlers.desk import Desk
from handlers.reminding import red_since


async def facts_of(
    desk: Desk, row: Breakage, finding: Finding, step: Step, numbers: Mapping[str, int]
) -> BreakageFacts:
    """What the issue says; `numbers` are the issues of the breakages by signature."""
    data, since, rules = row.data, red_since(row), desk.fork.config.triage
    asked = await _owners(desk, data)
    red, seen = {*finding.red, *finding.gone}, set(finding.unseen)
    masked = {(suite, test) for suite, test in data["masks"]}
    others = [other for other in desk.rows.values() if State(other.state).alive and other.key != row.key]
    hidden = sorted(
        other.number
        for other in others
        if other.number and any((suite, test) in masked for suite, test in other.data.get("red", []))
    )
    suspects = tuple(
        Suspect(**{**one, "evidence": tuple(one["evidence"]), "carries": tuple(one["carries"])})
        for one in data.get("suspects", [])
    )
    elsewhere = [(_named(t), f"#{numbers[s]}" if s in numbers else "one not told yet") for t, s in finding.elsewhere]
    return BreakageFacts(
        key=row.key,
        title=data["title"],
        level=data["level"],
        suite=data["suite"],
        area=data["area"],
        areas=data["areas"],
        tests=data["tests"],
        suites=data["suites"],
        message=data["message"],
        first_bad=data["first_bad"],
        last_good=data["last_good"],
        after=data["after"],
        born=finding.born,
        first_seen=row.first_seen or desk.fork.now,
        owners=asked.owners,
        mentions=asked.owners,
        warnings=asked.warnings,
        repeat=data["repeat"],
        state=row.state,
        kind=finding.kind.value,
        why=step.why,
        last_red=finding.last_red,
        passing=[_named(test) for test in finding.tests if test not in red] if finding.red else [],
        unseen=[_named(test) for test in finding.tests if test in seen],
        gone=[_named(test) for test in finding.gone],
        elsewhere=elsewhere,
        masks=[test for _, test in data["masks"]],
        masks_issues=hidden,
        masked_by=data["behind"],
        hidden_by=sorted(other.number for other in others if other.number and _hides(other, finding.unseen)),
        suspects=suspects,
        candidates=data.get("candidates", 0),
        ruled_out=data.get("ruled_out", 0),
        reopened=data.get("reopened", 0),
        search=search_text(data),
        rates=(finding.reds, finding.greens) if row.state == State.FLAKY else None,
        deadline=since + rules.remind_after if since is not None else None,
        held=_held(desk.fork.config, row),
        unsearched=_unsearched(data, red=since is not None),
        deleted=data.get("deleted_issues", []),
        kept=data,
    )


def fingerprint(facts: BreakageFacts) -> str:
    """What the issue says, without what moves with each commit: `told` again only where this changes, or each day."""
    still = replace(facts, last_red=None, rates=None, why="", repeat="", message="", kept={})
    return hashlib.sha256(json.dumps(asdict(still), sort_keys=True, default=str).encode()).hexdigest()[:16]


async def _owners(desk: Desk, data: Mapping[str, Any]) -> Responsible:
    """Whom the breakage is given to: its areas' owners, as far as they are of this fork; else the fork's own people
    that CODEOWNERS names for the tests' files; else the default owner.
    """
    config, who = desk.fork.config, await desk.people()
    owners = [owner for area in data["areas"] if area in config.areas for owner in config.areas[area].owners]
    if owners:
        return mentionable(owners, people=who, default=config.default_owner)
    paths = list(dict.fromkeys(test.split("::", 1)[0] for test in data["tests"][:200]))
    codeowners = await desk.codeowners()
    own = await desk.own(named_by(codeowners, paths))
    known = People.of({**who.permissions, **own.permissions}, {**who.teams, **own.teams})
    return responsible(paths=paths, config=config, people=known, codeowners=codeowners)


def _hides(other: Breakage, tests: Sequence[Test]) -> bool:
    masks = {(suite, test) for suite, test in other.data.get("masks", [])}
    return any((test.suite, test.id) in masks for test in tests)


def _unsearched(data: Mapping[str, Any], *, red: bool) -> str:
    """Why no search begins, or that none began in time, where this was ever said."""
    said = str(data.get("unsearched", "")) if "hunt" not in data else ""
    return said if red or not said else "No search for it began in time."


def _held(config: Config, row: Breakage) -> list[str]:
    """The suites of L2 that the schedule does not start, since L1 has to pass on that commit first."""
    waits = State(row.state).red and row.data["level"] == Level.L1 and config.validation.l2_every is not None
    return [suite.suite for suite in config.validation.l2 if not suite.manual] if waits else []


def _named(test: Test) -> str:
    """A test, with its suite where it is one that passes or fails on the other capacity apart."""
    return f"{test.id} ({test.suite})" if capacity_of(test.suite) else test.id
