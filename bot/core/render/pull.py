"""The title and body of a pull request of Graft's: what it carries, why, what waits, and how to go back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from bot.core.types import BatchKind, Disposition, Grade, LedgerEntry, PlannedCommit, Reason


@dataclass(frozen=True, slots=True)
class Dropped:
    """A commit of the batch that could not be picked, with the paths concerned."""

    sha: str
    subject: str
    why: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConflictNote:
    """One conflicting file of a draft: how its hunks are classed, and what was proposed."""

    path: str
    kind: str
    note: str


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
    parts = [_lead(facts)]
    if facts.conflicts:
        parts.append(_conflict(facts))
    if facts.links:
        parts.append(_chain(facts))
    parts.append(_picked(facts))
    if facts.empty:
        rows = [[short(c.sha), line(c.subject, 120), line(c.why, 200)] for c in facts.empty]
        parts.append("### Already there\n\n" + table(["upstream", "subject", "why"], rows))
    if facts.dropped:
        rows = [
            [short(c.sha), line(c.subject, 120), line(c.why, 200), ", ".join(code(p) for p in c.paths[:5]) or "–"]
            for c in facts.dropped
        ]
        parts.append("### Deferred\n\n" + table(["upstream", "subject", "why", "files"], rows))
    if facts.holes:
        parts.append(_holes(facts.holes))
    if facts.passed_over:
        parts.append(_passed_over(facts.passed_over))
    parts.append(_pins(facts))
    parts.append(_how(facts))
    return fit(parts, block("batch", _machine(batch)), BODY_LIMIT - 1_000)


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
    return line(re.sub(r"(\s*\(#\d+\))+$", "", subject), 160).replace("\\", "")


def _lead(facts: PullFacts) -> str:
    batch, count = facts.batch, len(facts.commits)
    source = code(facts.upstream)
    if batch.kind is BatchKind.BUNDLE:
        why = (
            "near what this fork has changed or uses, but clean and independent"
            if batch.grade is Grade.WATCH
            else "clean, independent, and with nothing of this fork's own near"
        )
        return f"{plural(count, 'commit')} of {source}, graded **{batch.grade or Grade.SAFE}**: {why}."
    if batch.kind is BatchKind.CONFLICT:
        return (
            f"One commit of {source} that does not merge into this fork. The first commit here is the pick with its "
            "conflict markers, so that what follows can be reviewed as a diff of its own. "
            "It stays a draft, and the gate stays shut, while a marker is left."
        )
    return f"Link {batch.position} of a chain of {len(batch.chain)} commits of {source} that belong together, in order."


def _picked(facts: PullFacts) -> str:
    rows = []
    for commit in facts.commits:
        pr = code(f"{facts.upstream}#{commit.pr}") if commit.pr else "–"
        areas = ", ".join(code(a) for a in commit.areas) or "–"
        rows.append([short(commit.sha), pr, line(commit.subject, 120), areas, _why(commit.reasons)])
    return "### Picked\n\n" + table(["upstream", "pull request", "subject", "area", "why"], rows)


def _why(reasons: Sequence[Reason]) -> str:
    shown = sorted(reasons, key=lambda r: -r.weight)[:3]
    cells = []
    for reason in shown:
        evidence = ", ".join(code(e) for e in reason.evidence[:3])
        more = f" (+{len(reason.evidence) - 3})" if len(reason.evidence) > 3 else ""
        cells.append(line(reason.text, 160) + (f": {evidence}{more}" if evidence else ""))
    return "; ".join(cells) or "–"


def _chain(facts: PullFacts) -> str:
    rows = [
        [str(index), short(commit.sha), line(commit.subject, 120), state]
        for index, (commit, state) in enumerate(facts.links, 1)
    ]
    return "### The chain\n\n" + table(["link", "upstream", "subject", "state"], rows)


def _conflict(facts: PullFacts) -> str:
    rows = [[code(c.path), line(c.kind, 60), line(c.note, 200)] for c in facts.conflicts]
    sha, branch = facts.commits[0].sha, facts.batch.branch
    by_hand = "\n".join(
        [
            f"git fetch origin {branch} && git switch {branch}",
            "# edit the files above until no marker is left, then",
            "git commit -a -m 'Resolve the conflict' && git push origin HEAD",
            "# or from scratch:",
            f"git fetch {facts.upstream_url} {sha} && git cherry-pick -x {sha}",
        ]
    )
    return "### Conflicts\n\n" + table(["file", "kind", "note"], rows) + "\n\nBy hand:\n\n" + fence(by_hand, "sh")


def _holes(holes: Sequence[LedgerEntry]) -> str:
    names: Mapping[Disposition, str] = {Disposition.DEFERRED: "Deferred", Disposition.WONT_PORT: "Won't-port"}
    rows = [
        [names.get(h.disposition, h.disposition.value), short(h.sha), line(h.subject, 120), line(h.reason, 160)]
        for h in holes[:50]
    ]
    return "### Left out before\n\n" + table(["", "upstream", "subject", "why"], rows)


def _passed_over(entries: Sequence[LedgerEntry]) -> str:
    """The lines by which the ledger knows, once this lands, that these commits were triaged and left for later."""
    lines = "\n".join(decision_line(entry) for entry in entries)
    # no `fence`: it drops the marks that keep the text inert, and a squash may take this body as its message
    fenced = f"```text\n{lines}\n```"
    return details(f"{plural(len(entries), 'commit')} before these, left in chains or held", fenced)


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
