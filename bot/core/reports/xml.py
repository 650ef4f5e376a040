"""JUnit-like XML of pytest, gtest, lit and CTest (and CTest's own Test.xml), read to the last usable element.

A document type is refused, so no entity is ever expanded. Bytes that XML forbids are replaced before, so a failure
whose message holds them stays a failure. Where the file breaks off, what stands complete before it counts.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from datetime import datetime
from xml.parsers import expat

from bot.core.reports.parsed import ParsedReport, ParsedTest, moment, names_zone, text_of, unreadable
from bot.core.validation import TestOutcome

_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_CHARACTER = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_DECLARATION = re.compile(r"^\s*<\?xml[^>]*\?>")
_CASE = re.compile(
    r"""<testcase\b((?:[^<>"']|"[^"<]*"|'[^'<]*')*?)(?:/>|>((?:(?!<testcase\b).)*?)</testcase\s*>)""", re.DOTALL
)
_OPEN_CASE = re.compile(r"""<testcase\b((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>""", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_CDATA = re.compile(r"<!\[CDATA\[.*?(?:\]\]>|\Z)", re.DOTALL)
_OUTPUT = re.compile(r"<(system-out|system-err)\b.*?(?:</\1\s*>|\Z)", re.DOTALL)
_SHA = re.compile(r"^[0-9a-f]{40}$")
# a shorter one is a commit only where the name says nothing else
_SHORT_SHA = re.compile(r"^[0-9a-f]{7,40}$")
_COMMIT = re.compile(r"^(?:(?:git|github|ci|head|build)[._-]?)?(?:commit|sha|revision)(?:[._-]?(?:id|sha|hash))?$")
_BAD_STATUS = frozenset({"fail", "failed", "failure", "error"})
_OFF_STATUS = frozenset({"notrun", "disabled", "skipped", "suppressed", "not run"})


class _RefusedError(Exception):
    pass


@dataclass
class _Case:
    attributes: dict[str, str]
    start: int
    suite: str
    at: datetime | None
    bad: TestOutcome | None = None
    skipped: str | None = None
    message: list[str] = field(default_factory=list)


def parse_xml(data: bytes) -> ParsedReport:
    """Read a report; never raises. An empty, non-XML or entity-declaring file is unreadable."""
    text = _clean(text_of(data))
    if not text.strip():
        return unreadable("the file is empty")
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return unreadable("the file declares a document type: refused, no test report needs one")
    if "<" not in text:
        return unreadable("the file is not XML")
    reader = _Reader()
    encoded = text.encode()
    problem = reader.run(encoded)
    tests = list(reader.tests)
    problems: tuple[str, ...] = ()
    if problem is not None:
        problems = (problem,)
        tests += _recover(encoded[reader.resume :].decode("utf-8", "replace"), reader.suite_at)
        if not tests and not reader.seen_root:
            return unreadable(problem)
    declared, bad = reader.declared("tests"), reader.declared_bad()
    complete = problem is None
    # of pytest's own file that is well-formed the surplus is subtests: each is counted, only a failed one is listed
    own = problem is None and bool(reader.tops) and all(top.get("name") == "pytest" for top in reader.tops)
    if declared is not None and declared > len(tests) and not (own and tests):
        complete = False
        problems += (f"the header says {declared} tests, {len(tests)} are listed",)
    return ParsedReport(
        tests=tuple(tests),
        complete=complete,
        at=reader.first_at,
        zoned=reader.zoned,
        commit=reader.commit,
        declared=declared,
        declared_bad=bad,
        problems=problems,
    )


def _clean(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = int(match[1], 16) if match[1] else int(match[2])
        legal = code in (9, 10, 13) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF
        return match[0] if legal else "\ufffd"

    return _CHARACTER.sub(replace, _FORBIDDEN.sub("\ufffd", _DECLARATION.sub("", text.lstrip("\ufeff"))))


class _Reader:
    def __init__(self) -> None:
        self.tests: list[ParsedTest] = []
        self.commit: str | None = None
        self.seen_root = False
        self.resume = 0
        self.suites: list[tuple[str, datetime | None]] = []
        self.roots: list[dict[str, str]] = []
        self.tops: list[dict[str, str]] = []
        self.first_at: datetime | None = None
        self.zoned = True
        self.suite_at: datetime | None = None
        self.case: _Case | None = None
        self.collect: list[str] | None = None
        self.ctest: dict[str, str] | None = None
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.data
        self.parser.EntityDeclHandler = self.refuse
        self.parser.StartDoctypeDeclHandler = self.refuse

    def run(self, encoded: bytes) -> str | None:
        """Feed it all; None where well-formed, else what is wrong."""
        try:
            self.parser.Parse(encoded, True)
        except expat.ExpatError as error:
            self.resume = self.case.start if self.case is not None else self.parser.ErrorByteIndex
            return f"not well-formed at line {error.lineno}: {expat.errors.messages[error.code]}"
        except _RefusedError:
            self.tests.clear()
            return "the file declares a document type"
        return None

    def refuse(self, *_: object) -> None:
        raise _RefusedError

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.seen_root = True
        if name == "testsuites":
            self.roots.append(attributes)
            self.note_time(attributes)
            self.note_commit(attributes)
        elif name == "testsuite":
            at = self.note_time(attributes) or (self.suites[-1][1] if self.suites else self.first_at)
            if not self.suites:
                self.tops.append(attributes)
            self.suites.append((attributes.get("name", ""), at))
            self.note_commit(attributes)
            self.suite_at = at
        elif name == "property" and self.case is None:
            label, value = attributes.get("name", "").lower(), attributes.get("value", "").strip().lower()
            if _SHA.match(value) and re.search(r"sha|commit|revision|head", label):
                self.commit = value
            else:
                self.note_commit({label: value})
        elif name == "testcase":
            suite, at = self.suites[-1] if self.suites else ("", self.first_at)
            own = moment(attributes.get("timestamp"))
            self.case = _Case(attributes, self.parser.CurrentByteIndex, suite, own or at)
        elif self.case is not None and name in ("failure", "error"):
            kind = TestOutcome.FAILED if name == "failure" else TestOutcome.ERROR
            self.case.bad = self.case.bad or kind
            self.case.message.append(attributes.get("message", ""))
            self.collect = []
        elif (self.suites or self.roots) and self.case is None and name in ("failure", "error"):
            # of a whole suite, which then has no test to put it on
            suite, at = self.suites[-1] if self.suites else ("", self.first_at)
            self.tests.append(ParsedTest(suite or "(suite)", TestOutcome.ERROR, attributes.get("message", ""), at=at))
        elif self.case is not None and name == "skipped":
            self.case.skipped = f"{attributes.get('type', '')} {attributes.get('message', '')}".strip()
            self.collect = []
        elif name == "Test" and "Status" in attributes:
            self.ctest = dict(attributes)
        elif self.ctest is not None and name == "Name":
            self.collect = []

    def note_time(self, attributes: dict[str, str]) -> datetime | None:
        at = moment(attributes.get("timestamp"))
        self.zoned = self.zoned and names_zone(attributes.get("timestamp"))
        if at is not None and (self.first_at is None or at < self.first_at):
            self.first_at = at
        return at

    def note_commit(self, attributes: dict[str, str]) -> None:
        for name, value in attributes.items():
            if _COMMIT.match(name.lower()) and _SHORT_SHA.match(value.lower()):
                self.commit = value.lower()

    def data(self, text: str) -> None:
        if self.collect is not None:
            self.collect.append(text)

    def end(self, name: str) -> None:
        if name == "testsuite":
            self.suites = self.suites[:-1]
        elif name in ("failure", "error", "skipped") and self.case is not None and self.collect is not None:
            self.case.message.append("".join(self.collect))
            self.collect = None
        elif name == "testcase" and self.case is not None:
            self.tests.append(_test(self.case))
            self.case = None
        elif name == "Name" and self.ctest is not None and self.collect is not None:
            self.ctest["name"] = "".join(self.collect)
            self.collect = None
        elif name == "Test" and self.ctest is not None:
            status, test = self.ctest.get("Status", "").lower(), self.ctest.get("name", "").strip()
            if test:
                self.tests.append(ParsedTest(test, _by_status(status) or TestOutcome.FAILED))
            self.ctest = None

    def declared(self, attribute: str) -> int | None:
        """The count in the header: of the root, else the sum of the outermost suites."""
        values = [_number(root.get(attribute)) for root in self.roots] if self.roots else []
        found = [value for value in values if value is not None]
        if not found:
            found = [value for top in self.tops if (value := _number(top.get(attribute))) is not None]
        return sum(found) if found else None

    def declared_bad(self) -> int | None:
        """Failures and errors by the header."""
        counts = [count for name in ("failures", "errors") if (count := self.declared(name)) is not None]
        return sum(counts) if counts else None


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.strip().isdigit() else None


def _by_status(status: str) -> TestOutcome | None:
    if status in _BAD_STATUS:
        return TestOutcome.FAILED
    if status in _OFF_STATUS:
        return TestOutcome.SKIPPED
    return TestOutcome.PASSED if status in ("passed", "run", "success", "completed") else None


def _test(case: _Case) -> ParsedTest:
    get = case.attributes.get
    outcome = TestOutcome.PASSED
    statuses = [_by_status(get(name, "").lower()) for name in ("status", "result")]
    if case.bad is not None:
        outcome = case.bad
    elif TestOutcome.FAILED in statuses:
        outcome = TestOutcome.FAILED
    elif case.skipped is not None:
        expected = "xfail" in case.skipped.partition(" ")[0]
        outcome = TestOutcome.XFAILED if expected else TestOutcome.SKIPPED
        case.message.insert(0, case.skipped)
    elif TestOutcome.SKIPPED in statuses:
        outcome = TestOutcome.SKIPPED
    classname, name = get("classname", "").strip(), get("name", "").strip()
    module = not classname and bool(name) and (outcome.bad or outcome is TestOutcome.SKIPPED) and "[" not in name
    line = get("line", "")
    return ParsedTest(
        id=_name(classname, name, case.suite, get("file")),
        outcome=outcome,
        message="\n".join(part for part in case.message if part.strip())[:20_000],
        duration=_seconds(get("time", "")),
        at=case.at,
        module=module,
        file=get("file"),
        line=int(line) if line.isdigit() else None,
    )


def _name(classname: str, name: str, suite: str, file: str | None) -> str:
    """An id whose `key` is that of the element: a lit id, a pytest node id or a dotted name."""
    if not classname or classname == name:
        return name or "(without a name)"
    safe = suite.replace(".", "-")
    if safe and classname.startswith(safe + ".") and "." in name and "[" not in name:
        folder = classname[len(safe) + 1 :]
        return f"{suite} :: {name}" if folder == safe else f"{suite} :: {folder}/{name}"
    if "." in classname or (file or "").endswith(".py") or name.startswith("test_"):
        parts = classname.split(".")
        inner = next((index for index, part in enumerate(parts) if index and part[:1].isupper()), len(parts))
        return "::".join(["/".join(parts[:inner]) + ".py", *parts[inner:], name])
    return f"{classname}.{name}"


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _recover(text: str, at: datetime | None) -> list[ParsedTest]:
    """Results that stand whole after the place where the file broke, and the one whose failure had begun."""
    text = _CDATA.sub("", text)
    found, end = [], 0
    for match in _CASE.finditer(text):
        found.append(_recovered(match[1], match[2] or "", at))
        end = match.end()
    rest = _OPEN_CASE.search(text, end)
    if rest is not None and not rest[0].endswith("/>"):
        body = text[rest.end() :]
        if re.search(r"<(failure|error)\b", _OUTPUT.sub("", body)):
            found.append(_recovered(rest[1], body, at))
    return found


def _recovered(attributes: str, body: str, at: datetime | None) -> ParsedTest:
    pairs = {m[1]: html.unescape(m[2] if m[2] is not None else m[3]) for m in _ATTRIBUTE.finditer(attributes)}
    body = _OUTPUT.sub("", body)
    case = _Case(pairs, 0, "", at)
    bad = re.search(r"<(failure|error)\b", body)
    if bad is not None:
        case.bad = TestOutcome.FAILED if bad[1] == "failure" else TestOutcome.ERROR
        case.message.append(html.unescape(body[bad.start() :])[:4000])
    skipped = re.search(r"<skipped\b([^>]*)", body)
    if skipped is not None:
        inner = {m[1]: m[2] or m[3] or "" for m in _ATTRIBUTE.finditer(skipped[1])}
        case.skipped = f"{inner.get('type', '')} {inner.get('message', '')}".strip()
    return _test(case)
