"""Take a landed batch back, or one upstream commit of it: the revert as a pull request, built in memory; the ledger
follows once it lands.
"""

from __future__ import annotations

import asyncio

from bot.context import Git, GitError, Pull, PushRejected
from bot.core.batches import Batch, key_of
from bot.core.render.answers import Said
from bot.core.render.text import line, plural, short
from bot.core.trailers import inert, parse
from bot.core.triage.searching import Hunt, Standing
from bot.core.types import Commit
from handlers.asked import Asked
from handlers.batches import batch_of
from handlers.building import Committer
from handlers.expanding import Apart, take_apart
from handlers.fork import Fork


async def open_rollback(fork: Fork, pull: Pull, asked_by: str) -> Pull | str:
    """The pull request that takes `pull` back, or why there can't be one."""
    batch = await batch_of(fork, pull.number)
    merged = pull.merge_commit_sha
    if batch is None or merged is None:
        return "Only a landed pull request of Graft's can be taken back by command."
    tip = await fork.fetch_fork()
    committer = Committer.of(await fork.login())
    built = await asyncio.to_thread(revert, fork.git, batch=batch, merged=merged, tip=tip, committer=committer)
    if built is None:
        return (
            "Taking it back conflicts with what has landed since. By hand: "
            f"`git revert {'-m 1 ' if len(fork.git.commit(merged).parents) > 1 else ''}{merged}`."
        )
    if built == tip:
        return "Nothing of it is in the fork any more."
    branch = f"graft/revert/{key_of(batch.key, merged)}"
    if (refused := await _push(fork, branch, built)) is not None:
        return refused
    before = await asyncio.to_thread(point_before, fork.git, batch=batch, merged=merged)
    body = (
        f"Takes #{pull.number} back ({plural(len(batch.commits), 'upstream commit')}), as {line(asked_by)} asked.\n\n"
        f"Roll-back point: {short(before)}. Once this lands, its commits are pending again in the ledger."
    )
    title = f"[graft] Roll back #{pull.number}"
    return await fork.github.create_pull(title=title, body=body, head=branch, base=fork.config.fork.branch)


async def roll_back_one(asked: Asked, word: str | None) -> Said:
    """Take one upstream commit back: the one that `word` names, else the culprit of the breakage it is said on."""
    fork, pull = asked.fork, asked.pull
    breakage: int | None = None
    if pull is not None:
        batch = await batch_of(fork, pull.number)
        if batch is None or not pull.landed or pull.merge_commit_sha is None:
            return asked.refused("Only of a landed pull request of Graft's can one upstream commit be taken back.")
        known = {sha: await _landing_of(fork, batch, pull.merge_commit_sha, sha) for sha in batch.commits}
    else:
        rows = await fork.ctx.store.breakages(fork.name)
        hunt = next((Hunt.of(row.data) for row in rows if row.number == asked.number), None)
        if hunt is None or hunt.standing is not Standing.CULPRIT or not hunt.takes:
            return asked.refused("No search has named an upstream commit as the culprit here.")
        known, breakage = dict.fromkeys(hunt.takes, hunt.landed), asked.number
    found = [sha for sha in known if word is None or sha.startswith(word.lower())]
    if len(found) != 1:
        listed = ", ".join(short(sha) for sha in list(known)[:20])
        return asked.refused(f"Name one upstream commit of those that are meant here: {listed}.")
    opened = await open_rollback_of(fork, found[0], known[found[0]], asked.author, breakage=breakage)
    if isinstance(opened, str):
        return asked.refused(opened)
    one = short(found[0])
    return asked.done(f"#{opened.number} takes just upstream {one} back; once it lands, it is pending again.")


async def _landing_of(fork: Fork, batch: Batch, merged: str, upstream: str) -> str:
    """The commit of trunk that an upstream commit came with: where a batch was rebased, its own one."""
    before = await asyncio.to_thread(point_before, fork.git, batch=batch, merged=merged)
    brought = await asyncio.to_thread(fork.git.commits, merged, [before])
    return next((commit.sha for commit in brought if parse(commit.message).picks == (upstream,)), merged)


