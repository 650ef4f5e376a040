"""The issue of each breakage: opened once, renewed in place, closed and reopened, its owner reminded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bot.context import Breakage, Forbidden, Gone, Issue, NotFound, Validation
from bot.core.batches import key_of
from bot.core.owners import Codeowners, People, Responsible, mentionable, responsible
from bot.core.render.breakage import (
    LABEL,
    STATE_LABELS,
    BreakageFacts,
    breakage_body,
    breakage_marker,
    breakage_title,
    change_text,
)
from bot.core.render.text import code
from bot.core.triage import (
    Change,
    Finding,
    Hand,
    Known,
    Remembered,
    State,
    Step,
    Suspect,
    Test,
    Trunk,
    Verdict,
    areas_of_cause,
    capacity_of,
    suite_areas,
)
from handlers.bisecting import search_text
from handlers.codeowners import named_by, own_people, read_codeowners
from handlers.fork import Fork
from handlers.gone import gone_tests, parted_at
from handlers.people import people
from handlers.suspecting import suspects_of

MOST_TESTS = 5_000
_RETOLD = timedelta(hours=24)


@dataclass
class Desk:
    """What one job needs for the issues: asked of GitHub at most once."""

    fork: Fork
    open_issues: Mapping[int, Issue] = field(default_factory=dict)
    rows: dict[str, Breakage] = field(default_factory=dict)  # by signature
    silent: bool = False  # the mode lets Graft write no issue
    _people: People | None = None
    _codeowners: Codeowners | None = None
    _own: dict[tuple[str, ...], People] = field(default_factory=dict)
    _labels: set[str] = field(default_factory=set)

    async def people(self) -> People:
        """Who may be mentioned here."""
        if self._people is None:
            self._people = await people(self.fork, self.fork.config.triage.escalate_to)
        return self._people

    async def codeowners(self) -> Codeowners:
        """The fork's CODEOWNERS."""
        if self._codeowners is None:
            self._codeowners = await read_codeowners(self.fork)
        return self._codeowners

    async def own(self, named: tuple[str, ...]) -> People:
        """Those whom CODEOWNERS names, as far as they are the fork's."""
        if named not in self._own:
            self._own[named] = await own_people(self.fork, named)
        return self._own[named]

    async def label(self, *names: str) -> None:
        """See to it that the labels are there."""
        for name in names:
            if name not in self._labels:
                await self.fork.github.ensure_label(name, "b60205" if name == LABEL else "c5def5")
                self._labels.add(name)


async def remembered_of(desk: Desk, row: Breakage, trunk: Trunk) -> Remembered:
    """What triage's core needs of a stored breakage, with what a person did to its issue."""
    data, state = row.data, State(row.state)
    gone = await gone_tests(desk.fork, trunk, row) if state.alive else {}
    known = Known(
        signature=data["signature"],
        red=frozenset(Test(suite, test) for suite, test in data.get("red", [])),
        first_red=data.get("first_bad"),
        last_green=data.get("last_good") or data.get("after"),
        flaky=state is State.FLAKY,
        gone=frozenset(gone),
        renamed=frozenset(test for test, passed in gone.items() if passed),
        parted=await parted_at(desk.fork, trunk, row) if state.alive else None,
    )
    return Remembered(known, state, data.get("closed_at"), await _hand_of(desk, row))


async def _hand_of(desk: Desk, row: Breakage) -> Hand:
    """What others did to the issue since Graft last wrote it."""
    if row.number is None:
        return Hand.NOTHING
    state = State(row.state)
    if not state.alive:
        return Hand.REOPENED if row.number in desk.open_issues else Hand.NOTHING
    if row.number in desk.open_issues:
        return Hand.NOTHING
    try:
        issue = await desk.fork.github.issue(row.number)
    except (NotFound, Gone):
        return Hand.NOTHING if await _switched_off(desk) else Hand.DISMISSED  # deleted, or made a discussion
    if issue.number != row.number:
        return Hand.DISMISSED  # somebody moved it to another repository, where GitHub's answer leads
    if issue.state == "open":
        if not desk.silent:  # its label was taken off, by which it is listed and found again
            await desk.label(LABEL)
            await desk.fork.github.add_labels(row.number, [LABEL])
        return Hand.NOTHING
    return Hand.DISMISSED if issue.state_reason in ("not_planned", "duplicate") else Hand.CLOSED


async def _switched_off(desk: Desk) -> bool:
    """Whether the repository has no issues at all: then none is written, and none was taken away."""
    desk.silent = desk.silent or not (await desk.fork.github.info()).has_issues
    return desk.silent


