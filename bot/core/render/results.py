"""What a level's suites said, for the one comment of a pull request and for the check of each level."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bot.core.failure_class import FailureClass
from bot.core.render.text import (
    BODY_LIMIT,
    CHECK_LIMIT,
    block,
    code,
    details,
    fence,
    fit,
    line,
    marker,
    plural,
    short,
    table,
)
from bot.core.saturation import Disagreement, Half, Together, together
from bot.core.types import Level, Outcome
from bot.core.validation import Artifact, Report, TestOutcome, TestResult, level_outcome
from bot.core.waivers import Failure

RESULTS = "results"
_SIGN = {
    Outcome.PASSED: "✅ passed",
    Outcome.FAILED: "❌ failed",
    Outcome.OMITTED: "❌ omitted",
    Outcome.NOT_RUN: "❌ not run",
    Outcome.INFRA: "⚠️ infra",
    Outcome.TIMED_OUT: "⚠️ timed out",
    Outcome.CANCELLED: "⚪ cancelled",
    Outcome.WAIVED: "🟡 waived",
    Outcome.DISAGREED: "⚠️ disagreed",
}
_ARTIFACTS = 20
_LINK = re.compile(r"https://[A-Za-z0-9._~:/?%@!$&*+,;=-]{1,1000}")
# where a harness that reports no failure would matter
_RAN = frozenset({Outcome.PASSED, Outcome.FAILED, Outcome.OMITTED, Outcome.WAIVED})


@dataclass(frozen=True, slots=True)
class SuiteState:
    """One suite at one commit: queued or running (`outcome` None), or done with what its report came to. `metrics`
    are those that break their budget, or of which it can't be told.
    """

    level: Level
    suite: str
    area: str | None
    owners: tuple[str, ...]
    label: str
    running: bool = False
    outcome: Outcome | None = None
    reason: str = ""
    attempt: int = 1
    report: Report | None = None
    known: dict[str, str] | None = None
    classes: dict[str, FailureClass] | None = None
    metrics: tuple[Failure, ...] = ()
    second: SuiteState | None = None
    again: bool = False

    @property
    def name(self) -> str:
        """The suite as it stands in tables and headings."""
        return code(self.suite) + (" once more" if self.again else "")

    @property
    def verdict(self) -> Outcome | None:
        """What the suite says, proved twice or once; None while it is not done."""
        both = self._both().outcome if self.second is not None else self.outcome
        metrics = (*self.metrics, *(self.second.metrics if self.second is not None else ()))
        return None if both is None else level_outcome((both, *(one.outcome for one in metrics)))

    @property
    def disagreements(self) -> tuple[Disagreement, ...]:
        """What the two say differently of one commit."""
        return self._both().disagreements if self.second is not None else ()

    def _both(self) -> Together:
        assert self.second is not None
        return together(first=self._half(), second=self.second._half())

    def _half(self) -> Half:
        """What its tests came to: numbers of two capacities do not contradict each other."""
        return Half(self.report.outcome if self.metrics and self.report else self.outcome, self.report)


@dataclass(frozen=True, slots=True)
class Annotation:
    """One remark of a check run at a file's line."""

    path: str
    line: int
    title: str
    message: str


@dataclass(frozen=True, slots=True)
class CheckText:
    """What a check run shows; `conclusion` is None while it is not completed."""

    status: str
    conclusion: str | None
    title: str
    summary: str
    text: str = ""
    annotations: tuple[Annotation, ...] = ()


def outcome_of(states: Sequence[SuiteState]) -> Outcome | None:
    """The level's outcome at this commit; None while a suite is queued or running."""
    outcomes = [state.verdict for state in states]
    return None if any(o is None for o in outcomes) else level_outcome(o for o in outcomes if o is not None)


