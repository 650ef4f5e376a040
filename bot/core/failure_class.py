"""Whose a pull request's failure is: new, there before, flaky, the machine's, or not to be told. Never a guess."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum


class FailureKind(StrEnum):
    """What a failure is to the change; `unknown` excuses nothing."""

    NEW = "new"
    PRE_EXISTING = "pre-existing"
    FLAKY = "flaky"
    INFRA = "infra"
    UNKNOWN = "cannot classify"


@dataclass(frozen=True, slots=True)
class FailureClass:
    """The kind with its evidence in words."""

    kind: FailureKind
    why: str


@dataclass(frozen=True, slots=True)
class BaseRun:
    """What trunk's own run of the suite said at the commit below the change.

    `failed` gives the signature of each failing test, `passed` are those that ran and said yes; `whole`: it came to its
    end with nothing missing, so that a test it does not name was not there.
    """

    commit: str
    failed: Mapping[str, str]
    passed: Collection[str]
    whole: bool


@dataclass(frozen=True, slots=True)
class KnownCause:
    """An open breakage of trunk with the same signature; `held`: whether the base has it (None: not known)."""

    name: str
    flaky: bool
    held: bool | None

    @property
    def text(self) -> str:
        """Its name, and what is in doubt: without the base the failure may be the change's own, whatever it equals."""
        doubt = {
            True: "",
            False: ", which its base does not have yet: it may be the change's own",
            None: ", and its base is not known here: cannot classify",
        }[self.held]
        return f"{self.name}{', where it is flaky' if self.flaky else ''}{doubt}"


def classify(
    *,
    signature: str,
    tests: Collection[str],
    machine: bool,
    base: BaseRun | None,
    base_commit: str,
    known: KnownCause | None,
    passed_here: Collection[str],
) -> FailureClass:
    """The class of failing tests of one cause.

    `machine`: their text is the machine's trouble; `passed_here`: tests that passed in another run of this very commit.
    """
    at = base_commit[:10]
    if machine:
        return FailureClass(FailureKind.INFRA, "the machine's trouble by its text")
    if known is not None and known.flaky:
        return FailureClass(FailureKind.FLAKY, f"by the record of {known.name}")
    if known is not None and known.held:
        return FailureClass(FailureKind.PRE_EXISTING, f"trunk has had it before this change: {known.name}")
    if base is not None and signature in base.failed.values():
        return FailureClass(FailureKind.PRE_EXISTING, f"fails by the same cause at its base {at}")
    if set(tests) <= set(passed_here):
        return FailureClass(FailureKind.FLAKY, "passed in another run of this very commit")
    if base is None:
        return FailureClass(FailureKind.UNKNOWN, f"there is no run of trunk at its base {at} to compare with")
    other = [test for test in tests if test in base.failed]
    if other:
        return FailureClass(FailureKind.UNKNOWN, f"failed at its base {at} too, by another cause")
    fresh = [test for test in tests if test not in base.passed]
    if not fresh:
        return FailureClass(FailureKind.NEW, f"passed at its base {at}")
    if base.whole:
        return FailureClass(FailureKind.NEW, f"is not among the tests of its base {at}")
    return FailureClass(FailureKind.UNKNOWN, f"the run of its base {at} does not say: not all of it reported")
