"""What a suite must run: learned from the last good runs, adjusted by what a change did on purpose."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from bot.core.canary import is_canary
from bot.core.reports import key, module_of
from bot.core.types import Outcome
from bot.core.validation import Report, TestOutcome


@dataclass(frozen=True, slots=True)
class TestChanges:
    """What a diff did to tests, by id (a deleted file or function stands for all that it held).

    `skipped` holds the ids whose skip the diff adds; None where nobody has looked: then `files`, all touched, speak.
    """

    __test__ = False

    deleted: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    skipped: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class SuiteManifest:
    """The tests of one suite, and the file that has to prove them."""

    name: str
    tests: tuple[str, ...]
    report: str = ""
    format: str = ""
    canary: str | None = None


@dataclass(frozen=True, slots=True)
class Exemption:
    """A waiver as far as it concerns what must run: a pattern of ids, where, and until which day (inclusive)."""

    pattern: str
    expires: date | None
    platform: str | None = None
    starts: date | None = None
    reason: str = ""

    def holds(self, *, test: str, platform: str, today: date) -> bool:
        """Whether it explains this test on this platform today; a waiver without an end never does."""
        if self.expires is None or today > self.expires or (self.starts is not None and today < self.starts):
            return False
        return (self.platform in (None, "", "*", platform)) and covers(self.pattern, test)


@dataclass(frozen=True, slots=True)
class Learned:
    """What the last good runs of a suite say it runs, which of it is skipped there, and whether the newest one showed
    its canary.
    """

    tests: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    canary: bool = False


def covers(pattern: str, test: str) -> bool:
    """Whether a pattern names the test: `*` and `?` are wild, brackets are text; a file or function covers its own."""
    if pattern == test or key(pattern) == key(test):
        return True
    if any(sign in pattern for sign in "*?"):
        translated = fnmatch.translate(re.sub(r"\[", "[[]", pattern))
        return re.match(translated, test) is not None
    return test.startswith((pattern + "[", pattern + "::")) or (pattern.endswith("/") and test.startswith(pattern))


def adjust(*, tests: Iterable[str], changes: TestChanges, include_added: bool = True) -> tuple[str, ...]:
    """The tests that must run after the change: without the deleted, renamed ones by their new ids, and the added.

    Where a rename and a deletion speak of the same test the one that names it more exactly counts, in a tie the rename.
    """
    names, gone = _Named(changes.renamed), _Named(dict.fromkeys(changes.deleted, ""))
    wild = [pattern for pattern in changes.deleted if any(sign in pattern for sign in "*?")]
    result: dict[str, str] = {}
    for test in tests:
        here, (depth, new) = names.find(test), gone.find(test)
        if (here[0] < 0 and any(covers(pattern, test) for pattern in wild)) or (new is not None and depth > here[0]):
            continue
        name = test if here[1] is None else here[1]
        result.setdefault(key(name), name)
    if include_added:
        for test in changes.added:
            result.setdefault(key(test), test)
    return tuple(result.values())


def renamed(test: str, names: Mapping[str, str]) -> str:
    """The id after the renames: its own, else that of its function, class, file or folder."""
    found = _Named(names).find(test)[1]
    return test if found is None else found


class _Named:
    """Ids and what becomes of them, found by a test's own id, its function, class, file or folders."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._keys = {key(old): new for old, new in reversed([*names.items()])}

    def find(self, test: str) -> tuple[int, str | None]:
        """The length of the name that covers the test, and the test's id under the new one; (-1, None) for none."""
        if not self._names:
            return -1, None
        own = self._keys.get(key(test))
        if own is not None:
            return len(test), own
        stem = test.partition("[")[0]
        ends = [len(stem)] if stem != test else []
        ends += [match.start() for match in re.finditer("::", stem)] + [m.end() for m in re.finditer("/", stem)]
        for end in sorted(ends, reverse=True):
            new = self._names.get(test[:end])
            if new is not None:
                return end, new + test[end:]
        return -1, None


def touches(files: Sequence[str], test: str) -> bool:
    """Whether one of the changed files is the one that holds the test."""
    module = module_of(test)
    if " :: " in test:
        path = test.split(" :: ", 1)[1]
        return any(file == path or file.endswith("/" + path) for file in files)
    return any(file.removesuffix(".py").replace("/", ".") == module for file in files if file.endswith(".py"))


def learn(*, reports: Sequence[Report], canary: str | None = None) -> Learned:
    """What a suite runs by its last good reports, newest first: all that the newest one ran or skipped.

    Of each test the newest word counts; a test counts as skipped only where no report given ran it.
    """
    good = [report for report in reports if report.outcome in {Outcome.PASSED, Outcome.WAIVED}]
    if not good:
        return Learned()
    ran: set[str] = set()
    for report in good:
        ran.update(test.id for test in report.tests if test.outcome.proves)
    tests = dict.fromkeys(test.id for test in good[0].tests if canary is None or not is_canary(test.id, canary))
    last = {test.id for test in good[0].tests if test.outcome in {TestOutcome.SKIPPED, TestOutcome.NOT_CHECKABLE}}
    return Learned(
        tests=tuple(tests),
        skipped=tuple(test for test in tests if test in last and test not in ran),
        canary=good[0].manifest.canary is True,
    )
