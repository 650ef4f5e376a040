"""What a lab's answers mean: of this job and commit or not, usable or not, and what the result in them counts as."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.core.canary import is_canary
from bot.core.reports import parse_xml
from bot.core.types import Outcome
from bot.core.validation import Report, RunRequest, TestResult
from runners.harnesses import Collected, Elsewhere, merge

CANARY = "graft::canary"
_AS_CLASS_AND_NAME = "graft.canary"  # how JUnit has it
_LONGEST_WAIT = 3600.0
_TAIL = 64_000


class LabError(Exception):
    """The lab's trouble; the text says what."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of HTTP, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self, limit: int) -> str:
        """The body as one line of at most `limit` characters."""
        return " ".join(self.body[: 4 * limit].decode("utf-8", "replace").split())[:limit]


class Status(BaseModel):
    """Where a job stands; keys that are not known here are left alone."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    protocol: Literal[1]
    key: str
    job: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")
    commit: str
    state: Literal["queued", "running", "done", "error", "cancelled"]
    reason: str = ""
    log: str = ""
    report: dict[str, Any] | None = None
    junit: str | None = None

    @property
    def over(self) -> bool:
        """True where nothing more will come."""
        return self.state in ("done", "error", "cancelled")


def status_of(answer: Answer, *, key: str, job: str | None, commit: str) -> Status:
    """A job's status, of exactly this job (None: as yet unknown), submission and commit.

    Raises LabError, and json.JSONDecodeError where the answer is cut off.
    """
    try:
        document = json.loads(answer.body)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise LabError(f"its answer can't be read: {type(error).__name__}: {str(error)[:200]}") from error
    try:
        status = Status.model_validate(document)
    except ValidationError as error:
        raise LabError(f"its answer is not as the protocol has it: {_first(error)}") from error
    if status.key != key:
        raise LabError(f"its answer is about submission {status.key!r}, not {key!r}")
    if job is not None and status.job != job:
        raise LabError(f"its answer is about job {status.job!r}, not {job!r}")
    if status.commit != commit:
        raise LabError(f"its answer is about commit {status.commit[:40]!r}, not {commit!r}")
    return status


def collected(status: Status, request: RunRequest, *, redact: Callable[[str], str], seconds: float) -> Collected:
    """The result of a job that is over. Raises LabError where there is none to use."""
    if status.state != "done":
        what = "cancelled the job" if status.state == "cancelled" else "could not run the job"
        raise LabError(f"it {what}: {status.reason[:1000] or 'no reason given'}")
    tail = redact(status.log)[-_TAIL:]
    if (status.report is None) == (status.junit is None):
        raise LabError("it says done, and gives " + ("no result" if status.report is None else "two results"))
    if status.junit is not None:
        return _of_junit(status.junit, request, tail)
    report = _report(status.report or {}, request, seconds)
    elsewhere = Elsewhere(
        environment=report.environment,
        gpu_seconds=report.gpu_seconds,
        exit_code=report.exit_code,
        log_tail=tail or redact(report.log_tail),
        canary=report.manifest.canary,
    )
    return Collected(
        report.outcome,
        report.reason,
        report.tests,
        report.measurements,
        canary=_canary(report.tests, request),
        elsewhere=elsewhere,
    )


def _report(said: dict[str, Any], request: RunRequest, seconds: float) -> Report:
    """A report as runners make it; what it leaves out is the request's, what it says must be about the request."""
    now = datetime.now(UTC)
    whole = {
        "run_id": request.run_id,
        "subject": {"repository": request.repository, "commit": request.commit},
        "level": request.level,
        "suite": request.suite.suite,
        "harness": request.suite.harness,
        "started_at": now - timedelta(seconds=seconds),
        "finished_at": now,
        **said,
    }
    try:
        report = Report.model_validate(whole)
    except ValidationError as error:
        raise LabError(f"its report is not valid: {_first(error)}") from error
    about = (report.subject.commit, report.level, report.suite)
    wanted = (request.commit, request.level, request.suite.suite)
    if about != wanted:
        raise LabError(f"its report is about {' '.join(about)}, not {' '.join(wanted)}")
    return report


def _of_junit(text: str, request: RunRequest, tail: str) -> Collected:
    report = parse_xml(text.encode("utf-8", "replace"))
    if report.commit is not None and not request.commit.startswith(report.commit):
        raise LabError(f"its JUnit file is about commit {report.commit[:40]}, not {request.commit}")
    tests = merge(report.tests)
    outcome, reason = Outcome.PASSED, ""
    if (report.declared_bad or 0) > 0 and not any(test.outcome.bad for test in tests):
        outcome, reason = Outcome.FAILED, f"the JUnit file counts {report.declared_bad} failures and lists none"
    elif not report.readable or not report.complete:
        raise LabError(f"its JUnit file: {'; '.join(report.problems) or 'cut off'}")
    elsewhere = Elsewhere(log_tail=tail)
    return Collected(outcome, reason, tests, canary=_canary(tests, request), elsewhere=elsewhere)


def _canary(tests: Sequence[TestResult], request: RunRequest) -> str | None:
    """The test that has to fail: the suite's own, which must be there, else the one that the lab added, if it did."""
    if request.suite.canary is not None:
        return request.suite.canary
    added = (test.id for test in tests if test.id == _AS_CLASS_AND_NAME or is_canary(test.id, CANARY))
    return next(added, None)


def retry_after(answer: Answer) -> float | None:
    """The seconds that the lab asks us to wait (at most an hour), None where it does not say."""
    said = answer.headers.get("retry-after", "").strip()
    if not said:
        return None
    try:
        seconds = float(said) if said.isdigit() else (parsedate_to_datetime(said) - datetime.now(UTC)).total_seconds()
    except (ValueError, TypeError):
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT)


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"[:500]