async def write(
    desk: Desk, verdict: Verdict, *, row: Breakage | None, trunk: Trunk, numbers: Mapping[str, int]
) -> Breakage:
    """Bring issue and row to the verdict; `numbers` are the issues of the breakages by signature."""
    finding, step = verdict.finding, verdict.step
    assert step.state is not None
    fork, old = desk.fork, dict(row.data) if row else {}
    behind = sorted(numbers[other] for other in verdict.behind if other in numbers)
    data = await _data(desk, old, finding, trunk, verdict.masks, behind)
    data["told"], data["told_at"] = old.get("told"), old.get("told_at")
    if step.change in (Change.OPENED, Change.REOPENED):
        data |= {"opened_at": fork.now.isoformat(), "reminded": None, "escalated": None, "closed_at": None}
        back = step.change is Change.REOPENED and not step.by_hand
        data["reopened"] = old.get("reopened", 0) + back
        if back and data.get("hunt"):
            data["hunt_before"] = data.pop("hunt")  # what it found brought it the last time
    if step.change is Change.FIXED:
        data["closed_at"] = finding.ended or finding.last_red
    fresh = Breakage(
        key=row.key if row else key_of(fork.name, finding.signature),
        repository=fork.name,
        installation=fork.scope.installation,
        state=step.state.value,
        title=data["title"],
        number=row.number if row else None,
        first_seen=row.first_seen if row and row.first_seen else fork.now,
        last_seen=fork.now,
        data=data,
    )
    told_already = step.state is State.DISMISSED and step.change is Change.NONE
    if told_already or desk.silent or (fresh.number is None and not step.state.alive):
        await fork.ctx.store.save_breakage(fresh)
        return fresh
    try:
        fresh = await _tell(desk, fresh, finding, step, numbers, old.get("told"))
    except (NotFound, Forbidden, Gone, Validation) as error:
        # one issue that can't be written keeps no other from being looked after
        fork.ctx.log.warning("a breakage's issue was not written", issue=fresh.number, key=fresh.key, error=str(error))
        if row is not None and step.state is not State.DISMISSED and not await _switched_off(desk):
            return row  # looked at again as if nothing had been found
    if row is None or fresh.data != row.data or fresh.state != row.state or fresh.number != row.number:
        await fork.ctx.store.save_breakage(fresh)
    return fresh


async def _tell(
    desk: Desk, fresh: Breakage, finding: Finding, step: Step, numbers: Mapping[str, int], before: str | None
) -> Breakage:
    """Open or renew the issue where it would say something else, and remind its owner; gives the row then."""
    fork, data = desk.fork, fresh.data
    facts = await _facts(desk, fresh, finding, step, numbers)
    told: str | None = _fingerprint(facts)
    due = not data["told_at"] or fork.now - datetime.fromisoformat(data["told_at"]) >= _RETOLD
    alive = step.state is not None and step.state.alive
    if fresh.number is None:
        fresh = await _open(desk, fresh, facts)
    elif step.change is not Change.NONE or told != before or (due and alive):
        await _renew(desk, fresh, facts, step, finding)
    else:
        told = None
    if told is not None:
        fresh = replace(fresh, data={**fresh.data, "told": told, "told_at": fork.now.isoformat()})
    return await _remind(desk, fresh, facts)


async def _data(
    desk: Desk, old: Mapping[str, Any], finding: Finding, trunk: Trunk, masks: Sequence[Test], behind: Sequence[int]
) -> dict[str, Any]:
    failures = trunk.failures(finding.signature)
    newest = list(failures.values())[-1] if failures else None
    suites: dict[str, list[str]] = {suite: list(tests) for suite, tests in old.get("suites", {}).items()}
    for test in finding.tests:
        known = suites.setdefault(test.suite, [])
        if test.id not in known:
            known.append(test.id)
    runs = [run for suite in suites for at in reversed(trunk.judged(suite)) for run in trunk.runs(suite, at)]
    mine = [run for run in runs if any(failure.signature == finding.signature for failure in run.failures)]
    main = max(suites, key=lambda suite: len(suites[suite]))
    files = {failure.file or failure.test.split("::", 1)[0] for failure in failures.values()}
    config = desk.fork.config
    areas = old.get("areas") or list(areas_of_cause(config, suites=suites, files=files))
    data = {
        **old,
        "signature": finding.signature,
        "suite": main,
        "suites": {suite: tests[:MOST_TESTS] for suite, tests in suites.items()},
        "tests": list(dict.fromkeys(test for tests in suites.values() for test in tests))[:MOST_TESTS],
        "red": [[test.suite, test.id] for test in finding.red][:MOST_TESTS],
        "level": mine[0].level.value if mine else old.get("level", "l1"),
        "area": areas[0] if areas else None,
        "areas": areas,
        "suite_areas": list(suite_areas(config, suites)),
        "title": newest.title if newest else old.get("title", finding.signature),
        "message": newest.message if newest else old.get("message", ""),
        "repeat": mine[0].repeat if mine else old.get("repeat", ""),
        "first_bad": finding.first_red or old.get("first_bad"),
        "last_good": finding.last_green or (old.get("last_good") if finding.after is None else None),
        "after": finding.after or old.get("after"),
        "masks": [[test.suite, test.id] for test in masks][:MOST_TESTS],
        "behind": list(behind) or old.get("behind", []),
        "kind": finding.kind.value,
    }
    span = [finding.after, finding.changed_after, finding.first_red]
    if finding.after is not None and span != old.get("span"):
        suspects, count = await suspects_of(desk.fork, trunk, finding)
        data |= {"span": span, "suspects": [asdict(one) for one in suspects[:20]], "candidates": count}
        data["ruled_out"] = count - len(suspects) if count <= 200 else 0
    return data


