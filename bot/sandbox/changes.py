"""What follows when a branch moves, a pull request opens, closes or lands."""

from __future__ import annotations

from bot.sandbox import events, merging
from bot.sandbox.bare import GitFailure
from bot.sandbox.model import ZERO, CheckSuite, Issue, IssueEvent, Repository
from bot.sandbox.render import checks as render_checks
from bot.sandbox.render import common
from bot.sandbox.render import git as render_git
from bot.sandbox.world import World

PUSH_COMMITS = 2048  # GitHub lists no more in one push event


def note(
    world: World,
    item: Issue,
    event: str,
    login: str,
    app_id: int | None = None,
    commit_id: str | None = None,
    **detail: object,
) -> None:
    """Write a line into an issue's history."""
    item.events.append(IssueEvent(world.new_id(), event, login, world.now(), app_id, commit_id, dict(detail)))
    item.updated_at = world.now()


def set_ref(world: World, repo: Repository, ref: str, new: str, *, login: str) -> None:
    """Move, make or (`new` of zeros) delete a ref, and let follow what follows."""
    store = world.store(repo)
    old = store.ref(ref) or ZERO
    if old == new:
        return
    if new == ZERO:
        store.delete_ref(ref)
    else:
        store.set_ref(ref, new)
    moved(world, repo, ref, old, new, login=login)


def moved(world: World, repo: Repository, ref: str, old: str, new: str, *, login: str) -> None:
    """A ref has moved: tell of it, bring pull requests and check suites up to date."""
    kind, _, name = ref.removeprefix("refs/").partition("/")
    if kind not in ("heads", "tags"):
        return
    repo.pushed_at = world.now()
    kind = "branch" if kind == "heads" else "tag"
    short = {"ref": name, "ref_type": kind, "pusher_type": "user"}
    if old == ZERO:
        more = {"master_branch": repo.default_branch, "description": repo.description}
        events.emit(world, repo, "create", None, {**short, **more}, sender=login)
    _push_event(world, repo, ref, old, new, login)
    if new == ZERO:
        events.emit(world, repo, "delete", None, short, sender=login)
    if kind == "branch":
        if new != ZERO:
            _request_suites(world, repo, name, old, new, login)
        _update_heads(world, repo, name, new, login)
        _update_bases(world, repo, name, new, login)


def _push_event(world: World, repo: Repository, ref: str, old: str, new: str, login: str) -> None:
    if not any("push" in installation.events for _, installation in world.installations_of(repo)):
        return
    store = world.store(repo)
    commits = []
    if new != ZERO and store.kind(new) == "commit":
        base = old if old != ZERO else store.ref(f"refs/heads/{repo.default_branch}")
        exclude = [f"^{base}"] if base and base != new else []
        limit = PUSH_COMMITS if exclude else 1
        commits = store.commits(f"-{limit}", "--reverse", new, *exclude) if exclude or old == ZERO else []
    listed = render_git.push_commits(world, repo, store, commits)
    pusher = world.known_user(login)
    forced = ZERO not in (old, new) and not store.is_ancestor(old, new)
    head = render_git.push_commits(world, repo, store, [store.commit(new)])[0] if new != ZERO and commits else None
    events.emit(
        world,
        repo,
        "push",
        None,
        {
            "ref": ref,
            "before": old,
            "after": new,
            "created": old == ZERO,
            "deleted": new == ZERO,
            "forced": forced,
            "base_ref": None,
            "compare": f"{world.url}/{repo.full_name}/compare/{old[:12]}...{new[:12]}",
            "commits": listed,
            "head_commit": head,
            "pusher": {"name": login, "email": pusher.email},
        },
        sender=login,
    )


def suite_for(
    world: World, repo: Repository, sha: str, app_id: int, branch: str | None, before: str | None
) -> CheckSuite:
    """The check suite of an App on a commit; made where there is none."""
    for suite in repo.check_suites.values():
        if (suite.head_sha, suite.app_id) == (sha, app_id):
            return suite
    now = world.now()
    suite = CheckSuite(world.new_id(), sha, branch, app_id, before, now, now)
    repo.check_suites[suite.id] = suite
    return suite


def _request_suites(world: World, repo: Repository, branch: str, old: str, new: str, login: str) -> None:
    for app, installation in world.installations_of(repo):
        if installation.permissions.get("checks") == "write":
            suite = suite_for(world, repo, new, app.id, branch, old)
            if "check_suite" in installation.events:
                body = {"check_suite": render_checks.check_suite(world, repo, suite)}
                events.emit(world, repo, "check_suite", "requested", body, sender=login, only=app)


