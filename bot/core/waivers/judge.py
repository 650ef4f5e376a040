"""Leave to land in spite of a failure: who gave it, for what, until when, and where it no longer holds.

A waiver stands in a pull request (bound to its head commit) or in the fork's `.github/graft-waivers.yml`. It ends at
the end of the UTC day that it names, and is never renewed in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from bot.core.command import Waive
from bot.core.comments import CommentFact, commands
from bot.core.config import Config
from bot.core.owners import People, plain
from bot.core.paths import matches
from bot.core.types import Level, Outcome

NEAR = timedelta(days=3)
LONGEST = timedelta(days=90)
TOO_MANY = 50
_WILD = frozenset("*?")


class ScopeKind(StrEnum):
    """What a waiver names."""

    TEST = "test"
    SUITE = "suite"
    METRIC = "metric"


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that did not pass: a test of a suite, a metric of a kernel, or the suite as a whole.

    `why` is for people, and makes no difference between two failures; nor does `unsure`: that what was measured is too
    noisy to tell whether it failed.
    """

    level: Level
    suite: str
    outcome: Outcome
    test: str | None = None
    metric: str | None = None
    kernel: str | None = None
    why: str = field(default="", compare=False)
    unsure: bool = field(default=False, compare=False)

    @property
    def name(self) -> str:
        """What a waiver would have to say."""
        if self.metric is not None:
            return f"{self.suite}#{self.kernel}/{self.metric}" if self.kernel else f"{self.suite}#{self.metric}"
        if self.test is None:
            return self.suite
        return self.test if "::" in self.test else f"{self.suite}::{self.test}"


class WaiverState(StrEnum):
    """What a waiver is worth now."""

    STANDING = "standing"
    NEAR_EXPIRY = "near_expiry"
    LAPSED = "lapsed"
    NEEDS_SECOND = "needs_second"
    NOT_ALLOWED = "not_allowed"
    REVOKED = "revoked"
    OTHER_COMMIT = "other_commit"
    TOO_LONG = "too_long"
    TOO_WIDE = "too_wide"


@dataclass(frozen=True, slots=True)
class Waiver:
    """A waiver as it was given; `head` None means that it stands in the fork's file and binds to no commit."""

    scope: str
    until: date
    owner: str
    reason: str
    plan: str
    by: tuple[str, ...]
    head: str | None = None
    pull: int | None = None
    given_at: datetime | None = None
    comment_id: int | None = None

    @property
    def ends(self) -> datetime:
        """The first moment at which it no longer holds: 00:00 UTC of the day after `until`."""
        return datetime.combine(self.until, time(), UTC) + timedelta(days=1)

    def covers(self, failure: Failure) -> bool:
        """True where the scope names this failure."""
        scope = self.scope
        if "#" in scope and "::" not in scope:
            suite, _, metric = scope.partition("#")
            whole = f"{failure.kernel}/{failure.metric}" if failure.kernel else failure.metric
            return failure.metric is not None and suite == failure.suite and metric in (whole, failure.metric)
        if failure.metric is not None or failure.test is None:
            return scope == failure.suite
        return scope == failure.suite or any(
            scope in (name, name.partition("[")[0]) for name in (failure.test, f"{failure.suite}::{failure.test}")
        )


@dataclass(frozen=True, slots=True)
class JudgedWaiver:
    """A waiver with what it is worth now, and why; `areas` are those that go red when it lapses."""

    waiver: Waiver
    state: WaiverState
    text: str
    areas: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """True where it exempts what it names."""
        return self.state in (WaiverState.STANDING, WaiverState.NEAR_EXPIRY)

    def exempts(self, failure: Failure, *, head: str) -> bool:
        """True where it holds, covers this failure, on this commit, and by two people where that is one of L3."""
        enough = failure.level is not Level.L3 or len({plain(name) for name in self.waiver.by}) > 1
        return self.holds and enough and self.waiver.head in (None, head) and self.waiver.covers(failure)