async def _owners(desk: Desk, data: Mapping[str, Any]) -> Responsible:
    """Whom the breakage is given to: its areas' owners, as far as they are of this fork; else the fork's own people
    that CODEOWNERS names for the tests' files; else the default owner.
    """
    config, who = desk.fork.config, await desk.people()
    owners = [owner for area in data["areas"] if area in config.areas for owner in config.areas[area].owners]
    if owners:
        return mentionable(owners, people=who, default=config.default_owner)
    paths = list(dict.fromkeys(test.split("::", 1)[0] for test in data["tests"][:200]))
    codeowners = await desk.codeowners()
    own = await desk.own(named_by(codeowners, paths))
    known = People.of({**who.permissions, **own.permissions}, {**who.teams, **own.teams})
    return responsible(paths=paths, config=config, people=known, codeowners=codeowners)


async def _facts(desk: Desk, row: Breakage, finding: Finding, step: Step, numbers: Mapping[str, int]) -> BreakageFacts:
    data = row.data
    asked = await _owners(desk, data)
    red, seen = {*finding.red, *finding.gone}, set(finding.unseen)
    masked = {(suite, test) for suite, test in data["masks"]}
    others = [other for other in desk.rows.values() if State(other.state).alive and other.key != row.key]
    hidden = sorted(
        other.number
        for other in others
        if other.number and any((suite, test) in masked for suite, test in other.data.get("red", []))
    )
    suspects = tuple(
        Suspect(**{**one, "evidence": tuple(one["evidence"]), "carries": tuple(one["carries"])})
        for one in data.get("suspects", [])
    )
    elsewhere = [(_named(t), f"#{numbers[s]}" if s in numbers else "one not told yet") for t, s in finding.elsewhere]
    return BreakageFacts(
        key=row.key,
        title=data["title"],
        level=data["level"],
        suite=data["suite"],
        area=data["area"],
        areas=data["areas"],
        tests=data["tests"],
        suites=data["suites"],
        message=data["message"],
        first_bad=data["first_bad"],
        last_good=data["last_good"],
        after=data["after"],
        born=finding.born,
        first_seen=row.first_seen or desk.fork.now,
        owners=asked.owners,
        mentions=asked.owners,
        warnings=asked.warnings,
        repeat=data["repeat"],
        state=row.state,
        kind=finding.kind.value,
        why=step.why,
        last_red=finding.last_red,
        passing=[_named(test) for test in finding.tests if test not in red] if finding.red else [],
        unseen=[_named(test) for test in finding.tests if test in seen],
        gone=[_named(test) for test in finding.gone],
        elsewhere=elsewhere,
        masks=[test for _, test in data["masks"]],
        masks_issues=hidden,
        masked_by=data["behind"],
        suspects=suspects,
        candidates=data.get("candidates", 0),
        ruled_out=data.get("ruled_out", 0),
        reopened=data.get("reopened", 0),
        search=search_text(data),
        rates=(finding.reds, finding.greens) if row.state == State.FLAKY else None,
    )


def _named(test: Test) -> str:
    """A test, with its suite where it is one that passes or fails on the other capacity apart."""
    return f"{test.id} ({test.suite})" if capacity_of(test.suite) else test.id


def _fingerprint(facts: BreakageFacts) -> str:
    """What the issue says, without what moves with each commit: `told` again only where this changes, or each day."""
    still = replace(facts, last_red=None, rates=None, why="", repeat="", message="")
    return hashlib.sha256(json.dumps(asdict(still), sort_keys=True, default=str).encode()).hexdigest()[:16]


