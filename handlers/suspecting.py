"""The commits between last green and first red, read from git for the pure ranking."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bot.context import Git, GitError
from bot.core.trailers import parse, pull_number
from bot.core.triage import Candidate, Finding, Suspect, Trunk, changed_words, rank
from bot.core.types import Commit
from handlers.batches import batch_of
from handlers.fork import Fork

MOST_CANDIDATES = 200
_MOST_DIFFS = 60
_DIFF_LIMIT = 400_000  # characters


async def suspects_of(fork: Fork, trunk: Trunk, finding: Finding) -> tuple[tuple[Suspect, ...], int]:
    """The suspects, and how many commits lie between; none where it is not known after which commit it came."""
    if finding.after is None or finding.first_red is None:
        return (), 0
    try:
        commits = await asyncio.to_thread(fork.git.commits, finding.first_red, [finding.after])
    except GitError:  # a commit of a trunk since rewritten
        return (), 0
    carries = {commit.sha: await carried_by(fork, commit) for commit in commits[-MOST_CANDIDATES:]}
    candidates = await asyncio.to_thread(_candidates, fork.git, commits[-MOST_CANDIDATES:], carries)
    failures = trunk.failures(finding.signature)
    newest: Sequence[str] = ()
    if finding.changed_after is not None:
        newest = trunk.order[trunk.at[finding.changed_after] + 1 : trunk.at[finding.first_red] + 1]
    ranked = rank(
        candidates=candidates,
        tests=[test.id for test in finding.red],
        texts=list(dict.fromkeys(failure.message for failure in failures.values()))[:5],
        newest=frozenset(newest),
    )
    return ranked, len(commits)


async def carried_by(fork: Fork, commit: Commit) -> tuple[str, ...]:
    """The upstream commits that a commit takes in: by its trailers, or by the batch whose pull request it is."""
    picks = parse(commit.message).picks
    if picks:  # one alone keeps upstream's subject, and with it a number that is upstream's
        return tuple(picks) if len(picks) > 1 else ()
    number = pull_number(commit.message)
    batch = await batch_of(fork, number) if number is not None else None
    return tuple(batch.commits) if batch is not None and len(batch.commits) > 1 else ()


def _candidates(git: Git, commits: Sequence[Commit], carries: dict[str, tuple[str, ...]]) -> list[Candidate]:
    changes = git.changes_of(commits)
    found = []
    for index, commit in enumerate(commits):
        words: frozenset[str] = frozenset()
        if len(commits) - index <= _MOST_DIFFS and commit.parents:
            words = changed_words(git.diff(commit.parents[0], commit.sha, context=0)[:_DIFF_LIMIT])
        files = dict.fromkeys(path for change in changes[commit.sha] for path in (change.path, change.old_path) if path)
        found.append(
            Candidate(
                sha=commit.sha,
                subject=commit.subject,
                author=commit.author_name,
                files=tuple(files),
                words=words,
                carries=carries[commit.sha],
                number=pull_number(commit.message),
            )
        )
    return found
