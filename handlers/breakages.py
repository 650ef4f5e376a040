"""The issue of each breakage: opened once, renewed in place, closed and reopened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from bot.context import Breakage, Forbidden, Gone, NotFound, Validation
from bot.core.render.breakage import (
    LABEL,
    STATE_LABELS,
    BreakageFacts,
    breakage_body,
    breakage_marker,
    breakage_title,
    change_text,
)
from bot.core.render.text import BODY_LIMIT
from bot.core.triage import (
    Change,
    Failure,
    Finding,
    Sample,
    State,
    Step,
    Test,
    Trunk,
    Verdict,
    areas_of_cause,
    omitted_signature,
    suite_areas,
    suite_of,
)
from bot.core.triage.searching import Hunt, Standing
from handlers.bisecting import search_text, searchable
from handlers.describing import facts_of, fingerprint
from handlers.desk import Desk
from handlers.reminding import remind
from handlers.suspecting import suspects_of
from handlers.validate import WRITERS

MOST_TESTS = 5_000
_RETOLD = timedelta(hours=24)


async def write(
    desk: Desk,
    verdict: Verdict,
    *,
    row: Breakage | None,
    trunk: Trunk,
    numbers: Mapping[str, int],
    held: bool = False,
) -> Breakage:
    """Bring issue and row to the verdict; `numbers` are the issues of the breakages by signature. `held`: no issue is
    opened for it now.
    """
    finding, step = verdict.finding, verdict.step
    assert step.state is not None
    fork, old = desk.fork, dict(row.data) if row else {}
    behind = sorted(numbers[other] for other in verdict.behind if other in numbers)
    data = await _data(desk, old, finding, trunk, verdict.masks, behind)
    data["told"], data["told_at"] = old.get("told"), old.get("told_at")
    if step.change in (Change.OPENED, Change.REOPENED):
        data |= {"opened_at": fork.now.isoformat(), "closed_at": None}
        back = step.change is Change.REOPENED and not step.by_hand
        data["reopened"] = old.get("reopened", 0) + back
        if back and data.get("hunt"):
            data["hunt_before"] = data.pop("hunt")  # what it found brought it the last time
    if step.change in (Change.OPENED, Change.REOPENED, Change.BECAME_STEADY):  # a flake had no deadline
        data |= {"red_since": fork.now.isoformat(), "reminded": None, "escalated": None}
    if step.change in (Change.FIXED, Change.DISMISSED):
        data["closed_at"] = finding.ended or finding.last_red
    fresh = Breakage(
        key=row.key if row else desk.key(finding.signature),
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
    if told_already or held or desk.silent or (fresh.number is None and not step.state.alive):
        await fork.ctx.store.save_breakage(fresh)
        return fresh
    try:
        fresh = await _tell(desk, fresh, finding, step, numbers, old.get("told"))
    except (NotFound, Forbidden, Gone, Validation) as error:
        # one issue that can't be written keeps no other from being looked after
        fork.ctx.log.warning("a breakage's issue was not written", issue=fresh.number, key=fresh.key, error=str(error))
        if row is not None and step.state is not State.DISMISSED and not await desk.switched_off():
            return row  # looked at again as if nothing had been found
    if row is None or fresh.data != row.data or fresh.state != row.state or fresh.number != row.number:
        await fork.ctx.store.save_breakage(fresh)
    return fresh


def without_issue(row: Breakage) -> Breakage:
    """The row of a breakage whose issue was deleted: what comes of it is told in another one."""
    deleted = [*row.data.get("deleted_issues", []), row.number]
    return replace(row, number=None, data={**row.data, "deleted_issues": deleted})


async def _tell(
    desk: Desk, fresh: Breakage, finding: Finding, step: Step, numbers: Mapping[str, int], before: str | None
) -> Breakage:
    """Open or renew the issue where it would say something else, and remind its owner; gives the row then."""
    fork = desk.fork
    if fresh.number is not None and step.change is Change.REOPENED and await desk.issue(fresh.number) is None:
        fresh = without_issue(fresh)  # GitHub has no other answer where all issues are switched off: none is opened
    data = fresh.data
    facts = await facts_of(desk, fresh, finding, step, numbers)
    told: str | None = fingerprint(facts)
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
    return await remind(desk, await _say_found(desk, fresh), facts)


async def _say_found(desk: Desk, row: Breakage) -> Breakage:
    """What a search came to, in a comment of its own: nobody hears of a text that is renewed."""
    hunt = Hunt.of(row.data)
    if hunt is None or row.number is None or hunt.standing not in (Standing.CULPRIT, Standing.INCONCLUSIVE):
        return row
    if row.data.get("found_told") == hunt.started:
        return row
    said = "\n\n".join(part for part in (search_text(row.data), await _asked(desk, row, hunt)) if part)
    await desk.comment(row.number, f"<!-- graft:search {hunt.started} -->", said)
    return replace(row, data={**row.data, "found_told": hunt.started})


async def _asked(desk: Desk, row: Breakage, hunt: Hunt) -> str:
    """Whose pull request brought the culprit, where that is one commit of trunk's and the author is of the fork."""
    fork, sha = desk.fork, hunt.bundle or next(iter(hunt.culprits), "")
    suspects = [one for one in row.data.get("suspects", []) if one["sha"] == sha and one["number"]]
    if hunt.standing is not Standing.CULPRIT or (len(hunt.culprits) > 1 and not hunt.bundle) or not suspects:
        return ""
    try:
        pull = await fork.github.pull(suspects[0]["number"])
        mine = pull.landed and pull.merge_commit_sha == sha and pull.user.login != await fork.login()
        if mine and await fork.github.permission(pull.user.login) in WRITERS:
            return f"@{pull.user.login}, it came with #{pull.number}."
    except NotFound:  # a number of another repository's
        pass
    return ""


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
    main = max(suites, key=lambda suite: (searchable(desk.fork, suite), len(suites[suite])))
    mine.sort(key=lambda run: run.suite != main)  # level and command are those of the suite that is named
    files = {failure.file or failure.test.split("::", 1)[0] for failure in failures.values()}
    config = desk.fork.config
    there = [area for area in old.get("areas", []) if area in config.areas]  # one that left the file owns nothing
    areas = there or list(areas_of_cause(config, suites=suites, files=files))
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
        "sample": _sample(finding, newest, suites) if newest else old.get("sample"),
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


