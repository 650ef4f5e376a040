"""All that the gate decides on for one pull request, read from GitHub, git and the store."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from bot.context import Breakage, FetchError, Git, GitError, Pull
from bot.context import Review as GitHubReview
from bot.core.batches import Batch
from bot.core.command import Command, Validate, parse
from bot.core.comments import CommentFact
from bot.core.footprint import footprint, needed_blobs
from bot.core.gate import GateFacts, OpenBreakage, PullFact, PullKind, Review, ReviewState
from bot.core.owners import People, areas_of
from bot.core.render.breakage import LABEL as BREAKAGE_LABEL
from bot.core.resolution import FindingKind
from bot.core.types import BatchKind, Level
from handlers.batches import BRANCHES, batch_of
from handlers.fork import FORK, Fork
from handlers.reading import blobs_of
from handlers.resolving import findings, marked_files
from handlers.signing import given

MAX_FILES = 3_000  # GitHub lists no more files of a pull request
REVERTS = "graft/revert/"
_OPEN_BREAKAGE = ("open", "bisecting", "culprit_known")
_FIXES = re.compile(
    r"\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s+(?:([\w.-]+/[\w.-]+))?#(\d{1,9})\b", re.IGNORECASE
)


async def gate_facts(fork: Fork, pull: Pull) -> GateFacts:
    """The facts as they are now. What can't be read is None, or raises: nothing is made up."""
    head = pull.head.sha
    reviews = await fork.github.reviews(pull.number)
    batch = await batch_of(fork, pull.number)
    signed = await given(fork, pull, also=[review.user.login for review in reviews])
    halted = await fork.halted()
    marked, left = await _resolution(fork, pull, batch, reviews, signed.people)
    files = await _files(fork, pull)
    breakages = await open_breakages(fork)
    kind = await _kind(fork, pull, batch)
    return GateFacts(
        pull=PullFact(
            number=pull.number,
            author=pull.user.login,
            head=head,
            kind=kind,
            draft=pull.draft,
            files=files,
            symbols=await _symbols(fork, pull, files),
            labels=tuple(label.name for label in pull.labels),
            risks=_risks(pull, batch, kind),
            toolchain=bool(batch and "toolchain" in batch.rules),
            fixes=_fixes(fork, pull, files or (), breakages),
            conflict_markers=marked,
            open_findings=left,
        ),
        results=signed.heard.results,
        sign_offs=signed.sign_offs,
        waivers=signed.waivers,
        file_waivers=signed.filed,
        reviews=tuple(_review(review) for review in _latest_reviews(reviews)),
        breakages=breakages,
        halted=halted is not None,
        halted_by=halted or "",
        people=signed.people,
        forced=_forced(signed.comments, signed.people, head),
    )


async def open_breakages(fork: Fork) -> tuple[OpenBreakage, ...]:
    """Trunk's breakages that are not mended."""
    rows = await fork.ctx.store.breakages(fork.name, _OPEN_BREAKAGE)
    return tuple(OpenBreakage(row.key, area, row.number) for row in rows for area in _areas_of(row))


def _areas_of(row: Breakage) -> list[str | None]:
    """The areas that a breakage is in: of its tests and of their suites."""
    areas = dict.fromkeys([row.data.get("area"), *row.data.get("areas", []), *row.data.get("suite_areas", [])])
    return [area for area in areas if area] or [None]


async def _files(fork: Fork, pull: Pull) -> tuple[str, ...] | None:
    """The paths before and after; None where GitHub cut the list, or it is not the one of this head."""
    files = await fork.github.pull_files(pull.number)
    if len(files) >= MAX_FILES or len(files) != pull.changed_files:
        return None
    return tuple(dict.fromkeys(p for f in files for p in (f.previous_filename, f.filename) if p))


async def _kind(fork: Fork, pull: Pull, batch: Batch | None) -> PullKind:
    if batch is not None:
        return {
            BatchKind.BUNDLE: PullKind.BUNDLE,
            BatchKind.CHAIN: PullKind.CHAIN,
            BatchKind.CONFLICT: PullKind.CONFLICT,
        }[batch.kind]
    mine = pull.user.login == await fork.login() and pull.head.ref.startswith(BRANCHES)
    return PullKind.BUNDLE if mine else PullKind.PERSON


def _risks(pull: Pull, batch: Batch | None, kind: PullKind) -> tuple[str, ...] | None:
    """The risk rules that the plan named; None for a batch of Graft's that is not on record (any more)."""
    if batch is not None:
        return batch.rules
    return () if kind is PullKind.PERSON or pull.head.ref.startswith(REVERTS) else None


