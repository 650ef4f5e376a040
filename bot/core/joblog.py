"""What a job's own log and exit status say about why tests have no result: crash, infrastructure, cut short."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from bot.core.reports import lines_of


class Cause(StrEnum):
    """Why a job ended before all had reported."""

    CRASH = "crash"
    INFRA = "infra"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    BROKEN = "broken"
    NOTHING_RUN = "nothing_run"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The cause with the line that shows it."""

    cause: Cause
    line: str


# Checked line by line: the first line that any of them knows is the root, what follows is its echo.
_MARKERS: tuple[tuple[Cause, re.Pattern[str]], ...] = tuple(
    (cause, re.compile(pattern, re.IGNORECASE))
    for cause, pattern in (
        (
            Cause.INFRA,
            r"no space left on device"
            r"|all CUDA-capable devices are busy or unavailable|CUDA-capable device\(s\) is/are busy"
            r"|no CUDA-capable device is detected|no CUDA GPUs are available|No HIP GPUs are available"
            r"|CUDA driver initialization failed|Driver/library version mismatch|communicate with the NVIDIA driver"
            r"|GPU has fallen off the bus|Unable to determine the device handle|uncorrectable ECC error"
            r"|nvidia-container-cli: |Error response from daemon|failed to pull image|toomanyrequests"
            r"|RPC failed; curl|could not resolve host|temporary failure in name resolution"
            r"|name or service not known"
            r"|connection (?:reset|refused|timed out)\b|Failed to connect to |TLS handshake timeout"
            r"|early EOF$|The remote end hung up|HTTP Error 50\d|50[234] (?:Bad Gateway|Service Unavailable|Gateway)"
            r"|429 Too Many Requests|Read timed out|SSLError|Max retries exceeded with url"
            r"|lost communication with the server|runner has received a shutdown signal"
            r"|self-hosted runner.*(?:lost|offline)"
            r"|No runner (?:matching|with label|found)|waiting for a runner to pick up|runner .{0,40}went offline"
            r"|spot instance|instance .{0,40}preempted|node (?:was )?(?:drained|evicted)|The node was low on resource"
            r"|input/output error|Stale file handle|Read-only file system|oom-kill|OOMKilled"
            r"|Out of memory: Killed process"
            r"|\bE(?:CONNRESET|CONNREFUSED|TIMEDOUT|NOTFOUND|AI_AGAIN)\b"
            r"|Unable to download artifact|Failed to (?:restore|save) cache|artifact.{0,40}(?:upload|download) failed"
            r"|unable to access 'https?://|fatal: unable to access|The requested URL returned error: 5\d\d",
        ),
        (
            Cause.TIMED_OUT,
            r"has timed out after \d+|exceeded the maximum execution time|Timeout: job|DUE TO TIME LIMIT"
            r"|!+ session-timeout: [\d.]+ sec exceeded !+|reached timeout, skipping remaining tests"
            r"|step timed out|job timed out|timed out after \d+ (?:minutes|hours)",
        ),
        (
            Cause.CANCELLED,
            r"The operation was cancell?ed|The run was cancell?ed|Canceling since a higher priority waiting request",
        ),
        (
            Cause.CRASH,
            r"segmentation fault|fatal python error|core dumped|SIGSEGV|SIGABRT|SIGBUS|SIGILL|\bAborted\b|Bus error"
            r"|illegal instruction|floating point exception|terminate called|PLEASE submit a bug report|Stack dump:"
            r"|LLVM ERROR:|UNREACHABLE executed|Assertion [`'].*failed|: Assertion .* failed\.?"
            r"|worker '?gw\d+'? crashed|\[gw\d+\] node down|INTERNALERROR>",
        ),
        (
            Cause.STOPPED,
            r"!+ (?:stopping after \d+ failures|xdist\.dsession\.Interrupted|Interrupted: ).*!+"
            r"|maximum crashed workers reached|reached maximum number of test failures, skipping remaining",
        ),
        (
            Cause.BROKEN,
            r"ninja: build stopped|make(?:\[\d+\])?: \*\*\* |CMake Error|ImportError while loading conftest"
            r"|ModuleNotFoundError: |SyntaxError: |collect2: error|subprocess-exited-with-error|Failed building wheel"
            r"|fatal error: |linker command failed|undefined reference to",
        ),
        (
            Cause.NOTHING_RUN,
            r"no tests ran in|collected 0 items|file or directory not found|No tests were found|no tests to run"
            r"|unrecognized arguments|did not discover any tests|not found: .*\.py",
        ),
    )
)
# killed from outside (137, 143), not started at all (126, 127): the machine's affair until shown otherwise
_OUTSIDE = frozenset({126, 127, 137, 143, -9, -15})
_CRASHED = frozenset({132, 133, 134, 135, 136, 139, -4, -5, -6, -7, -8, -11, 3221225477})


def evidence(log: bytes | None, among: Collection[Cause] = tuple(Cause)) -> Evidence | None:
    """The first line of the log that says why the job broke off, of the causes that count; None where none does."""
    if not log:
        return None
    from_log = lines_of(log.decode("utf-8", "replace"))
    for line in from_log:
        for cause, pattern in _MARKERS:
            if cause in among and pattern.search(line):
                return Evidence(cause, line.strip()[:300])
    return None


def infra_text(message: str) -> bool:
    """Whether the message of a failed test speaks of the machine, not of the code."""
    return _MARKERS[0][1].search(message) is not None and not _VETO.search(message)


def halted_text(message: str) -> bool:
    """Whether a skip's reason says that a failure of another test kept it from running (lit, ctest)."""
    return _HALTED.match(message) is not None


_HALTED = re.compile(r"\s*(?:User interrupt|Fixture dependency failed|Failed test dependencies: )", re.IGNORECASE)
# a compiler's own complaint or a wrong use of memory is code, whatever else stands beside it
_VETO = re.compile(
    r"illegal memory access|out of memory|out of resource|misaligned address|AssertionError|Mismatched elements"
    r"|^(?:E|>)?[ \t]*assert\b"
    r"|error: .*\b(?:op|expected|undeclared|no member)\b|PassManager|CompilationError|could not open .*\.a\b",
    re.IGNORECASE | re.MULTILINE,
)


def by_exit(status: int | None) -> Cause | None:
    """What an exit status alone says: a crash, killed from outside, or nothing."""
    if status in _CRASHED:
        return Cause.CRASH
    return Cause.INFRA if status in _OUTSIDE else None
