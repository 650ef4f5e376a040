"""Which sign-offs stand: by an owner of the area, for this commit, with numbers within the budget; else why not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from bot.core.command import MetricText, Signoff, Unsign
from bot.core.comments import CommentFact, commands
from bot.core.config import Budget, Config, Suite
from bot.core.handreport import ByHand
from bot.core.owners import People, owners_of, plain
from bot.core.paths import matches
from bot.core.types import Level, Outcome
from bot.core.waivers import Failure, JudgedWaiver


class Void(StrEnum):
    """Why a sign-off does not count."""

    UNKNOWN_AREA = "unknown_area"
    NOT_OWNER = "not_owner"
    NO_ACCESS = "no_access"
    OWN_CHANGE = "own_change"
    EDITED = "edited"
    DELETED = "deleted"
    WITHDRAWN = "withdrawn"
    REPLACED = "replaced"
    UNKNOWN_COMMIT = "unknown_commit"
    OTHER_COMMIT = "other_commit"
    OTHER_RUN = "other_run"
    METRIC_MISSING = "metric_missing"
    OVER_BUDGET = "over_budget"


@dataclass(frozen=True, slots=True)
class SignOff:
    """One sign-off as given, with `void` None where it stands; `text` says what it is worth and why."""

    area: str
    by: str
    comment_id: int
    head: str | None
    metrics: tuple[MetricText, ...]
    run: str | None
    evidence: str | None
    note: str | None
    void: Void | None
    text: str

    @property
    def stands(self) -> bool:
        """True where it counts for the head commit."""
        return self.void is None


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What a head commit changes against its merge base, as hashes: of all, and of what concerns each area.

    An area is missing where paths can't tell what concerns it: it names symbols, or no changed path is its own.
    """

    whole: str
    areas: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Change:
    """One changed path with the blobs before and after (empty where there is none) and its mode."""

    path: str
    old_oid: str
    new_oid: str
    mode: str = ""


def fingerprint(changes: Sequence[Change], config: Config) -> Fingerprint:
    """The fingerprint of merge base to head; equal for equal changes whatever the base's other files are."""
    areas: dict[str, str] = {}
    for name, area in config.areas.items():
        own = [change for change in changes if matches(change.path, area.paths)]
        if own and not area.symbols:
            areas[name] = _digest(own)
    return Fingerprint(_digest(changes), MappingProxyType(areas))


def _digest(changes: Iterable[Change]) -> str:
    rows = sorted(f"{change.path}\0{change.old_oid}\0{change.new_oid}\0{change.mode}" for change in changes)
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogateescape")).hexdigest()


def sign_offs(
    *,
    config: Config,
    comments: Iterable[CommentFact],
    people: People,
    author: str,
    head: str,
    fingerprints: Mapping[str, Fingerprint] | None = None,
    runs: Mapping[str, str] | None = None,
    baselines: Mapping[str, float] | None = None,
    waivers: Sequence[JudgedWaiver] = (),
    reports: Sequence[ByHand] = (),
) -> tuple[SignOff, ...]:
    """Every sign-off ever given in these comments, oldest first, each standing or void with the reason.

    `fingerprints` by head commit, `runs` gives each known run's commit, `baselines` each metric's value on trunk,
    `reports` those by hand, oldest first: a metric that the sign-off leaves out is taken from them.
    Of one person's sign-offs for one area only the last counts.
    """
    listed = tuple(comments)
    found: list[SignOff] = []
    latest: dict[tuple[str, str], int] = {}
    for comment, command in commands(listed, "signoff"):
        args = command.args
        assert isinstance(args, Signoff)
        metrics = _with_reports(args, comment.head, config=config, reports=reports)
        void = (
            _person(args.area, comment, config=config, people=people, author=author)
            or _revoked(comment, args.area, command.index, listed, config=config, people=people)
            or _bound(comment, args, head=head, config=config, fingerprints=fingerprints or {}, runs=runs or {})
            or _differs(args, comment.head, config=config, reports=reports)
            or _numbers(args.area, metrics, head=head, config=config, baselines=baselines or {}, waivers=waivers)
        )
        if not comment.deleted and not comment.edited:
            key = (args.area, plain(comment.author))
            if key in latest:
                found[latest[key]] = _replaced(found[latest[key]])
            latest[key] = len(found)
        found.append(_sign_off(comment, args, metrics, void))
    return tuple(found)


