"""What the history of one cause comes to: a regression, flaky, fixed, or not to be classified, with the reason."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from bot.core.triage.signals import Test, Trunk, Word

STRETCHES = 3  # red stretches in the window that make a cause a flapping one
STEADY = 3  # reds in a row, none green between, that make one flake more than that
STEADY_AGAIN = 5  # the same, of a cause that was flaky before
VANISHED = "its tests are no more, so that nothing can tell whether they would pass: close it if they were meant to go"
MANY_GREENS = (10, 60)  # the least and most greens in a row that end a flaky one


class Kind(StrEnum):
    """What a cause is. INFRA says nothing of the code; INELIGIBLE carries an `Ineligible`."""

    REGRESSION = "regression"
    FLAKY = "flaky"
    INFRA = "infra"
    FIXED = "fixed"
    INELIGIBLE = "ineligible"


class Ineligible(StrEnum):
    """Why a cause is not classified, or (the last two) why a run of other CI tells none."""

    UNKNOWN_BASE = "cannot classify: no earlier run of it is known"
    NOT_SEEN = "it failed nowhere on this trunk"
    ONLY_INFRA = "all its failures are the machine's"
    CAUSE_UNKNOWN = "it failed, and its cause is not known"
    NOTHING_PROVED = "it passed, and does not prove that all its tests did"


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered of a breakage from before the window: the tests still red, since when, and how it stood.

    `gone` are its tests that trunk has no more, `renamed` those of them that passed under a new name. `parted`: trunk
    was rewritten, and shares no newer commit with what it was when the tests were red: what passed up to there passed
    before.
    """

    signature: str
    red: frozenset[Test] = frozenset()
    first_red: str | None = None
    last_green: str | None = None
    flaky: bool = False
    gone: frozenset[Test] = frozenset()
    renamed: frozenset[Test] = frozenset()
    parted: str | None = None


@dataclass(frozen=True, slots=True)
class Stretch:
    """One red stretch: from its first red to the green that ended it (None: it has not ended); places in the window.

    `row` are its reds since a red test last turned green, `returns` how often a test had come back to this cause.
    """

    first: int | None
    last: int | None
    ended: int | None = None
    reds: int = 0
    row: int = 0
    mixed: int = 0
    returns: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause on this trunk. Shas are None where they lie before the window and are not remembered.

    `red` are its tests without a green since they failed by it; of these `elsewhere` fail by another cause now and
    `unseen` did not run since. `gone` are those without a green that trunk has no more; they stay red where nothing
    else shows that the cause is gone. `after` and `first_red` bound the commits that can have brought it: after the
    first, up to the second.
    """

    signature: str
    kind: Kind
    why: str
    tests: tuple[Test, ...]
    red: tuple[Test, ...]
    elsewhere: tuple[tuple[Test, str], ...] = ()
    unseen: tuple[Test, ...] = ()
    gone: tuple[Test, ...] = ()
    first_red: str | None = None
    last_red: str | None = None
    last_green: str | None = None
    after: str | None = None
    changed_after: str | None = None
    born: bool = False
    ended: str | None = None
    stretches: int = 0
    reds: int = 0
    greens: int = 0
    ineligible: Ineligible | None = None

    @property
    def open(self) -> bool:
        """True while something must be done about it."""
        return bool(self.red) or self.kind is Kind.FLAKY

    @property
    def vanished(self) -> bool:
        """True where all that is red is no more: no run will ever tell whether it would pass."""
        return bool(self.red) and set(self.red) <= set(self.gone)


def find(trunk: Trunk, signature: str, known: Known | None = None) -> Finding:
    """Read one cause's history. `known` adds what lies before the window."""
    failed = trunk.failures(signature)
    parted = trunk.at.get(known.parted, -1) if known and known.parted else -1
    remembered = _before_window(trunk, signature, known, parted)
    tests = sorted({*failed, *(known.red if known else ())})
    if not tests:
        return Finding(signature, Kind.INELIGIBLE, Ineligible.NOT_SEEN.value, (), (), ineligible=Ineligible.NOT_SEEN)
    red, stretches, greens, since = _walk(trunk, signature, tests, remembered, parted)
    gone = red & known.gone if known else set()
    told = red - gone
    if gone and known and (told or gone & known.renamed or not known.gone.issuperset(tests)):
        red = told  # the others tell what becomes of the cause
    last = stretches[-1] if stretches else Stretch(None, None)
    first_red = trunk.order[last.first] if last.first is not None else (known.first_red if known else None)
    last_green, after, changed, born = _bounds(trunk, signature, tests, last)
    if last.first is None and known is not None:
        last_green = after = known.last_green
    kind, why, ineligible = _kind(
        red=bool(red),
        stretches=stretches,
        greens=greens,
        since=since,
        flaky=bool(known and known.flaky),
        based=after is not None or last_green is not None,
        gone=bool(gone),
        vanished=bool(red) and not told,
    )
    elsewhere, unseen = _now(trunk, signature, told)
    return Finding(
        signature=signature,
        kind=kind,
        why=why,
        tests=tuple(tests),
        red=tuple(sorted(red)),
        elsewhere=elsewhere,
        unseen=unseen,
        gone=tuple(sorted(gone)),
        first_red=first_red,
        last_red=trunk.order[last.last] if last.last is not None else None,
        last_green=last_green,
        after=after,
        changed_after=changed,
        born=born,
        ended=_ended(trunk, tests, last, over=bool(gone) and not red),
        stretches=len(stretches),
        reds=sum(one.reds for one in stretches),
        greens=greens,
        ineligible=ineligible,
    )


