"""What a result file says once it is read, and the one form in which test ids of all formats are compared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.core.validation import TestOutcome

_ISO = re.compile(r"^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d+))?\s*(Z|[+-]\d\d:?\d\d)?$")


@dataclass(frozen=True, slots=True)
class ParsedTest:
    """One result as the file names it; `module` is True where a whole module reports (collection error or skip)."""

    id: str
    outcome: TestOutcome
    message: str = ""
    duration: float = 0.0
    at: datetime | None = None
    module: bool = False
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ParsedReport:
    """All that one file says.

    `complete` is False where it was cut, broken or lists fewer tests than it declares; `readable` is False where
    nothing can be made of it. `declared_bad` counts failures and errors by the file's own header or summary.
    `zoned` is False where a time in it names no zone (then it is taken as UTC).
    `bare` counts results without names (`test_x.py ..F.`), as letters by file.
    """

    tests: tuple[ParsedTest, ...] = ()
    complete: bool = True
    readable: bool = True
    at: datetime | None = None
    zoned: bool = True
    commit: str | None = None
    declared: int | None = None
    declared_bad: int | None = None
    bare: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


def unreadable(problem: str) -> ParsedReport:
    """A report of which nothing can be used, with the reason."""
    return ParsedReport(complete=False, readable=False, problems=(problem,))


def key(test: str) -> str:
    """The form in which ids are compared: `module.path|name`, the same for a node id and for its JUnit element.

    pytest `a/test_b.py::C::test_x[p::q]`, lit `SUITE :: dir/x.mlir`, gtest `Suite.Test`, ctest `name`.
    """
    if " :: " in test:
        suite, path = test.split(" :: ", 1)
        folder, _, name = path.rpartition("/")
        safe = suite.replace(".", "-")
        return f"{safe}.{(folder.replace('.', '_') or safe).replace('/', '.')}|{name}"
    stem, bracket, rest = test.partition("[")
    if "::" in stem:
        path, *inner, name = stem.split("::")
        module = path.replace("\\", "/").removesuffix(".py").removeprefix("./").replace("/", ".")
        return f"{'.'.join([module, *inner])}|{name}{bracket}{rest}"
    group, dot, name = test.partition(".")
    return f"{group.replace('/', '.')}|{name}" if dot else f"|{test}"


def junit_key(classname: str, name: str) -> str:
    """The same form from a JUnit element's class name and name."""
    if not classname or classname == name:
        return key(name) if classname else f"|{name}"
    return f"{classname.replace('/', '.')}|{name}"


def module_of(test: str) -> str:
    """The dotted module part of an id's key (`a.test_b` for a pytest id, the group for others), classes left out."""
    stem = test.partition("[")[0]
    if "::" in stem and " :: " not in stem:
        return key(stem.split("::", 1)[0] + "::x").partition("|")[0]
    return key(test).partition("|")[0]


def function_of(test: str) -> str:
    """The id without its parameters."""
    return test.partition("[")[0] if test.endswith("]") and " :: " not in test else test


def moment(text: str | None) -> datetime | None:
    """An ISO time; one without a zone is taken as UTC. None where it can't be read."""
    match = _ISO.match((text or "").strip())
    if match is None:
        return None
    zone = (match[4] or "Z").replace("Z", "+00:00")
    zone = zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
    try:
        return datetime.fromisoformat(f"{match[1]}T{match[2]}.{(match[3] or '0')[:6].ljust(6, '0')}{zone}").astimezone(
            UTC
        )
    except ValueError:
        return None


def names_zone(text: str | None) -> bool:
    """Whether a time says in which zone it is; True for what is none."""
    match = _ISO.match((text or "").strip())
    return match is None or match[4] is not None


def text_of(data: bytes) -> str:
    """Bytes as text whatever their encoding: byte order marks and UTF-16 are understood, bad bytes replaced."""
    for mark, encoding in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    if data[:4].count(0) == 2:
        return data.decode("utf-16-le" if data[1:2] == b"\0" else "utf-16-be", "replace")
    declared = re.match(rb"""\s*<\?xml[^>]*encoding=["']([A-Za-z0-9_-]{1,20})["']""", data)
    if declared is not None:
        try:
            return data.decode(declared[1].decode("ascii"), "replace")
        except LookupError:
            pass
    return data.decode("utf-8", "replace")
