"""The fork's file `.github/graft.yml` as a model: what is taken in, who owns what, what must be proved."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from bot.core.config_problems import ConfigError, Problem, cross_checks, dotted, of_model
from bot.core.strict_yaml import YamlError, load_yaml
from bot.core.types import Level, Mode

__all__ = ["ACTIONS", "Config", "ConfigError", "Problem", "load"]

ACTIONS = "github-actions:"  # before a workflow's name, in place of a label: no runner may have it
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def _duration(value: object) -> object:
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            raise ValueError(f"{value!r} is no duration: write a number and s, m, h or d, as in 30m")
        return timedelta(**{_UNITS[match[2]]: float(match[1])})
    return value


def _percent(value: object) -> object:
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value.strip())
        if match is None:
            raise ValueError(f"{value!r} is no percentage: write it as in 3%")
        return float(match[1]) / 100
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    # written as it is read: a suite travels to the runners as JSON
    PlainSerializer(lambda value: f"{value.total_seconds():.6f}s", when_used="json"),
]
Fraction = Annotated[float, BeforeValidator(_percent), Field(ge=0)]


class Model(BaseModel):
    """A part of the file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Upstream(Model):
    """Where upstream lives; `url` only where it is not on the same GitHub."""

    repository: str
    branch: str = "main"
    url: str | None = None


class Fork(Model):
    """The fork's main branch."""

    branch: str = "main"


class BundleCaps(Model):
    """How large a bundle may grow; `watch` bundles have caps of their own."""

    max_commits: int = Field(default=25, ge=1)
    max_files: int = Field(default=150, ge=1)
    watch_max_commits: int = Field(default=10, ge=1)


class ChainCaps(Model):
    """How long a chain may grow by joining others; beyond, its links wait for what they stand on in another chain."""

    max_links: int = Field(default=25, ge=1)


class Caps(Model):
    """How much Graft may open on its own."""

    open_bundles: int = Field(default=10, ge=0)
    open_chains: int = Field(default=10, ge=0)
    pull_requests_per_day: int = Field(default=20, ge=0)


class RiskRule(Model):
    """A rule of the fork's own: what it names is risky, and needs these levels and areas."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    levels: tuple[Level, ...] = ()
    areas: tuple[str, ...] = ()
    toolchain: bool = False


class Ingest(Model):
    """What is taken in, how often, in what portions."""

    every: Duration = timedelta(minutes=30)
    stale_after: Duration = timedelta(hours=12)
    bundle: BundleCaps = BundleCaps()
    chain: ChainCaps = ChainCaps()
    caps: Caps = Caps()
    risk: tuple[RiskRule, ...] = ()
    skip: tuple[str, ...] = ()
    picked_markers: tuple[str, ...] = ()
    pins: dict[str, Literal["fork", "upstream"]] = Field(
        default={}, description="version pins by path pattern: whose stands where both sides changed one"
    )
    max_files: int = Field(
        default=300, ge=1, description="a commit that touches more files is too large to be called safe"
    )


class Area(Model):
    """A named part of the fork with its own owners (logins, or org/team).

    `gpu_hours_per_month` is what its L3, and its L2 on demand, may take in a calendar month (UTC); None: no limit.
    """

    paths: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    gpu_hours_per_month: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Budget(Model):
    """How much worse a metric may get (fractions: 3 % is 0.03), and the bounds that it must keep in its own unit.

    Without `better` a change in either direction counts as a regression.
    """

    regression: Fraction | None = None
    p95: Fraction | None = None
    better: Literal["higher", "lower"] | None = None
    min: float | None = None
    max: float | None = None


class Budgets(Model):
    """The default budget and those of single kernels or metrics."""

    default: Budget = Budget()
    kernels: dict[str, Budget] = {}

    def of(self, name: str) -> Budget:
        """The budget of a kernel or metric: its own where it has one, the default's where its own is silent."""
        own = self.kernels.get(name)
        if own is None:
            return self.default
        told = {key: value for key, value in own.model_dump().items() if value is not None}
        return self.default.model_copy(update=told)


Harness = Literal["pytest", "lit", "gtest", "ctest", "kernels", "bench", "command", "torchrun", "http"]
_ONLY_TESTS = frozenset({"pytest", "lit", "gtest", "ctest"})  # whose results hold no measurement


class Lab(Model):
    """An outside lab that runs a suite of harness `http`: see docs/lab-protocol.md.

    `credential` names what the runner holds for the lab; `poll` is the first pause between two looks; after
    `unanswered` without a usable answer the run is given up.
    """

    url: str
    credential: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9-]*$")
    poll: Duration = timedelta(seconds=15)
    unanswered: Duration = timedelta(minutes=10)


