"""A run on GitHub Actions: what its workflow is told, how it is known again, and what its artifact counts as.

A workflow's run is known by the correlation id that it was started with, never by being the latest. What its artifact
holds is data to be judged: it has to be about this run and this commit, and whole; else nothing was proved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from bot.core.config import ACTIONS
from bot.core.reports import ParsedReport, ParsedTest, parse
from bot.core.types import Outcome
from bot.core.validation import Environment, Report, RunRequest, TestResult

REPORT = "report.json"
COMMIT = "commit"
_SHA = re.compile(r"[0-9a-f]{40}")
_MODULE = re.compile(r"(?:[A-Za-z_]\w*\.)*(?:test_\w*|\w+_test)")
_SKEW = timedelta(minutes=1)  # how far a machine's clock may be off
# a time without a zone is the machine's own: so many hours behind UTC are the zones that there are
_BEHIND = (*range(1, 13), 2.5, 3.5, 9.5)
_OF_CONCLUSION = {
    "success": Outcome.PASSED,
    "failure": Outcome.FAILED,
    "timed_out": Outcome.TIMED_OUT,
    "cancelled": Outcome.CANCELLED,
}


class Unusable(ValueError):
    """Why nothing can be made of what a workflow's run left: the run is `infra`."""


def workflow_of(label: str) -> str | None:
    """The workflow's file name, where a run's label stands for one."""
    return label.removeprefix(ACTIONS) if label.startswith(ACTIONS) else None


def correlation(request: RunRequest) -> str:
    """What an attempt is known by, inside GitHub too."""
    return f"{request.run_id}-{request.attempt}"


def inputs_of(request: RunRequest) -> dict[str, str]:
    """The inputs with which the workflow is started."""
    return {
        "graft_run": correlation(request),
        "commit": request.commit,
        "level": request.level.value,
        "suite": request.suite.suite,
    }


def artifact_of(request: RunRequest) -> str:
    """The name of the one artifact that counts."""
    return f"graft-{correlation(request)}"


def wanted(name: str) -> bool:
    """Whether a file of the artifact is read at all."""
    base = name.rpartition("/")[2]
    return base in (REPORT, COMMIT) or base.endswith(".xml")


def is_run_of(request: RunRequest, *, title: str, event: str, path: str) -> bool:
    """Whether a workflow's run is this attempt's: started by hand, of that file, and named by the correlation id."""
    named = correlation(request) in re.split(r"[^A-Za-z0-9_.-]+", title)
    return named and is_of_workflow(request, event=event, path=path)


def is_of_workflow(request: RunRequest, *, event: str, path: str) -> bool:
    """Whether a workflow's run is one of that file, started by hand."""
    name = path.partition("@")[0].rpartition("/")[2]
    return event == "workflow_dispatch" and name == workflow_of(request.suite.runner[-1])


def report_of(
    request: RunRequest,
    files: Sequence[tuple[str, bytes]],
    *,
    conclusion: str,
    runner: str,
    started_at: datetime,
    finished_at: datetime,
) -> Report:
    """The report in an artifact: what `graft run --json` printed, a report of a runner's, or JUnit files with a file
    `commit` that names the commit. What was written before the run began is left over from another. Raises Unusable.
    """
    named = [content for name, content in files if name.rpartition("/")[2] == REPORT]
    if len(named) > 1:
        raise Unusable(f"the artifact holds {len(named)} files {REPORT}: which one counts?")
    if named:
        return _of_json(request, named[0], started_at)
    commits = {
        content.decode("utf-8", "replace").strip() for name, content in files if name.rpartition("/")[2] == COMMIT
    }
    results = [(name, content) for name, content in files if name.endswith(".xml")]
    if not results:
        raise Unusable(f"the artifact holds neither {REPORT} nor a JUnit file")
    if len(commits) != 1 or not _SHA.fullmatch(commit := commits.pop()):
        raise Unusable(
            f"JUnit names no commit, and no file `{COMMIT}` in the artifact does (git rev-parse HEAD > {COMMIT})"
        )
    if commit != request.commit:
        raise Unusable(f"it is about commit {commit[:12]}, not {request.commit[:12]}")
    found = _Found(commit, started_at, max(finished_at, started_at))
    for name, content in results:
        found.take(name, parse("junit", content))
    if found.problems and not any(test.outcome.bad for test in found.tests):
        raise Unusable(found.problems[0])  # a failure that it shows is one, whatever else it lacks
    ended = "" if conclusion == "success" else f"the workflow ended as {conclusion or 'nothing'}"
    return request.report(
        environment=Environment(runner=runner, labels=request.suite.runner),
        started_at=started_at,
        finished_at=max(finished_at, started_at),
        outcome=Outcome.FAILED if found.hidden else _OF_CONCLUSION.get(conclusion, Outcome.INFRA),
        reason="; ".join(part for part in (ended, *found.problems, *found.hidden) if part)[:2000],
        exit_code=0 if conclusion == "success" else 1,
        tests=tuple(_result(test) for test in found.tests),
    )


