"""The issue of one trunk breakage: what fails, since when, whose it is, who is suspect, what it hides.

The text stands in sections between hidden lines. Graft renews what is between them; what people write outside stays.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bot.core.render.text import (
    BODY_LIMIT,
    TITLE_LIMIT,
    block,
    code,
    details,
    fence,
    line,
    marker,
    plural,
    read_block,
    short,
    table,
)
from bot.core.triage import Change, Finding, Kind, State, Step, Suspect, capacity_of, kept_block, suite_of

LABEL = "trunk-breakage"
STATE_LABELS = {
    "open": "state:open",
    "bisecting": "state:bisecting",
    "culprit_known": "state:culprit-known",
    "flaky": "state:flaky",
    "fixed": "state:fixed",
    "dismissed": "state:dismissed",
}
_SECTION = re.compile(r"<!-- graft:section ([a-z]+) -->\n.*?\n<!-- graft:end \1 -->", re.DOTALL)
_MARKER = re.compile(r"<!-- graft:breakage ([\w-]+) -->")
_MOST_TESTS = 300
_ROOM_OF_TESTS = 4_000
_MOST_SUSPECTS = 10


@dataclass(frozen=True, slots=True)
class BreakageFacts:
    """All that the issue says. `mentions` are logins and teams of the fork's own people, without the @.

    `tests` are all ids that failed by it, by suite; `passing` those that passed since, `unseen` those that did not run
    since, `gone` those that trunk has no more, `elsewhere` those that fail by another breakage now, with its issue;
    `masks` what it hides, `masked_by` the issues behind which it stood, `hidden_by` those that hide it now.
    `candidates`: how many commits lie between last green and first red. `deleted` are issues of it that people deleted,
    `kept` what makes it whole where the store was lost. By `deadline` it is to be mended, `held` are suites that do not
    run on trunk until then, `unsearched` says why no search begins.
    """

    key: str
    title: str
    level: str
    suite: str
    area: str | None
    tests: Sequence[str]
    message: str
    first_bad: str
    last_good: str | None
    first_seen: datetime
    owners: Sequence[str]
    mentions: Sequence[str]
    repeat: str
    warnings: Sequence[str] = ()
    state: str = "open"
    kind: str = "regression"
    why: str = ""
    areas: Sequence[str] = ()
    suites: Mapping[str, Sequence[str]] | None = None
    last_red: str | None = None
    after: str | None = None
    born: bool = False
    passing: Sequence[str] = ()
    unseen: Sequence[str] = ()
    gone: Sequence[str] = ()
    elsewhere: Sequence[tuple[str, str]] = ()
    masks: Sequence[str] = ()
    masks_issues: Sequence[int] = ()
    masked_by: Sequence[int] = ()
    hidden_by: Sequence[int] = ()
    suspects: Sequence[Suspect] = ()
    candidates: int = 0
    ruled_out: int = 0
    reopened: int = 0
    search: str = ""
    rates: tuple[int, int] | None = None
    deleted: Sequence[int] = ()
    deadline: datetime | None = None
    held: Sequence[str] = ()
    unsearched: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict)


def breakage_marker(key: str) -> str:
    """The hidden line by which the issue is found again."""
    return marker(f"breakage {key}")


def breakage_keys(body: str) -> set[str]:
    """The keys of the breakages whose markers stand in the text."""
    return set(_MARKER.findall(body))


def breakage_data(body: str) -> Any | None:
    """The machine-readable block of an issue's text; None where it is not there or does not parse."""
    section = next((match[0] for match in _SECTION.finditer(body.replace("\r\n", "\n")) if match[1] == "data"), "")
    return read_block("breakage", section)


def breakage_title(facts: BreakageFacts) -> str:
    """A title under GitHub's limit, free of mentions."""
    title = f"Trunk is broken: {line(facts.title, 150).replace(chr(92), '')} ({facts.suite})"
    return title if len(title) < TITLE_LIMIT else title[: TITLE_LIMIT - 2] + "…"


