"""Take a landed batch back: the revert as a pull request, built in memory; the ledger follows once it lands."""

from __future__ import annotations

import asyncio

from bot.context import Git, Pull, PushRejected
from bot.core.batches import Batch, key_of
from bot.core.render.text import line, plural, short
from bot.core.trailers import inert, parse
from handlers.batches import batch_of
from handlers.building import Committer
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
    standing = await fork.github.branch(branch)
    if standing is None or standing.sha != built:
        token = await fork.github.token()
        expected = standing.sha if standing else None
        try:
            await asyncio.to_thread(
                fork.git.push, fork.github.git_url, built, f"refs/heads/{branch}", expected=expected, token=token
            )
        except PushRejected as error:
            return f"GitHub refused the branch ({error.kind}): {line(error.stderr, 300)}"
    before = await asyncio.to_thread(point_before, fork.git, batch=batch, merged=merged)
    body = (
        f"Takes #{pull.number} back ({plural(len(batch.commits), 'upstream commit')}), as {line(asked_by)} asked.\n\n"
        f"Roll-back point: {short(before)}. Once this lands, its commits are pending again in the ledger."
    )
    title = f"[graft] Roll back #{pull.number}"
    return await fork.github.create_pull(title=title, body=body, head=branch, base=fork.config.fork.branch)


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
    now = git.commit(tip).committer_time
    return git.write_commit(
        tree=merge.tree,
        parents=[tip],
        message=message,
        author_name=committer.name,
        author_email=committer.email,
        author_date=f"{now} +0000",
        committer_name=committer.name,
        committer_email=committer.email,
        committer_date=f"{now} +0000",
    )