@dataclass
class _Found:
    """What the JUnit files of an artifact say, and why that may not be all or not of this run."""

    commit: str
    started_at: datetime
    finished_at: datetime
    tests: list[ParsedTest] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    def take(self, name: str, parsed: ParsedReport) -> None:
        """Take what one file says of this run."""
        name = name[-100:]
        if parsed.commit is not None and not self.commit.startswith(parsed.commit):
            self.problems.append(f"{name} is about commit {parsed.commit[:12]}, not {self.commit[:12]}")
            return
        times = {test: test.at or parsed.at for test in parsed.tests}
        old = {test for test, at in times.items() if at is not None and not self._of_now(at, parsed.zoned)}
        if old:
            written = min(at for test in old if (at := times[test]) is not None)
            self.problems.append(
                f"{name} holds results of {written:%Y-%m-%d %H:%M} UTC, from before this run began: left over"
            )
        self.tests += [test for test in parsed.tests if test not in old]
        if not parsed.readable or not parsed.complete:
            self.problems.append(f"{name} is not whole: {'; '.join(parsed.problems)[:300] or 'it breaks off'}")
        elif parsed.declared_bad and not old and not any(test.outcome.bad for test in parsed.tests):
            self.hidden.append(f"{name} counts {parsed.declared_bad} failures and lists none")

    def _of_now(self, at: datetime, zoned: bool) -> bool:
        """Whether a time may lie within the run: after its start, or between start and end in some zone."""
        first, last = self.started_at - _SKEW, self.finished_at + _SKEW
        return at >= first or (not zoned and any(first <= at + timedelta(hours=behind) <= last for behind in _BEHIND))


def _result(test: ParsedTest) -> TestResult:
    # JUnit names a module that reports as a whole by its dots, the runner's own harness by its file
    name = test.id.replace(".", "/") + ".py" if test.module and _MODULE.fullmatch(test.id) else test.id
    return TestResult(
        id=name[:4096] or "(without a name)",
        outcome=test.outcome,
        duration=test.duration,
        message=test.message,
        file=test.file,
        line=test.line,
    )


def _of_json(request: RunRequest, content: bytes, started_at: datetime) -> Report:
    try:
        document: Any = json.loads(content)
    except ValueError as error:
        raise Unusable(f"{REPORT} is no JSON, or was cut: {error}") from error
    listed = document.get("reports", [document]) if isinstance(document, Mapping) else None
    if not isinstance(listed, list):
        raise Unusable(f"{REPORT} is no report")
    try:
        reports = [Report.model_validate(one) for one in listed]
    except ValidationError as error:
        first = error.errors()[0]
        raise Unusable(f"{REPORT} is not valid: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    mine = [one for one in reports if (one.level, one.suite) == (request.level, request.suite.suite)]
    if len(mine) != 1:
        raise Unusable(f"{REPORT} holds {len(mine)} reports of {request.level.value} {request.suite.suite}")
    said = mine[0]
    if said.subject.commit != request.commit:
        raise Unusable(f"it is about commit {said.subject.commit[:12]}, not {request.commit[:12]}")
    local = said.run_id.startswith("local-")  # `graft run` knows neither the run's id nor the repository's name
    if not local and (said.run_id, said.subject.repository) != (request.run_id, request.repository):
        raise Unusable(f"it is about run {said.run_id[:40]} of {said.subject.repository[:100]}, not this one")
    if said.started_at < started_at - _SKEW:
        raise Unusable(f"it was begun at {said.started_at:%Y-%m-%d %H:%M} UTC, before this run: left over")
    subject = said.subject.model_copy(update={"repository": request.repository})
    return said.model_copy(update={"run_id": request.run_id, "attempt": request.attempt, "subject": subject})
