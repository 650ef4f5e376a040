"""What the reports of one job say, gathered: by suite and all together, with all that was noticed on the way.

A report of another commit, or from before the job, is not taken; one that is cut counts with what stands whole in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from bot.core.canary import is_canary
from bot.core.manifest import SuiteManifest
from bot.core.reports import FORMATS, ParsedReport, ParsedTest, key, parse, parse_log

# how far the clocks of a runner and of the service that started it may be apart
_SKEW = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Job:
    """One job as its service describes it; `conclusion` in GitHub's words."""

    sha: str
    started_at: datetime | None
    conclusion: str | None
    exit_code: int | None = None
    platform: str = ""
    log: bytes | None = None


class FindingKind(StrEnum):
    """What was noticed on the way to the verdict."""

    FAILURE = "failure"
    HIDDEN_FAILURE = "hidden_failure"
    ABSENT = "absent"
    UNREADABLE = "unreadable"
    CUT = "cut"
    STALE = "stale"
    OTHER_COMMIT = "other_commit"
    DUPLICATE = "duplicate"
    SKIPPED = "skipped"
    EXPLAINED_SKIP = "explained_skip"
    WAIVED = "waived"
    UNEXPECTED = "unexpected"
    BLIND = "blind"
    CAUSE = "cause"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing noticed, with what it is about and the evidence."""

    kind: FindingKind
    subject: str
    text: str = ""


@dataclass
class Look:
    """What the reports say: results by suite and key, pooled, by module; those that are bad; letters by file; the log.

    `hidden`: failures are counted that none lists; `blind`: a canary did not fail.
    """

    findings: list[Finding] = field(default_factory=list)
    by_suite: dict[str, dict[str, list[ParsedTest]]] = field(default_factory=dict)
    pooled: dict[str, list[ParsedTest]] = field(default_factory=dict)
    bad: list[ParsedTest] = field(default_factory=list)
    hidden: bool = False
    blind: bool = False
    bare: dict[str, str] = field(default_factory=dict)
    modules: dict[str, list[ParsedTest]] = field(default_factory=dict)
    log: bytes = b""

    def note(self, kind: FindingKind, subject: str, text: str = "") -> None:
        """Keep a finding."""
        self.findings.append(Finding(kind, subject, text))


def gather(*, job: Job, manifest: Sequence[SuiteManifest], reports: Mapping[str, bytes]) -> Look:
    """Read the reports of the suites; `reports` holds the files that are there by name."""
    look = Look(log=(job.log or b"") + b"\n")
    _read(look, job, manifest, reports)
    return look


def _read(look: Look, job: Job, manifest: Sequence[SuiteManifest], reports: Mapping[str, bytes]) -> None:
    parsed: dict[tuple[str, str], ParsedReport] = {}
    for suite in manifest:
        data = reports.get(suite.report)
        tests: dict[str, list[ParsedTest]] = {}
        look.by_suite[suite.name] = tests
        if data is None:
            look.note(FindingKind.ABSENT, suite.report, f"suite {suite.name} left no report")
        else:
            name = (suite.report, suite.format)
            first = name not in parsed
            report = parsed.setdefault(name, parse(suite.format, data))
            _take(look, job, suite, report, data, first=first)
        if suite.canary is not None:
            seen = [result for results in tests.values() for result in results if is_canary(result.id, suite.canary)]
            if not any(result.outcome.bad for result in seen):
                look.blind = True
                look.note(FindingKind.BLIND, suite.name, f"the canary {suite.canary} was not reported as failed")


def _take(look: Look, job: Job, suite: SuiteManifest, report: ParsedReport, data: bytes, *, first: bool) -> None:
    if not _of_this_job(look, job, suite, report):
        return
    if not report.complete:
        look.note(FindingKind.CUT, suite.report, "; ".join(report.problems))
    current = [test for test in report.tests if not _stale(job, test.at)]
    tests = look.by_suite[suite.name]
    for test in current:
        tests.setdefault(key(test.id), []).append(test)
    if not first:
        return
    if FORMATS.get(suite.format) is parse_log:
        look.log += data + b"\n"
    for file, letters in report.bare:
        look.bare[file] = look.bare.get(file, "") + letters
    _pool(look, current, suite.canary)
    canaries = 1 if suite.canary is not None else 0
    if (report.declared_bad or 0) > canaries and not any(test.outcome.bad for test in current):
        look.hidden = True
        look.note(FindingKind.HIDDEN_FAILURE, suite.report, f"{report.declared_bad} failures counted, none listed")


def _pool(look: Look, current: list[ParsedTest], canary: str | None) -> None:
    for test in current:
        look.pooled.setdefault(key(test.id), []).append(test)
        if test.module:
            look.modules.setdefault(dotted(test.id), []).append(test)
        if test.outcome.bad and not (canary is not None and is_canary(test.id, canary)):
            look.bad.append(test)
            look.note(FindingKind.FAILURE, test.id, test.message[:300])
    for name, count in Counter(test.id for test in current).items():
        if count > 1:
            look.note(FindingKind.DUPLICATE, name, f"reported {count} times")


def _of_this_job(look: Look, job: Job, suite: SuiteManifest, report: ParsedReport) -> bool:
    """Whether the report can be read and is of this job: of its commit, and not older than it."""
    if not report.readable:
        look.note(FindingKind.UNREADABLE, suite.report, "; ".join(report.problems))
        return False
    if report.commit is not None and not job.sha.startswith(report.commit):
        look.note(FindingKind.OTHER_COMMIT, suite.report, f"of {report.commit[:12]}, the job is of {job.sha[:12]}")
        return False
    if _stale(job, report.at):
        look.note(FindingKind.STALE, suite.report, f"written at {report.at}, before the job started")
        return not all(_stale(job, test.at or report.at) for test in report.tests)
    return True


def _stale(job: Job, at: datetime | None) -> bool:
    return at is not None and job.started_at is not None and at < job.started_at - _SKEW


def dotted(module: str) -> str:
    """A module as its dotted name: `a/test_b.py` is `a.test_b`."""
    return module.removesuffix(".py").replace("/", ".")
