"""What the pages show, made from the records: rows, timelines, diffs, the merge box."""

from __future__ import annotations

import colorsys
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

from bot.sandbox import checks, merging
from bot.sandbox.accounts import User
from bot.sandbox.bare import CommitData, FileDiff
from bot.sandbox.model import CheckRun, Issue, Label, Repository
from bot.sandbox.world import World

_STEPS = ((60, "second", 1), (3600, "minute", 60), (86_400, "hour", 3600), (2_592_000, "day", 86_400))
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
MAX_LINES = 800  # of one file's diff; more is said, not shown


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a diff: kind is add, del, context or hunk."""

    kind: str
    old: int | None
    new: int | None
    text: str


@dataclass(frozen=True, slots=True)
class DiffView:
    """One file of a diff; `hidden` lines are left out."""

    file: FileDiff
    lines: tuple[Line, ...]
    hidden: int


@dataclass(frozen=True, slots=True)
class Row:
    """A line in a list of issues or pull requests."""

    item: Issue
    labels: list[Label]
    state: str
    check: str


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A commit in a list."""

    data: CommitData
    author: User | None
    check: str
    when: datetime


@dataclass(frozen=True, slots=True)
class Need:
    """One line of the merge box: state is passed, failed, pending or missing."""

    state: str
    title: str
    detail: str
    link: str | None = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class MergeBox:
    """Whether it can be merged, in words, with all that is asked for."""

    tone: str
    headline: str
    text: str
    needs: tuple[Need, ...]


def ago(now: datetime, moment: datetime | None) -> str:
    """A time as one says it."""
    if moment is None:
        return ""
    seconds = int((now - moment).total_seconds())
    if seconds < 10:
        return "just now"
    for limit, word, unit in _STEPS:
        if seconds < limit:
            count = seconds // unit
            return f"{count} {word}{'' if count == 1 else 's'} ago"
    return f"on {moment.day} {moment:%b %Y}"


def label_style(label: Label) -> Markup:
    """The colours of a label: its own, or one made from its name; readable in light and dark."""
    color = label.color
    if color == "ededed":
        hue = zlib.crc32(label.name.split(":")[0].encode()) % 360 / 360
        color = "".join(f"{int(part * 255):02x}" for part in colorsys.hls_to_rgb(hue, 0.6, 0.55))
    red, green, blue = (int(color[at : at + 2], 16) for at in (0, 2, 4))
    return Markup("--r:{};--g:{};--b:{}").format(red, green, blue)


def avatar(login: str) -> str:
    """A picture for an account."""
    hue = zlib.crc32(login.encode()) % 360
    corner = 6 if login.endswith("[bot]") else 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><rect width="40" height="40" rx="{corner}" '
        f'fill="hsl({hue} 45% 48%)"/><text x="20" y="27" font-family="sans-serif" font-size="20" font-weight="600" '
        f'text-anchor="middle" fill="#fff">{escape(login[:1].upper())}</text></svg>'
    )


def check_state(run: CheckRun) -> str:
    """passed, failed, pending or neutral."""
    if run.status != "completed":
        return "pending"
    if run.conclusion in ("neutral", "skipped", "cancelled", "stale"):
        return "neutral"
    return "passed" if run.conclusion == "success" else "failed"


def check_icon(run: CheckRun) -> str:
    """The state of a run as a class."""
    return check_state(run)


def overall(repo: Repository, sha: str) -> str:
    """The state of all checks of a commit in one word; empty where there is none."""
    states = [check_state(run) for run in checks.latest_runs(repo, sha)]
    states += [
        {"success": "passed", "pending": "pending"}.get(one.state, "failed")
        for one in checks.latest_statuses(repo, sha)
    ]
    return next((word for word in ("failed", "pending", "passed", "neutral") if word in states), "")


def labels(repo: Repository, item: Issue) -> list[Label]:
    """The labels of an issue."""
    return [repo.labels[name.lower()] for name in item.labels]


def state_word(item: Issue) -> str:
    """open, draft, merged, closed (a pull request), or open, completed, not_planned (an issue)."""
    if item.pull is None:
        return "open" if item.state == "open" else item.state_reason or "completed"
    if item.pull.merged_at is not None:
        return "merged"
    return "draft" if item.pull.draft and item.state == "open" else item.state


def row(world: World, repo: Repository, item: Issue) -> Row:
    """A line of a list."""
    check = overall(repo, item.pull.head_sha) if item.pull else ""
    return Row(item, labels(repo, item), state_word(item), check)


def commit_row(world: World, repo: Repository, data: CommitData) -> CommitRow:
    """A commit of a list."""
    when = datetime.fromisoformat(data.committer.date)
    return CommitRow(data, world.user_of_email(data.author.email), overall(repo, data.sha), when)


