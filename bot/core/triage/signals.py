"""Per failing identity its history over trunk's commits, in trunk's order, whatever the order in which reports came."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.core.triage.runs import Digest, Failure


class Word(StrEnum):
    """What the runs at one commit say of one test. MIXED: the same commit both passed and failed."""

    SUCCESSFUL = "successful"
    FAILED = "failed"
    MIXED = "mixed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, order=True)
class Test:
    """A test of a suite; one of the same name in another suite, or on another capacity, is another one."""

    __test__ = False

    suite: str
    id: str


@dataclass(frozen=True, slots=True)
class Look:
    """One test at one commit: `at` counts commits from the oldest of the window."""

    at: int
    sha: str
    word: Word
    signatures: frozenset[str] = frozenset()


class Trunk:
    """A window of trunk: its commits oldest first, and what the runs at them said.

    A run at a commit that is not on this trunk (a branch, a history since rewritten) is left out.
    """

    def __init__(self, order: Sequence[str], digests: Iterable[Digest]) -> None:
        self.order = tuple(order)
        self.at = {sha: index for index, sha in enumerate(self.order)}
        self._suites: dict[str, dict[int, list[Digest]]] = {}
        self._failures: dict[str, dict[Test, Failure]] = {}
        self._failed: dict[str, dict[int, dict[str, set[str]]]] = {}
        self._looks: dict[Test, tuple[Look, ...]] = {}
        self._judged: dict[str, tuple[int, ...]] = {}
        self.digests: list[Digest] = []
        for one in digests:
            at = self.at.get(one.sha)
            if at is None:
                continue
            self.digests.append(one)
            self._suites.setdefault(one.suite, {}).setdefault(at, []).append(one)
            failed = self._failed.setdefault(one.suite, {}).setdefault(at, {})
            for failure in one.failures:
                failed.setdefault(failure.test, set()).add(failure.signature)
                self._failures.setdefault(failure.signature, {})[Test(one.suite, failure.test)] = failure

    @property
    def suites(self) -> tuple[str, ...]:
        """The suites that ran in the window."""
        return tuple(self._suites)

    @property
    def signatures(self) -> tuple[str, ...]:
        """The causes that failed a test in the window, in the order in which they are met."""
        return tuple(self._failures)

    def failures(self, signature: str) -> dict[Test, Failure]:
        """The tests that failed by this cause, each with its last such failure."""
        return self._failures.get(signature, {})

    def runs(self, suite: str, at: int) -> tuple[Digest, ...]:
        """The runs of a suite at a commit."""
        return tuple(self._suites.get(suite, {}).get(at, ()))

    def judged(self, suite: str) -> tuple[int, ...]:
        """The commits at which a run of the suite proves something, oldest first."""
        if suite not in self._judged:
            runs = self._suites.get(suite, {}).items()
            self._judged[suite] = tuple(sorted(at for at, those in runs if any(run.judged for run in those)))
        return self._judged[suite]

    def looks(self, test: Test) -> tuple[Look, ...]:
        """The test's history, oldest first, without the commits of which nothing is known."""
        if test not in self._looks:
            looks = (self.look(test, at) for at in self.judged(test.suite))
            self._looks[test] = tuple(look for look in looks if look.word is not Word.UNKNOWN)
        return self._looks[test]

    def look(self, test: Test, at: int) -> Look:
        """The test at one commit."""
        runs = self._suites.get(test.suite, {}).get(at, ())
        causes = self._failed.get(test.suite, {}).get(at, {}).get(test.id, ())
        passed = any(test.id in run.passed for run in runs)
        word = Word.UNKNOWN
        if causes:
            word = Word.MIXED if passed else Word.FAILED
        elif passed:
            word = Word.SUCCESSFUL
        return Look(at, self.order[at], word, frozenset(causes))

    def last_green(self, test: Test, before: int) -> int | None:
        """The newest commit before `before` at which the test passed; of the test, not of its suite."""
        for look in reversed(self.looks(test)):
            if look.at < before and look.word is Word.SUCCESSFUL:
                return look.at
        return None

    def last_without(self, test: Test, before: int) -> int | None:
        """The newest commit before `before` at which the suite ran well and had no such test: it was not born yet."""
        for at in reversed(self.judged(test.suite)):
            if at >= before:
                continue
            runs = [run for run in self._suites[test.suite][at] if run.judged and not run.crashed and not run.unknown]
            if self.look(test, at).word is not Word.UNKNOWN or any(test.id in run.silent for run in runs):
                return None
            if runs and any(run.passed for run in runs):
                return at
        return None
