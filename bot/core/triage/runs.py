"""What one run on trunk says of each test, in the form that triage reads: failed by a cause, passed, or nothing.

A suite that is proved twice is two here: what passed on one capacity proves nothing of the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.core.signature import Signature, signature
from bot.core.signature.clean import function_of
from bot.core.triage.other_ci import OTHER_CI
from bot.core.triage.texts import kept_text, omitted_signature
from bot.core.types import Level, Outcome
from bot.core.validation import Report, TestOutcome

INFRA = "infra"
MISSING_LIMIT = 5_000
_SILENT = frozenset({TestOutcome.SKIPPED, TestOutcome.NOT_RUN, TestOutcome.NOT_CHECKABLE})


@dataclass(frozen=True, slots=True)
class Failure:
    """One test that failed, with its cause; `signature`, `cls` and `title` as bot.core.signature gives them. Of a long
    text `message` is a part that is signed as the whole is.
    """

    test: str
    signature: str
    cls: str
    title: str
    message: str = ""
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Digest:
    """One run at one commit. `silent` tests had to run and said nothing; `infra` says why a run proves nothing.

    `suite` is named by `series_of`. A test whose failure is the machine's is among the silent ones. `whole`: the suite
    failed before or beside its tests; it then stands among the failures under the name that `suite_test` gives.

    `source` says whose run it is where it is not Graft's own. `unknown` says why such a run, though it ended, does not
    tell all of its tests.
    """

    run: str
    sha: str
    level: Level
    suite: str
    failures: tuple[Failure, ...] = ()
    passed: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    infra: tuple[str, ...] = ()
    judged: bool = True
    whole: bool = False
    crashed: bool = False
    host: str = ""
    repeat: str = ""
    source: str = ""
    unknown: str = ""


def series_of(suite: str, capacity: str = "") -> str:
    """The name under which the runs of a suite on one capacity are told apart from those on the other."""
    return f"{suite}@{capacity}" if capacity else suite


def suite_of(series: str) -> str:
    """The suite, as the fork's file names it: no such name holds an @."""
    return series.partition("@")[0]


def capacity_of(series: str) -> str:
    """The capacity; "" for the suite itself."""
    return series.partition("@")[2]


def suite_test(suite: str) -> str:
    """The name under which a suite as a whole passes or fails."""
    return f"{suite} (the whole suite)"


def digest(
    *,
    run: str,
    sha: str,
    level: Level,
    suite: str,
    outcome: Outcome,
    report: Report | None,
    capacity: str = "",
    sign: Callable[[str, str | None], Signature] = signature,
) -> Digest:
    """A run as triage reads it; one without a report, cancelled or ended by its machine is not judged.

    A cause has the same signature on every capacity.
    """
    series = series_of(suite, capacity)
    if report is None or outcome in (Outcome.INFRA, Outcome.CANCELLED):
        why = (report.reason if report else "") or ("no report by its deadline" if outcome is Outcome.INFRA else "")
        infra = (why or "the machine failed",) if outcome is Outcome.INFRA else ()
        return Digest(run, sha, level, series, infra=infra, judged=False)
    failures: list[Failure] = []
    infra_lines: list[str] = []
    silent = {test.id for test in report.tests if test.outcome in _SILENT}
    # a burst repeats its message, and of a test only its function tells
    signed: dict[tuple[str, str], tuple[Signature, str]] = {}
    bad = report.failures
    for test in bad:
        known = (test.message, function_of(test.id))
        if known not in signed:
            found = sign(test.message, test.id)
            signed[known] = found, kept_text(test.message, test.id, found.key, sign=sign)
        found, text = signed[known]
        if found.cls == INFRA:
            infra_lines.append(found.title)
            silent.add(test.id)
        else:
            failures.append(Failure(test.id, found.key, found.cls, found.title, text, test.file))
    missing = report.manifest.missing
    other = report.harness == OTHER_CI  # its log is not read: without a test's failure its cause is not known
    whole = not other and not bad and outcome in (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.NOT_RUN)
    crashed = whole or (bool(bad) and report.exit_code not in (0, 1, None))
    if whole:
        text = report.log_tail or report.reason
        found = sign(text, suite_test(suite))
        if found.cls == INFRA:
            return Digest(run, sha, level, series, infra=(found.title,), judged=False)
        kept = kept_text(text, suite_test(suite), found.key, last=True, sign=sign)
        failures.append(Failure(suite_test(suite), found.key, found.cls, found.title, kept))
    if missing and not crashed:
        title = f"expected tests of {suite} did not report"
        failures += [
            Failure(test, omitted_signature(suite), "code", title, report.reason) for test in missing[:MISSING_LIMIT]
        ]
    else:
        silent.update(missing)
    failed = {failure.test for failure in failures}
    passed = {test.id for test in report.tests if test.outcome.proves} - failed
    if not whole and not other and (passed or bad):
        passed.add(suite_test(suite))
    return Digest(
        run=run,
        sha=sha,
        level=level,
        suite=series,
        failures=tuple(failures),
        passed=frozenset(passed),
        silent=frozenset(silent - passed - failed),
        infra=tuple(dict.fromkeys(infra_lines)),
        judged=not other or bool(report.tests),
        whole=whole,
        crashed=crashed,
        host=report.environment.host or report.environment.runner,
        repeat=report.repeat,
        source=report.environment.runner if other else "",
        unknown=_unknown(report, outcome) if other else "",
    )


def _unknown(report: Report, outcome: Outcome) -> str:
    if report.reason or report.failures or outcome is Outcome.PASSED:
        return report.reason
    return "it failed, and no test of it did"
