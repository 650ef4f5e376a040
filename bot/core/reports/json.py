"""JSON results of lit, gtest, pytest-json-report and Graft's own harnesses; of a cut file, what stands whole in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from bot.core.reports.parsed import ParsedReport, ParsedTest, moment, names_zone, text_of, unreadable
from bot.core.validation import TestOutcome

_CODES = {
    "PASS": TestOutcome.PASSED,
    "FLAKYPASS": TestOutcome.PASSED,
    "XFAIL": TestOutcome.XFAILED,
    "FAIL": TestOutcome.FAILED,
    "XPASS": TestOutcome.FAILED,
    "UNRESOLVED": TestOutcome.FAILED,
    "TIMEOUT": TestOutcome.FAILED,
    "UNSUPPORTED": TestOutcome.SKIPPED,
    "SKIPPED": TestOutcome.SKIPPED,
    "EXCLUDED": TestOutcome.SKIPPED,
    "PASSED": TestOutcome.PASSED,
    "XFAILED": TestOutcome.XFAILED,
    "XPASSED": TestOutcome.PASSED,
    "FAILED": TestOutcome.FAILED,
    "ERROR": TestOutcome.ERROR,
    "NOT_RUN": TestOutcome.NOT_RUN,
    "NOT_CHECKABLE": TestOutcome.NOT_CHECKABLE,
}
_SHA = re.compile(r"^[0-9a-f]{7,40}$")
_ARRAY = re.compile(r'"(?:tests|testsuite)"\s*:\s*\[')


def parse_json(data: bytes) -> ParsedReport:
    """Read a report; never raises. What is empty or no JSON at all is unreadable."""
    text = text_of(data).strip("\ufeff \t\r\n\x00")
    if not text:
        return unreadable("the file is empty")
    try:
        document: Any = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        tests = tuple(test for item in _salvage(text) for test in _items(item))
        problem = f"no valid JSON: {error}"
        return ParsedReport(tests=tests, complete=False, problems=(problem,)) if tests else unreadable(problem)
    if isinstance(document, list):
        document = {"tests": document}
    if not isinstance(document, dict):
        return unreadable("the JSON holds no object")
    tests = tuple(_items(document))
    listed = "tests" in document or "testsuites" in document
    time = _text(document.get("timestamp") or document.get("created") or document.get("started_at"))
    return ParsedReport(
        tests=tests,
        readable=listed,
        complete=listed,
        at=moment(time),
        zoned=names_zone(time),
        commit=_commit(document),
        declared=document["tests"] if type(document.get("tests")) is int else None,
        declared_bad=_bad(document),
        problems=() if listed else ("the JSON holds no list of tests",),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _commit(document: dict[str, Any]) -> str | None:
    for name in ("commit", "sha", "head_sha", "revision"):
        value = document.get(name)
        if isinstance(value, str) and _SHA.match(value.lower()):
            return value.lower()
    return None


def _bad(document: dict[str, Any]) -> int | None:
    summary = document.get("summary")
    source = summary if isinstance(summary, dict) else document
    counts = [source[name] for name in ("failures", "failed", "errors", "error") if type(source.get(name)) is int]
    return sum(counts) if counts else None


def _items(item: object) -> Iterator[ParsedTest]:
    if not isinstance(item, dict):
        return
    for name in ("testsuites", "testsuite", "tests"):
        children = item.get(name)
        if isinstance(children, list):
            for child in children:
                yield from _items(child)
    test = _test(item)
    if test is not None:
        yield test


def _test(item: dict[str, Any]) -> ParsedTest | None:
    name = _text(item.get("id") or item.get("nodeid") or item.get("name"))
    code = _text(item.get("code") or item.get("outcome"))
    if name is None:
        return None
    message = _text(item.get("output") or item.get("message") or item.get("longrepr")) or ""
    duration = item.get("elapsed", item.get("duration", 0.0))
    seconds = float(duration) if isinstance(duration, int | float) else 0.0
    if code is not None:
        # an unknown code is not known to have passed
        outcome = _CODES.get(code.upper(), TestOutcome.FAILED)
        return ParsedTest(name, outcome, message[:20_000], seconds)
    if "status" in item and "classname" in item:
        failures = item.get("failures")
        result = str(item.get("result", "COMPLETED")).upper()
        if failures:
            outcome, message = TestOutcome.FAILED, json.dumps(failures)[:4000]
        elif str(item["status"]).upper() != "RUN" or result in ("SKIPPED", "SUPPRESSED"):
            outcome = TestOutcome.SKIPPED
        else:
            outcome = TestOutcome.PASSED
        return ParsedTest(f"{item['classname']}.{name}", outcome, message)
    return None


def _salvage(text: str) -> Iterator[object]:
    decoder = json.JSONDecoder(strict=False)
    for match in _ARRAY.finditer(text):
        place = match.end()
        while True:
            while place < len(text) and text[place] in ", \t\r\n":
                place += 1
            try:
                item, place = decoder.raw_decode(text, place)
            except (ValueError, RecursionError):
                break
            yield item