async def _symbols(fork: Fork, pull: Pull, files: Sequence[str] | None) -> tuple[str, ...] | None:
    """The names that the change defines, changes or removes, where a rule or an area asks for symbols; None where they
    can't be told.
    """
    config = fork.config
    asked = any(area.symbols for area in config.areas.values()) or any(rule.symbols for rule in config.ingest.risk)
    if not asked:
        return ()
    if files is None or len(files) > config.ingest.max_files:
        return None
    try:
        # a base that is older than main's tip shows more of a change, never less
        there = await asyncio.to_thread(fork.git.resolve, pull.head.sha)
        base = await fork.tip(FORK) if there else await fork.fetch_fork(pull.number)
        start = await asyncio.to_thread(fork.git.merge_base, pull.head.sha, base)
        return await asyncio.to_thread(_names, fork.git.path, start, pull.head.sha) if start else None
    except (GitError, FetchError) as error:
        fork.ctx.log.warning("a change was not read", number=pull.number, error=str(error))
        return None


@lru_cache(maxsize=512)
def _names(path: Path, start: str, head: str) -> tuple[str, ...] | None:
    with Git(path) as git:
        changes = git.changed_files(start, head)
        found = footprint(commit=git.commit(head), changes=changes, blobs=blobs_of(git, sorted(needed_blobs(changes))))
    return tuple(sorted(found.changed | found.defined | found.removed)) if found.parsed else None


def _fixes(
    fork: Fork, pull: Pull, files: Sequence[str], breakages: Sequence[OpenBreakage]
) -> tuple[str, ...]:  # fmt: skip
    """The breakages that this pull request is said to mend: by `Fixes #n`, or by the label and a touched area."""
    text = f"{pull.title}\n{pull.body}"
    named = {int(m[2]) for m in _FIXES.finditer(text) if m[1] is None or m[1].lower() == fork.name.lower()}
    labelled = any(label.name == BREAKAGE_LABEL for label in pull.labels)
    touched = areas_of(files, fork.config) if labelled else ()
    return tuple(b.key for b in breakages if b.issue in named or (b.area is not None and b.area in touched))


async def _resolution(
    fork: Fork, pull: Pull, batch: Batch | None, reviews: Sequence[GitHubReview], who: People
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The files with conflict markers, and the findings that nobody confirmed yet; None where git can't be read.

    A finding is confirmed by the approval of someone who may write, given for this very head.
    """
    if batch is None or (batch.kind is not BatchKind.CONFLICT and not batch.paused):
        return (), ()
    head = pull.head.sha
    try:
        base = await fork.fetch_fork(pull.number)
        marked = await asyncio.to_thread(marked_files, fork.git, head=head, base=base)
        found = await asyncio.to_thread(findings, fork.git, batch=batch, head=head, base=base)
    except (GitError, FetchError) as error:
        fork.ctx.log.warning("a resolution was not read", number=pull.number, error=str(error))
        return None, None
    confirmed = any(r.state == "APPROVED" and r.commit_id == head and who.can_write(r.user.login) for r in reviews)
    left = [f for f in found if f.blocking or (f.confirm and not confirmed)]
    return marked, tuple(f"{f.path}: {f.text}" for f in left if f.kind is not FindingKind.MARKER)


def _latest_reviews(reviews: Sequence[GitHubReview]) -> list[GitHubReview]:
    newest: dict[str, GitHubReview] = {}
    for review in reviews:
        if review.state in ("APPROVED", "CHANGES_REQUESTED", "DISMISSED"):
            newest[review.user.login] = review
    return list(newest.values())


def _review(review: GitHubReview) -> Review:
    states = {"APPROVED": ReviewState.APPROVED, "CHANGES_REQUESTED": ReviewState.CHANGES_REQUESTED}
    return Review(review.user.login, states.get(review.state, ReviewState.OTHER), review.commit_id)


def _forced(comments: Sequence[CommentFact], who: People, head: str) -> tuple[Level, ...]:
    """Levels that a maintainer let start before the one below had passed, on this very commit."""
    found = []
    for comment in comments:
        for command in parse(comment.body) if comment.head == head and not comment.edited else ():
            force = isinstance(command, Command) and isinstance(command.args, Validate) and command.args.force
            if force and who.can_maintain(comment.author):
                assert isinstance(command, Command) and isinstance(command.args, Validate)
                found.append(command.args.level)
    return tuple(found)
