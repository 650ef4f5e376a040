"""Work the plan off: look after the pull requests that are open, then open what comes next, within mode and caps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from bot.context import Conflict, Forbidden, GitError, Gone, NotFound, Pull, PushRejected, Validation
from bot.core.batches import Batch, BatchState, ClosedWhy, Next, ToOpen, Waiting, WaitKind, next_batches
from bot.core.outlook import link_states, passed_over, pin_after, planned
from bot.core.render.pull import PullFacts, pull_body, pull_title, read_batch, restate
from bot.core.render.text import line, marker, short
from bot.core.types import BatchKind, Disposition, Mode, Plan, PlannedCommit
from bot.core.upkeep import Deed, upkeep
from handlers.batches import Seen, row_key, save_batch, state_of
from handlers.building import Built, Committer, build, merges_cleanly
from handlers.fork import Fork
from handlers.moves import layout_of

_MOST_ASIDE = 10  # refused in one look: then it is not the batches that are at fault
LABELS = {
    BatchKind.BUNDLE: ("graft:bundle", "1d76db", "Upstream commits that are independent of each other"),
    BatchKind.CHAIN: ("graft:chain", "5319e7", "One link of a chain of upstream commits, in order"),
    BatchKind.CONFLICT: ("graft:conflict", "d93f0b", "An upstream commit that does not merge: needs a person"),
}


async def work_off(fork: Fork, plan: Plan, seen: Seen) -> None:
    """Bring every batch to where it should be, then open the next ones."""
    why_not = await _why_not(fork)
    batches = [await _attend(fork, batch, seen.pulls, plan, writes=why_not is None) for batch in seen.batches]
    allowance = await _allowance(fork)
    caps = fork.config.ingest.caps
    urgent, apart = tuple(await fork.note("urgent") or ()), tuple(await fork.note("split") or ())
    aside: list[str] = []
    while True:
        chosen = next_batches(
            plan=plan,
            batches=batches,
            open_bundles=caps.open_bundles,
            open_chains=caps.open_chains,
            allowance=allowance,
            urgent=urgent,
            apart=apart,
            aside=aside,
        )
        if why_not is not None:
            held = Waiting(tuple(s for t in chosen.to_open for s in t.batch.commits), WaitKind.CAP, why_not)
            chosen = Next((), (*chosen.waiting, held) if chosen.to_open else chosen.waiting)
        opened = [await _try_to_open(fork, plan, to_open) for to_open in chosen.to_open]
        batches += [batch for batch in opened if batch is not None]
        allowance -= sum(batch is not None for batch in opened)
        # what can't be pushed takes no place from what can
        aside += [t.batch.branch for t, batch in zip(chosen.to_open, opened, strict=True) if batch is None]
        if None not in opened or len(aside) >= _MOST_ASIDE:
            break
    await fork.put_note("waiting", [[list(w.commits), w.text, w.number] for w in chosen.waiting])


async def _try_to_open(fork: Fork, plan: Plan, to_open: ToOpen) -> Batch | None:
    opened = []
    async with _apart(fork, to_open.batch):
        opened.append(await open_batch(fork, plan, to_open))
    return opened[0] if opened else None


async def _why_not(fork: Fork) -> str | None:
    """Why nothing may be written on pull requests and branches now; None where it may."""
    if fork.config.mode is Mode.OBSERVE:
        return "the mode is observe: nothing is opened"
    halted = await fork.halted()
    return f"halted by {halted}" if halted else None


@asynccontextmanager
async def _apart(fork: Fork, batch: Batch) -> AsyncIterator[None]:
    """What goes wrong with one batch holds up no other: it is noted, and stands on the dashboard until it works."""
    try:
        yield
    except (GitError, Validation, Conflict, Forbidden, Gone, NotFound) as error:
        await _block(fork, batch, f"{_named(batch)}: {error}")


async def _block(fork: Fork, batch: Batch, text: str) -> None:
    await fork.change_note("blocked", lambda known: {**(known or {}), row_key(batch): text[:1_000]})


async def _unblock(fork: Fork, batch: Batch) -> None:
    mine = row_key(batch)
    if mine in (await fork.note("blocked") or {}):
        await fork.change_note("blocked", lambda known: {key: text for key, text in known.items() if key != mine})


def _named(batch: Batch) -> str:
    return f"#{batch.number}" if batch.number else f"{batch.kind.value} {batch.key}"


async def _allowance(fork: Fork) -> int:
    today = fork.now.date().isoformat()
    opened = await fork.note("opened") or {}
    used = opened.get("count", 0) if opened.get("day") == today else 0
    return max(0, fork.config.ingest.caps.pull_requests_per_day - used)


async def _count_opening(fork: Fork) -> None:
    today = fork.now.date().isoformat()

    def one_more(opened: Any) -> dict[str, Any]:
        used = opened["count"] if opened and opened["day"] == today else 0
        return {"day": today, "count": used + 1}

    await fork.change_note("opened", one_more)


async def _attend(fork: Fork, batch: Batch, pulls: Mapping[int, Pull], plan: Plan, *, writes: bool) -> Batch:
    pull = pulls.get(batch.number or 0)
    if pull is None or pull.state != "open":
        return batch
    after = [batch]
    async with _apart(fork, batch):
        after.append(await look_after(fork, batch, pull, plan, writes=writes))
    return after[-1]


async def look_after(fork: Fork, batch: Batch, pull: Pull, plan: Plan, *, writes: bool) -> Batch:
    """One open batch: out of date, overtaken by decisions or by what landed otherwise, or taken over by a person.

    Without `writes` only what was seen is noted.
    """
    was = batch
    batch = replace(batch, state=state_of(pull), closed_why=None)
    head = pull.head.sha
    known = head == batch.head or batch.paused
    built = None if known else await _rebuilt_there(fork, batch, head, plan)
    if built is not None:  # moved by Graft itself, and not noted before it was stopped
        batch = replace(batch, head=head, base=built.base, commits=built.picked, paused=False)
    ours = head == batch.head
    applies = batch.base == plan.fork_tip or not ours
    applies = applies or await asyncio.to_thread(merges_cleanly, fork.git, head=head, base=plan.fork_tip)
    found = upkeep(batch=batch, head=head, ours=ours, plan=plan, applies=applies)
    if not writes or found.deed is Deed.KEEP:
        return batch if batch == was else await _keep(fork, batch)
    if found.deed is Deed.CLOSE:
        assert found.why is not None
        return await close_batch(fork, found.batch, found.why, found.text, body=pull.body)
    if found.deed is Deed.PAUSE:
        return await _taken_over(fork, batch, pull)
    return await rebuild(fork, found.batch, plan, expected=head, why=found.text, body=pull.body)


async def _rebuilt_there(fork: Fork, batch: Batch, head: str, plan: Plan) -> Built | None:
    """What Graft builds on the base that `head` stands on, where that is just this commit; None where it is not."""
    if await asyncio.to_thread(fork.git.resolve, head) is None:
        return None
    base = await asyncio.to_thread(fork.git.merge_base, head, plan.fork_tip)
    built = await build_on(fork, batch, plan, base) if base is not None else None
    return built if built is not None and built.head == head else None


async def _ours(fork: Fork, batch: Batch, head: str, plan: Plan) -> bool:
    """True where a branch without an open pull request holds nothing but what Graft itself pushed there."""
    known = {row.head for row in await fork.ctx.store.batches(fork.name) if row.branch == batch.branch}
    return head in known or await _rebuilt_there(fork, batch, head, plan) is not None


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
        if batch.kind is BatchKind.CONFLICT and pull.draft:
            text += (
                "\n\nIt is a draft, and Graft does not end that: once no marker is left and what the gate asks to "
                "confirm is confirmed, press **Ready for review**."
            )
        await fork.github.upsert_comment(pull.number, marker("paused"), text)
        await fork.enqueue("validate", f"#{pull.number}", {"number": pull.number})
    return await _keep(fork, replace(batch, paused=True))


async def close_batch(fork: Fork, batch: Batch, why: ClosedWhy, text: str, *, body: str) -> Batch:
    """Close a pull request of Graft's with the reason, and delete its branch unless a person's work is on it."""
    batch = replace(batch, state=BatchState.CLOSED, closed_why=why)
    assert batch.number is not None
    await fork.github.upsert_comment(batch.number, marker("closed"), f"{marker('closed')}\nClosed.\n\n{text}")
    # the reason in the body, in the same request: a lost store must not take it for a person's refusal
    await fork.github.update_pull(batch.number, state="closed", body=restate(body, batch))
    if not batch.paused and batch.head is not None:
        await _drop_branch(fork, batch, batch.head)
    await _unblock(fork, batch)
    return await _keep(fork, batch)


async def _drop_branch(fork: Fork, batch: Batch, head: str) -> None:
    """Delete the batch's branch where it still stands at `head`: what somebody pushed since is not lost."""
    token = await fork.github.token()
    name = f"refs/heads/{batch.branch}"
    try:
        await asyncio.to_thread(fork.git.push, fork.github.git_url, "", name, expected=head, token=token)
    except PushRejected as error:
        fork.ctx.log.warning("a branch was left", branch=batch.branch, why=error.kind, repository=fork.name)