_Voided = tuple[Void, str]


def _sign_off(
    comment: CommentFact, args: Signoff, metrics: tuple[MetricText, ...], void: _Voided | None
) -> SignOff:  # fmt: skip
    reason, text = void or (None, f"{comment.author} signed {args.area} off")
    return SignOff(
        args.area, comment.author, comment.id, comment.head, metrics, args.run, args.evidence, args.note, reason,
        text,
    )  # fmt: skip


def _replaced(old: SignOff) -> SignOff:
    if not old.stands:
        return old
    text = f"{old.by} signed {old.area} off anew since"
    return SignOff(
        old.area, old.by, old.comment_id, old.head, old.metrics, old.run, old.evidence, old.note, Void.REPLACED, text
    )


def _person(area: str, comment: CommentFact, *, config: Config, people: People, author: str) -> _Voided | None:
    if area not in config.areas:
        return Void.UNKNOWN_AREA, f"there is no area {area!r} in .github/graft.yml"
    if not people.at_least(comment.author, "read"):
        return Void.NO_ACCESS, f"{comment.author} has no access to this fork"
    owners = owners_of(area, config)
    if not people.is_one_of(comment.author, owners):
        return Void.NOT_OWNER, f"{comment.author} does not own {area}; {', '.join(owners) or 'nobody'} does"
    if plain(comment.author) == plain(author) and not config.gate.self_signoff:
        return Void.OWN_CHANGE, f"{comment.author} wrote this change: another owner of {area} has to sign"
    return None


def _revoked(
    comment: CommentFact, area: str, index: int, comments: Sequence[CommentFact], *, config: Config, people: People
) -> _Voided | None:
    if comment.deleted:
        return Void.DELETED, f"{comment.author} deleted the comment"
    if comment.edited:
        return Void.EDITED, f"{comment.author} edited the comment: sign in a new one"
    place = (comment.created_at, comment.id, index)
    for other, command in commands(comments, "unsign"):
        assert isinstance(command.args, Unsign)
        if other.deleted or (other.created_at, other.id, command.index) < place:
            continue
        own = plain(other.author) == plain(comment.author) and command.args.area in (None, area)
        if own or (command.args.area == area and people.is_one_of(other.author, owners_of(area, config))):
            return Void.WITHDRAWN, f"{other.author} took it back"
    return None


def _bound(
    comment: CommentFact, args: Signoff, *, head: str, config: Config, fingerprints: Mapping[str, Fingerprint],
    runs: Mapping[str, str],
) -> _Voided | None:  # fmt: skip
    if comment.head is None:
        return Void.UNKNOWN_COMMIT, "it is not known which commit the comment was about: sign again"
    if args.run is not None and runs.get(args.run, comment.head) != comment.head:
        return Void.OTHER_RUN, f"run {args.run} was of commit {runs[args.run][:10]}, not of {comment.head[:10]}"
    if comment.head == head or _same(fingerprints.get(comment.head), fingerprints.get(head), args.area, config):
        return None
    return Void.OTHER_COMMIT, f"signed for commit {comment.head[:10]}; pushed since: sign again for {head[:10]}"


def _same(old: Fingerprint | None, new: Fingerprint | None, area: str, config: Config) -> bool:
    if old is None or new is None:
        return False
    if old.whole == new.whole:
        return True
    known = area in old.areas and area in new.areas
    return config.gate.keep_signoff_outside_area and known and old.areas[area] == new.areas[area]


def declared(area: str, config: Config) -> tuple[tuple[Suite, str], ...]:
    """The metrics that a sign-off of this area must give, each with the L3 suite that asks for it."""
    named = config.areas[area].suites if area in config.areas else ()
    suites = [suite for suite in config.validation.l3 if suite.area == area or suite.suite in named]
    return tuple((suite, metric) for suite in suites for metric in suite.metrics)


