"""What the runs of one level say of a head commit, waivers considered."""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.config import Config, Suite
from bot.core.gate.facts import GateFacts, GateReason, PullFact, ReasonCode, RunState, SuiteResult
from bot.core.gate.required import touched_areas
from bot.core.owners import owners_of
from bot.core.types import Decision, Level, Outcome
from bot.core.waivers import Failure, JudgedWaiver, WaiverState

_WORST = (
    Outcome.PASSED, Outcome.WAIVED, Outcome.CANCELLED, Outcome.NOT_RUN, Outcome.INFRA, Outcome.TIMED_OUT,
    Outcome.OMITTED, Outcome.DISAGREED, Outcome.FAILED,
)  # fmt: skip
_AGAIN = frozenset({Outcome.CANCELLED, Outcome.NOT_RUN, Outcome.INFRA, Outcome.TIMED_OUT})


def worst(children: Sequence[GateReason]) -> Decision:
    """Block before pending before allow; nothing at all is nothing against."""
    said = {child.decision for child in children}
    return next((decision for decision in (Decision.BLOCK, Decision.PENDING) if decision in said), Decision.ALLOW)


def node(code: ReasonCode, key: str, text: str, children: Sequence[GateReason]) -> GateReason:
    """A node that says the worst of its children."""
    return GateReason(code, key, worst(children), text, children=tuple(children))


def level_reason(
    *, config: Config, facts: GateFacts, level: Level, why: str, areas: Sequence[str], touched: Sequence[str]
) -> GateReason:
    """One level: each of its suites that has to run. At L3 those of the required areas, hand-run ones by sign-off."""
    suites = config.validation.of(level)
    if level is Level.L3:
        mine = [suite for suite in suites if suite.area in areas or _named(suite, areas, config) or suite.area is None]
        suites = tuple(suite for suite in mine if not suite.manual)
        if not suites and areas:
            text = f"{level.value}: proved by the sign-offs of {', '.join(areas)}"
            return GateReason(ReasonCode.LEVEL, level.value, Decision.ALLOW, text)
    if not suites:
        text = f"{level.value} is required by {why}, and .github/graft.yml names no suite that could show it"
        return GateReason(
            ReasonCode.NO_SUITE, level.value, Decision.BLOCK, text, who=("maintainers",),
            command=f"name a suite under validation.{level.value} in .github/graft.yml",
        )  # fmt: skip
    children = [suite_reason(config=config, facts=facts, level=level, suite=suite, touched=touched) for suite in suites]
    children = [_order(child, facts, config, level, touched) for child in children]
    return node(ReasonCode.LEVEL, level.value, f"{level.value}: required by {why}", children)


def _named(suite: Suite, areas: Sequence[str], config: Config) -> bool:
    return any(suite.suite in config.areas[area].suites for area in areas if area in config.areas)


def _order(child: GateReason, facts: GateFacts, config: Config, level: Level, touched: Sequence[str]) -> GateReason:
    """A level that was not started waits for the one below, which is nobody's to hurry."""
    if child.command is None or not child.command.startswith("/validate") or level is Level.L1:
        return child
    waits = [lower for lower in tuple(Level)[: tuple(Level).index(level)] if not _clean(lower, facts, config, touched)]
    if not waits or level in facts.forced:
        return child
    text = f"{child.text}; it waits for {waits[0].value}"
    return GateReason(child.code, child.key, Decision.PENDING, text, child.who, child.command)


def _clean(level: Level, facts: GateFacts, config: Config, touched: Sequence[str]) -> bool:
    suites = [suite for suite in config.validation.of(level) if not suite.manual]
    return all(
        suite_reason(config=config, facts=facts, level=level, suite=suite, touched=touched).decision
        is Decision.ALLOW
        for suite in suites
    )  # fmt: skip


def may_start(*, config: Config, facts: GateFacts, level: Level) -> GateReason | None:
    """None where the level may start on this head commit; else what has to pass before: a cheaper level first."""
    if level in facts.forced:
        return None
    touched = touched_areas(facts.pull, config)
    for lower in tuple(Level)[: tuple(Level).index(level)]:
        if not _clean(lower, facts, config, touched):
            text = f"{level.value} does not start before {lower.value} passed on {facts.pull.head[:10]}"
            return GateReason(
                ReasonCode.LEVEL, lower.value, Decision.PENDING, text, who=("maintainers",),
                command=f"/validate {level.value} force=yes",
            )  # fmt: skip
    return None


def current(results: Sequence[SuiteResult], level: Level, suite: str, head: str) -> SuiteResult | None:
    """The result that counts: of the highest attempt on this very commit, and the worst of what is said of that."""
    mine = [result for result in results if (result.level, result.suite, result.head) == (level, suite, head)]
    if not mine:
        return None
    last = max(result.attempt for result in mine)
    return max((result for result in mine if result.attempt == last), key=_badness)