def results_comment(*, head: str, states: Sequence[SuiteState]) -> str:
    """The one comment: a line of verdict, a table by level and suite, the failures, the commands that repeat them."""
    parts = [f"{marker(RESULTS)}\n{_verdict(head, states)}", _table(states)]
    parts += _disagreements(states)
    parts += _failures(_flat(states))
    # how to repeat it and where the whole of it lies stays, however many failures there are
    kept = fit([*_repeat(_flat(states)), *_artifacts(_flat(states))], limit=BODY_LIMIT // 4)
    tail = "\n\n".join(part for part in (kept, block("report", machine(head, states))) if part)
    return fit(parts, tail, BODY_LIMIT - 100)


def machine(head: str, states: Sequence[SuiteState]) -> dict[str, Any]:
    """The machine-readable form of the comment: outcomes and counts; failing test ids up to a hundred a suite."""
    return {
        "version": 1,
        "head": head,
        "suites": [
            {
                "level": s.level.value,
                "suite": s.suite,
                "outcome": s.verdict.value if s.verdict else None,
                "attempt": s.attempt,
                "tests": len(s.report.tests) if s.report else 0,
                "expected": s.report.manifest.expected if s.report else 0,
                "failed": [t.id[:200] for t in s.report.failures[:100]] if s.report else [],
                "causes": {key: found.kind.value for key, found in list((s.classes or {}).items())[:100]},
                **({"metrics": _machine_metrics(s)} if s.metrics else {}),
            }
            | (_machine_twice(s, s.second) if s.second is not None else {})
            for s in states
        ],
    }


def _machine_twice(first: SuiteState, second: SuiteState) -> dict[str, Any]:
    return {
        "first": first.outcome.value if first.outcome else None,
        "second": second.outcome.value if second.outcome else None,
        "second_failed": [t.id[:200] for t in second.report.failures[:100]] if second.report else [],
        "disagreed": [[(one.test or "")[:200], one.first, one.second] for one in first.disagreements[:100]],
        **({"second_metrics": _machine_metrics(second)} if second.metrics else {}),
    }


def _machine_metrics(state: SuiteState) -> list[str]:
    return [f"{one.name}: {one.why}"[:300] for one in state.metrics[:100]]


def _flat(states: Sequence[SuiteState]) -> list[SuiteState]:
    """Each suite, and after it what it said where it was proved once more."""
    return [one for state in states for one in (state, state.second) if one is not None]


def check_text(level: Level, states: Sequence[SuiteState], *, waiting: str = "") -> CheckText:
    """The check of one level; `waiting` says why none of its suites was started."""
    name = level.value.upper()
    if not states:
        return CheckText("queued", None, f"{name} not started", waiting or "No suite was started at this commit.")
    outcome = outcome_of(states)
    summary = _table(states)
    body = fit([*_disagreements(states), *_failures(_flat(states)), *_repeat(_flat(states))], limit=CHECK_LIMIT // 4)
    if outcome is None:
        done = sum(s.verdict is not None for s in states)
        status = "in_progress" if any(s.running or s.outcome for s in _flat(states)) else "queued"
        return CheckText(status, None, f"{name}: {done} of {plural(len(states), 'suite')} done", summary)
    conclusion = {
        Outcome.PASSED: "success",
        Outcome.WAIVED: "success",
        Outcome.CANCELLED: "cancelled",
        Outcome.TIMED_OUT: "timed_out",
    }.get(outcome, "failure")
    return CheckText(
        "completed", conclusion, f"{name} {outcome.value.replace('_', ' ')}", summary, body, _annotations(_flat(states))
    )


def _verdict(head: str, states: Sequence[SuiteState]) -> str:
    said = []
    for level in Level:
        mine = [s for s in states if s.level is level]
        if mine:
            outcome = outcome_of(mine)
            said.append(f"**{level.value.upper()}** {_SIGN[outcome] if outcome else '⏳ running'}")
    return f"### Validation of {short(head)}\n\n" + (" · ".join(said) or "Nothing was started yet.")


def _table(states: Sequence[SuiteState]) -> str:
    rows = []
    for s in _flat(states):
        report = s.report
        outcome = _SIGN[s.outcome] if s.outcome else ("⏳ running" if s.running else "⏳ queued")
        rows.append(
            [
                s.level.value,
                s.name,
                outcome + (f": {line(s.reason, 160)}" if s.reason else ""),
                _counts(report) if report else "–",
                f"{report.seconds:.1f} s" if report else "–",
                _where(s),
            ]
        )
    return table(["level", "suite", "outcome", "tests", "took", "runner"], rows)


def _counts(report: Report) -> str:
    parts = [f"{report.count(TestOutcome.PASSED) + report.count(TestOutcome.XFAILED)} passed"]
    for outcome in (
        TestOutcome.FAILED,
        TestOutcome.ERROR,
        TestOutcome.SKIPPED,
        TestOutcome.NOT_RUN,
        TestOutcome.NOT_CHECKABLE,
    ):
        if number := report.count(outcome):
            parts.append(f"{number} {outcome.value.replace('_', ' ')}")
    if report.manifest.missing:
        parts.append(f"**{len(report.manifest.missing)} missing** of {report.manifest.expected}")
    elif report.manifest.expected:
        parts.append(f"all {report.manifest.expected} expected reported")
    if report.measurements:
        parts.append(plural(len(report.measurements), "measurement"))
    if report.manifest.canary is None and report.outcome in _RAN:
        parts.append("no canary")
    return ", ".join(parts)


def _where(state: SuiteState) -> str:
    if state.report is None:
        return f"label {code(state.label)}"
    gpus = state.report.environment.gpus
    gpu = f", {gpus[0].model}" if gpus else ", no GPU"
    return line(f"{state.report.environment.runner or state.label}{gpu}", 80)


def _disagreements(states: Sequence[SuiteState]) -> list[str]:
    """Each suite whose two runs say different things of the commit, with both."""
    parts = []
    for s in states:
        found, second = s.disagreements, s.second
        if not found or second is None:
            continue
        head = f"#### {code(s.suite)}: its two runs of this commit disagree about {plural(len(found), 'test')}"
        if all(one.test is None for one in found):
            head = f"#### {code(s.suite)}: its two runs of this commit disagree"
        rows = [[code(one.test[:200]) if one.test else "the suite", one.first, one.second] for one in found[:50]]
        text = "Neither is believed until both say the same. A `/retry` runs both again."
        parts.append("\n\n".join([head, text, table(["test", _where(s), _where(second)], rows)]))
        if len(found) > 50:
            names = fence("\n".join(one.test or "" for one in found[50:250]))
            parts.append(details(f"{len(found) - 50} more", names))
    return parts


def _failures(states: Sequence[SuiteState]) -> list[str]:
    groups: dict[tuple[str, str, str], list[TestResult]] = {}
    owner: dict[tuple[str, str, str], SuiteState] = {}
    for state in states:
        for test in state.report.failures if state.report else ():
            key = (state.level.value, state.name, test.signature or test.id)
            groups.setdefault(key, []).append(test)
            owner[key] = state
    parts = []
    for key, tests in groups.items():
        state = owner[key]
        known, found = (state.known or {}).get(key[2]), (state.classes or {}).get(key[2])
        area = f", area {code(state.area)}" if state.area else ""
        head = f"#### {line(tests[0].id, 120)}" + (
            f" and {len(tests) - 1} more with the same cause" if len(tests) > 1 else ""
        )
        said = f"; **{found.kind.value}**: {found.why}" if found else ""
        text = [head, f"{key[0]} {key[1]}{area}{said}" + (f"; open on trunk as {known}" if known else "")]
        if tests[0].message:
            text.append(fence(_cut(tests[0].message, 3_000)))
        if len(tests) > 1:
            names = "\n".join(test.id for test in tests[:200])
            text.append(details(f"{len(tests)} tests", fence(names)))
        parts.append("\n\n".join(text))
    parts += [_metrics(state) for state in states if state.metrics]
    for state in states:
        if state.report and state.report.manifest.missing:
            missing = state.report.manifest.missing
            names = fence("\n".join(missing[:200]))
            parts.append(
                f"#### {plural(len(missing), 'expected test')} of {state.name} did not report\n\n"
                + details("Which", names)
            )
    return parts


def _metrics(state: SuiteState) -> str:
    shown = state.metrics[:50]
    rows = [f"- {'❔' if one.unsure else '❌'} {code(one.name)}: {line(one.why, 300)}" for one in shown]
    more = f"\n- … and {len(state.metrics) - len(shown)} more" if len(state.metrics) > len(shown) else ""
    title = f"#### {state.level.value} {state.name}: {plural(len(state.metrics), 'metric')} not within budget"
    return f"{title}\n\n" + "\n".join(rows) + more


def _repeat(states: Sequence[SuiteState]) -> list[str]:
    lines = [s.report.repeat for s in states if s.report and s.report.repeat and s.outcome is not Outcome.PASSED]
    return ["Repeat it with:\n\n" + fence("\n".join(dict.fromkeys(lines)), "sh")] if lines else []


def _artifacts(states: Sequence[SuiteState]) -> list[str]:
    """What the runs left: links where they lie under https, else where to look."""
    lines = []
    for state in states:
        kept = [artifact for artifact in state.report.artifacts if artifact.url] if state.report else []
        if kept:
            shown = ", ".join(_artifact(artifact) for artifact in kept[:_ARTIFACTS])
            more = f" and {len(kept) - _ARTIFACTS} more" if len(kept) > _ARTIFACTS else ""
            lines.append(f"- {state.level.value} {code(state.suite)}: {shown}{more}")
    return [details("Artifacts", "\n".join(lines))] if lines else []


def _artifact(artifact: Artifact) -> str:
    url = artifact.url or ""
    if _LINK.fullmatch(url):
        return f"[{line(artifact.name, 80)}]({url})"
    return f"{line(artifact.name, 80)} at {code(url[:300])}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit // 2] + "\n[…]\n" + text[-limit // 2 :]


def _annotations(states: Sequence[SuiteState]) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(test.file, test.line or 1, f"{state.suite}: {test.id}"[:255], _cut(test.message or "failed", 8_000))
        for state in states
        for test in (state.report.failures if state.report else ())
        if test.file
    )[:500]