def _sample(finding: Finding, newest: Failure, suites: Mapping[str, object]) -> dict[str, str]:
    """Beside the newest failure's text: what it takes to sign it again when the rules have changed."""
    of = (suite_of(suite) for suite in suites if finding.signature == omitted_signature(suite_of(suite)))
    return Sample(test=newest.test, omitted=next(of, "")).model_dump()


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
    if len(body) > BODY_LIMIT:  # what people wrote leaves no room
        body = issue.body
    state: str | None = "open" if step.state.alive else "closed"
    if step.change is not Change.NONE:
        await _say(desk, row.number, step, finding)
    if issue.state == state:
        state = None
    if body != issue.body or state is not None:
        reason = {"open": "reopened", "closed": "completed"}.get(state) if state else None
        await github.update_issue(row.number, body=body, state=state, state_reason=reason)
    if step.change is Change.REOPENED and not step.by_hand and not issue.assignees:  # whoever had it is done with it
        await github.add_assignees(row.number, [owner for owner in facts.mentions if "/" not in owner])
    there = {label.name for label in issue.labels}
    wanted = {LABEL, STATE_LABELS[row.state]}
    left = {name for name in there if name.startswith("area:") and name[5:] not in desk.fork.config.areas}
    levels = {name for name in there if name.startswith("level:")} - {f"level:{facts.level}"}
    wanted |= {f"area:{area}" for area in facts.areas} if left else set()
    wanted |= {f"level:{facts.level}"} if levels else set()
    wrong = ((there & set(STATE_LABELS.values())) | left | levels) - wanted
    if wanted - there:
        await desk.label(*wanted)
        await github.add_labels(row.number, sorted(wanted - there))
    for name in sorted(wrong):
        await github.remove_label(row.number, name)


async def _say(desk: Desk, number: int, step: Step, finding: Finding) -> None:
    """A comment where people must hear of it; each once for the commit that shows it."""
    at = finding.ended if step.change is Change.FIXED else finding.last_red
    if text := change_text(step, finding):
        await desk.comment(number, f"<!-- graft:{step.change.value} {at} -->", text)