def greens_needed(reds: int, greens: int) -> int:
    """How many greens in a row make it 95 % sure that a flake of the rate seen so far is gone."""
    rate = min(0.95, max(reds, 1) / max(reds + greens, 1))
    low, high = MANY_GREENS
    return min(high, max(low, math.ceil(math.log(0.05) / math.log(1 - rate))))


def _before_window(trunk: Trunk, signature: str, known: Known | None, parted: int) -> frozenset[Test]:
    """The tests that were red when the window begins; none where the window holds the whole story, as it does of those
    that failed by it again since trunk was rewritten.
    """
    if known is None or not known.red or (known.first_red is not None and known.first_red in trunk.at):
        return frozenset()
    if known.parted is None:
        return known.red
    again = {
        test
        for test in known.red
        if any(look.at > parted and signature in look.signatures for look in trunk.looks(test))
    }
    return known.red - again


def _walk(
    trunk: Trunk, signature: str, tests: Iterable[Test], remembered: frozenset[Test], parted: int
) -> tuple[set[Test], list[Stretch], int, int]:
    """The tests red at the end, the red stretches, and the commits at which it was not seen: since the first red, and
    since the last one. Of the remembered ones what passed up to `parted` is older than their red.
    """
    events: dict[int, list[tuple[Test, bool, bool]]] = {}
    for test in tests:
        for look in trunk.looks(test):
            mine = signature in look.signatures
            if not mine and look.at <= parted and test in remembered:
                continue
            if mine or look.word is Word.SUCCESSFUL:
                events.setdefault(look.at, []).append((test, mine, look.word is Word.MIXED))
    red = set(remembered)
    stretches = [Stretch(None, None)] if red else []
    greened: dict[Test, int] = {}  # how often a test turned green after this cause
    greens = since = 0
    for at in sorted(events):
        failed = [test for test, mine, _ in events[at] if mine]
        passed = [test for test, mine, _ in events[at] if not mine]
        if failed:
            old = stretches.pop() if red else Stretch(at, at)
            mixed = any(mine and both for _, mine, both in events[at])
            returns = max(greened.get(test, 0) for test in failed)
            row = 1 if red.intersection(passed) else old.row + 1
            stretches.append(
                Stretch(old.first, at, None, old.reds + 1, row, old.mixed + mixed, max(old.returns, returns))
            )
            red.update(failed)
            since = 0
        elif stretches:
            greens += 1
            since += 1
        for test in red.intersection(passed):
            greened[test] = greened.get(test, 0) + 1
        if red:
            red.difference_update(passed)
            if not red:
                stretches.append(replace(stretches.pop(), ended=at))
    return red, stretches, greens, since


