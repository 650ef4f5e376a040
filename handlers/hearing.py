"""Hear a report: of this very run or not, valid or not, and what it counts as, whatever it calls itself."""

from __future__ import annotations

from pydantic import ValidationError

from bot.context import Run, Runner
from bot.core.canary import has_canary
from bot.core.joblog import Cause, evidence, infra_text
from bot.core.types import Outcome
from bot.core.validation import Environment, Report, RunRequest, check_manifest, conclude


def judge_report(run: Run, request: RunRequest, body: bytes, *, runner: Runner) -> Report:
    """The report as it counts: of this run, no better than its tests say; an invalid one is `infra` with the reason."""
    try:
        said = Report.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return no_report(run, f"the report is not valid: {where}: {first['msg']}", runner=runner)
    subject = (said.subject.repository, said.subject.commit, said.level.value, said.suite, said.run_id)
    if subject != (run.repository, run.sha, run.level, run.suite, run.id):
        return no_report(run, "the report is about something else than the run that was leased", runner=runner)
    return judged(run, request, said, canary=has_canary(request.suite) or request.canary_before)


def judged(run: Run, request: RunRequest, said: Report, *, canary: bool) -> Report:
    """A report of this run as it counts; `canary`: whether one has to be in it."""
    manifest = check_manifest(expected=request.expected, skipped_before=request.skipped_before, tests=said.tests)
    seen = said.manifest.canary
    manifest = manifest.model_copy(update={"canary": False if seen is None and canary else seen})
    outcome, why = conclude(
        claimed=said.outcome,
        tests=said.tests,
        measurements=len(said.measurements),
        manifest=manifest,
        exit_code=said.exit_code,
    )
    outcome, why = _infra(said, outcome, why)
    reason = "; ".join(dict.fromkeys(part for part in (said.reason, why) if part and part not in said.reason[:-1]))
    again = " --second" if run.capacity and said.repeat and "--second" not in said.repeat else ""
    return said.model_copy(
        update={
            "manifest": manifest,
            "outcome": outcome,
            "reason": reason or said.reason,
            "attempt": run.attempt,
            "repeat": said.repeat + again,
        }
    )


def _infra(said: Report, outcome: Outcome, why: str) -> tuple[Outcome, str]:
    """A failure that is the machine's: no test failed and the log says so, or every failed test does."""
    if outcome is not Outcome.FAILED:
        return outcome, why
    failures = said.failures
    if not failures:
        shown = evidence(said.log_tail.encode())
        if shown is not None and shown.cause is Cause.INFRA:
            return Outcome.INFRA, shown.line
    elif all(infra_text(test.message) for test in failures):
        return Outcome.INFRA, f"all {len(failures)} failures are the machine's: {failures[0].message.strip()[-200:]}"
    return outcome, why


def no_report(run: Run, reason: str, *, runner: Runner) -> Report:
    """The report of a run that said nothing usable: `infra`, and why."""
    request = RunRequest.model_validate(run.request).model_copy(update={"attempt": run.attempt})
    started = run.started_at or run.queued_at
    return request.report(
        environment=Environment(runner=runner.name, labels=runner.labels),
        started_at=started,
        finished_at=started,
        outcome=Outcome.INFRA,
        reason=reason,
    )
