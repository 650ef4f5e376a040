"""Which gates must be looked at again after something changed that may concern them all, told without asking for each.

What every decision looks at beside its own pull request is kept as it was at the last look: the fork's two files, the
halt, trunk's breakages by area, and its last good measurements. Where none of that changed no gate can say otherwise;
where only trunk did, those can that touch a broken or mended area, or hold numbers against trunk's. The sweep looks at
all of them in any case.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from bot.context import Pull, Run
from bot.core.config import Config
from bot.core.gate import GateFacts
from bot.core.gate.required import touched_areas
from bot.core.measured import needs_baseline
from bot.core.types import Level, Outcome
from handlers.facts import open_breakages
from handlers.failing import TRUNK_RUNS
from handlers.fork import CONFIG_PATH, Fork
from handlers.waivers import WAIVERS_PATH

NOTE = "gates"
Seen = dict[str, Any]


async def seen_now(fork: Fork) -> Seen:
    """What every gate looks at, small enough to be kept."""
    files = [await fork.github.file(path, None) for path in (CONFIG_PATH, WAIVERS_PATH)]
    broken = [b for b in await open_breakages(fork) if b.area in fork.config.gate.trunk_red_blocks]
    runs = await fork.ctx.store.trunk_runs(fork.name)
    return {
        "files": [hashlib.sha256(raw).hexdigest() if raw is not None else None for raw in files],
        "halted": await fork.halted(),
        "broken": sorted([b.area, b.key, b.issue] for b in broken),
        "measured": {name: ids for name in _compared(fork.config) if (ids := _good(runs, name))},
    }


def concerned(*, before: Seen | None, now: Seen, pulls: Sequence[Pull], known: dict[int, Seen]) -> list[int]:
    """The numbers of those of the `pulls` whose gate may say something else; `known` is what `facts_seen` kept."""
    if before == now:
        return []
    if before is None or any(before.get(key) != now[key] for key in ("files", "halted")):
        return [pull.number for pull in pulls]
    areas = {
        row[0] for row in [*before["broken"], *now["broken"]] if row not in before["broken"] or row not in now["broken"]
    }
    names = {*before["measured"], *now["measured"]}
    suites = {name for name in names if before["measured"].get(name) != now["measured"].get(name)}
    found = []
    for pull in pulls:
        mine = known.get(pull.number) or {}
        unknown = mine.get("head") != pull.head.sha or mine.get("touched") is None
        if unknown or areas & set(mine["touched"]) or suites & set(mine["compared"]):
            found.append(pull.number)
    return found


def facts_seen(config: Config, facts: GateFacts) -> Seen:
    """What of a pull request its gate's decision took from trunk: areas (None: not known), and suites with numbers."""
    known = facts.pull.files is not None and facts.pull.symbols is not None
    ran = {f"{result.level.value}/{result.suite}" for result in facts.results}
    if facts.sign_offs:
        ran |= {f"l3/{suite.suite}" for suite in config.validation.l3}
    return {
        "head": facts.pull.head,
        "touched": list(touched_areas(facts.pull, config)) if known else None,
        "compared": sorted(ran & set(_compared(config))),
    }


def _compared(config: Config) -> list[str]:
    """The suites whose numbers are held against trunk's."""
    return [
        f"{level.value}/{suite.suite}"
        for level in Level
        for suite in config.validation.of(level)
        if not suite.manual and (needs_baseline(suite) or suite.metrics)
    ]


def _good(runs: Sequence[Run], name: str) -> list[str]:
    level, _, suite = name.partition("/")
    good = [run.id for run in runs if (run.level, run.suite, run.outcome) == (level, suite, Outcome.PASSED.value)]
    return good[:TRUNK_RUNS]