class Second(Model):
    """Where a suite is proved once more: by runners with other labels, by a workflow of GitHub Actions (on `ref`, by
    default the fork's main branch), or by another harness with its own command. Both have to pass.
    """

    runner: tuple[str, ...] = ()
    workflow: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]+\.ya?ml$")
    ref: str | None = None
    harness: Harness | None = None
    run: tuple[str, ...] = ()
    env: dict[str, str] = {}
    canary: str | None = None


class Suite(Model):
    """A named set of tests or measurements of one level, with one harness and one owner area."""

    suite: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    harness: Harness = "pytest"
    run: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    env: dict[str, str] = {}
    runner: tuple[str, ...] = ("default",)
    area: str | None = None
    timeout: Duration = timedelta(minutes=30)
    deadline: Duration = timedelta(hours=6)
    memory_gib: float | None = Field(default=None, gt=0)
    canary: str | None = None
    retries: int = Field(default=1, ge=0)
    metrics: tuple[str, ...] = ()
    manual: bool = False
    budget: Budgets = Budgets()
    lab: Lab | None = None
    second: Second | None = None

    def once(self) -> Suite:
        """The suite as it runs where it is proved first."""
        return self.model_copy(update={"second": None})

    def again(self) -> Suite | None:
        """The suite as it runs where it is proved a second time; None where it is not."""
        other = self.second
        if other is None:
            return None
        change: dict[str, Any] = {"second": None, "env": {**self.env, **other.env}}
        if other.harness is not None:
            change |= {"harness": other.harness, "run": other.run, "canary": other.canary}
            if other.harness in _ONLY_TESTS:
                change["metrics"] = ()
        elif other.canary is not None:
            change["canary"] = other.canary
        if other.workflow is not None:
            change["runner"] = (f"{ACTIONS}{other.workflow}",)
        elif other.runner:
            change["runner"] = other.runner
        return self.model_copy(update=change)


class Validation(Model):
    """The suites of each level."""

    l1: tuple[Suite, ...] = ()
    l2: tuple[Suite, ...] = ()
    l3: tuple[Suite, ...] = ()
    l2_every: Duration | None = None

    def of(self, level: Level) -> tuple[Suite, ...]:
        """The suites of one level."""
        suites: tuple[Suite, ...] = getattr(self, level.value)
        return suites


class GatePathRule(Model):
    """Which levels and areas a change under these paths needs, a person's pull request too."""

    paths: tuple[str, ...]
    levels: tuple[Level, ...] = ()
    areas: tuple[str, ...] = ()


class Gate(Model):
    """Who must have said yes before a pull request lands."""

    require_signoff_from: tuple[str, ...] = ()
    self_signoff: bool = False
    levels: tuple[Level, ...] = (Level.L1,)
    rules: tuple[GatePathRule, ...] = ()
    trunk_red_blocks: tuple[str, ...] = ()
    keep_signoff_outside_area: bool = False
    persons: bool = True


class OtherCi(Model):
    """Trunk's runs of CI that is not Graft's, heard as those of one suite: a workflow of GitHub Actions with the JUnit
    files in its artifacts (patterns of their names), or the check runs of those names (patterns) of an App (its slug).
    """

    suite: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    workflow: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_./-]+\.ya?ml$")
    artifacts: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    app: str | None = None
    level: Level = Level.L1
    area: str | None = None


class Triage(Model):
    """When an owner is reminded of an open breakage of trunk, which logins hear of one that stays open, and how much
    the search for a culprit may run.
    """

    remind_after: Duration = timedelta(days=2)
    escalate_after: Duration = timedelta(days=5)
    escalate_to: tuple[str, ...] = ()
    bisect: Literal["auto", "manual"] = "auto"
    runs_per_search: int = Field(default=40, ge=2, le=1000)
    searches_per_day: int = Field(default=6, ge=0)
    runner_time_per_search: Duration = timedelta(hours=24)
    other_ci: tuple[OtherCi, ...] = ()


class Config(Model):
    """The whole file."""

    upstream: Upstream
    fork: Fork = Fork()
    mode: Mode = Mode.PROPOSE
    ingest: Ingest = Ingest()
    areas: dict[str, Area] = {}
    validation: Validation = Validation()
    gate: Gate = Gate()
    triage: Triage = Triage()
    default_owner: str | None = None

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Config:
        """The model of already loaded YAML; raises pydantic.ValidationError."""
        return cls.model_validate(raw)


def load(text: str) -> Config:
    """The fork's file from its text; raises ConfigError, which names every problem with its line and how to mend it."""
    try:
        document = load_yaml(text)
    except YamlError as error:
        raise ConfigError([Problem(max(error.line, 1), dotted(error.path), error.text)]) from error
    if not isinstance(document.data, dict):
        raise ConfigError(
            [Problem(1, "", "it is empty or no mapping", "begin with upstream: {repository: owner/name}")]
        )
    try:
        config = Config.of(document.data)
    except ValidationError as error:
        raise ConfigError(of_model(error, document, Config)) from error
    problems = cross_checks(config, document)
    if problems:
        raise ConfigError(problems)
    return config