async def rebuild(fork: Fork, batch: Batch, plan: Plan, *, expected: str, why: str, body: str) -> Batch:
    """The batch's branch anew on the fork's tip, over `expected` and nothing else, with its body and the reason."""
    built = await build_on(fork, batch, plan)
    if not built.picked:
        text = "None of its commits applies to the present base any more; they are planned again."
        return await close_batch(fork, batch, ClosedWhy.SUPERSEDED, text, body=body)
    if built.head != expected and not await push_built(fork, batch, built.head, expected=expected):
        return batch
    batch = replace(batch, head=built.head, base=built.base, commits=built.picked, paused=False)
    assert batch.number is not None
    new = await _body(fork, plan, batch, built)
    await fork.github.update_pull(batch.number, title=_title(plan, batch), body=new)
    await save_batch(fork, batch, {"body": new})
    text = f"{marker('rebuilt')}\nBuilt anew on {short(built.base)}: {short(built.head)}.\n\n{why}"
    await fork.github.upsert_comment(batch.number, marker("rebuilt"), text)
    return batch


async def build_on(fork: Fork, batch: Batch, plan: Plan, base: str | None = None) -> Built:
    """The batch's branch on a commit (the fork's present tip where none is named), in memory."""
    committer = Committer.of(await fork.login())
    onto = base or plan.fork_tip

    def work() -> Built:
        return build(
            fork.git,
            batch=batch,
            base=onto,
            config=fork.config,
            committer=committer,
            upstream_tip=plan.upstream_tip,
            layout=layout_of(fork.git.path, plan.upstream_tip, onto),
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
        if error.kind != "stale_lease":  # else someone was faster; the next look sees what stands there
            archived = "the repository is archived. " if "archived" in error.stderr else None
            why = archived or _REFUSED.get(error.kind, "")
            await _block(fork, batch, f"{_named(batch)}: {why}{error.stderr}")
        return False
    await _unblock(fork, batch)
    return True


_REFUSED = {
    "workflow_permission": (
        "it changes workflow files, and the App may not: give it the permission Workflows (write), or pass such files "
        "over by `ingest: {skip: [.github/**]}`. "
    ),
    "protected": "a rule of the repository forbids the push; let the App pass it for `graft/**`. ",
    "auth": "the App may not push: it needs the permission Contents (write). ",
}


async def open_batch(fork: Fork, plan: Plan, to_open: ToOpen) -> Batch | None:
    """Build, push and open one batch; None where nothing of it is left or the push is refused."""
    built = await build_on(fork, to_open.batch, plan)
    if not built.picked:
        return None
    batch = replace(to_open.batch, head=built.head, base=built.base, commits=built.picked)
    # a branch that is there already is ours from before a crash, or a stale one: moved under a lease on what it is
    standing = await fork.github.branch(batch.branch)
    if standing is not None and standing.sha != built.head and not await _ours(fork, batch, standing.sha, plan):
        text = f"the branch {batch.branch} holds what Graft did not build: keep it under another name, or delete it"
        await _block(fork, batch, f"{_named(batch)}: {text}")
        return None
    if (standing is None or standing.sha != built.head) and not await push_built(
        fork, batch, built.head, expected=standing.sha if standing else None
    ):
        return None
    body = await _body(fork, plan, batch, built)
    draft = batch.kind is BatchKind.CONFLICT or fork.config.mode is Mode.PROPOSE
    pull = await fork.github.create_pull(
        title=_title(plan, batch), body=body, head=batch.branch, base=fork.config.fork.branch, draft=draft
    )
    if read_batch(pull.body) != read_batch(body):  # it was open already, from before a crash, or somebody edited it
        await fork.github.update_pull(pull.number, title=_title(plan, batch), body=body)
    batch = replace(batch, number=pull.number, state=BatchState.DRAFT if draft else BatchState.OPEN)
    await save_batch(fork, batch, {"body": body, "title": pull.title})
    await _count_opening(fork)
    await _label(fork, pull.number, batch, to_open.commits)
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
    for rule in batch.rules:
        await fork.github.ensure_label(f"risk:{rule}", "fbca04", f"Meets the rule {line(rule, 60)}")
        names.append(f"risk:{rule}")
    await fork.github.add_labels(number, names)


def _title(plan: Plan, batch: Batch) -> str:
    return pull_title(batch, planned(plan, batch.commits))


async def _body(fork: Fork, plan: Plan, batch: Batch, built: Built) -> str:
    return pull_body(
        PullFacts(
            batch=batch,
            commits=planned(plan, batch.commits),
            upstream=fork.config.upstream.repository,
            fork=fork.name,
            base_branch=fork.config.fork.branch,
            base_sha=built.base,
            pin=plan.ledger.pin,
            pin_after=pin_after(plan, batch.commits),
            dropped=built.dropped,
            empty=built.empty,
            links=link_states(plan, batch),
            conflicts=built.conflicts,
            holes=[e for e in plan.ledger.entries if e.disposition in (Disposition.DEFERRED, Disposition.WONT_PORT)],
            upstream_url=fork.upstream_url(),
            passed_over=passed_over(plan, batch),
        )
    )