def breakage_body(facts: BreakageFacts, old: str = "") -> str:
    """The issue's text; given the old one, that with its sections renewed and all else left as people have it."""
    fresh = _sections(facts)
    hidden = breakage_marker(facts.key)
    kept = old.replace("\r\n", "\n")
    if hidden not in kept:  # by it the issue is found again, whatever somebody made of the rest
        kept = "\n\n".join(part for part in (kept.rstrip("\n"), hidden) if part)
    there = {match[1] for match in _SECTION.finditer(kept)}
    outside = len(_SECTION.sub("", kept))
    room = BODY_LIMIT - 500 - outside
    sections = dict.fromkeys(fresh, "")
    for name in sorted(fresh, key=lambda name: name != "data"):  # without that it could not be made whole again
        whole = _wrapped(name, fresh[name])
        if len(whole) > room:
            whole = _wrapped(name, "_Left out: GitHub takes no longer text._")
        room -= len(whole) + 2
        sections[name] = whole
    kept = _SECTION.sub(lambda match: sections.get(match[1], match[0]), kept)
    before = ""
    for name, text in sections.items():
        end = f"<!-- graft:end {before} -->"
        if name not in there:  # where it belongs, as far as people left that there
            head, found, tail = kept.partition(end)
            kept = f"{head}{found}\n\n{text}{tail}" if before and found else f"{kept.rstrip(chr(10))}\n\n{text}"
        before = name
    return kept


def change_text(step: Step, finding: Finding) -> str:
    """What a comment tells of a change; empty where the issue itself says enough."""
    back = f"It is back: it failed again at {short(finding.last_red)}."
    flaky = f"It is flaky: {line(step.why)}. It blocks nothing, and stays open until it is steady."
    if step.state is State.FLAKY:
        back = f"{back} {flaky}"
    return {
        Change.FIXED: _over(finding),
        Change.REOPENED: f"Looked after again: {line(step.why)}." if step.by_hand else back,
        Change.BECAME_FLAKY: flaky,
        Change.BECAME_STEADY: f"It is no flake any more: {line(step.why)}.",
        Change.UNPROVED: f"It stays open: {_unproved(finding)} That it was closed, by a merge or by hand, proves "
        "nothing; it closes by itself once each of its tests ran and passed. Who wants it left alone closes it as not "
        "planned.",
    }.get(step.change, "")


def superseded_text(number: int) -> str:
    """What is said on the issue of a cause that is another one's now."""
    return (
        f"Graft tells causes apart by other rules now, and by them this is the same as #{number}: it goes on there, "
        "with the tests of both."
    )


def superseded_body(old: str, number: int) -> str:
    """The issue's text with that in place of how it stands."""
    said = _wrapped("state", superseded_text(number))
    return _SECTION.sub(lambda match: said if match[1] == "state" else match[0], old.replace("\r\n", "\n"))


def _over(finding: Finding) -> str:
    """By what it is over."""
    if not finding.gone:
        return f"Each of its tests ran and passed at {short(finding.ended)}."
    named = ", ".join(code(test.id) for test in finding.gone[:10])
    more = f" and {len(finding.gone) - 10} more" if len(finding.gone) > 10 else ""
    what = f"Renamed, deleted or of a suite that is not run any more: {named}{more}."
    if finding.vanished:
        return f"A person closed it; nothing can tell whether its tests would pass. {what}"
    return f"Each of its tests ran and passed, or is no more, at {short(finding.ended)}. {what}"


def _unproved(finding: Finding) -> str:
    """What is missing of the proof."""
    if not finding.red:
        return "nothing is known of its tests any more."
    if finding.kind is Kind.FLAKY:
        return "it comes and goes, and has not passed often enough since."
    which = f"{code(finding.red[0].id)}{f' and {len(finding.red) - 1} more' if len(finding.red) > 1 else ''}"
    if finding.last_red is None:
        return f"{which} did not run and pass since."
    return f"{which} did not run and pass since it failed at {short(finding.last_red)}."


