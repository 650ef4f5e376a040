"""All causes of a trunk at once: what each is and becomes, what it hides and stood behind, and whose it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from bot.core.config import Config, OtherCi, Suite
from bot.core.owners import areas_of
from bot.core.triage.findings import Finding, Known, find
from bot.core.triage.lifecycle import Hand, State, Step, step
from bot.core.triage.masking import masked, stood_behind
from bot.core.triage.runs import suite_of
from bot.core.triage.signals import Test, Trunk


@dataclass(frozen=True, slots=True)
class Remembered:
    """A breakage as stored: `closed_at` is the commit at which it was last called over, `hand` what a person did.
    `settled`: only what came after it was over counts as seen anew, not that it goes on.
    """

    known: Known
    state: State
    closed_at: str | None = None
    hand: Hand = Hand.NOTHING
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """One cause with its next step; `masks` are the tests that it hides, `behind` the causes that hid it."""

    finding: Finding
    step: Step
    masks: tuple[Test, ...] = ()
    behind: frozenset[str] = frozenset()


def survey(trunk: Trunk, remembered: Mapping[str, Remembered]) -> tuple[Verdict, ...]:
    """What is to be done, oldest cause first; causes of which nothing is to be said are left out.

    A function of trunk's order and of what its runs said, so that reports may come late, twice and in any order.
    """
    alive = (signature for signature, one in remembered.items() if one.state.alive)
    findings = []
    for signature in dict.fromkeys([*trunk.signatures, *alive]):
        one = remembered.get(signature)
        findings.append(find(trunk, signature, one.known if one else None))
    hidden = masked(trunk, findings)
    verdicts = []
    for finding in sorted(findings, key=lambda f: (trunk.at.get(f.first_red or "", -1), f.signature)):
        one = remembered.get(finding.signature)
        before = one.state if one else None
        hand = one.hand if one else Hand.NOTHING
        took = step(before=before, finding=finding, hand=hand, newer_red=_newer(trunk, finding, one))
        if took.state is None or (took.state is before and not before.alive):
            continue
        masks = hidden.get(finding.signature, ()) if took.state.alive else ()
        verdicts.append(Verdict(finding, took, masks, stood_behind(trunk, finding)))
    return tuple(verdicts)


def _newer(trunk: Trunk, finding: Finding, one: Remembered | None) -> bool:
    """Whether the cause was seen at a newer commit than the one at which it was last called over."""
    closed = one.closed_at if one else None
    if one is not None and one.settled:
        return finding.first_red in trunk.at and trunk.at[finding.first_red] > trunk.at.get(closed or "", -1)
    if closed is None or closed not in trunk.at or finding.last_red is None:
        return True
    return trunk.at[finding.last_red] > trunk.at[closed]


def areas_of_cause(config: Config, *, suites: Iterable[str], files: Collection[str]) -> tuple[str, ...]:
    """The area that owns a cause: of the tests' own files where all lie in one area, else those of their suites."""
    by_path = [areas_of([file], config) for file in files]
    if by_path and all(by_path):
        found = dict.fromkeys(areas[0] for areas in by_path)
        if len(found) == 1:
            return tuple(found)
    return suite_areas(config, suites)


def suite_areas(config: Config, suites: Iterable[str]) -> tuple[str, ...]:
    """The areas of the named suites, each once."""
    validation = config.validation
    known: list[Suite | OtherCi] = [*validation.l1, *validation.l2, *validation.l3, *config.triage.other_ci]
    return tuple(dict.fromkeys(area for name in suites if (area := _area(known, suite_of(name)))))


def _area(known: Iterable[Suite | OtherCi], name: str) -> str | None:
    return next((suite.area for suite in known if suite.suite == name and suite.area), None)