def kind_of(scope: str, config: Config) -> ScopeKind | None:
    """What a scope names by its form: `suite#metric`, a suite of the file, a test (`::`); None for anything else."""
    names = {suite.suite for level in Level for suite in config.validation.of(level)}
    if "#" in scope and "::" not in scope:
        return ScopeKind.METRIC if scope.partition("#")[0] in names else None
    if scope in names:
        return ScopeKind.SUITE
    return ScopeKind.TEST if "::" in scope else None


def levels_of(waiver: Waiver, config: Config) -> frozenset[Level]:
    """The levels of the suite that the scope names; all where it is a test id that names none."""
    name = waiver.scope.partition("#")[0].partition("::")[0]
    found = {level for level in Level for suite in config.validation.of(level) if suite.suite == name}
    return frozenset(found or Level)


def from_comments(
    *, comments: Iterable[CommentFact], people: People, head: str, pull: int, config: Config, now: datetime
) -> tuple[JudgedWaiver, ...]:
    """The waivers given in a pull request's comments, each judged; two people's waivers of one scope become one.

    L3 takes two maintainers, each with a comment of their own; the earlier end of the two holds.
    """
    given: dict[str, list[tuple[CommentFact, Waiver]]] = {}
    void: list[JudgedWaiver] = []
    for comment, command in commands(comments, "waive"):
        assert isinstance(command.args, Waive)
        waiver = _given(comment, command.args, pull)
        refused = _refused(comment, waiver, people=people, head=head)
        if refused is not None:
            void.append(refused)
        else:
            given.setdefault(waiver.scope, []).append((comment, waiver))
    judged = [_joined([waiver for _, waiver in several], config=config, now=now) for several in given.values()]
    return (*judged, *void)


def _given(comment: CommentFact, args: Waive, pull: int) -> Waiver:
    return Waiver(
        args.scope, args.until, args.owner, args.reason, args.plan, by=(comment.author,), head=comment.head or "",
        pull=pull, given_at=comment.created_at, comment_id=comment.id,
    )  # fmt: skip


def _refused(comment: CommentFact, waiver: Waiver, *, people: People, head: str) -> JudgedWaiver | None:
    if comment.deleted or comment.edited:
        how = "deleted" if comment.deleted else "edited"
        return JudgedWaiver(waiver, WaiverState.REVOKED, f"the comment was {how}: write a new one")
    if not people.can_maintain(comment.author):
        return JudgedWaiver(waiver, WaiverState.NOT_ALLOWED, f"{comment.author} does not maintain this fork")
    if waiver.head != head:
        known = f"commit {waiver.head[:10]}" if waiver.head else "a commit that is not known"
        return JudgedWaiver(waiver, WaiverState.OTHER_COMMIT, f"given for {known}: a push voids it, waive again")
    return None


def _joined(several: Sequence[Waiver], *, config: Config, now: datetime) -> JudgedWaiver:
    """One waiver of those that name the same scope: each person's latest word counts."""
    latest = {plain(waiver.by[0]): waiver for waiver in several}
    first = several[-1]
    people = tuple(dict.fromkeys(waiver.by[0] for waiver in latest.values()))
    ends = [waiver.until for waiver in latest.values()]
    until = min(ends) if Level.L3 in levels_of(first, config) else max(ends)
    joined = Waiver(
        first.scope, until, first.owner, first.reason, first.plan, people, first.head, first.pull, first.given_at,
        first.comment_id,
    )  # fmt: skip
    return judge(joined, config=config, now=now)


def judge(waiver: Waiver, *, config: Config, now: datetime) -> JudgedWaiver:
    """What one waiver is worth now; `now` is aware."""
    state, text = _state(waiver, config, now)
    return JudgedWaiver(waiver, state, text, areas_of_waiver(waiver, config))


def _state(waiver: Waiver, config: Config, now: datetime) -> tuple[WaiverState, str]:
    end = f"{waiver.ends:%Y-%m-%d %H:%M} UTC"
    if now >= waiver.ends:
        return WaiverState.LAPSED, f"lapsed at {end}; {waiver.owner} has to mend it or ask anew"
    if waiver.given_at is not None and waiver.ends - waiver.given_at > LONGEST + timedelta(days=1):
        return WaiverState.TOO_LONG, f"given for more than {LONGEST.days} days: name an earlier day"
    # what may be of other levels, too, holds there by one; `exempts` asks for two for each failure of L3
    if levels_of(waiver, config) == {Level.L3} and len({plain(name) for name in waiver.by}) < 2:
        return (
            WaiverState.NEEDS_SECOND,
            "is of L3, which takes two maintainers: a second one writes the same /waive",
        )
    if waiver.ends - now <= NEAR:
        return WaiverState.NEAR_EXPIRY, f"ends at {end}: {waiver.owner}, is the plan done?"
    return WaiverState.STANDING, f"until the end of {waiver.until} UTC"