def _update_heads(world: World, repo: Repository, branch: str, new: str, login: str) -> None:
    for target in list(world.repositories.values()):
        for item in list(target.issues.values()):
            pull = item.pull
            if pull is None or item.state != "open" or (pull.head_repo, pull.head_ref) != (repo.full_name, branch):
                continue
            if new == ZERO:
                close(world, target, item, login)
            elif pull.head_sha != new:
                _synchronize(world, target, item, new, login)


def _synchronize(world: World, target: Repository, item: Issue, new: str, login: str) -> None:
    pull = item.pull
    assert pull is not None
    before = pull.head_sha
    bring_head(world, target, item, new)
    store = world.store(target)
    if not store.is_ancestor(before, new):
        note(world, item, "head_ref_force_pushed", login, commit_id=new)
    pull.head_sha = new
    pull.base_sha = store.ref(f"refs/heads/{pull.base_ref}") or pull.base_sha
    item.updated_at = world.now()
    rule = world.protection(target, pull.base_ref)
    if rule is not None and rule.dismiss_stale_reviews:
        for review in pull.reviews:
            if review.state == "APPROVED":
                review.state = "DISMISSED"
                note(world, item, "review_dismissed", login)
    events.issue_event(world, target, item, "synchronize", login, before=before, after=new)


def bring_head(world: World, target: Repository, item: Issue, sha: str) -> None:
    """Have the head's objects in the base repository, under refs/pull/<n>/head."""
    pull = item.pull
    assert pull is not None
    store = world.store(target)
    if pull.head_repo != target.full_name and pull.head_repo is not None:
        source = world.known_repository(pull.head_repo)
        store.run("fetch", "-q", "--no-write-fetch-head", "--no-tags", str(source.path), f"refs/heads/{pull.head_ref}")
    store.set_ref(f"refs/pull/{item.number}/head", sha)


def _update_bases(world: World, repo: Repository, branch: str, new: str, login: str) -> None:
    for item in list(repo.issues.values()):
        pull = item.pull
        if pull is None or item.state != "open" or pull.base_ref != branch:
            continue
        if new == ZERO:
            note(world, item, "base_ref_deleted", login)
            close(world, repo, item, login)
        elif world.store(repo).is_ancestor(pull.head_sha, new):
            pull.merged_at, pull.merged_by, pull.merge_commit_sha = world.now(), login, pull.head_sha
            note(world, item, "merged", login, commit_id=new)
            close(world, repo, item, login)


def close(
    world: World, repo: Repository, item: Issue, login: str, *, reason: str | None = None, app_id: int | None = None
) -> None:
    """Close an issue or a pull request (merged before, or not)."""
    item.state = "closed"
    item.state_reason = None if item.pull else reason or "completed"
    item.closed_at = world.now()
    item.closed_by = login
    note(world, item, "closed", login, app_id)
    events.issue_event(world, repo, item, "closed", login)


def reopen(world: World, repo: Repository, item: Issue, login: str, app_id: int | None = None) -> None:
    """Open it again."""
    item.state = "open"
    item.state_reason = None if item.pull else "reopened"
    item.closed_at = item.closed_by = None
    note(world, item, "reopened", login, app_id)
    events.issue_event(world, repo, item, "reopened", login)


def land(world: World, repo: Repository, item: Issue, commit: str, *, login: str) -> None:
    """Put the commit on the base branch: the pull request is merged, its branch may go."""
    pull = item.pull
    assert pull is not None
    store = world.store(repo)
    ref = f"refs/heads/{pull.base_ref}"
    old = store.ref(ref) or ZERO
    pull.base_sha = old
    pull.merged_at, pull.merged_by, pull.merge_commit_sha = world.now(), login, commit
    store.set_ref(ref, commit, old)
    note(world, item, "merged", login, commit_id=commit)
    close(world, repo, item, login)
    moved(world, repo, ref, old, commit, login=login)
    if repo.delete_branch_on_merge and pull.head_repo == repo.full_name:
        delete_head(world, repo, item, login)
    close_mentioned(world, repo, item, login)


def delete_head(world: World, repo: Repository, item: Issue, login: str) -> None:
    """Delete the branch of a pull request."""
    assert item.pull is not None
    try:
        set_ref(world, repo, f"refs/heads/{item.pull.head_ref}", ZERO, login=login)
    except GitFailure:
        return
    note(world, item, "head_ref_deleted", login)


def close_mentioned(world: World, repo: Repository, item: Issue, login: str) -> None:
    """Close the issues that a landed pull request says it closes, as GitHub does on the default branch."""
    assert item.pull is not None
    if item.pull.base_ref != repo.default_branch:
        return
    texts = [item.title, item.body or ""] + [data.message for data in merging.changes(world, repo, item.pull).commits]
    for number in sorted({number for text in texts for number in common.closing(text, repo.full_name)}):
        target = repo.issues.get(number)
        if target is not None and target.pull is None and target.state == "open":
            close(world, repo, target, login)
