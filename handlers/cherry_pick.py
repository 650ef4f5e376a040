"""Work the plan off: look after the pull requests that are open, then open what comes next, within mode and caps."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from bot.clients.git import PushRejected
from bot.clients.github import Pull
from bot.core.batches import Batch, BatchState, ClosedWhy, Next, ToOpen, Waiting, WaitKind, next_batches
from bot.core.render.pull import PullFacts, pull_body, pull_title
from bot.core.render.text import line, marker, short
from bot.core.types import BatchKind, Disposition, Mode, Plan, PlannedCommit
from handlers.batches import load_batches, save_batch
from handlers.building import Built, Committer, build, deleted_by_fork, merges_cleanly
from handlers.fork import Fork
from handlers.landing import land

LABELS = {
    BatchKind.BUNDLE: ("graft:bundle", "1d76db", "Upstream commits that are independent of each other"),
    BatchKind.CHAIN: ("graft:chain", "5319e7", "One link of a chain of upstream commits, in order"),
    BatchKind.CONFLICT: ("graft:conflict", "d93f0b", "An upstream commit that does not merge: needs a person"),
}


async def work_off(fork: Fork, plan: Plan) -> Next:
    """Bring every batch to where it should be, then open the next ones; gives what was opened and what waits."""
    batches = [await look_after(fork, batch, plan) for batch in await load_batches(fork)]
    allowance = await _allowance(fork)
    caps = fork.config.ingest.caps
    chosen = next_batches(
        plan=plan,
        batches=batches,
        open_bundles=caps.open_bundles,
        open_chains=caps.open_chains,
        allowance=allowance,
        urgent=tuple(await fork.note("urgent") or ()),
        apart=tuple(await fork.note("split") or ()),
    )
    if not await fork.may_open():
        held = Waiting(tuple(s for t in chosen.to_open for s in t.batch.commits), WaitKind.CAP, await _why_not(fork))
        chosen = Next((), (*chosen.waiting, held) if chosen.to_open else chosen.waiting)
    for to_open in chosen.to_open:
        await open_batch(fork, plan, to_open)
    await fork.put_note("waiting", [[list(w.commits), w.text, w.number] for w in chosen.waiting])
    return chosen


async def _why_not(fork: Fork) -> str:
    halted = await fork.halted()
    return f"halted by {halted}" if halted else f"the mode is {fork.config.mode.value}: nothing is opened"


async def _allowance(fork: Fork) -> int:
    today = fork.now.date().isoformat()
    opened = await fork.note("opened") or {}
    used = opened.get("count", 0) if opened.get("day") == today else 0
    return max(0, fork.config.ingest.caps.pull_requests_per_day - used)


async def _count_opening(fork: Fork) -> None:
    today = fork.now.date().isoformat()
    opened = await fork.note("opened") or {}
    used = opened.get("count", 0) if opened.get("day") == today else 0
    await fork.put_note("opened", {"day": today, "count": used + 1})


async def look_after(fork: Fork, batch: Batch, plan: Plan) -> Batch:
    """One batch against GitHub: merged, closed, landed otherwise, out of date, or taken over by a person."""
    if not batch.state.in_flight or batch.number is None:
        return batch
    pull = await fork.github.pull(batch.number)
    if pull.landed:
        batch = replace(batch, state=BatchState.MERGED, head=pull.head.sha)
        await land(fork, batch, pull, plan)
        return batch
    if pull.state == "closed":
        return await _keep(fork, replace(batch, state=BatchState.CLOSED, closed_why=ClosedWhy.PERSON))
    batch = replace(batch, state=BatchState.DRAFT if pull.draft else BatchState.OPEN)
    final = {e.sha for e in plan.ledger.entries if e.disposition.final}
    if batch.commits and all(sha in final for sha in batch.commits):
        return await close_batch(fork, batch, ClosedWhy.LANDED, "Each of its commits is in the fork by now.")
    if pull.head.sha != batch.head:
        return await _taken_over(fork, batch, pull)
    if batch.kind is not BatchKind.CONFLICT and not await asyncio.to_thread(
        merges_cleanly, fork.git, head=pull.head.sha, base=plan.fork_tip
    ):
        return await _rebuild(fork, batch, plan)
    return await _keep(fork, batch)


async def _keep(fork: Fork, batch: Batch) -> Batch:
    await save_batch(fork, batch)
    return batch


async def _taken_over(fork: Fork, batch: Batch, pull: Pull) -> Batch:
    if not batch.paused:
        text = (
            f"{marker('paused')}\nSomeone pushed to this branch ({short(batch.head)} became {short(pull.head.sha)}). "
            "Graft writes here no more and leaves it to you; what is validated and gated is your push. "
            "`/rebase` gives the branch back to Graft, and drops what was pushed."
        )
        await fork.github.upsert_comment(pull.number, marker("paused"), text)
        await fork.enqueue("validate", f"#{pull.number}", {"number": pull.number})
    return await _keep(fork, replace(batch, paused=True))


async def close_batch(fork: Fork, batch: Batch, why: ClosedWhy, text: str) -> Batch:
    """Close a pull request of Graft's with the reason, and delete its branch."""
    assert batch.number is not None
    await fork.github.upsert_comment(batch.number, marker("closed"), f"{marker('closed')}\n{text}")
    await fork.github.update_pull(batch.number, state="closed")
    await fork.github.delete_branch(batch.branch)
    return await _keep(fork, replace(batch, state=BatchState.CLOSED, closed_why=why))