def areas_of_waiver(waiver: Waiver, config: Config) -> tuple[str, ...]:
    """The areas of the suite and of the test's file that it names, and those that its owner owns."""
    name = waiver.scope.partition("#")[0].partition("::")[0]
    suites = {suite.area for level in Level for suite in config.validation.of(level) if suite.suite == name}
    return tuple(
        area
        for area, value in config.areas.items()
        if area in suites
        or name in value.suites
        or ("/" in name and matches(name, value.paths))
        or plain(waiver.owner) in map(plain, value.owners)
    )


def scope_problem(
    scope: str, *, config: Config, failures: Sequence[Failure], known: Sequence[Failure] = ()
) -> str | None:
    """Why a scope can't be waived: it names nothing that failed, or more than it must; None where it is right.

    `failures` are those of the head commit; `known` all that its suites report, passed ones too (may be empty).
    """
    if _WILD & set(scope.partition("[")[0]):
        return "a waiver names one thing: wildcards are not read"
    kind = kind_of(scope, config)
    if kind is None:
        suites = ", ".join(suite.suite for level in Level for suite in config.validation.of(level)) or "none"
        return f"{scope!r} is no suite, suite#metric or test id with `::`; the suites are: {suites}"
    probe = Waiver(scope, date.max, "", "", "", ())
    hit = [failure for failure in failures if probe.covers(failure)]
    if not hit:
        return f"{scope!r} names nothing that failed on this commit; what failed: {_names(failures)}"
    if kind is ScopeKind.SUITE:
        tests = [failure for failure in hit if failure.test is not None or failure.metric is not None]
        passed = sum(1 for item in known if item.suite == scope and item.outcome is Outcome.PASSED)
        if tests and len(tests) == len(hit) and passed:
            return f"{scope!r} is too much: only {_names(tests)} failed in it; waive those"
    if kind is ScopeKind.TEST and len(hit) > TOO_MANY:
        return f"{scope!r} is too much: it names {len(hit)} failures, at most {TOO_MANY} go by one waiver"
    return None


def narrow(
    judged: JudgedWaiver, *, config: Config, failures: Sequence[Failure], known: Sequence[Failure] = ()
) -> JudgedWaiver:
    """The waiver of a comment as it counts beside what failed: one that names more than it must does not hold.

    It may name nothing (yet): that exempts nothing. What the fork's file holds was looked at by its reviewers.
    """
    if not judged.holds or judged.waiver.head is None or not any(judged.waiver.covers(f) for f in failures):
        return judged
    problem = scope_problem(judged.waiver.scope, config=config, failures=failures, known=known)
    return judged if problem is None else replace(judged, state=WaiverState.TOO_WIDE, text=problem)


def _names(failures: Sequence[Failure]) -> str:
    names = sorted({failure.name for failure in failures})
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return (", ".join(names[:5]) + more) if names else "nothing"


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to a waiver's owner; `key` is the same as long as the question is, so that it is put once."""

    key: str
    owner: str
    text: str


def asks(judged: Iterable[JudgedWaiver]) -> tuple[Ask, ...]:
    """What the owners of waivers that end soon, or have ended, are to be asked; one that never held is no question."""
    found = {}
    for one in judged:
        if one.waiver.given_at is not None and one.waiver.given_at >= one.waiver.ends:
            continue
        if one.state in (WaiverState.NEAR_EXPIRY, WaiverState.LAPSED):
            key = f"{one.waiver.scope} {one.waiver.until} {one.state}"
            found[key] = Ask(key, one.waiver.owner, f"The waiver of {one.waiver.scope}: {one.text}")
    return tuple(found[key] for key in sorted(found))
