"""The title and body of a pull request of Graft's: what it carries, why, what waits, and how to go back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.core.batches import Batch, BatchState, ClosedWhy
from bot.core.decisions import decision_line
from bot.core.render.text import (
    BODY_LIMIT,
    TITLE_LIMIT,
    block,
    code,
    details,
    fence,
    fit,
    line,
    plural,
    read_block,
    short,
    table,
)
from bot.core.risk import chance_of_hand_work
from bot.core.trailers import inert
from bot.core.types import BatchKind, Disposition, Grade, LedgerEntry, PlannedCommit, Reason

_ROOM = BODY_LIMIT - 1_000
_LIKELIEST = 3
_LINKS = 40


@dataclass(frozen=True, slots=True)
class Dropped:
    """A commit of the batch that could not be picked, with the paths concerned."""

    sha: str
    subject: str
    why: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConflictNote:
    """One conflicting file of a draft: how its hunks are classed, and what was proposed; `resolved`: all of it."""

    path: str
    kind: str
    note: str
    resolved: bool = False


@dataclass(frozen=True, slots=True)
class PullFacts:
    """All that the body of a batch's pull request says."""

    batch: Batch
    commits: Sequence[PlannedCommit]
    upstream: str
    fork: str
    base_branch: str
    base_sha: str
    pin: str | None
    pin_after: str | None
    dropped: Sequence[Dropped] = ()
    empty: Sequence[Dropped] = ()
    links: Sequence[tuple[PlannedCommit, str]] = ()
    conflicts: Sequence[ConflictNote] = ()
    holes: Sequence[LedgerEntry] = ()
    upstream_url: str = ""
    passed_over: Sequence[LedgerEntry] = ()


def pull_title(batch: Batch, commits: Sequence[PlannedCommit]) -> str:
    """A title under GitHub's 256 characters, free of mentions and references."""
    first = commits[0]
    if batch.kind is BatchKind.BUNDLE:
        grade = " (watch)" if batch.grade is Grade.WATCH else ""
        title = f"[graft] Bundle {batch.key}{grade}: {plural(len(commits), 'upstream commit')}"
        if len(commits) == 1:
            title += f", {_plain(first.subject)}"
    else:
        place = f"{batch.position} of {len(batch.chain)}"
        what = "Conflict" if batch.kind is BatchKind.CONFLICT else "Chain"
        title = f"[graft] {what} {batch.key}, link {place}: {_plain(first.subject)}"
    return title if len(title) < TITLE_LIMIT else title[: TITLE_LIMIT - 2] + "…"


def pull_body(facts: PullFacts) -> str:
    """The body: a reviewer's page above, a machine-readable block below."""
    batch = facts.batch
    above = [_lead(facts)]
    if facts.conflicts:
        above.append(_conflict(facts))
    if facts.links:
        above.append(_chain(facts))
    below = []
    if facts.empty:
        below.append("### Already there\n\n" + _table(["upstream", "subject", "why"], _empty_rows(facts.empty)))
    if facts.dropped:
        below.append("### Deferred\n\n" + _table(["upstream", "subject", "why", "files"], _dropped_rows(facts.dropped)))
    if facts.holes:
        below.append(_holes(facts.holes))
    below += [_pins(facts), _how(facts)]
    hidden = block("batch", _machine(batch))
    room = _ROOM - sum(len(part) + 2 for part in (*above, *below, hidden)) - 200
    picked = _picked(facts, room)
    passed = _passed_over(facts.passed_over, room - len(picked) - 2) if facts.passed_over else ""
    return fit([*above, picked, *below, *([passed] if passed else [])], hidden, _ROOM)


def read_batch(body: str | None) -> dict[str, Any] | None:
    """What the machine-readable block of a pull request's body says of its batch."""
    data = read_block("batch", body)
    return data if isinstance(data, dict) and isinstance(data.get("commits"), list) else None


def restate(body: str, batch: Batch) -> str:
    """The body with its machine-readable block as the batch stands now; what people read is left alone."""
    new = block("batch", _machine(batch))
    if read_block("batch", body) is None:
        return fit([body], new, BODY_LIMIT - 1_000)
    return re.sub(r"<!-- graft:batch \S.*? -->", lambda _: new, body, count=1)


def _machine(batch: Batch) -> dict[str, Any]:
    return {
        "version": 1,
        "key": batch.key,
        "kind": batch.kind.value,
        "grade": batch.grade.value if batch.grade else None,
        "commits": list(batch.commits),
        "chain": list(batch.chain),
        "position": batch.position,
        "head": batch.head,
        "base": batch.base,
        "levels": list(batch.levels),
        "areas": list(batch.areas),
        "rules": list(batch.rules),
        **({"closed_why": batch.closed_why.value} if batch.closed_why else {}),
        **({"apart": list(batch.apart)} if batch.apart else {}),
    }


def _plain(subject: str) -> str:
    """A subject for a title: no markdown there, and no reference to a pull request that is not this repository's."""
    return line(_unnumbered(subject), 160).replace("\\", "")