async def _open(desk: Desk, row: Breakage, facts: BreakageFacts) -> Breakage:
    fork = desk.fork
    labels = [LABEL, f"level:{facts.level}", *(f"area:{area}" for area in facts.areas), STATE_LABELS[facts.state]]
    await desk.label(*labels)
    body = breakage_body(facts)
    issue = await fork.github.create_issue(
        breakage_title(facts),
        body,
        labels=labels,
        listed=[LABEL],  # by which it is found again: the others change
        assignees=[owner for owner in facts.mentions if "/" not in owner],
        marker=breakage_marker(facts.key),
    )
    if issue.state == "open" and issue.body != body:  # the store was lost, the issue was not
        await fork.github.update_issue(issue.number, body=breakage_body(facts, issue.body))
    if issue.state == "closed":
        if issue.state_reason in ("not_planned", "duplicate"):
            return replace(row, number=issue.number, state=State.DISMISSED.value)
        await fork.github.update_issue(issue.number, body=breakage_body(facts, issue.body), state="open")
    if not set(labels) <= {label.name for label in issue.labels}:
        await fork.github.add_labels(issue.number, labels)
    return replace(row, number=issue.number)


async def _renew(desk: Desk, row: Breakage, facts: BreakageFacts, step: Step, finding: Finding) -> None:
    assert row.number is not None and step.state is not None
    github = desk.fork.github
    issue = desk.open_issues.get(row.number) or await github.issue(row.number)
    body = breakage_body(facts, issue.body)
    state: str | None = "open" if step.state.alive else "closed"
    if step.change is not Change.NONE:
        await _say(desk, row.number, step, finding)
    if issue.state == state:
        state = None
    if body != issue.body or state is not None:
        reason = {"open": "reopened", "closed": "completed"}.get(state) if state else None
        await github.update_issue(row.number, body=body, state=state, state_reason=reason)
    there = {label.name for label in issue.labels}
    wanted = {LABEL, STATE_LABELS[row.state]}
    wrong = (there & set(STATE_LABELS.values())) - wanted
    if wanted - there:
        await desk.label(*wanted)
        await github.add_labels(row.number, sorted(wanted - there))
    for name in sorted(wrong):
        await github.remove_label(row.number, name)


async def _say(desk: Desk, number: int, step: Step, finding: Finding) -> None:
    """A comment where people must hear of it; each once for the commit that shows it."""
    at = finding.ended if step.change is Change.FIXED else finding.last_red
    if text := change_text(step, finding):
        await _comment(desk, number, f"<!-- graft:{step.change.value} {at} -->", text)


async def _comment(desk: Desk, number: int, hidden: str, text: str) -> None:
    """Once, where GitHub lets Graft speak: on a locked issue the body says it all the same."""
    try:
        await desk.fork.github.upsert_comment(number, hidden, text)
    except Forbidden as error:
        desk.fork.ctx.log.warning("a breakage's issue takes no comment", issue=number, error=str(error))


async def _remind(desk: Desk, row: Breakage, facts: BreakageFacts) -> Breakage:
    """Remind the owner once after the deadline, and tell those named in the file once after the second."""
    rules, now, data = desk.fork.config.triage, desk.fork.now, dict(row.data)
    if not State(row.state).red or row.number is None or not data.get("opened_at"):
        return row
    age = now - datetime.fromisoformat(data["opened_at"])
    episode = data.get("reopened", 0)
    if age >= rules.remind_after and not data.get("reminded"):
        who = " ".join(f"@{login}" for login in facts.mentions)
        text = f"{who} this has been open for {age.days} days and waits for you."
        if not who:
            text = (
                f"This has been open for {age.days} days, and nobody can be asked: its text says whom the file names."
            )
        await _comment(desk, row.number, f"<!-- graft:reminder {episode} -->", text)
        data["reminded"] = now.isoformat()
    if age >= rules.escalate_after and not data.get("escalated") and rules.escalate_to:
        told = mentionable(rules.escalate_to, people=await desk.people(), default=desk.fork.config.default_owner)
        who = " ".join(f"@{login}" for login in told.owners)
        owners = ", ".join(code(owner) for owner in facts.owners) or "nobody"
        text = f"{who} this has been open for {age.days} days. Its owner: {owners}.".strip()
        await _comment(desk, row.number, f"<!-- graft:escalation {episode} -->", text)
        data["escalated"] = now.isoformat()
    return replace(row, data=data)
