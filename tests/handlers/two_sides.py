"""An upstream and its fork in one repository of real git, their plan, and what is where in it."""

from __future__ import annotations

from pathlib import Path

from bot.clients.git import Git
from bot.core.config import Config
from bot.core.types import LedgerEntry, Plan, PlannedCommit, ReasonKind
from handlers.planning import make_plan
from tests.clients.test_git import Work

NOW = 1_800_000_000


def config(**ingest: object) -> Config:
    return Config.of({"upstream": {"repository": "up/up"}, "ingest": ingest})


class Pair:
    """Upstream on `main`, the fork on `fork`, in one repository."""

    def __init__(self, path: Path, files: dict[str, str | bytes | None]) -> None:
        self.work = Work(path)
        self.base = self.work.commit("base", files)
        self.work.git("branch", "fork")
        self.git = Git(path / ".git")

    def upstream(self, message: str, files: dict[str, str | bytes | None]) -> str:
        self.work.git("checkout", "-q", "main")
        return self.work.commit(message, files)

    def fork(self, message: str, files: dict[str, str | bytes | None]) -> str:
        self.work.git("checkout", "-q", "fork")
        return self.work.commit(message, files)

    def pick(self, sha: str) -> str:
        """The fork picks an upstream commit as maintainers do by hand."""
        self.work.git("checkout", "-q", "fork")
        self.work.git("cherry-pick", "-x", "--allow-empty", sha)
        return self.work.git("rev-parse", "HEAD")

    def plan(self, settings: Config | None = None, decisions: tuple[LedgerEntry, ...] = ()) -> Plan:
        return make_plan(
            self.git, upstream="main", fork="fork", config=settings or config(), decisions=decisions, now=NOW
        )


def bundled(plan: Plan) -> list[str]:
    return [commit.sha for bundle in plan.bundles for commit in bundle.commits]


def chained(plan: Plan) -> list[list[str]]:
    return [[commit.sha for commit in chain.commits] for chain in plan.chains]


def everything(plan: Plan) -> list[PlannedCommit]:
    return [
        *(commit for bundle in plan.bundles for commit in bundle.commits),
        *(commit for chain in plan.chains for commit in chain.commits),
        *plan.held,
        *plan.settled,
    ]


def of(plan: Plan, sha: str) -> PlannedCommit:
    return next(commit for commit in everything(plan) if commit.sha == sha)


def kinds(commit: PlannedCommit) -> set[ReasonKind]:
    return {reason.kind for reason in commit.reasons}
