"""One pure judgement over a job's reports: did everything expected run here, on this commit, and pass?

Failed goes before omitted, omitted before infra, infra before not_run; passed is what is left when all expected tests
have a result. A gap that nothing explains is an omission, whatever colour the job has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from bot.core.canary import is_canary
from bot.core.joblog import Cause, Evidence, by_exit, evidence, halted_text, infra_text
from bot.core.jobreports import Finding, FindingKind, Job, Look, dotted, gather
from bot.core.manifest import Exemption, SuiteManifest, TestChanges, adjust, covers, renamed, touches
from bot.core.reports import ParsedTest, key, module_of, parse, running_at_end
from bot.core.types import Outcome
from bot.core.validation import TestOutcome

_BROKE_OFF = (Cause.CRASH, Cause.TIMED_OUT, Cause.CANCELLED)
# gtest's own way to skip: a suite or test whose name begins so is only listed
_DISABLED = re.compile(r"(?<![^./])DISABLED_")
_ENVIRONMENT = ("requires", "need", "not available", "could not import", "no module", "gpu", "cuda", "hip", "device")


@dataclass(frozen=True, slots=True)
class LastGreen:
    """Which tests the last green run of this suite skipped."""

    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, the tests without a result that nothing explains, and all that was noticed."""

    verdict: Outcome
    missing: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


def judge(
    *,
    job: Job,
    manifest: Sequence[SuiteManifest],
    last_green: LastGreen,
    diff: TestChanges,
    waivers: Sequence[Exemption],
    reports: Mapping[str, bytes],
    today: date,
) -> Judgement:
    """Judge a job; `reports` holds the files that are there by name, the job's log is not one of them."""
    look = gather(job=job, manifest=manifest, reports=reports)
    expected = _expected(manifest, diff)
    before = frozenset(key(renamed(test, diff.renamed)) for test in last_green.skipped)
    before |= frozenset(key(test) for test in last_green.skipped)
    gap = [
        test
        for suite, test in expected
        if not _has_result(look, suite, test, before=before, diff=diff, expected=expected)
        and not _waived(look, test, job, waivers, today)
    ]
    _log_failures(look, job, expected)
    return _verdict(look, job, gap, any_expected=bool(expected))


def _expected(manifest: Sequence[SuiteManifest], diff: TestChanges) -> list[tuple[str | None, str]]:
    """Suite and id of all that must have a result; an added test may report in any suite."""
    expected: list[tuple[str | None, str]] = []
    known: set[str] = set()
    for suite in manifest:
        for test in adjust(tests=suite.tests, changes=diff, include_added=False):
            if suite.canary is None or not is_canary(test, suite.canary):
                expected.append((suite.name, test))
                known.add(key(test))
    gone = [test for test in diff.deleted if test not in diff.added]
    for test in diff.added:
        if key(test) not in known and not any(covers(name, test) for name in gone):
            expected.append((None, test))
            known.add(key(test))
    return expected


def _results(look: Look, suite: str | None, name: str, expected: Sequence[tuple[str | None, str]]) -> list[ParsedTest]:
    if suite is not None:
        own = look.by_suite[suite].get(name, [])
        if own or sum(key(test) == name for _, test in expected) > 1:
            return own
    found = look.pooled.get(name, [])
    if suite is None and not found and not name.endswith("]"):
        # an added function that has parameters reports by them
        return [result for other, results in look.pooled.items() if other.startswith(name + "[") for result in results]
    return found


def _has_result(
    look: Look,
    suite: str | None,
    test: str,
    *,
    before: frozenset[str],
    diff: TestChanges,
    expected: Sequence[tuple[str | None, str]],
) -> bool:
    name = key(test)
    results = _results(look, suite, name, expected)
    if any(result.outcome.bad or result.outcome.proves for result in results):
        return True
    if not results:
        module = look.modules.get(module_of(test), [])
        results = [result for result in module if result.outcome is TestOutcome.SKIPPED]
        if not results:
            return _bare(look, test, expected)
    if any(result.outcome is TestOutcome.SKIPPED for result in results):
        if name in before:
            return True
        reason = " ".join(result.message for result in results).lower()
        if look.bad and all(_halted(result) for result in results):
            look.note(FindingKind.EXPLAINED_SKIP, test, "not run after the failure of another")
            return True
        if _skip_in_diff(look, test, reason, diff):
            look.note(FindingKind.EXPLAINED_SKIP, test, "the diff touches the test's file and skips it")
            return True
        look.note(FindingKind.SKIPPED, test, reason[:200] or "skipped, and ran in the last green run")
    return False


def _halted(result: ParsedTest) -> bool:
    """Whether the tool left it out because another had failed; gtest then gives the test's own line, no reason."""
    own = f"{result.file}:{result.line}"
    lines = {line.strip() for line in result.message.splitlines() if line.strip()}
    return halted_text(result.message) or (result.line is not None and lines == {own})


def _skip_in_diff(look: Look, test: str, reason: str, diff: TestChanges) -> bool:
    """Whether the change itself skips the test: by id where the diff was read, else by its file and its reason.

    A skip for want of a device or a module is the machine's doing, and an added test has to run.
    """
    enabled = _DISABLED.sub("", test)
    if enabled != test and any(covers(name, enabled) for name in (*diff.renamed, *diff.deleted)):
        return True
    if any(covers(name, test) for name in diff.added):
        return False
    if diff.skipped is not None:
        return any(covers(name, test) for name in diff.skipped)
    some_ran = any(result.outcome.proves for results in look.pooled.values() for result in results)
    return touches(diff.files, test) and some_ran and not any(word in reason for word in _ENVIRONMENT)