def _wrapped(name: str, text: str) -> str:
    if name != "data":  # a test's output must end no section and stand for no issue
        text = text.replace("<!-- graft:", "<!-- graft :")
    return f"<!-- graft:section {name} -->\n{text or '_–_'}\n<!-- graft:end {name} -->"


def _sections(facts: BreakageFacts) -> dict[str, str]:
    return {
        "state": _state(facts),
        "fails": _fails(facts),
        "suspects": _suspects(facts),
        **({"search": f"### The search for the culprit\n\n{_search(facts)}"} if _search(facts) else {}),
        "masks": _masks(facts),
        "data": block(
            "breakage",
            {
                "key": facts.key,
                "tests": _few(facts.tests),
                "first_bad": facts.first_bad,
                "suite": facts.suite,
                "state": facts.state,
                **(kept_block(facts.kept) if facts.kept else {}),
            },
        ),
    }


def _few(tests: Sequence[str]) -> list[str]:
    """The first of many, and of long ones fewer: GitHub takes no text of any length."""
    room, few = _ROOM_OF_TESTS, []
    for test in tests[:100]:
        room -= len(json.dumps(test))
        if room < 0:
            break
        few.append(test)
    return few


def _state(facts: BreakageFacts) -> str:
    who = " ".join(f"@{login}" for login in facts.mentions)
    areas = [code(area) for area in facts.areas or ([facts.area] if facts.area else [])]
    where = f" in area {', '.join(areas)}" if areas else ""
    suites = facts.suites or {facts.suite: facts.tests}
    count = len(facts.tests)
    listed = ", ".join(code(suite) for suite in suites)
    parts = [
        f"{plural(count, 'test')} of {listed} ({facts.level}) {_verb(facts, count)} on trunk{where}. {who}".rstrip()
    ]
    lines = [f"- **{facts.state.replace('_', ' ')}**" + (f": {line(facts.why, 200)}" if facts.why else "")]
    lines.append(f"- first seen failing at {short(facts.first_bad)}, {facts.first_seen:%Y-%m-%d %H:%M} UTC")
    if facts.last_good:
        lines.append(f"- last seen passing at {short(facts.last_good)}")
    elif facts.born:
        lines.append(f"- never passed: it is not there yet at {short(facts.after)}")
    else:
        lines.append("- cannot classify: no run before it is known, so nobody is suspected")
    if facts.last_red and facts.last_red != facts.first_bad:
        lines.append(f"- last seen failing at {short(facts.last_red)}")
    if facts.rates is not None:
        reds, greens = facts.rates
        lines.append(f"- failed at {reds} of {plural(reds + greens, 'tested commit')} since then")
    if facts.deadline is not None:
        lines.append(f"- to be mended by {facts.deadline:%Y-%m-%d %H:%M} UTC")
    if facts.deleted:
        numbers = _issues(facts.deleted)
        was = "its issue before this one, was" if len(facts.deleted) == 1 else "its issues before this one, were"
        lines.append(
            f"- {numbers}, {was} deleted, which is no answer: who wants it left alone closes this one as not planned"
        )
    if facts.reopened:
        lines.append(f"- came back {facts.reopened} {'time' if facts.reopened == 1 else 'times'}")
    parts.append("\n".join(lines))
    again = [suite for suite in suites if capacity_of(suite)]
    parts += [f"{code(one)} is {code(suite_of(one))} where it is proved a second time." for one in again]
    parts += [f"> {line(warning, 300)}" for warning in facts.warnings]
    return "\n\n".join(parts)


def _verb(facts: BreakageFacts, count: int) -> str:
    if facts.state == "fixed":
        return "failed"
    if facts.state == "flaky":
        return "fails now and then" if count == 1 else "fail now and then"
    return "fails" if count == 1 else "fail"


