"""What people signed and waived in a pull request, judged the same way for the gate and for the answer to a command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bot.context import FetchError, GitError, Pull
from bot.core.command import Command, parse
from bot.core.comments import CommentFact
from bot.core.handreport import hand_reports
from bot.core.owners import People
from bot.core.signoff import Change, Fingerprint, SignOff, fingerprint, sign_offs
from bot.core.waivers import JudgedWaiver, from_comments, narrow
from handlers.comments import comment_facts
from handlers.failing import Heard, baselines, heard
from handlers.fork import Fork
from handlers.people import people
from handlers.waivers import file_waivers


@dataclass(frozen=True, slots=True)
class Given:
    """All that people gave in a pull request's comments, each standing or void with the reason.

    `filed` None: the fork's file of waivers can't be read. `heard` is what the runs at the head reported.
    """

    comments: tuple[CommentFact, ...]
    people: People
    sign_offs: tuple[SignOff, ...]
    waivers: tuple[JudgedWaiver, ...]
    filed: tuple[JudgedWaiver, ...] | None
    heard: Heard


async def given(fork: Fork, pull: Pull, *, also: Sequence[str] = ()) -> Given:
    """What stands of the comments on the pull request's head as all is now; `also` names more people to ask about."""
    comments = await comment_facts(fork, pull.number)
    speakers = [c.author for c in comments if parse(c.body)] + [pull.user.login, *also]
    filed = await file_waivers(fork)
    who = await people(fork, speakers, waivers=filed or ())
    runs = await fork.ctx.store.runs(fork.name, number=pull.number)
    told = await heard(fork, [run for run in runs if run.sha == pull.head.sha])
    judged = from_comments(
        comments=comments, people=who, head=pull.head.sha, pull=pull.number, config=fork.config, now=fork.now
    )
    waivers = tuple(narrow(one, config=fork.config, failures=told.failures, known=told.passed) for one in judged)
    signed = sign_offs(
        config=fork.config,
        comments=comments,
        people=who,
        author=pull.user.login,
        head=pull.head.sha,
        fingerprints=await _fingerprints(fork, pull, comments),
        runs={run.id: run.sha for run in runs},
        baselines=await baselines(fork),
        waivers=(*waivers, *(filed or ())),
        reports=hand_reports(comments=comments, people=who, repository=fork.name, config=fork.config),
    )
    return Given(tuple(comments), who, signed, waivers, filed, told)


async def _fingerprints(fork: Fork, pull: Pull, comments: Sequence[CommentFact]) -> dict[str, Fingerprint]:
    """What each commit that somebody signed, and the head, changes; one that git can't give is left out."""
    wanted = {
        c.head
        for c in comments
        if c.head and any(isinstance(x, Command) and x.name == "signoff" for x in parse(c.body))
    }
    if not wanted - {pull.head.sha}:
        return {}  # signed for the very head, or not at all: nothing to compare
    try:
        tip = await fork.fetch_fork(pull.number)
    except (GitError, FetchError) as error:
        fork.ctx.log.warning("what was signed can't be compared with the head", number=pull.number, error=str(error))
        return {}

    def one(sha: str) -> Fingerprint | None:
        if fork.git.resolve(sha) is None or (base := fork.git.merge_base(sha, tip)) is None:
            return None
        changes = fork.git.changed_files(base, sha)
        return fingerprint([Change(c.path, c.old_oid, c.new_oid, c.new_mode) for c in changes], fork.config)

    found = {sha: await asyncio.to_thread(one, sha) for sha in {*wanted, pull.head.sha}}
    return {sha: print_ for sha, print_ in found.items() if print_ is not None}