def _bare(look: Look, test: str, expected: Sequence[tuple[str | None, str]]) -> bool:
    """Whether a quiet log proves the test: its file shows one passing letter for each test that is expected of it."""
    file = test.partition("::")[0]
    letters = look.bare.get(file, "")
    wanted = sum(other.partition("::")[0] == file for _, other in expected)
    return bool(letters) and "::" in test and set(letters) <= set(".xX") and len(letters) >= wanted


def _waived(look: Look, test: str, job: Job, waivers: Sequence[Exemption], today: date) -> bool:
    for waiver in waivers:
        if waiver.holds(test=test, platform=job.platform, today=today):
            look.note(FindingKind.WAIVED, test, waiver.reason)
            return True
    return False


def _log_failures(look: Look, job: Job, expected: Sequence[tuple[str | None, str]]) -> None:
    """Failures that only the job's log holds: of expected tests without a passing result, and of whole modules."""
    if not job.log:
        return
    report = parse("log", job.log)
    names = {key(test) for _, test in expected}
    modules = {module_of(test) for _, test in expected}
    for test in report.tests:
        if not test.outcome.bad or any(result.outcome.proves for result in look.pooled.get(key(test.id), [])):
            continue
        if key(test.id) in names or (test.module and dotted(test.id) in modules):
            look.bad.append(test)
            look.note(FindingKind.FAILURE, test.id, f"in the log: {test.message[:200]}")


def _verdict(look: Look, job: Job, gap: list[str], *, any_expected: bool) -> Judgement:
    cause = _cause(look, job, gap)
    if cause is not None:
        look.note(FindingKind.CAUSE, cause.cause.value, cause.line)
    real = [test for test in look.bad if not infra_text(test.message)]
    missing = tuple(dict.fromkeys(_unexplained(look, job, gap, cause)))
    for test in missing:
        look.note(FindingKind.MISSING, test, "expected, no result, nothing explains it")
    kind = cause.cause if cause is not None else None
    nothing = not any_expected and not look.pooled
    if real or look.hidden or kind in {Cause.CRASH, Cause.BROKEN}:
        verdict = Outcome.FAILED
    elif missing or nothing:
        verdict = Outcome.OMITTED
    elif look.blind or look.bad or kind is Cause.INFRA:
        verdict = Outcome.INFRA
    elif kind in {Cause.CANCELLED, Cause.TIMED_OUT, Cause.STOPPED} and (gap or kind is not Cause.CANCELLED):
        verdict = Outcome.NOT_RUN
    else:
        verdict = Outcome.PASSED
    return Judgement(verdict, missing, tuple(look.findings))


def _cause(look: Look, job: Job, gap: list[str]) -> Evidence | None:
    """Why the job broke off, by its conclusion, its log, its exit status; None where it did not, or does not say."""
    red = job.exit_code not in (0, None) or job.conclusion not in ("success", "neutral")
    if not red:
        # a pipe may hide that the program broke off; trouble that the job got over explains no gap
        return evidence(look.log, _BROKE_OFF) if gap else None
    shown = evidence(look.log)
    if shown is not None and shown.cause is Cause.NOTHING_RUN:
        shown = None if job.exit_code in (0, 4, 5) else shown
        if shown is None and not look.bad:
            return None
    stated = _stated(job)
    # a job that never ended states nothing itself: then its log may name the machine
    above = {Cause.CRASH, Cause.INFRA} if job.conclusion is None else {Cause.CRASH}
    if stated is not None and not (shown is not None and shown.cause in above):
        return stated
    if shown is not None:
        return Evidence(Cause.CRASH, shown.line) if _crashed_in(look, shown, gap) else shown
    told = by_exit(job.exit_code)
    if told is not None:
        return Evidence(told, f"exit status {job.exit_code}")
    if job.exit_code == 5 or any("crashed while running" in test.message for test in look.bad):
        return None
    if look.bad or look.hidden or job.conclusion == "neutral":
        return None
    if job.exit_code is None and gap:
        return Evidence(Cause.INFRA, f"the job says {job.conclusion} and has no exit status: its machine was lost")
    return Evidence(Cause.BROKEN, f"the job says {job.conclusion}, exit status {job.exit_code}, and no test says why")


def _crashed_in(look: Look, shown: Evidence, gap: list[str]) -> bool:
    """Whether the log breaks off inside a test: that test crashed, unless the machine or the clock is to blame."""
    innocent = {Cause.INFRA, Cause.TIMED_OUT, Cause.CANCELLED, Cause.CRASH}
    return bool(gap) and shown.cause not in innocent and running_at_end(look.log) is not None


def _stated(job: Job) -> Evidence | None:
    match job.conclusion:
        case "cancelled" | "skipped" | None:
            return Evidence(Cause.CANCELLED, f"the job's conclusion is {job.conclusion}")
        case "timed_out":
            return Evidence(Cause.TIMED_OUT, "the job timed out")
        case "startup_failure" | "stale":
            return Evidence(Cause.INFRA, f"the job's conclusion is {job.conclusion}")
    return None


def _unexplained(look: Look, job: Job, gap: list[str], cause: Evidence | None) -> list[str]:
    """What of the gap nothing explains: not the job's end, a crashed worker, nor a module that can't be imported."""
    if cause is not None and cause.cause is not Cause.NOTHING_RUN:
        return []
    if any("crashed while running" in test.message for test in look.bad):
        return []
    broken = {dotted(test.id) for test in look.bad if test.module}
    if broken and not any(result.outcome.proves for results in look.pooled.values() for result in results):
        return []
    return [test for test in gap if not any(_within(module_of(test), module) for module in broken)]


def _within(module: str, broken: str) -> bool:
    return module == broken or module.startswith(broken + ".")
