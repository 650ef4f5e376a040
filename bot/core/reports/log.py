"""Results as a log prints them: pytest's verbose and quiet lines, gtest's and lit's, with CI prefixes and colours."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from bot.core.reports.parsed import ParsedReport, ParsedTest, moment, text_of, unreadable
from bot.core.validation import TestOutcome

_COLOUR = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_STAMP = re.compile(r"^\ufeff?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)) ?")
_NODE = r"(?P<id>[^\s:\[][^\s:]*\.py::(?:[^\[\n]*?\[[^\n]*?\]|[^\s\[]+))"
_STATUS = r"(?P<status>PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN)"
# after the status only its reason and how far the run is: other words are the test's own output (-s)
_REST = r"(?P<rest>(?:\s+\(.*\))?)\s*(?:\[\s*\d+(?:%|/\d+)\]|[\d.]+ *(?:us|ms|s|m|h)(?: [\d.]+ *s)?)?\s*$"
_VERBOSE = re.compile(rf"^{_NODE}\s+{_STATUS}{_REST}")
_WORKER = re.compile(rf"^\[gw\d+\]\s+(?:\[\s*\d+%\]\s+)?{_STATUS}\s+{_NODE}\s*(?P<rest>)$")
_SHORT = re.compile(rf"^(?P<status>FAILED|ERROR|PASSED|XFAIL|XPASS) {_NODE}(?:\s+-\s+(?P<rest>.*))?$")
_SHORT_MODULE = re.compile(r"^ERROR (?:collecting )?(?P<id>[^\s:]+\.py)(?:\s+-\s+(?P<rest>.*))?$")
_COLLECTING = re.compile(r"^_+ ERROR collecting (?P<id>\S+\.py) _+$")
_STARTED = re.compile(rf"^{_NODE}\s*(?P<rest>.*)$")
_LONELY = re.compile(rf"^{_STATUS}(?:\s+\(.*\))?\s*(?:\[\s*\d+%\])?$")
_QUIET = re.compile(r"^(?P<file>[^\s:]+\.py) (?P<letters>[.FEsxXR]+)(?:\s+\[\s*\d+%\])?$")
_SUMMARY = re.compile(r"^=*\s*(?P<counts>\d+ [a-z]+(?:, \d+ [a-z]+)*|no tests ran)[^=]* in [\d.:]+ ?s?.*?=*$")
_COLLECTED = re.compile(r"\bcollected (\d+) items?(?: / (\d+) errors?)?")
_GTEST = re.compile(r"^\[\s*(?P<status>RUN|OK|FAILED|SKIPPED)\s*\] (?P<id>[\w/]+\.[\w/]+)(?P<rest>.*)$")
_LIT = re.compile(
    r"^(?P<status>PASS|FAIL|XFAIL|XPASS|UNSUPPORTED|UNRESOLVED|TIMEOUT|FLAKYPASS): "
    r"(?P<id>\S.* :: \S+)(?: \(\d+ of \d+\))?"
)
_CHECKOUT = re.compile(r"HEAD is now at ([0-9a-f]{7,40})\b(?! Merge )")
_OUTCOMES = {
    "PASSED": TestOutcome.PASSED,
    "OK": TestOutcome.PASSED,
    "PASS": TestOutcome.PASSED,
    "FLAKYPASS": TestOutcome.PASSED,
    "FAILED": TestOutcome.FAILED,
    "FAIL": TestOutcome.FAILED,
    "XPASS": TestOutcome.PASSED,
    "ERROR": TestOutcome.ERROR,
    "SKIPPED": TestOutcome.SKIPPED,
    "UNSUPPORTED": TestOutcome.SKIPPED,
    "XFAIL": TestOutcome.XFAILED,
    "UNRESOLVED": TestOutcome.FAILED,
    "TIMEOUT": TestOutcome.FAILED,
}


@dataclass
class _State:
    tests: dict[str, ParsedTest] = field(default_factory=dict)
    running: str | None = None
    bare: list[tuple[str, str]] = field(default_factory=list)
    counts: dict[str, int] | None = None
    collected: int | None = None
    collect_errors: int = 0
    first: datetime | None = None
    commit: str | None = None

    def add(self, test: str, outcome: TestOutcome, message: str = "", *, module: bool = False) -> None:
        """Note a result; a failure is not overwritten by a later line about the same test."""
        old = self.tests.get(test)
        if old is not None and old.outcome.bad and not outcome.bad:
            return
        text = message or (old.message if old is not None else "")
        self.tests[test] = ParsedTest(test, outcome, text[:4000], at=self.first, module=module)


def lines_of(text: str) -> list[str]:
    """The lines of a log without colours, CI time stamps and carriage returns."""
    return [_STAMP.sub("", line.rstrip("\r")) for line in _COLOUR.sub("", text).replace("\r\n", "\n").split("\n")]


def parse_log(data: bytes) -> ParsedReport:
    """Read a log; never raises. Where a test had started and nothing ends it, it has no result."""
    text = text_of(data)
    if not text.strip("\x00 \t\r\n"):
        return unreadable("the file is empty")
    state = _State()
    for raw in _COLOUR.sub("", text).replace("\r\n", "\n").split("\n"):
        stamp = _STAMP.match(raw)
        if stamp is not None and state.first is None:
            state.first = moment(stamp[1])
        _line(_STAMP.sub("", raw.rstrip("\r")), state)
    bad = None
    if state.counts is not None:
        bad = sum(state.counts.get(word, 0) for word in ("failed", "error", "errors"))
    elif state.collect_errors:
        bad = state.collect_errors
    tests = tuple(state.tests.values())
    found = bool(tests or state.bare or state.counts is not None or state.collected is not None)
    return ParsedReport(
        tests=tests,
        complete=state.counts is not None,
        readable=found,
        at=state.first,
        commit=state.commit,
        declared=state.collected,
        declared_bad=bad,
        bare=tuple(state.bare),
        problems=() if state.counts is not None else ("the log ends without a summary",),
    )


def running_at_end(data: bytes) -> str | None:
    """The test that had started when the log broke off, where the log says so."""
    state = _State()
    for line in lines_of(text_of(data)):
        _line(line, state)
    return state.running


def _line(line: str, state: _State) -> None:
    line = line.strip()
    if state.commit is None and (head := _CHECKOUT.search(line)) is not None:
        state.commit = head[1]
    match = _VERBOSE.match(line) or _WORKER.match(line) or _SHORT.match(line)
    if match is not None:
        state.running = None
        if match["status"] != "RERUN":
            state.add(match["id"], _outcome(match["status"], match["rest"] or ""), match["rest"] or "")
        return
    if (match := _SHORT_MODULE.match(line) or _COLLECTING.match(line)) is not None:
        state.add(match["id"], TestOutcome.ERROR, match.groupdict().get("rest") or "collection failure", module=True)
    elif not _other(line, state):
        _pytest_progress(line, state)


def _other(line: str, state: _State) -> bool:
    """Take a line of gtest's or lit's; False where it is neither."""
    if (match := _GTEST.match(line)) is not None:
        state.running = match["id"] if match["status"] == "RUN" else None
        if match["status"] != "RUN":
            state.add(match["id"], _OUTCOMES[match["status"]])
    elif (match := _LIT.match(line)) is not None:
        outcome = TestOutcome.FAILED if match["status"] == "XPASS" else _OUTCOMES[match["status"]]
        state.add(match["id"], outcome)
    else:
        return False
    return True


def _pytest_progress(line: str, state: _State) -> None:
    if (match := _QUIET.match(line)) is not None:
        state.bare.append((match["file"], match["letters"]))
    elif (match := _SUMMARY.match(line)) is not None:
        words = re.findall(r"(\d+) ([a-z]+)", match["counts"])
        state.counts = {word: int(count) for count, word in words}
        state.running = None
    elif (match := _COLLECTED.search(line)) is not None:
        state.collected, state.collect_errors = int(match[1]), int(match[2] or 0)
    elif state.running is not None and (match := _LONELY.match(line)) is not None:
        state.add(state.running, _outcome(match["status"], ""))
        state.running = None
    elif (match := _STARTED.match(line)) is not None and not line.startswith(("E ", ">")):
        # with -s the test's own output stands between its name and its status
        state.running = match["id"]
        ended = re.search(rf"{_STATUS}\s*(?:\[\s*\d+%\])?$", match["rest"])
        if ended is not None:
            state.add(match["id"], _outcome(ended["status"], ""))
            state.running = None


def _outcome(status: str, rest: str) -> TestOutcome:
    if status == "XPASS" and "strict" in rest.lower():
        return TestOutcome.FAILED
    return _OUTCOMES[status]
