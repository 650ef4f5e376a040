"""A failure's text as lines without what transport put around them: colours, stamps, ranks, workers, log levels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

LONGEST_LINE = 1200
MOST_LINES = 6000
_MOST_PREFIXES = 10

_ANSI = re.compile(r"\x1b(?:_[^\x07\x1b]{0,200}\x07|\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
# the same colours where a log viewer ate the escape character
_BARE_ANSI = re.compile(r"\[(?:[0-9]{1,2}(?:;[0-9]{1,3}){0,4})m")
_PREFIXES = re.compile(
    r"""(?:
      \s*\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[ ]?[+-]\d\d:?\d\d)?(?:[ \t|:]|-(?!-)){0,3}  # an ISO time
    | \s*\[?\d{1,2}:\d\d:\d\d(?:[.,]\d+)?(?:Z)?\]?[ \t]                                       # a time of day
    | \s*\d{4}/\d\d/\d\d[ ]\d\d:\d\d:\d\d(?:\.\d+)?[ ]                                         # Go's
    | \s*\[[ ]*\d{1,7}\.\d{6}\][ ]                                                            # the kernel's
    | \s*\d{1,5}\.\d{1,3}[ ](?=[A-Z]{1,7}:)                                                   # docker's clock
    | \s*\[\d{4}-\d\d-\d\d[T ][\d:.,+Z-]{5,20}\][ \t]?
    | \s*(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\ +\d{1,2}\ [\d:]{8}\ [\w.-]+\ [\w./-]+(?:\[\d+\])?:[ ]
    | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\ +\d{1,2}\ \d\d:\d\d:\d\d(?:\.\d+)?(?:[ ]|$)
    | [\w ./()-]{1,80}\t[\w ./()#-]{1,80}\t(?=\d{4}-\d\d-\d\dT)                               # job, step (gh run view)
    | \s*\[(?:rank|gw|worker|node|proc|pid|default|host)[ ]?-?\d+\]:?[ ]?
    | \s*\[\d+(?:,\d+)?\](?:<std(?:err|out)>)?:[ ]?
    | \s*\((?:[\w.@=-]+[ ]){0,3}(?:pid|ip)=[^)]{1,60}\)[ ]?
    | \s*(?:rank|worker)[ ]?\d+:[ ]
    | \s*std(?:out|err)[ ][FP][ ]
    | \s*\w{1,20}/(?:DEBUG|INFO|NOTICE|ERROR|FATAL)[ ]+
    | \#\d+[ ]\d+\.\d+[ ]                                                                     # docker build step
    | \#\d+[ ](?=[A-Z])
    | \s*[EFI]\d{4}[ ]\d\d:\d\d:\d\d[.\d]*[ ]+\d+[ ][^\]\s]{1,200}\][ ](?:\[[\d/]+\][ ])?         # glog
    | \s*(?:INFO|ERROR)[ ]\d\d-\d\d[ ]\d\d:\d\d:\d\d[ ]\[[\w./-]+:\d+\][ ]
    | (?:ERROR|CRITICAL)[ ]+[\w.]{1,80}:[\w.]{1,80}\.py:\d+[ ]                                   # pytest's captured log
    | INTERNALERROR>[ ]?
    | E(?:[ ]{3}|[ ]{2}(?=\S)|$)
    | \#\#\[(?:error|warning|debug|notice|command)\]
    | ::(?:error|notice)(?:[ ][^:]{0,200})?::
    | \s*\[\d+/\d+\][ ](?=\D)                                                                 # ninja's progress
    | \s*\[[ ]*\d{1,3}%\][ ]
    | \s*\[?(?:ERROR|FATAL|CRITICAL|SEVERE|error)\]?(?:[ ]{2,}|:?[ ]-[ ]|\][ ]?:?[ ]?)(?=\S)
    | \s*(?:\#[ ])?[|│┃][ ]{1,2}(?=\S)
    )""",
    re.VERBOSE,
)
_WARNING = re.compile(
    r"^\s*(?:W\d{4} \d\d:\d\d|\[?(?:WARNING|WARN|warning)\b|##\[warning\]|::warning|DeprecationWarning|\w*Warning: "
    r"|npm WARN)"
)
# an assertion that does not end on its line, and the place of one
_ASSERTION = re.compile(r"\bAssertion [`'\"‘](?!.*failed)")
_PLACE = re.compile(r"\.\w{1,4}:\d+:")
_MOST_BROKEN = 4
_FRAME = re.compile(r'^\s*File "?(?P<file>[^"\n]{1,400}?)"?,? line \d+,? in (?P<function>[\w<>.]+)')
_FRAME_ONLY = re.compile(r'^\s*File "[^"\n]{1,400}", line \d+\s*$')
_SHORT_FRAME = re.compile(r"^(?P<file>[\w./\\<>-]{1,300}\.py):\d+:(?: in (?P<function>[\w<>]+)| [A-Z]\w*$)")
_TOOL_FRAME = re.compile(
    r"[/\\](?:_pytest|pluggy|pytest_\w+|xdist|coverage|execnet|(?:site-packages|dist-packages|lit)[/\\]lit)[/\\](?!monkeypatch|python_api|raises"
    r"|outcomes|recwarn|doctest|unraisable|threadexception)\w+[/\\\w]*\.py"
)
_MARKED = re.compile(r"^>(?: {2,}|\t|$)")  # the line of a test's source that failed
# what prepares tests to be run
_SETUP_FILE = re.compile(r"^(?:conftest|lit(?:\.\w+)*\.cfg|lit\.local)(?:\.py)?$|^(?:nox|tox)file\.py$")
_ITEM = re.compile(r"^(?:FAILED|ERROR) (?:\[[\d.]+s\] )?(?P<test>\S+(?:\[.*?\])?)(?: - (?P<rest>.*))?$")
_HEADER = re.compile(r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<test>[\w./:-]+(?:\[.{0,200}\])?) _{3,}$")
_LIT = re.compile(r"^(?:FAIL|XPASS|UNRESOLVED|TIMEOUT): [\w-]+ :: (?P<test>\S+)")


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its `text` without prefixes, how deep it stands, and what it is besides a message."""

    text: str
    indent: int
    warning: bool = False
    source: bool = False
    frame: tuple[str, str] | None = None  # (file's name, function)
    harness: bool = False
    tool: bool = False  # a frame of the tool that runs the tests