def _badness(result: SuiteResult) -> tuple[int, int, int, bool, tuple[str, ...]]:
    done = result.state is RunState.DONE
    rank = _WORST.index(result.outcome) if result.outcome is not None else len(_WORST)
    bad = rank > _WORST.index(Outcome.WAIVED)
    names = tuple(sorted(failure.name for failure in result.failures))
    return (2 if done and bad else 0 if done else 1, rank, len(names), result.truncated, names)


def suite_reason(
    *, config: Config, facts: GateFacts, level: Level, suite: Suite, touched: Sequence[str]
) -> GateReason:  # fmt: skip
    """One suite on the head commit."""
    key, name = f"{level.value}/{suite.suite}", suite.suite
    who = owners_of(suite.area, config) if suite.area else ()
    result = current(facts.results, level, name, facts.pull.head)
    again = f"/validate {level.value} {name}"

    def leaf(decision: Decision, text: str, command: str | None = None) -> GateReason:
        return GateReason(ReasonCode.SUITE, key, decision, text, who, command)

    if result is None:
        before = any(other.level is level and other.suite == name for other in facts.results)
        text = f"{name} has not run on this commit" + ("; what it said of another one is void" if before else "")
        if level is Level.L1:
            return leaf(Decision.PENDING, f"{text}; it starts by itself", again)
        return leaf(Decision.BLOCK, text, again)
    if result.state is not RunState.DONE:
        return leaf(Decision.PENDING, f"{name} is {result.state.value} (attempt {result.attempt})")
    if result.outcome is Outcome.PASSED and not result.failures and not result.truncated:
        return leaf(Decision.ALLOW, f"{name} passed")
    if result.outcome in _AGAIN and all(failure.test is None and failure.metric is None for failure in result.failures):
        return leaf(Decision.BLOCK, f"{name} says nothing: {result.outcome.value}", "/retry")
    if result.outcome is None:
        return leaf(Decision.BLOCK, f"{name} ended without an outcome", "/retry")
    return _failed(facts, result, touched, key=key, who=who)


def _failed(
    facts: GateFacts, result: SuiteResult, touched: Sequence[str], *, key: str, who: tuple[str, ...]
) -> GateReason:
    name = result.suite
    whole = Failure(result.level, name, result.outcome or Outcome.NOT_RUN)
    failures = (*result.failures, whole) if not result.failures or result.truncated else result.failures
    left = [failure for failure in dict.fromkeys(failures) if exemption(failure, facts, touched) is None]
    if not left:
        texts = sorted({text for failure in failures if (text := exemption(failure, facts, touched))})
        return GateReason(ReasonCode.SUITE, key, Decision.ALLOW, f"{name}: what failed is waived; {'; '.join(texts)}")
    names = sorted({failure.name for failure in left})
    told = {failure.name: f"{failure.name} ({failure.why})" for failure in left if failure.why}
    shown = ", ".join(told.get(name, name) for name in names[:5]) + (
        f" and {len(names) - 5} more" if len(names) > 5 else ""
    )
    cut = " (the list is cut)" if result.truncated else ""
    if all(failure.unsure for failure in left):
        return GateReason(ReasonCode.SUITE, key, Decision.BLOCK, f"{name} is too noisy: {shown}{cut}", who, "/retry")
    text = f"{name} {_said(result, left)}: {shown}{cut}"
    scope = f'"{names[0]}"' if any(char.isspace() for char in names[0]) else names[0]
    how = f'mend it and push, or a maintainer: /waive {scope} until=YYYY-MM-DD owner=@… reason="…" plan="…"'
    return GateReason(ReasonCode.SUITE, key, Decision.BLOCK, text, who, how)


def _said(result: SuiteResult, left: Sequence[Failure]) -> str:
    if result.outcome is Outcome.OMITTED or all(failure.outcome is Outcome.OMITTED for failure in left):
        return "left out what it had to run"
    return "failed" if result.outcome in (Outcome.PASSED, Outcome.FAILED, Outcome.WAIVED, None) else str(result.outcome)


def exemption(failure: Failure, facts: GateFacts, touched: Sequence[str]) -> str | None:
    """Why a failure does not shut the gate here, or None where it does.

    A lapsed waiver of the fork's file still lets those pass who neither own it nor touch its area: the failure is
    its owner's to answer, and bystanders would only be held up.
    """
    for judged in (*facts.waivers, *(facts.file_waivers or ())):
        if judged.exempts(failure, head=facts.pull.head):
            return f"{judged.waiver.scope} by {', '.join(judged.waiver.by)}, {judged.text}"
        if judged.waiver.covers(failure) and bystander(judged, facts.pull, touched, facts):
            return f"{judged.waiver.scope} lapsed; {judged.waiver.owner} answers for it, not this change"
    return None


def bystander(judged: JudgedWaiver, pull: PullFact, touched: Sequence[str], facts: GateFacts) -> bool:
    """True where a lapsed waiver of the fork's file is somebody else's; an unknown team may be anybody."""
    if judged.state is not WaiverState.LAPSED or judged.waiver.head is not None:
        return False
    owner = judged.waiver.owner
    unknown = "/" in owner and not facts.people.asked_about(owner)
    mine = unknown or facts.people.is_one_of(pull.author, (owner,))
    return not mine and not set(touched) & set(judged.areas)