async def _rebuild(fork: Fork, batch: Batch, plan: Plan) -> Batch:
    built = await build_on_tip(fork, batch, plan)
    if not built.picked:
        text = "None of its commits applies to the present base any more; they are planned again."
        return await close_batch(fork, batch, ClosedWhy.SUPERSEDED, text)
    if built.head == batch.head:
        return await _keep(fork, batch)
    if not await push_built(fork, batch, built.head, expected=batch.head):
        return batch
    batch = replace(batch, head=built.head, base=built.base, commits=built.picked)
    assert batch.number is not None
    await fork.github.update_pull(batch.number, body=await _body(fork, plan, batch, built))
    return await _keep(fork, batch)


async def build_on_tip(fork: Fork, batch: Batch, plan: Plan) -> Built:
    """The batch's branch on the fork's present tip, in memory."""
    committer = Committer.of(await fork.login())

    def work() -> Built:
        keep = deleted_by_fork(fork.git, upstream=plan.upstream_tip, base=plan.fork_tip)
        return build(
            fork.git,
            batch=batch,
            base=plan.fork_tip,
            config=fork.config,
            committer=committer,
            upstream_tip=plan.upstream_tip,
            keep_deleted=keep,
        )

    return await asyncio.to_thread(work)


async def push_built(fork: Fork, batch: Batch, sha: str, *, expected: str | None) -> bool:
    """Move the batch's branch under a lease; False, with the reason kept, where GitHub refuses."""
    token = await fork.github.token()
    try:
        await asyncio.to_thread(
            fork.git.push, fork.github.git_url, sha, f"refs/heads/{batch.branch}", expected=expected, token=token
        )
    except PushRejected as error:
        if error.kind == "stale_lease":
            return False  # someone was faster; the next look sees what stands there
        blocked = await fork.note("blocked") or {}
        await fork.put_note("blocked", {**blocked, batch.key: f"{error.kind}: {error}"})
        return False
    return True


async def open_batch(fork: Fork, plan: Plan, to_open: ToOpen) -> Batch | None:
    """Build, push and open one batch; None where nothing of it is left or the push is refused."""
    built = await build_on_tip(fork, to_open.batch, plan)
    if not built.picked:
        return None
    batch = replace(to_open.batch, head=built.head, base=built.base, commits=built.picked)
    # a branch that is there already is ours from before a crash, or a stale one: moved under a lease on what it is
    standing = await fork.github.branch(batch.branch)
    if (standing is None or standing.sha != built.head) and not await push_built(
        fork, batch, built.head, expected=standing.sha if standing else None
    ):
        return None
    chosen = [c for c in to_open.commits if c.sha in set(built.picked)]
    body = await _body(fork, plan, batch, built, to_open.links)
    draft = batch.kind is BatchKind.CONFLICT or fork.config.mode is Mode.PROPOSE
    pull = await fork.github.create_pull(
        title=pull_title(batch, chosen), body=body, head=batch.branch, base=fork.config.fork.branch, draft=draft
    )
    batch = replace(batch, number=pull.number, state=BatchState.DRAFT if draft else BatchState.OPEN)
    await save_batch(fork, batch, {"body": body, "title": pull.title})
    await _count_opening(fork)
    await _label(fork, pull.number, batch, chosen)
    await fork.enqueue("validate", f"#{pull.number}", {"number": pull.number})
    await fork.enqueue("gate", f"#{pull.number}", {"number": pull.number})
    return batch


async def _label(fork: Fork, number: int, batch: Batch, commits: Sequence[PlannedCommit]) -> None:
    name, colour, description = LABELS[batch.kind]
    await fork.github.ensure_label(name, colour, description)
    names = [name]
    for area in sorted({area for commit in commits for area in commit.areas} | set(batch.areas)):
        await fork.github.ensure_label(f"area:{area}", "c5def5", f"Concerns {line(area, 60)}")
        names.append(f"area:{area}")
    await fork.github.add_labels(number, names)


async def _body(fork: Fork, plan: Plan, batch: Batch, built: Built, links: Sequence[PlannedCommit] = ()) -> str:
    by_sha = {c.sha: c for b in plan.bundles for c in b.commits}
    by_sha |= {c.sha: c for chain in plan.chains for c in chain.commits}
    commits = [by_sha[sha] for sha in batch.commits if sha in by_sha]
    links = links or next((c.commits for c in plan.chains if batch.commits[0] in {x.sha for x in c.commits}), ())
    holes = [e for e in plan.ledger.entries if e.disposition in (Disposition.DEFERRED, Disposition.WONT_PORT)]
    return pull_body(
        PullFacts(
            batch=batch,
            commits=commits,
            upstream=fork.config.upstream.repository,
            fork=fork.name,
            base_branch=fork.config.fork.branch,
            base_sha=built.base,
            pin=plan.ledger.pin,
            pin_after=pin_after(plan, batch.commits),
            dropped=built.dropped,
            empty=built.empty,
            links=_link_states(batch, links),
            conflicts=built.conflicts,
            holes=holes,
            upstream_url=fork.upstream_url(),
        )
    )


def _link_states(batch: Batch, links: Sequence[PlannedCommit]) -> list[tuple[PlannedCommit, str]]:
    if batch.kind is BatchKind.BUNDLE:
        return []
    return [
        (link, "**this pull request**" if link.sha in batch.commits else "opens when the one before has landed")
        for link in links
    ]


def pin_after(plan: Plan, commits: Sequence[str]) -> str | None:
    """Where the contiguous pin stands once these commits have landed."""
    landing = frozenset(commits)
    pin = plan.ledger.pin
    passed = pin is None
    for entry in plan.ledger.entries:
        if not passed:
            passed = entry.sha == pin
            continue
        if not entry.disposition.final and entry.sha not in landing:
            break
        pin = entry.sha
    return pin
