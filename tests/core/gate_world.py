"""The small fork that the gate's tests decide about, and short words for its facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from bot.core.config import Config
from bot.core.gate import (
    GateFacts,
    OpenBreakage,
    PullFact,
    PullKind,
    Review,
    ReviewState,
    RunState,
    SuiteResult,
)
from bot.core.owners import People
from bot.core.signoff import SignOff, Void
from bot.core.types import Level, Outcome
from bot.core.waivers import Failure, JudgedWaiver, Waiver, WaiverState

L1, L2, L3 = Level
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
HEAD, OLD = "a" * 40, "b" * 40

RAW: dict[str, Any] = {
    "upstream": {"repository": "up/stream"},
    "default_owner": "max",
    "ingest": {
        "risk": [
            {"name": "llvm-bump", "paths": ["cmake/llvm-*"], "toolchain": True, "areas": ["core"]},
            {"name": "layouts", "symbols": ["*Layout*"], "levels": ["l2"], "areas": ["tlx"]},
            {"name": "heavy", "paths": ["heavy/**"], "levels": ["l3"]},
        ]
    },
    "areas": {
        "core": {"paths": ["lib/**", "heavy/**"], "owners": ["olga"]},
        "tlx": {"paths": ["tlx/**"], "owners": ["tim", "org/tlx"], "suites": ["tlx"]},
        "recsys": {"paths": ["rec/**"], "owners": ["rita"]},
    },
    "validation": {
        "l1": [{"suite": "unit", "area": "core"}, {"suite": "tlx", "area": "tlx"}],
        "l2": [{"suite": "gemm", "harness": "bench", "area": "core"}],
        "l3": [
            {"suite": "ranking", "area": "recsys", "metrics": ["ne", "qps"], "manual": True},
            {"suite": "soak", "area": "core"},
        ],
    },
    "gate": {
        "rules": [{"paths": ["tlx/**"], "levels": ["l2"], "areas": ["tlx"]}],
        "trunk_red_blocks": ["core"],
    },
}


def config(**gate: Any) -> Config:
    """The fork's file with other keys under `gate`."""
    return Config.of(RAW | {"gate": RAW["gate"] | gate})


CONFIG = config()
PEOPLE = People.of(
    {"olga": "write", "tim": "write", "max": "maintain", "ada": "admin", "wanda": "write", "rita": "read"},
    {"org/tlx": ["tom"]},
)
NAMES = {"unit": L1, "tlx": L1, "gemm": L2, "soak": L3}


def ran(suite: str, outcome: Outcome | None = Outcome.PASSED, **more: Any) -> SuiteResult:
    """A suite's result on the head commit."""
    plain = SuiteResult(NAMES[suite], suite, HEAD, RunState.DONE, outcome)
    return replace(plain, **more)


def failed(suite: str, *tests: str, outcome: Outcome = Outcome.FAILED, **more: Any) -> SuiteResult:
    """A suite with failed tests."""
    return ran(suite, outcome, failures=tuple(Failure(NAMES[suite], suite, outcome, test=t) for t in tests), **more)


UNIT, TLX, GEMM, SOAK = ran("unit"), ran("tlx"), ran("gemm"), ran("soak")
ALL_L1 = (UNIT, TLX)
ALL_L2 = (*ALL_L1, GEMM)
ALL = (*ALL_L2, SOAK)


def signed(area: str, by: str, void: Void | None = None) -> SignOff:
    """A sign-off, standing or void."""
    text = "signed" if void is None else f"void: {void.value}"
    return SignOff(area, by, 1, HEAD, (), None, None, None, void, text)


def waived(scope: str, state: WaiverState = WaiverState.STANDING, **more: Any) -> JudgedWaiver:
    """A waiver of this pull request by one maintainer; `areas` go to the judgement, all else to the waiver."""
    areas = more.pop("areas", ())
    plain = Waiver(scope, date(2026, 12, 31), "olga", "driver", "new driver", by=("max",), head=HEAD)
    return JudgedWaiver(replace(plain, **more), state, state.value, areas)


def filed(scope: str, state: WaiverState = WaiverState.STANDING, **more: Any) -> JudgedWaiver:
    """A waiver of the fork's file."""
    until = date(2026, 11, 28) if state is WaiverState.LAPSED else date(2026, 12, 31)
    return waived(scope, state, **({"head": None, "until": until} | more))


def review(login: str, state: ReviewState = ReviewState.APPROVED, head: str = HEAD) -> Review:
    """A review of the head commit."""
    return Review(login, state, head)


def red(area: str | None, key: str = "t1") -> OpenBreakage:
    """Trunk is broken."""
    return OpenBreakage(key, area, 5)


def facts(*results: SuiteResult, **more: Any) -> GateFacts:
    """The facts of one pull request; `files`, `kind`, `draft` … go to the pull request, all else to the facts."""
    pull = PullFact(7, "wanda", HEAD, files=("docs/a.md",))
    fields = {name: more.pop(name) for name in list(more) if name in PullFact.__dataclass_fields__}
    plain = GateFacts(replace(pull, **fields), results=results, people=PEOPLE)
    return replace(plain, **more)


def conflict(*results: SuiteResult, **more: Any) -> GateFacts:
    """The facts of a conflict's pull request that touches core."""
    return facts(*results, **({"kind": PullKind.CONFLICT, "author": "graft[bot]", "files": ("lib/a.py",)} | more))