def diff_files(files: Sequence[FileDiff]) -> list[DiffView]:
    """Diffs with numbered lines."""
    views = []
    for one in files:
        lines = tuple(_lines(one.patch or ""))
        views.append(DiffView(one, lines[:MAX_LINES], max(0, len(lines) - MAX_LINES)))
    return views


def _lines(patch: str) -> list[Line]:
    old = new = 0
    found = []
    for text in patch.split("\n") if patch else []:
        hunk = _HUNK.match(text)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            found.append(Line("hunk", None, None, text))
        elif text.startswith("+"):
            found.append(Line("add", None, new, text[1:]))
            new += 1
        elif text.startswith("-"):
            found.append(Line("del", old, None, text[1:]))
            old += 1
        elif text.startswith("\\"):
            found.append(Line("note", None, None, text[2:]))
        else:
            found.append(Line("context", old, new, text[1:]))
            old, new = old + 1, new + 1
    return found


def timeline(world: World, repo: Repository, item: Issue) -> list[tuple[str, Any]]:
    """What happened, in order: comments, reviews, commits, events."""
    found: list[tuple[datetime, int, str, Any]] = [(one.created_at, one.id, "comment", one) for one in item.comments]
    shown = (
        "labeled", "unlabeled", "assigned", "closed", "reopened", "merged", "renamed", "locked", "unlocked",
        "head_ref_force_pushed", "head_ref_deleted", "review_requested", "review_dismissed", "ready_for_review",
        "convert_to_draft",
    )  # fmt: skip
    found += [(one.created_at, one.id, "event", one) for one in item.events if one.event in shown]
    if item.pull is not None:
        found += [(one.submitted_at or world.now(), one.id, "review", one) for one in item.pull.reviews]
    found.sort(key=lambda entry: entry[:2])
    return _grouped(repo, [(kind, one) for _, _, kind, one in found])


def _grouped(repo: Repository, entries: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Labels that one put on together as one line."""
    rows: list[tuple[str, Any]] = []
    for kind, one in entries:
        if kind == "event" and one.event in ("labeled", "unlabeled"):
            label = repo.labels.get(one.detail["label"]["name"].lower()) or Label(0, one.detail["label"]["name"])
            last = rows[-1] if rows else None
            if (
                last is not None
                and last[0] == "labels"
                and (last[1]["actor"], last[1]["event"]) == (one.actor, one.event)
            ):
                last[1]["labels"].append(label)
            else:
                given = {"actor": one.actor, "event": one.event, "labels": [label], "created_at": one.created_at}
                rows.append(("labels", given))
        else:
            rows.append((kind, one))
    return rows


def merge_box(world: World, repo: Repository, item: Issue) -> MergeBox | None:
    """The box under an open pull request; None under a closed one."""
    pull = item.pull
    assert pull is not None
    if item.state != "open":
        return None
    rule = world.protection(repo, pull.base_ref)
    required = rule.required_checks if rule else {}
    runs = checks.latest_runs(repo, pull.head_sha)
    needs = []
    for run in sorted(runs, key=lambda run: (run.name not in required, run.name)):
        link = f"/{repo.full_name}/runs/{run.id}"
        needs.append(
            Need(
                check_state(run),
                run.name,
                run.title or (run.conclusion or run.status).replace("_", " "),
                link,
                run.name in required,
            )
        )
    for status in checks.latest_statuses(repo, pull.head_sha):
        state = {"success": "passed", "pending": "pending"}.get(status.state, "failed")
        needs.append(
            Need(
                state, status.context, status.description or status.state, status.target_url, status.context in required
            )
        )
    seen = {need.title for need in needs}
    for context in required:
        if context not in seen:
            needs.append(Need("missing", context, "Expected: waiting for it to be reported", None, True))
    return _verdict(world, repo, item, tuple(needs))


def _verdict(world: World, repo: Repository, item: Issue, needs: tuple[Need, ...]) -> MergeBox:
    stopping = merging.blockers(world, repo, item)
    kinds = {blocker.kind for blocker in stopping}
    reasons = "; ".join(blocker.message.rstrip(".") for blocker in stopping)
    pull = item.pull
    assert pull is not None
    if any(entry.number == item.number for entry in repo.queue):
        return MergeBox("pending", "Queued to merge", "Waiting for the required checks on the merge group.", needs)
    if "conflict" in kinds:
        paths = ", ".join(pull.trial.conflicts[:6]) if pull.trial else ""
        return MergeBox("failed", "This branch has conflicts that must be resolved", paths or reasons, needs)
    if kinds == {"draft"}:
        return MergeBox(
            "neutral", "This pull request is still a work in progress", "Draft pull requests cannot be merged.", needs
        )
    if stopping:
        return MergeBox("failed", "Merging is blocked", reasons, needs)
    if any(need.state == "failed" for need in needs):
        return MergeBox(
            "neutral", "Some checks were not successful", "None of them is required: merging is possible.", needs
        )
    return MergeBox("passed", "This branch has no conflicts with the base branch", "Merging can be performed.", needs)