def _unnumbered(subject: str) -> str:
    """A subject without the numbers of pull requests at its end."""
    return re.sub(r"(\s*\(#\d+\))+$", "", subject)


def _lead(facts: PullFacts) -> str:
    batch, count = facts.batch, len(facts.commits)
    source = code(facts.upstream)
    if batch.kind is BatchKind.BUNDLE:
        why = (
            "but some come near what this fork has changed or uses"
            if batch.grade is Grade.WATCH
            else "and none is likely to need a change by hand"
        )
        each = "each merges" if count > 1 else "it merges"
        leans = "leans on nothing of upstream's that is not in the fork or here"
        return (
            f"{plural(count, 'commit')} of {source}, graded **{batch.grade or Grade.SAFE}**: "
            f"{each} cleanly and {leans}, {why}.{_likeliest(facts)}"
        )
    if batch.kind is BatchKind.CONFLICT:
        return (
            f"One commit of {source} that does not merge into this fork. The first commit here is the pick with its "
            "conflict markers, so that what follows can be reviewed as a diff of its own. "
            f"{_left(facts.conflicts)} The gate stays shut while a marker is left."
        )
    return f"Link {batch.position} of a chain of {len(batch.chain)} commits of {source} that belong together, in order."


def _left(conflicts: Sequence[ConflictNote]) -> str:
    """How much of a conflict is left to a person."""
    left = sum(not conflict.resolved for conflict in conflicts)
    if not left:
        return "A resolution of all of it is proposed, as a commit of its own: it wants a review."
    if left == len(conflicts):
        return f"{'It is' if left == 1 else f'All {left} files are'} left to a person."
    return f"Of {len(conflicts)} files {left} {'is' if left == 1 else 'are'} left to a person."


def _likeliest(facts: PullFacts) -> str:
    """Where a reviewer looks first: the commits that most likely need a change by hand."""
    if len(facts.commits) <= _LIKELIEST:
        return ""
    found = sorted(((chance_of_hand_work(c.reasons), c.sha) for c in facts.commits), key=lambda pair: -pair[0])
    shown = ", ".join(f"{short(sha)} ({chance:.0%})" for chance, sha in found[:_LIKELIEST])
    return (
        f" Likeliest to need one: {shown}." if facts.batch.grade is not Grade.WATCH else f" First to look at: {shown}."
    )


def _picked(facts: PullFacts, room: int) -> str:
    """The table of what is picked: as many of its rows as `room` characters hold."""
    areas = any(commit.areas for commit in facts.commits)
    head = ["upstream", "pull request", "subject", *(["area"] if areas else []), "why"]
    rows: list[list[str]] = []
    used = 200
    for commit in facts.commits:
        pr = _code(f"{facts.upstream}#{commit.pr}") if commit.pr else "–"
        named = [", ".join(code(a) for a in commit.areas) or "–"] if areas else []
        row = [short(commit.sha), pr, line(_unnumbered(commit.subject), 120), *named, _why(commit.reasons)]
        used += sum(len(cell) + 3 for cell in row) + 2
        if used > room:
            break
        rows.append(row)
    more = len(facts.commits) - len(rows)
    note = f"\n\n… and {plural(more, 'commit')} more: the branch has them all, one by one." if more else ""
    return "### Picked\n\n" + table(head, rows) + note


def _why(reasons: Sequence[Reason]) -> str:
    """The heaviest reasons, each with what shows it best; `/explain` has all."""
    cells = []
    for reason in sorted(reasons, key=lambda r: -r.weight)[:2]:
        shown, more = reason.brief(2)
        evidence = ", ".join(map(_code, shown)) + (f" (+{more})" if more else "")
        cells.append(line(reason.text, 160) + (f": {evidence}" if evidence else ""))
    return "; ".join(cells) or "–"


def _code(text: str) -> str:
    """Untrusted text as inline code that stays inert where a squash takes the body for its message."""
    return code(inert(text))


def _table(head: list[str], rows: list[list[str]], most: int = 50) -> str:
    more = f"\n\n… and {len(rows) - most} more." if len(rows) > most else ""
    return table(head, rows[:most]) + more


def _empty_rows(commits: Sequence[Dropped]) -> list[list[str]]:
    return [[short(c.sha), line(c.subject, 120), line(c.why, 200)] for c in commits]


def _dropped_rows(commits: Sequence[Dropped]) -> list[list[str]]:
    return [
        [short(c.sha), line(c.subject, 120), line(c.why, 200), ", ".join(_code(p) for p in c.paths[:5]) or "–"]
        for c in commits
    ]


def _chain(facts: PullFacts) -> str:
    rows = [
        [str(index), short(commit.sha), line(commit.subject, 120), state]
        for index, (commit, state) in enumerate(facts.links, 1)
    ]
    here = next((i for i, (commit, _) in enumerate(facts.links) if commit.sha in facts.batch.commits), 0)
    first = max(0, here - 3)
    shown = rows[first : first + _LINKS]
    cut = f"\n\n… {len(rows) - len(shown)} of {len(rows)} links not shown." if len(shown) < len(rows) else ""
    return "### The chain\n\n" + table(["link", "upstream", "subject", "state"], shown) + cut