def strip_colours(text: str) -> str:
    """`text` without terminal escapes."""
    if "\x1b" in text:
        text = _ANSI.sub("", text).replace("\x1b", "")
    return _BARE_ANSI.sub("", text) if "m" in text and "[" in text else text


def clean(text: str) -> list[Line]:
    """The lines of `text`; of a very long one its beginning and its end."""
    raw = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if all(line.startswith(">") or not line.strip() for line in raw):
        raw = [line[1:].removeprefix(" ") for line in raw]  # quoted
    if len(raw) > MOST_LINES:
        raw = raw[: MOST_LINES // 2] + raw[-MOST_LINES // 2 :]
    lines = list(_lines(raw))
    return _whole(lines) if "Assertion" in text else lines


def _whole(lines: list[Line]) -> list[Line]:
    """`lines` with an assertion that was broken into several put together again: its place, its text, its end."""
    put: list[Line] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        after = _rest_of_assertion(lines, index) if _ASSERTION.search(line.text) else 0
        if after:
            before = next((back for back in range(_MOST_BROKEN) if _placed(put, line.text, back)), 0)
            parts = [*put[len(put) - before :], line, *lines[index : index + after]]
            del put[len(put) - before :]
            line = replace(line, text=" ".join(part.text for part in parts)[:LONGEST_LINE])
            index += after
        put.append(line)
    return put


def _rest_of_assertion(lines: list[Line], index: int) -> int:
    """Over how many lines from `index` the assertion before it goes on, 0 where it doesn't end."""
    following = lines[index : index + _MOST_BROKEN - 1]
    return next((more for more, line in enumerate(following, 1) if "failed" in line.text), 0)


def _placed(put: list[Line], text: str, back: int) -> bool:
    """Whether the file that an assertion stands in is told `back` lines before it."""
    return _PLACE.search(put[-back].text if back and back <= len(put) else text) is not None


def _lines(raw: list[str]) -> Iterator[Line]:
    after_frame: int | None = None
    for line in raw:
        body = strip_colours(line[: 2 * LONGEST_LINE])[:LONGEST_LINE]
        warning = bool(_WARNING.match(body))
        harness = False
        for _ in range(_MOST_PREFIXES):
            found = _PREFIXES.match(body)
            if not found or not found.end():
                break
            harness = harness or found.group().startswith("INTERNALERROR")
            body = body[found.end() :]
            warning = warning or bool(_WARNING.match(body))
        bare = body.strip()
        if not bare:
            continue
        indent = len(body) - len(body.lstrip())
        frame = _FRAME.match(body) or _SHORT_FRAME.match(body)
        where = (base(frame["file"]), frame["function"] or "") if frame else None
        source = (
            _MARKED.match(body) is not None
            or (after_frame is not None and indent > after_frame)
            or bare.startswith("--> ")
        )
        is_frame = frame is not None or _FRAME_ONLY.match(body) is not None
        after_frame = indent if is_frame else None
        tool = is_frame and _TOOL_FRAME.search(body) is not None
        yield Line(bare, indent, warning, source and not is_frame, where, harness, tool)


def of_setup(frame: tuple[str, str] | None) -> bool:
    """Whether the frame is of what prepares tests to be run: a conftest, a hook of pytest's, lit's configuration."""
    return frame is not None and (_SETUP_FILE.match(frame[0]) is not None or frame[1].startswith("pytest_"))


def base(path: str) -> str:
    """The last part of a path, of either system's."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def named_test(line: str) -> tuple[str, str] | None:
    """(test, what follows) where a line says which test failed."""
    for pattern in (_ITEM, _HEADER, _LIT):
        found = pattern.match(line)
        if found:
            told = found.groupdict()
            return told["test"], told.get("rest") or ""
    return None


def function_of(test: str | None) -> str:
    """A test's function without parameters and without its folders: `test_core.py::test_dot`; "" if there is none."""
    if not test:
        return ""
    head = re.split(r"\[", test, maxsplit=1)[0].strip()
    file, colons, inside = head.partition("::")
    return f"{base(file)}{colons}{inside}"
