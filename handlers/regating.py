"""Which gates must be looked at again after something changed that may concern them all, told without asking for each.

With each decision is kept what it saw beside its own pull request: the fork's two files, the halt, trunk's breakages by
area, and trunk's last good measurements that its numbers were held against. Where all of that is the same now, the gate
can't say otherwise. The sweep looks at all of them in any case.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bot.context import Pull
from bot.core.config import Config
from bot.core.gate import GateFacts, OpenBreakage
from bot.core.gate.required import touched_areas
from bot.core.measured import needs_baseline
from bot.core.turns import Turn
from bot.core.types import Level, Outcome
from bot.core.waivers import JudgedWaiver
from handlers.facts import open_breakages
from handlers.failing import TRUNK_RUNS
from handlers.fork import Fork
from handlers.waivers import file_waivers

Seen = Mapping[str, Any]
Measured = Mapping[str, Sequence[str]]


def note_of(number: int) -> str:
    """Under which key it is kept what the last decision of a pull request saw."""
    return f"gate-facts:{number}"


async def seen_now(fork: Fork) -> Seen:
    """What every gate looks at, as it is now."""
    return {
        "files": _files(fork.config, await file_waivers(fork)),
        "halted": await fork.halted() or "",
        "broken": _broken(fork.config, await open_breakages(fork)),
        "measured": await measured(fork),
    }


def seen_by(config: Config, facts: GateFacts, trunk: Measured) -> Seen:
    """What a decision saw; `trunk` as `measured` gave it before the facts were read. `touched` None: not known."""
    known = facts.pull.files is not None and facts.pull.symbols is not None
    ran = {f"{result.level.value}/{result.suite}" for result in facts.results}
    if facts.sign_offs:
        ran |= {f"l3/{suite.suite}" for suite in config.validation.l3}
    return {
        "head": facts.pull.head,
        "files": _files(config, facts.file_waivers),
        "halted": facts.halted_by,
        "broken": _broken(config, facts.breakages or ()),
        "touched": list(touched_areas(facts.pull, config)) if known else None,
        "measured": {name: list(trunk.get(name, ())) for name in sorted(ran & set(_compared(config)))},
    }


def concerned(*, now: Seen, pulls: Sequence[Pull], known: Mapping[int, Seen | None]) -> list[int]:
    """The numbers of those of the `pulls` whose gate may say something else; `known` is what their last one saw."""
    return [pull.number for pull in pulls if _may_differ(now, pull, known.get(pull.number))]


def _may_differ(now: Seen, pull: Pull, mine: Seen | None) -> bool:
    if not mine or mine["head"] != pull.head.sha or mine["touched"] is None:
        return True
    if (mine["files"], mine["halted"]) != (now["files"], now["halted"]):
        return True
    before, after = [list(row) for row in mine["broken"]], [list(row) for row in now["broken"]]
    areas = {row[0] for row in (*before, *after) if row not in before or row not in after}
    moved = any(list(runs) != list(now["measured"].get(name, ())) for name, runs in mine["measured"].items())
    return moved or bool(areas & set(mine["touched"]))


async def measured(fork: Fork) -> Measured:
    """The newest good runs of trunk of each suite whose numbers are held against them."""
    names = _compared(fork.config)
    if not names:
        return {}
    runs = await fork.ctx.store.trunk_runs(fork.name)
    good: dict[str, list[str]] = {name: [] for name in names}
    counts: Counter[tuple[str, str]] = Counter()
    for run in runs:
        if run.turn is Turn.SEARCH:
            continue
        name = f"{run.level}/{run.suite}"
        if name in good and run.outcome == Outcome.PASSED and counts[name, run.capacity] < TRUNK_RUNS:
            counts[name, run.capacity] += 1
            good[name].append(run.id)
    return good


def _compared(config: Config) -> list[str]:
    return [
        f"{level.value}/{suite.suite}"
        for level in Level
        for suite in config.validation.of(level)
        if not suite.manual and (needs_baseline(suite) or suite.metrics)
    ]


def _files(config: Config, waivers: Iterable[JudgedWaiver] | None) -> str:
    filed = None if waivers is None else [repr(judged) for judged in waivers]
    return hashlib.sha256(f"{config.model_dump_json()}\n{filed}".encode()).hexdigest()


def _broken(config: Config, breakages: Iterable[OpenBreakage]) -> list[list[Any]]:
    held = {(b.area or "", b.key, b.issue or 0) for b in breakages if b.area in config.gate.trunk_red_blocks}
    return [list(row) for row in sorted(held)]
