"""Opening a pull request: what is asked of its two sides, and what happens then."""

from __future__ import annotations

from bot.sandbox import changes, events, merging
from bot.sandbox.auth import Actor
from bot.sandbox.http import ApiError
from bot.sandbox.model import Issue, Pull, Repository
from bot.sandbox.world import World


def _problem(field: str, code: str) -> ApiError:
    return ApiError(422, "Validation Failed", [{"resource": "PullRequest", "field": field, "code": code}])


def _said(message: str) -> ApiError:
    return ApiError(422, "Validation Failed", [{"resource": "PullRequest", "code": "custom", "message": message}])


def head_repository(world: World, repo: Repository, owner: str) -> Repository | None:
    """The repository of `owner:branch`: this one, or that owner's fork of it."""
    return next(
        (
            one
            for one in world.repositories.values()
            if one.owner.lower() == owner.lower()
            and (one is repo or one.parent == repo.full_name or repo.parent == one.full_name)
        ),
        None,
    )


def open_pull(
    world: World,
    repo: Repository,
    actor: Actor,
    *,
    title: str,
    body: str | None,
    head: str,
    base: str,
    draft: bool,
    maintainer_can_modify: bool,
) -> Issue:
    """Open a pull request; ApiError 422 where GitHub says so."""
    assert actor.login is not None
    owner, colon, branch = head.rpartition(":")
    source = head_repository(world, repo, owner) if colon else repo
    store = world.store(repo)
    base_sha = store.ref(f"refs/heads/{base}")
    if base_sha is None:
        raise _problem("base", "invalid")
    head_sha = world.store(source).ref(f"refs/heads/{branch}") if source is not None else None
    if source is None or head_sha is None:
        raise _problem("head", "invalid")
    for item in repo.pulls.values():
        assert item.pull is not None
        same = (item.pull.head_repo, item.pull.head_ref, item.pull.base_ref) == (source.full_name, branch, base)
        if item.state == "open" and same:
            raise _said(f"A pull request already exists for {source.owner}:{branch}.")
    pull = Pull(
        source.full_name,
        source.owner,
        branch,
        head_sha,
        base,
        base_sha,
        draft,
        maintainer_can_modify and source is not repo,
    )
    now = world.now()
    item = Issue(world.new_id(), repo.next_number, title, body, actor.login, now, now, actor.app_id, pull=pull)
    changes.bring_head(world, repo, item, head_sha)
    if store.is_ancestor(head_sha, base_sha):
        store.delete_ref(f"refs/pull/{item.number}/head")
        raise _said(f"No commits between {base} and {branch}")
    repo.next_number += 1
    repo.issues[item.number] = item
    merging.trial(world, repo, item)
    events.issue_event(world, repo, item, "opened", actor.login)
    return item