def _bounds(
    trunk: Trunk, signature: str, tests: list[Test], last: Stretch
) -> tuple[str | None, str | None, str | None, bool]:
    """The last green of the tests that were first red, the commit after which it came, the one after which the
    failures changed to it, and whether it is red from birth.
    """
    if last.first is None:
        return None, None, None, False
    first = last.first
    began = [test for test in tests if signature in trunk.look(test, first).signatures]
    greens = [trunk.last_green(test, first) for test in began]
    known = [at for at in greens if at is not None]
    born = [trunk.last_without(test, first) for test in began] if not known else []
    births = [at for at in born if at is not None]
    after = max(known, default=max(births, default=None))
    seen = [look.at for test in began for look in trunk.looks(test) if look.at < first]
    changed = max(seen, default=None)
    sha = trunk.order
    return (
        sha[max(known)] if known else None,
        sha[after] if after is not None else None,
        sha[changed] if changed is not None and (after is None or changed > after) else None,
        bool(births),
    )


def _ended(trunk: Trunk, tests: Iterable[Test], last: Stretch, *, over: bool) -> str | None:
    """The commit at which it was over; where that is told by tests that are no more, the newest one of their suites."""
    if last.ended is not None or not over:
        return trunk.order[last.ended] if last.ended is not None else None
    judged = max((trunk.judged(test.suite)[-1:] for test in tests), default=())
    at = judged[0] if judged and (last.last is None or judged[0] > last.last) else -1
    return trunk.order[at] if trunk.order else None


def _kind(
    *,
    red: bool,
    stretches: list[Stretch],
    greens: int,
    since: int,
    flaky: bool,
    based: bool,
    gone: bool,
    vanished: bool,
) -> tuple[Kind, str, Ineligible | None]:
    last = stretches[-1] if stretches else Stretch(None, None)
    mixed = sum(one.mixed for one in stretches)
    reds = sum(one.reds for one in stretches)
    came_back = max((one.returns for one in stretches), default=0)
    flapping = flaky or mixed > 0 or len(stretches) >= STRETCHES or came_back >= STRETCHES - 1
    if vanished:
        return Kind.FLAKY if flaky else Kind.REGRESSION, VANISHED, None
    steady = red and not last.mixed and last.row >= (STEADY_AGAIN if flapping else STEADY)
    if flapping and not steady:
        if not red and since >= greens_needed(reds, greens - since):
            return Kind.FIXED, f"{since} greens in a row since its last red", None
        why = f"{len(stretches)} red stretches" if len(stretches) >= STRETCHES else "it came and went"
        if mixed:
            why = f"the same commit passed and failed ({mixed} of {reds} red commits)"
        return Kind.FLAKY, why, None
    if not red:
        return Kind.FIXED, f"each of its tests ran and passed{', or is no more' if gone else ''}", None
    if not based:
        return Kind.INELIGIBLE, Ineligible.UNKNOWN_BASE.value, Ineligible.UNKNOWN_BASE
    why = f"red at {last.reds} tested commits" if last.reds > 1 else "seen once so far"
    return Kind.REGRESSION, why, None


def _now(trunk: Trunk, signature: str, red: set[Test]) -> tuple[tuple[tuple[Test, str], ...], tuple[Test, ...]]:
    """Of the red tests, those that fail by another cause now and those that did not run since."""
    elsewhere: list[tuple[Test, str]] = []
    unseen: list[Test] = []
    for test in sorted(red):
        looks = trunk.looks(test)
        judged = trunk.judged(test.suite)
        if looks and signature not in looks[-1].signatures and looks[-1].signatures:
            elsewhere.append((test, min(looks[-1].signatures)))
        elif not looks or (judged and judged[-1] > looks[-1].at):
            unseen.append(test)
    return tuple(elsewhere), tuple(unseen)
