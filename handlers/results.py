"""What the runs at a commit came to: one comment, a check for each level, then the gate."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from bot.context import Annotation as GitHubAnnotation
from bot.context import Context, Job, Run, RunState
from bot.core.config import Suite
from bot.core.dispatched import workflow_of
from bot.core.failure_class import KnownCause
from bot.core.owners import owners_of
from bot.core.render.results import RESULTS, CheckText, SuiteState, check_text, results_comment
from bot.core.render.text import marker
from bot.core.turns import Turn
from bot.core.types import Level, Outcome
from bot.core.validation import Report, level_outcome
from bot.core.waivers import Failure
from handlers.classifying import classes_of
from handlers.failing import over_budget
from handlers.fork import Fork, open_fork
from handlers.known import known_causes
from handlers.signatures import sign
from handlers.validate import BEFORE, GROUP, SECOND, latest

_ALIVE = timedelta(minutes=10)  # a runner says hello each minute


async def results(ctx: Context, job: Job) -> None:
    """Job `results`: write the comment and the checks of a pull request's head from the runs that there are."""
    fork = await open_fork(ctx, job.scope)
    number = int(job.payload["number"])
    if number == GROUP:
        for sha, group in (await fork.note("groups") or {}).items():  # neither comment nor level checks of their own
            await fork.enqueue("gate_group", sha, {"sha": sha, "ref": group["ref"]})
        return
    pull = await fork.github.pull(number)
    if pull.state != "open":
        return
    head = pull.head.sha
    states = await suite_states(fork, sha=head, number=number)
    if states:
        await fork.github.upsert_comment(number, marker(RESULTS), results_comment(head=head, states=states))
    for level in Level:
        if fork.config.validation.of(level):
            await write_check(fork, head, level, states, await _waiting(fork, number, head, level, states))
    await fork.enqueue("gate", f"#{number}", {"number": number})


async def suite_states(fork: Fork, *, sha: str, number: int | None) -> list[SuiteState]:
    """Each suite that has a run at this commit, with what its newest one came to; a search's steps are none of them."""
    there = await fork.ctx.store.runs(fork.name, sha)
    runs = [run for run in there if run.number == number and run.turn is not Turn.SEARCH]
    newest = latest(runs)
    others = [run for run in await _second_runs(fork, sha) if run.number == number and run.turn is not Turn.SEARCH]
    again = latest(others)
    known = await known_causes(fork, runs[0].base) if runs and number is not None else None
    states = []
    for level in Level:
        for suite in fork.config.validation.of(level):
            if (run := newest.get((level, suite.suite))) is None:
                continue
            state = await _state(fork, level, suite, run, known)
            state = _judged(state, await over_budget(fork, level, run, runs)) if number else state
            if (second := suite.again()) is not None:
                run = again.get((level, suite.suite))
                other = await _state(fork, level, second, run, known) if run is not None else _missing(state, second)
                other = _judged(other, await over_budget(fork, level, run, others)) if run and number else other
                state = replace(state, second=replace(other, again=True))
            states.append(state)
    return states


async def _second_runs(fork: Fork, sha: str) -> list[Run]:
    if not any(suite.second for level in Level for suite in fork.config.validation.of(level)):
        return []
    return await fork.ctx.store.runs(fork.name, sha, capacity=SECOND)


def _missing(state: SuiteState, second: Suite) -> SuiteState:
    """A second time that nobody started yet."""
    return replace(
        state, label=second.runner[-1], running=False, outcome=None, reason="", report=None, classes=None, attempt=1
    )


def _judged(state: SuiteState, over: tuple[Failure, ...]) -> SuiteState:
    """What a suite came to with its metrics held against their budgets, as the gate does."""
    if state.outcome is None or not over:
        return state
    return replace(state, outcome=level_outcome([state.outcome, *(one.outcome for one in over)]), metrics=over)


async def _state(
    fork: Fork, level: Level, suite: Suite, run: Run, known: dict[str, KnownCause] | None = None
) -> SuiteState:
    report = sign(Report.model_validate(run.report)) if run.report else None
    reason = report.reason if report else ""
    pool = workflow_of(run.label) is None
    if run.outcome is None and run.state is RunState.QUEUED and pool and not await _runners(fork, run):
        reason = f"no runner with label {_labels(run)} is there: it waits until {run.deadline:%Y-%m-%d %H:%M} UTC"
    if run.outcome == Outcome.INFRA and report is None:
        late = f"no report by its deadline, {run.deadline:%Y-%m-%d %H:%M} UTC"
        reason = f"{late}: runner {run.runner} is silent" if run.runner else f"{late}: {await _untaken(fork, run)}"
    return SuiteState(
        level=level,
        suite=suite.suite,
        area=suite.area,
        owners=owners_of(suite.area, fork.config) if suite.area else (),
        label=run.label,
        running=run.state is RunState.LEASED,
        outcome=Outcome(run.outcome) if run.outcome else None,
        reason=reason,
        attempt=run.attempt,
        report=report,
        known={key: cause.text for key, cause in (known or {}).items()},
        classes=await classes_of(fork, run, report, known) if report is not None and known is not None else None,
    )


async def _untaken(fork: Fork, run: Run) -> str:
    if workflow_of(run.label) is not None:
        return f"GitHub did not start {workflow_of(run.label)}"
    there = await _runners(fork, run)
    return f"none of {', '.join(there)} took it" if there else f"no runner with label {_labels(run)} is there"


async def _runners(fork: Fork, run: Run) -> list[str]:
    """The runners that have every label of the run and were heard of lately."""
    wanted = set(run.request["suite"]["runner"])
    return [
        runner.name
        for runner in await fork.ctx.store.runners()
        if wanted <= set(runner.labels) and runner.seen_at is not None and fork.now - runner.seen_at < _ALIVE
    ]


def _labels(run: Run) -> str:
    return " and ".join(run.request["suite"]["runner"])


async def _waiting(fork: Fork, number: int, head: str, level: Level, states: list[SuiteState]) -> str:
    untrusted = await fork.note(f"untrusted:{number}") or {}
    if untrusted.get("sha") == head:
        return str(untrusted["why"])
    before = BEFORE[level]
    if before is not None:
        return f"Starts by command (/validate {level.value}) once {before.value.upper()} has passed here."
    return ""


async def write_check(fork: Fork, sha: str, level: Level, states: list[SuiteState], waiting: str = "") -> CheckText:
    """Write the check `graft/<level>` of a commit; one that nobody asked for stays unwritten."""
    mine = [state for state in states if state.level is level]
    text = check_text(level, mine, waiting=waiting)
    if mine or level is Level.L1:
        await fork.github.upsert_check(
            sha,
            f"graft/{level.value}",
            status=text.status,
            conclusion=text.conclusion,
            title=text.title,
            summary=text.summary,
            text=text.text,
            annotations=[
                GitHubAnnotation(path=a.path, start_line=a.line, end_line=a.line, title=a.title, message=a.message)
                for a in text.annotations
            ],
            external_id=f"{level.value}:{sha}",
        )
    return text
