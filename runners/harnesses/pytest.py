"""pytest: events written as they happen by a plugin of ours, JUnit as second witness, and exit statuses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.core.canary import is_canary
from bot.core.reports import ParsedTest, key, parse_xml
from bot.core.types import Outcome
from bot.core.validation import TestOutcome, TestResult
from runners.harnesses import Collected, HarnessError, Place, Start, fill, interruption, merge, of_another
from runners.process import Ended

PLUGIN = "graft_pytest_plugin"
CANARY = "graft_canary"
_UNREPORTED = "not reported"
# what must not become of a failing test: its tests say nothing then
_TURNED = frozenset({"passed", "xfailed", _UNREPORTED})
_INTERRUPTED, _INTERNAL, _USAGE, _NOTHING = 2, 3, 4, 5


class Pytest:
    """Runs `run` with our plugin; where `run` is a script that calls pytest itself, through PYTEST_ADDOPTS."""

    reads = ("events.jsonl", "junit.xml")

    def start(self, place: Place) -> Start:
        """The command with plugin and result files."""
        if not place.suite.run:
            raise HarnessError(f"suite {place.suite.suite}: `run` is empty; write for example [python, -m, pytest, t]")
        options = ["-p", PLUGIN, f"--junitxml={place.results / 'junit.xml'}", "-o", "junit_family=xunit1"]
        env = {
            "PYTHONPATH": os.pathsep.join(
                part for part in (str(Path(__file__).parent / "plugin"), place.suite.env.get("PYTHONPATH", "")) if part
            ),
            "GRAFT_PYTEST_EVENTS": str(place.results / "events.jsonl"),
        }
        if any(Path(word).name in ("pytest", "py.test") for word in place.suite.run):
            return Start((*place.suite.run, *options), env)
        return Start(place.suite.run, env | {"PYTEST_ADDOPTS": " ".join(options)})

    def collect(self, place: Place, ended: Ended) -> Collected:
        """Results so far by the events; what had been collected and has no result is `not_run`, with the reason."""
        seen = _Seen.read(place.results / "events.jsonl")
        canary = place.suite.canary or CANARY
        junit = _junit(place)
        tests = list(merge([*seen.results(), *_only_bad_in_junit(seen, junit)]))
        if canary != CANARY or seen.blind():
            tests = [test for test in tests if not is_canary(test.id, CANARY)]
        stopped = interruption(ended) or _unfinished(seen, ended)
        running = seen.running
        if stopped is not None:
            outcome, reason = stopped
            if running is not None and key(running) not in {key(test.id) for test in tests}:
                fault = TestOutcome.FAILED if outcome is Outcome.FAILED else TestOutcome.NOT_RUN
                text = f"{reason} while this test was running\n{ended.tail[-4000:]}"
                tests.append(TestResult(id=running, outcome=fault, message=text))
            known = seen.collected or list(place.expected)
            return Collected(outcome, _with_place(reason, running), fill(tests, known, reason))
        outcome, reason = _by_status(seen, ended, canary)
        reason = "; ".join(part for part in (reason, *(seen.unproved() if canary == CANARY else ())) if part)
        if outcome is not Outcome.PASSED and outcome is not Outcome.OMITTED:
            tests = list(fill(tests, seen.collected, reason))
        return Collected(outcome, reason, tuple(tests), canary=canary)


HARNESS = Pytest()


@dataclass
class _Seen:
    session: bool = False
    ended: int | None = None
    others: int = 0
    stopped: str = ""
    running: str | None = None
    collected: list[str] = field(default_factory=list)
    announced: set[str] = field(default_factory=set)
    heard: set[str] = field(default_factory=set)
    canaries: dict[str, str] = field(default_factory=dict)
    excused: list[str] = field(default_factory=list)
    tests: dict[str, ParsedTest] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> _Seen:
        """The events of the file; a last line cut by a crash is left out."""
        seen = cls()
        for event in _lines(path):
            seen._take(event)
        seen._miss_canaries()
        return seen

    def results(self) -> list[ParsedTest]:
        return list(self.tests.values())

    def blind(self) -> list[str]:
        """The folders (`.` for the root) in which the failing test was reported as something else, or not at all."""
        return [_folder(name) for name, said in self.canaries.items() if said in _TURNED]

    def unproved(self) -> list[str]:
        """What the canaries say beside what the one at the root does: where no failure is shown to be reported."""
        if self.stopped:
            return []  # some could not come to their turn
        told = [(_folder(name), said) for name, said in self.canaries.items() if said != TestOutcome.FAILED]
        found = [
            f"blind below {folder}: the failing test put there was {said}" if said in _TURNED else
            f"not proved below {folder}: the failing test put there could not run: {said}"
            for folder, said in told if folder != "." or said not in _TURNED
        ]  # fmt: skip
        return found + [f"not proved below {folder}: a hook expects each test to fail" for folder in self.excused]

    def _miss_canaries(self) -> None:
        for name in sorted(self.announced - self.heard):
            self._canary(name, _UNREPORTED)
        self.announced, self.heard = set(), set()

    def _canary(self, name: str, said: str) -> None:
        """Keep the worst of what sessions say of one."""
        old = self.canaries.get(name, TestOutcome.FAILED)
        self.canaries[name] = old if old != TestOutcome.FAILED and said not in _TURNED else said

    def _take(self, event: dict[str, Any]) -> None:
        name = str(event.get("id", ""))
        match event.get("event"):
            case "session":
                self._miss_canaries()
                self.session, self.ended = True, None  # a script may start pytest more than once
            case "collected":
                self.announced |= {str(name) for name in event.get("canaries", ())}
                self.collected = list(dict.fromkeys([*self.collected, *(str(test) for test in event.get("ids", ()))]))
            case "start":
                self.running = name
            case "finish":
                self.running = None if self.running == name else self.running
            case "collect_error":
                text = str(event.get("message", ""))
                self.tests[name] = ParsedTest(name or "(collection)", TestOutcome.ERROR, text, module=True)
            case "collect_skip":
                self.tests[name] = ParsedTest(name, TestOutcome.SKIPPED, str(event.get("message", "")), module=True)
            case "report":
                self._report(name, event)
            case "end":
                self.ended = int(event.get("status", -1))
                self.others += int(event.get("others", 0))
                self.stopped = self.stopped or str(event.get("stopped", ""))

    def _report(self, name: str, event: dict[str, Any]) -> None:
        said, xfail = event.get("outcome"), bool(event.get("xfail"))
        outcome = TestOutcome.PASSED
        if said == "failed":
            outcome = TestOutcome.FAILED if event.get("when") == "call" else TestOutcome.ERROR
        elif said == "skipped":
            outcome = TestOutcome.XFAILED if xfail else TestOutcome.SKIPPED
        if name in self.announced:
            self.heard.add(name)
            skipped = outcome is TestOutcome.SKIPPED
            self._canary(name, str(event.get("message")) if skipped else "failed" if outcome.bad else outcome.value)
        self.excused += [str(folder) for folder in event.get("excused") or ()]
        old = self.tests.get(name)
        if old is not None and old.outcome.bad:
            return
        line = event.get("line")
        self.tests[name] = ParsedTest(
            name,
            outcome,
            str(event.get("message", "")),
            float(event.get("duration", 0.0)) + (old.duration if old is not None else 0.0),
            file=str(event["file"]) if event.get("file") else None,
            line=line if isinstance(line, int) else None,
        )


def _folder(canary: str) -> str:
    return canary.rpartition("::")[0] or "."


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def _junit(place: Place) -> list[ParsedTest]:
    try:
        report = parse_xml((place.results / "junit.xml").read_bytes())
    except OSError:
        return []
    return list(report.tests) if not of_another(place, report) else []


def _only_bad_in_junit(seen: _Seen, junit: list[ParsedTest]) -> list[ParsedTest]:
    """What JUnit calls failed and the events do not hold at all; all of JUnit where there are no events."""
    if not seen.session:
        return junit
    known = {key(name) for name in seen.tests}
    modules = {name.removesuffix(".py").replace("/", ".") for name in seen.tests}
    return [
        test
        for test in junit
        if test.outcome.bad and key(test.id) not in known and test.id not in modules and not test.id.endswith(CANARY)
    ]


def _unfinished(seen: _Seen, ended: Ended) -> tuple[Outcome, str] | None:
    """Its session began and has no end: something ended the process from within, whatever status it left."""
    if not ended.started or not seen.session or seen.ended is not None:
        return None
    return Outcome.FAILED, f"the process ended with exit status {ended.exit_code} before its session did"


def _by_status(seen: _Seen, ended: Ended, canary: str) -> tuple[Outcome, str]:
    status = ended.exit_code
    ours = (canary, CANARY)
    bad = any(test.outcome.bad and not any(is_canary(name, one) for one in ours) for name, test in seen.tests.items())
    if not ended.started:
        return Outcome.INFRA, ended.tail.strip()
    if status == _USAGE:
        if "ImportError while loading conftest" in ended.tail or "Error while loading conftest" in ended.tail:
            return Outcome.FAILED, "pytest exit status 4: conftest.py can't be loaded"
        return Outcome.OMITTED, f"pytest exit status 4, nothing ran: {_last_error(ended.tail)}"
    if status == _NOTHING:
        return Outcome.OMITTED, "pytest exit status 5: no test was collected"
    if status == _INTERNAL:
        return Outcome.INFRA, f"pytest exit status 3, an error inside pytest: {_last_error(ended.tail)}"
    if seen.stopped and not bad:
        late = Outcome.TIMED_OUT if "timeout" in seen.stopped else Outcome.NOT_RUN
        return late, f"pytest stopped before all had run: {seen.stopped}"
    if status == _INTERRUPTED and not bad:
        return Outcome.INFRA, "pytest exit status 2: interrupted"
    if not seen.session and status != 0:
        if "No module named pytest" in ended.tail or status in (126, 127):
            return Outcome.INFRA, f"pytest can't be started: {_last_error(ended.tail)}"
        return Outcome.FAILED, f"exit status {status} before pytest began: {_last_error(ended.tail)}"
    if status not in (0, 1, _INTERRUPTED):
        return Outcome.FAILED, f"exit status {status}"
    if seen.others:
        return Outcome.FAILED, f"pytest counts {seen.others} failures that are no test's: {_last_error(ended.tail)}"
    return Outcome.PASSED, ""


def _last_error(tail: str) -> str:
    lines = [line.strip() for line in tail.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "rror" in line), lines[-1] if lines else "no output")[:300]


def _with_place(reason: str, running: str | None) -> str:
    return f"{reason} in {running}" if running else reason