async def open_rollback_of(
    fork: Fork, upstream: str, landing: str, asked_by: str, *, breakage: int | None = None
) -> Pull | str:
    """The pull request that takes just one upstream commit back, or why there can't be one.

    `landing` is the commit of trunk that it came with, alone or with others; `breakage` the issue of what it broke.
    """
    tip = await fork.fetch_fork()
    committer = Committer.of(await fork.login())
    try:
        brought = await asyncio.to_thread(fork.git.commit, landing)
        apart = await take_apart(fork, brought)
        revert = await asyncio.to_thread(revert_one, fork.git, upstream, brought, apart, tip=tip, committer=committer)
    except GitError as error:
        return f"git could not do it: {line(str(error), 300)}"
    if revert is None:
        return (
            f"Taking {short(upstream)} back by itself conflicts with what the fork has changed or landed since. "
            f"By hand: `git fetch` upstream, then `git revert {upstream}`."
        )
    if revert == tip:
        return f"Nothing of {short(upstream)} is in the fork any more."
    branch = f"graft/revert/{key_of(upstream, landing)}"
    if (refused := await _push(fork, branch, revert)) is not None:
        return refused
    subject = line(fork.git.commit(upstream).subject, 200)
    body = (
        f"Takes the upstream commit {short(upstream)} back ({subject}), as {line(asked_by)} asked. It came with "
        f"{short(landing)}; whatever else came with that stays.\n\n"
        + (f"Fixes #{breakage}\n\n" if breakage is not None else "")
        + "Once this lands, it is pending again in the ledger; `/pick` takes it in again."
    )
    title = f"[graft] Roll back upstream {upstream[:10]}"
    return await fork.github.create_pull(title=title, body=body, head=branch, base=fork.config.fork.branch)


async def _push(fork: Fork, branch: str, sha: str) -> str | None:
    """Bring the branch to that commit; why GitHub refused, or None."""
    standing = await fork.github.branch(branch)
    if standing is not None and standing.sha == sha:
        return None
    token = await fork.github.token()
    expected = standing.sha if standing else None
    try:
        await asyncio.to_thread(
            fork.git.push, fork.github.git_url, sha, f"refs/heads/{branch}", expected=expected, token=token
        )
    except PushRejected as error:
        return f"GitHub refused the branch ({error.kind}): {line(error.stderr, 300)}"
    return None


def revert_one(
    git: Git, upstream: str, landing: Commit, apart: Apart | None, *, tip: str, committer: Committer
) -> str | None:
    """A commit on `tip` that takes one upstream commit back; `tip` itself where nothing of it is left, None where that
    conflicts.

    The change is undone as the fork has it: by its own commit, else as it was applied again inside its bundle, else as
    upstream has it.
    """
    own = next((c for c in _brought_by(git, landing) if parse(c.message).picks == (upstream,)), None)
    inside = apart.sides(upstream) if apart is not None else None
    source = git.commit(upstream)
    sides = [(own.sha, own.parents[0])] if own is not None else []
    sides += [inside] if inside is not None else []
    sides += [(upstream, source.parents[0])] if source.parents else []
    for after, before in sides:
        merge = git.merge_trees(base=after, ours=tip, theirs=before)
        if not merge.clean:
            continue
        if merge.tree == git.tree_of(tip):
            return tip
        # of a bundle only this part: its own commit's name would take back all that came with it
        named = own.sha if own is not None else upstream
        message = f'Revert "{inert(source.subject)}"\n\nThis reverts commit {named}.\n'
        return _write(git, merge.tree, tip, message, committer)
    return None


def _brought_by(git: Git, landing: Commit) -> list[Commit]:
    """The commits that came with a commit of trunk: itself, or all that a merge brought."""
    if len(landing.parents) < 2:
        return [landing]
    return git.commits(landing.sha, [landing.parents[0]], first_parent=False)


def point_before(git: Git, *, batch: Batch, merged: str) -> str:
    """The commit of trunk before the batch landed, whether it was merged, squashed or rebased."""
    before = git.commit(merged).parents[0]
    mine = frozenset(batch.commits)
    # a rebase landed one commit for each pick: the point is before the first of them
    while mine & set(parse(git.commit(before).message).picks) and git.commit(before).parents:
        before = git.commit(before).parents[0]
    return before


def revert(git: Git, *, batch: Batch, merged: str, tip: str, committer: Committer) -> str | None:
    """A commit on `tip` that takes the batch back; None where that conflicts."""
    before = point_before(git, batch=batch, merged=merged)
    merge = git.merge_trees(base=merged, ours=tip, theirs=before)
    if not merge.clean:
        return None
    if merge.tree == git.tree_of(tip):
        return tip
    landed = [c for c in git.commits(merged, [before], first_parent=False) if parse(c.message).picks]
    shas = list(dict.fromkeys([*(c.sha for c in landed), merged]))
    subject = git.commit(merged).subject
    message = f'Revert "{inert(subject)}"\n\n' + "\n".join(f"This reverts commit {sha}." for sha in shas) + "\n"
    return _write(git, merge.tree, tip, message, committer)


def _write(git: Git, tree: str, tip: str, message: str, committer: Committer) -> str:
    now = git.commit(tip).committer_time
    return git.write_commit(
        tree=tree,
        parents=[tip],
        message=message,
        author_name=committer.name,
        author_email=committer.email,
        author_date=f"{now} +0000",
        committer_name=committer.name,
        committer_email=committer.email,
        committer_date=f"{now} +0000",
    )
