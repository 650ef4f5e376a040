"""A report of an L3 suite that people run by hand: a fenced block `graft-report` in the comment that says `/report`.

Who gave it is who wrote the comment, when is when GitHub got it, and an edit or deletion takes it back: so it needs no
token and no second place, and is read again from GitHub after the store is lost. The block holds either a whole
report, as `graft run --json` and the runners write it, or in short:

    {"suite": "ranking-model", "commit": "<head commit>", "metrics": {"ne": 0.8012, "qps": [1210, 1195, 1223]}}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.core.command import HandReport as ReportCommand
from bot.core.command.markdown import fenced
from bot.core.comments import CommentFact, commands
from bot.core.config import Config, Suite
from bot.core.measured import values
from bot.core.owners import People, owners_of
from bot.core.types import Level, Outcome
from bot.core.validation import Measurement, Report, Subject, conclude

FENCE = "graft-report"


class BadReport(ValueError):
    """What is wrong with a report, and how to mend it."""


@dataclass(frozen=True, slots=True)
class ByHand:
    """A report that stands: of which commit, by whom, in which comment, and each metric's value (its median)."""

    head: str
    suite: str
    by: str
    comment_id: int
    metrics: Mapping[str, float]


class _Short(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str
    commit: str = Field(pattern=r"^[0-9a-f]{10,40}$")
    metrics: dict[str, float | list[float]] = Field(min_length=1)
    note: str = ""


def read_report(*, body: str, suite: str, head: str, repository: str, config: Config, comment: CommentFact) -> Report:
    """The report of `suite` at `head` that stands in a comment; raises BadReport."""
    declared = _manual(config, suite)
    blocks = fenced(body, FENCE)
    if not blocks:
        raise BadReport(f"the comment holds no fence {FENCE}: put the report below, after ```{FENCE}")
    loaded = [_load(block) for block in blocks]
    mine = [one for one in loaded if one.get("suite") == suite]
    if len(mine) != 1:
        named = ", ".join(sorted({str(one.get("suite")) for one in loaded}))
        raise BadReport(f"the comment holds {len(mine)} blocks of suite {suite} (there: {named}); one is needed")
    report = _whole(mine[0]) if "subject" in mine[0] or "protocol" in mine[0] else _of_short(mine[0], declared, comment)
    if report.level is not Level.L3 or report.suite != suite:
        raise BadReport(f"it is a report of {report.level.value} {report.suite}, not of l3 {suite}")
    if report.subject.repository not in ("", repository):
        raise BadReport(f"it is a report of {report.subject.repository}, not of {repository}")
    if not head.startswith(report.subject.commit) or len(report.subject.commit) < 10:
        raise BadReport(f"it is a report of commit {report.subject.commit[:10]}, the comment is about {head[:10]}")
    known = {one.metric for one in report.measurements}
    for name in known - set(declared.metrics) if declared.metrics else ():
        near = get_close_matches(name, declared.metrics, 1)
        hint = f"did you mean {near[0]}?" if near else f"it declares {', '.join(declared.metrics)}"
        raise BadReport(f"{suite} declares no metric {name!r}: {hint}")
    outcome, why = conclude(
        claimed=report.outcome,
        tests=report.tests,
        measurements=len(report.measurements),
        manifest=report.manifest,
        exit_code=report.exit_code,
    )
    if missing := [name for name in declared.metrics if name not in known]:
        outcome, why = Outcome.OMITTED, f"not measured: {', '.join(missing)}"
    subject = report.subject.model_copy(update={"commit": head, "repository": repository})
    return report.model_copy(update={"subject": subject, "outcome": outcome, "reason": why or report.reason})


def hand_reports(
    *, comments: Iterable[CommentFact], people: People, repository: str, config: Config
) -> tuple[ByHand, ...]:
    """The reports by hand that stand, oldest first: by an owner of the suite's area, in an untouched comment."""
    found = []
    for comment, command in commands(comments, "report"):
        args = command.args
        assert isinstance(args, ReportCommand)
        if comment.deleted or comment.edited or comment.head is None:
            continue
        try:
            may_report(comment.author, args.suite, config=config, people=people)
            report = read_report(
                body=comment.body, suite=args.suite, head=comment.head, repository=repository, config=config,
                comment=comment,
            )  # fmt: skip
        except BadReport:
            continue
        if report.outcome in (Outcome.PASSED, Outcome.OMITTED):
            found.append(ByHand(comment.head, args.suite, comment.author, comment.id, metrics_of(report)))
    return tuple(found)


def metrics_of(report: Report) -> dict[str, float]:
    """The value of each metric: the median of its samples, of the worst place where a metric has several."""
    found: dict[str, float] = {}
    for place, value in values(report).items():
        if place[0] in found:
            raise BadReport(f"{place[0]} is measured in several places: give one value for the whole suite")
        found[place[0]] = value.middle
    return found


def may_report(login: str, suite: str, *, config: Config, people: People) -> None:
    """Raises BadReport where `login` does not own the area of a suite that people run by hand."""
    declared = _manual(config, suite)
    area = declared.area or ""
    owners = owners_of(area, config)
    if not people.at_least(login, "read"):
        raise BadReport(f"{login} has no access to this fork")
    if not people.is_one_of(login, owners):
        raise BadReport(f"{login} does not own {area}; {', '.join(owners) or 'nobody'} does")


def _manual(config: Config, suite: str) -> Suite:
    known = {one.suite: one for one in config.validation.l3}
    by_hand = [name for name, one in known.items() if one.manual]
    if suite not in known:
        near = get_close_matches(suite, by_hand, 1)
        hint = f"did you mean {near[0]}?" if near else f"by hand are run: {', '.join(by_hand) or 'none'}"
        raise BadReport(f"l3 has no suite {suite!r}: {hint}")
    if not known[suite].manual:
        raise BadReport(f"{suite} is not run by hand: `/validate l3 {suite}` runs it on a runner")
    return known[suite]


def _load(block: str) -> dict[str, Any]:
    try:
        loaded = json.loads(block, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BadReport(f"the block {FENCE} is no JSON: {where}: {error.msg}") from None
    except RecursionError:
        raise BadReport(f"the block {FENCE} is nested too deeply") from None
    if not isinstance(loaded, dict):
        raise BadReport(f"the block {FENCE} is no JSON object: it begins with {{ and ends with }}")
    return loaded


def _no_number(text: str) -> float:
    raise BadReport(f"{text} is no number: leave the metric out where it was not measured")


def _whole(loaded: Mapping[str, Any]) -> Report:
    try:
        return Report.model_validate(loaded)
    except ValidationError as error:
        raise BadReport(_problem(error)) from None


def _of_short(loaded: Mapping[str, Any], suite: Suite, comment: CommentFact) -> Report:
    try:
        short = _Short.model_validate(loaded)
        measured = tuple(
            Measurement(metric=name, samples=tuple(given if isinstance(given, list) else (given,)))
            for name, given in short.metrics.items()
        )
    except ValidationError as error:
        raise BadReport(_problem(error)) from None
    return Report(
        run_id=f"comment-{comment.id}",
        subject=Subject(repository="", commit=short.commit),
        level=Level.L3,
        suite=short.suite,
        harness=suite.harness,
        started_at=comment.created_at,
        finished_at=comment.created_at,
        outcome=Outcome.PASSED,
        reason=short.note[:1000],
        measurements=measured,
    )


def _problem(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("float", "list[float]"))
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"the report's {where or 'body'}: {first['msg']}{more}"