def _conflict(facts: PullFacts) -> str:
    rows = [[_code(c.path), line(c.kind, 60), line(c.note, 400)] for c in facts.conflicts]
    sha, branch = facts.commits[0].sha, facts.batch.branch
    by_hand = "\n".join(
        [
            f"git fetch origin {branch} && git switch {branch}",
            "# edit the files above until no marker is left, then",
            "git commit -a -m 'Resolve the conflict' && git push origin HEAD",
            "",
            "# or from scratch, with git's own markers:",
            f"git fetch origin {facts.base_branch} && git switch -C {branch} FETCH_HEAD",
            f"git fetch {facts.upstream_url} {sha}",
            f"git cherry-pick -x {sha}",
            "# resolve, git add, git cherry-pick --continue, then",
            f"git push --force-with-lease={branch}:{facts.batch.head} origin HEAD",
        ]
    )
    shown = _table(["file", "kind", "note"], rows)
    return "### Conflicts\n\n" + shown + "\n\n" + details("By hand: the commands", fence(by_hand, "sh"))


def _holes(holes: Sequence[LedgerEntry]) -> str:
    names: Mapping[Disposition, str] = {Disposition.DEFERRED: "Deferred", Disposition.WONT_PORT: "Won't-port"}
    rows = [
        [names.get(h.disposition, h.disposition.value), short(h.sha), line(h.subject, 120), line(h.reason, 160)]
        for h in holes
    ]
    return details(f"{plural(len(rows), 'commit')} left out before", _table(["", "upstream", "subject", "why"], rows))


def _passed_over(entries: Sequence[LedgerEntry], room: int) -> str:
    """The lines by which the ledger knows, once this lands, that these commits were triaged and left for later.

    As many as `room` characters hold, oldest first: the frontier moves as far as they go, the next body goes on. Where
    not all fit, each says less.
    """
    lines = [decision_line(entry) for entry in entries]
    if sum(len(one) + 1 for one in lines) + 200 > room:
        lines = [decision_line(replace(entry, reason=entry.reason.split(":")[0])) for entry in entries]
    used, taken = 200, 0
    for one in lines:
        used += len(one) + 1
        if used > room:
            break
        taken += 1
    if not taken:
        return ""
    # no `fence`: it drops the marks that keep the text inert, and a squash may take this body as its message
    fenced = "```text\n" + "\n".join(lines[:taken]) + "\n```"
    more = f" (the first {taken} of them)" if taken < len(lines) else ""
    return details(f"{plural(len(entries), 'commit')} before these, left in chains or held{more}", fenced)


def _pins(facts: PullFacts) -> str:
    rows = [
        ["contiguous pin before", short(facts.pin)],
        ["contiguous pin after landing", short(facts.pin_after)],
        ["roll-back point", f"{short(facts.base_sha)} on {code(facts.base_branch)}"],
    ]
    return "### Pins\n\n" + table(["", "commit"], rows)


def _how(facts: PullFacts) -> str:
    steps = ["### How to review", ""]
    if facts.batch.kind is BatchKind.CONFLICT:
        steps.append(
            "- Review the second and later commits: they are the resolution. The first is upstream's, as it came."
        )
        steps.append(
            "- Where markers are left, finish it by hand. Each push is checked again: for markers, for lines of "
            "upstream's that are lost or doubled, for names of this fork's that are lost."
        )
        steps.append("- Then press **Ready for review**: that it is resolved is for a person to say.")
    else:
        steps.append(
            "- Each commit here is one upstream commit, author and date kept, with its trailer. Review them one by one."
        )
    steps += [
        "- `/explain <commit>` shows all evidence.",
        '- `/defer <commit> reason="…"` or `/wont-port <commit> reason="…"` takes one out.',
        "- Merge, squash or rebase as you like: the record survives each.",
        "- `/rollback` after landing opens the revert.",
    ]
    return "\n".join(steps)


def batch_from(data: Mapping[str, Any], *, number: int, branch: str, head: str, state: BatchState) -> Batch:
    """The batch as its pull request tells it, for a lost store. Raises ValueError where the block is wrong."""
    try:
        return Batch(
            key=str(data["key"]),
            kind=BatchKind(data["kind"]),
            grade=Grade(data["grade"]) if data.get("grade") else None,
            commits=tuple(str(c) for c in data["commits"]),
            chain=tuple(str(c) for c in data.get("chain", ())),
            position=int(data.get("position", 1)),
            branch=branch,
            number=number,
            head=str(data["head"]) if data.get("head") else head,
            base=str(data["base"]) if data.get("base") else None,
            state=state,
            levels=tuple(str(v) for v in data.get("levels", ())),
            areas=tuple(str(v) for v in data.get("areas", ())),
            rules=tuple(str(v) for v in data.get("rules", ())),
            apart=tuple(str(v) for v in data.get("apart", ())),
            closed_why=ClosedWhy(data["closed_why"]) if data.get("closed_why") else None,
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"the batch block of #{number} lacks {error}") from error