def _fails(facts: BreakageFacts) -> str:
    parts = ["### What fails\n\n" + fence(facts.message[:4_000] or "no message")]
    for suite, tests in (facts.suites or {facts.suite: facts.tests}).items():
        names = fence("\n".join(tests[:_MOST_TESTS]))
        more = f"\n\n… and {len(tests) - _MOST_TESTS} more." if len(tests) > _MOST_TESTS else ""
        heads = f"{len(tests)} tests of {suite}"
        few = names if len(facts.suites or ()) < 2 else f"{code(suite)}:\n\n{names}"
        parts.append(few if len(tests) <= 5 else details(heads, names + more))
    if facts.passing:
        parts.append(_listed(f"{plural(len(facts.passing), 'test')} passed since", facts.passing))
    if facts.unseen:
        parts.append(
            _listed(f"{plural(len(facts.unseen), 'test')} did not run since, which proves nothing", facts.unseen)
        )
    if facts.unseen and facts.hidden_by:
        which = "it while it is" if len(facts.unseen) == 1 else "them while they are"
        parts.append(f"Nothing can be known of {which} masked by {_issues(facts.hidden_by)}.")
    if facts.gone:
        head = f"{plural(len(facts.gone), 'test')} that trunk has no more (renamed, deleted, or its suite is not run)"
        parts.append(_listed(head, facts.gone))
    for test, other in facts.elsewhere[:20]:
        parts.append(f"{code(test)} fails by another cause now: {other}.")
    if facts.repeat:
        at = f" at {short(facts.first_bad)}" if facts.first_bad else ""
        parts.append(f"Repeat it{at} with:\n\n" + fence(facts.repeat, "sh"))
    return "\n\n".join(parts)


def _listed(head: str, tests: Sequence[str]) -> str:
    return details(head, fence("\n".join(tests[:_MOST_TESTS])))


def _suspects(facts: BreakageFacts) -> str:
    head = "### Suspects\n\n"
    if not facts.suspects:
        if facts.candidates:
            return (
                head
                + f"None: the {plural(facts.candidates, 'commit')} in question change nothing that is built or run."
            )
        return head + "None: it is not known after which commit it came."
    rows = [
        [
            short(one.sha),
            line(one.subject, 90),
            line(one.author, 40) or "–",
            f"{100 * one.share:.0f} %",
            "; ".join(line(text, 160) for text in one.evidence) or "it lies between last green and first red",
        ]
        for one in facts.suspects[:_MOST_SUSPECTS]
    ]
    span = f"after {short(facts.after)} up to {short(facts.first_bad)}"
    text = f"{plural(facts.candidates, 'commit')} {span}"
    text += f", of which {facts.ruled_out} can't break anything." if facts.ruled_out else "."
    more = len(facts.suspects) - _MOST_SUSPECTS
    text += "\n\n" + table(["commit", "subject", "author", "share", "why"], rows)
    if more > 0:
        text += f"\n\n… and {more} more."
    for one in facts.suspects[:3]:
        if one.carries:
            names = fence("\n".join(one.carries[:100]))
            if one.number:
                text += f"\n\n`/rollback` on #{one.number} takes {short(one.sha)} back as a whole."
            text += "\n\n" + details(f"The {len(one.carries)} upstream commits that {one.sha[:10]} takes in", names)
    return head + text


def _issues(numbers: Sequence[int]) -> str:
    return ", ".join(f"#{number}" for number in numbers)


def _search(facts: BreakageFacts) -> str:
    return "\n\n".join(part for part in (facts.search, line(facts.unsearched, 300)) if part)


def _masks(facts: BreakageFacts) -> str:
    parts = []
    if facts.masks:
        also = f", tests of {_issues(facts.masks_issues)} among them" if facts.masks_issues else ""
        parts.append(f"Nothing can be known of {plural(len(facts.masks), 'test')} because of it{also}.")
        parts.append(details("Which", fence("\n".join(facts.masks[:_MOST_TESTS]))))
    if facts.held:
        listed = ", ".join(code(suite) for suite in facts.held)
        parts.append(f"Not run on trunk by schedule until {facts.level} passes there: {listed}.")
    if facts.masked_by:
        parts.append(
            f"Some of its tests stood behind {_issues(facts.masked_by)}: it may have come while that was open."
        )
    return "### What it masks\n\n" + ("\n\n".join(parts) if parts else "Nothing that is known.")