def _reported(
    area: str, head: str | None, *, config: Config, reports: Sequence[ByHand]
) -> dict[str, tuple[str, float]]:  # fmt: skip
    """By metric (in small letters) its name and value in the newest report by hand of each suite of the area."""
    suites = {suite.suite for suite, _ in declared(area, config)}
    newest = {one.suite: one for one in reports if one.head == head and one.suite in suites}
    return {name.lower(): (name, value) for one in newest.values() for name, value in one.metrics.items()}


def _with_reports(
    args: Signoff, head: str | None, *, config: Config, reports: Sequence[ByHand]
) -> tuple[MetricText, ...]:  # fmt: skip
    """The numbers that are signed: those given, then those of the reports."""
    given = {metric.name.lower() for metric in args.metrics}
    told = _reported(args.area, head, config=config, reports=reports)
    more = (MetricText(name, value, False, f"{value:g}") for key, (name, value) in told.items() if key not in given)
    return (*args.metrics, *more)


def _differs(args: Signoff, head: str | None, *, config: Config, reports: Sequence[ByHand]) -> _Voided | None:
    """A number that is not the one of the report, as written to its last digit."""
    told = _reported(args.area, head, config=config, reports=reports)
    for metric in args.metrics:
        name, value = told.get(metric.name.lower(), ("", metric.value))
        last = 10.0 ** -len(metric.text.partition(".")[2]) if metric.text[-1:].isdigit() else 1e-6 * abs(value)
        if not metric.relative and abs(value - metric.value) > 0.500001 * last:
            text = f"{metric.name}={metric.text} is not what the report says, {name}={value:g}"
            return Void.OTHER_RUN, text
    return None


def _numbers(
    area: str, metrics: Iterable[MetricText], *, head: str, config: Config, baselines: Mapping[str, float],
    waivers: Sequence[JudgedWaiver],
) -> _Voided | None:  # fmt: skip
    given = {metric.name.lower(): metric for metric in metrics}
    for suite, name in declared(area, config):
        metric = given.get(name.lower())
        if metric is None:
            how = f", or give its report with /report l3 {suite.suite}" if suite.manual else ""
            text = f"{name} is missing: write {name}=value{how}"
            outcome, void = Outcome.OMITTED, Void.METRIC_MISSING
        else:
            worse = over_budget(metric, suite.budget.of(name), baselines.get(name))
            if worse is None:
                continue
            outcome, void, text = Outcome.FAILED, Void.OVER_BUDGET, worse
        failure = Failure(Level.L3, suite.suite, outcome, metric=name)
        if not any(waiver.exempts(failure, head=head) for waiver in waivers):
            return void, text
    return None


def over_budget(metric: MetricText, budget: Budget, baseline: float | None) -> str | None:
    """How a number breaks its budget, or None where it keeps it; what can't be compared does not keep it."""
    value = metric.value if not metric.relative else None
    change = metric.value if metric.relative else None
    if baseline is not None and baseline != 0:
        value = baseline * (1 + metric.value) if metric.relative else metric.value
        change = metric.value if metric.relative else (metric.value - baseline) / abs(baseline)
    if (budget.min is not None or budget.max is not None) and value is None:
        return f"{metric.name}={metric.text} can't be held against its bounds: give the value itself, not a change"
    if value is not None and budget.min is not None and value < budget.min:
        return f"{metric.name}={metric.text} is below {budget.min:g}"
    if value is not None and budget.max is not None and value > budget.max:
        return f"{metric.name}={metric.text} is above {budget.max:g}"
    if budget.regression is None:
        return None
    if change is None:
        return f"{metric.name}={metric.text} has no baseline yet: give the change, as in {metric.name}=+0.1%"
    worse = {"higher": -change, "lower": change, None: abs(change)}[budget.better]
    if worse > budget.regression + 1e-12:
        return f"{metric.name}={metric.text} is {worse:.2%} worse, the budget is {budget.regression:.2%}"
    return None
