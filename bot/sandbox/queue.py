"""The merge queue: each group's head is built on the one before it, checked, and lands in order."""

from __future__ import annotations

from typing import Any

from bot.sandbox import changes, checks, events, merging
from bot.sandbox.model import ZERO, Issue, QueueEntry, Repository
from bot.sandbox.render import git as render_git
from bot.sandbox.world import World


class NotQueueable(Exception):
    """Why a pull request can't enter the queue."""


def enqueue(world: World, repo: Repository, item: Issue, login: str) -> QueueEntry:
    """Put a pull request into the queue of its base branch; NotQueueable with the reason."""
    pull = item.pull
    assert pull is not None
    rule = world.protection(repo, pull.base_ref)
    if rule is None or not rule.merge_queue:
        raise NotQueueable(f"{pull.base_ref} has no merge queue")
    if any(entry.number == item.number for entry in repo.queue):
        raise NotQueueable("The pull request is already in the queue")
    # required checks are asked for on the group's head, as well as on the pull request
    stopping = merging.blockers(world, repo, item)
    if stopping:
        raise NotQueueable(stopping[0].message)
    entry = _build(world, repo, item, login)
    if entry is None:
        raise NotQueueable(merging.MESSAGES["conflict"])
    repo.queue.append(entry)
    events.issue_event(world, repo, item, "enqueued", login)
    _announce(world, repo, entry)
    look(world, repo, entry.head_sha)
    return entry


def _build(world: World, repo: Repository, item: Issue, login: str) -> QueueEntry | None:
    pull = item.pull
    assert pull is not None
    store = world.store(repo)
    before = [entry.head_sha for entry in repo.queue if entry.branch == pull.base_ref]
    base = before[-1] if before else store.ref(f"refs/heads/{pull.base_ref}")
    if base is None:
        return None
    tree, _ = store.merge_tree(base, pull.head_sha)
    if tree is None:
        return None
    text = f"Merge pull request #{item.number} from {pull.head_owner}/{pull.head_ref}\n\n{item.title}"
    head = store.write_commit(
        tree, [base, pull.head_sha], text, merging.signature(world, login), merging.web_flow(world)
    )
    ref = f"refs/heads/gh-readonly-queue/{pull.base_ref}/pr-{item.number}-{base}"
    return QueueEntry(item.number, login, pull.base_ref, base, head, ref)


def _group(world: World, repo: Repository, entry: QueueEntry) -> dict[str, Any]:
    data = world.store(repo).commit(entry.head_sha)
    return {
        "head_sha": entry.head_sha,
        "head_ref": entry.ref,
        "base_sha": entry.base_sha,
        "base_ref": f"refs/heads/{entry.branch}",
        "head_commit": render_git.simple_commit(data),
    }


def _announce(world: World, repo: Repository, entry: QueueEntry) -> None:
    changes.set_ref(world, repo, entry.ref, entry.head_sha, login=entry.user)
    body = {"merge_group": _group(world, repo, entry)}
    events.emit(world, repo, "merge_group", "checks_requested", body, sender=entry.user)


def look(world: World, repo: Repository, sha: str) -> None:
    """A check of a commit has changed: land or drop the groups that it decides."""
    if not any(entry.head_sha == sha for entry in repo.queue):
        return
    while repo.queue:
        entry = repo.queue[0]
        rule = world.protection(repo, entry.branch)
        states = [need.state for need in checks.requirements(repo, rule, entry.head_sha)] if rule else []
        if "failed" in states:
            dequeue(world, repo, entry.number, "invalidated")
        elif all(state == "passed" for state in states):
            _land(world, repo, entry)
        else:
            return


def _land(world: World, repo: Repository, entry: QueueEntry) -> None:
    repo.queue.remove(entry)
    item = repo.issues[entry.number]
    changes.land(world, repo, item, entry.head_sha, login=entry.user)
    _destroyed(world, repo, entry, "merged")


def _destroyed(world: World, repo: Repository, entry: QueueEntry, reason: str) -> None:
    body = {"merge_group": _group(world, repo, entry), "reason": reason}
    events.emit(world, repo, "merge_group", "destroyed", body, sender=entry.user)
    changes.set_ref(world, repo, entry.ref, ZERO, login=entry.user)


def dequeue(world: World, repo: Repository, number: int, reason: str = "dequeued") -> None:
    """Take a pull request out of the queue; the groups behind it are built anew."""
    at = next((at for at, entry in enumerate(repo.queue) if entry.number == number), None)
    if at is None:
        return
    gone, behind = repo.queue[at], repo.queue[at + 1 :]
    del repo.queue[at:]
    _destroyed(world, repo, gone, reason)
    word = {"invalidated": "CI_FAILURE"}.get(reason, "MANUAL")
    events.issue_event(world, repo, repo.issues[number], "dequeued", gone.user, reason=word)
    for entry in behind:
        _destroyed(world, repo, entry, "invalidated")
        again = _build(world, repo, repo.issues[entry.number], entry.user)
        if again is None:
            events.issue_event(world, repo, repo.issues[entry.number], "dequeued", entry.user, reason="MERGE_CONFLICT")
            continue
        repo.queue.append(again)
        _announce(world, repo, again)
