"""Result files of every harness as one value; a file that is missing, empty, cut or hostile is never "0 failures"."""

from __future__ import annotations

from collections.abc import Callable

from bot.core.reports.json import parse_json
from bot.core.reports.log import lines_of, parse_log, running_at_end
from bot.core.reports.parsed import (
    ParsedReport,
    ParsedTest,
    function_of,
    junit_key,
    key,
    module_of,
    moment,
    text_of,
    unreadable,
)
from bot.core.reports.xml import parse_xml

__all__ = [
    "FORMATS",
    "ParsedReport",
    "ParsedTest",
    "function_of",
    "junit_key",
    "key",
    "lines_of",
    "module_of",
    "moment",
    "parse",
    "parse_json",
    "parse_log",
    "parse_xml",
    "running_at_end",
    "text_of",
    "unreadable",
]

FORMATS: dict[str, Callable[[bytes], ParsedReport]] = {
    "junit": parse_xml,
    "gtest": parse_xml,
    "ctest": parse_xml,
    "lit-xunit": parse_xml,
    "lit-json": parse_json,
    "gtest-json": parse_json,
    "pytest-json": parse_json,
    "json": parse_json,
    "pytest-log": parse_log,
    "gtest-log": parse_log,
    "lit-log": parse_log,
    "log": parse_log,
}


def parse(kind: str, data: bytes) -> ParsedReport:
    """Read a result file of the named format; an unknown format is recognised by its first character."""
    reader = FORMATS.get(kind)
    if reader is None or (reader is not parse_log and _looks(data) not in (None, reader)):
        reader = _looks(data) or parse_log
    return reader(data)


def _looks(data: bytes) -> Callable[[bytes], ParsedReport] | None:
    head = text_of(data[:4096]).lstrip("\ufeff \t\r\n")
    if head.startswith("<"):
        return parse_xml
    if head.startswith("{"):
        return parse_json
    return None
