"""Pull requests: opened, changed, listed, merged."""

from __future__ import annotations

from typing import Any

from bot.sandbox import changes, events, guard, merging
from bot.sandbox.auth import may_push
from bot.sandbox.http import ApiError, Call, Listing, Reply, invalid, not_found, route
from bot.sandbox.model import Issue
from bot.sandbox.opening import open_pull
from bot.sandbox.render import common
from bot.sandbox.render import git as render_git
from bot.sandbox.render import pulls as render
from bot.sandbox.routes.issues import apply_state, apply_text, check_text, may_triage

MAX_FILES = 3000
MAX_COMMITS = 250
_READ, _WRITE = "pull_requests:read", "pull_requests:write"


@route("GET", "/repos/{owner}/{repo}/pulls", app=_READ)
def list_pulls(call: Call) -> Any:
    """Pull requests: open ones, newest first, unless asked otherwise; `head` is `owner:branch`."""
    query = call.query
    state, head, base = query.get("state", "open"), query.get("head"), query.get("base")
    rows = []
    for item in call.repo.pulls.values():
        pull = item.pull
        assert pull is not None
        if state not in ("all", item.state) or base not in (None, pull.base_ref):
            continue
        # a head without an owner filters nothing, as at GitHub
        if head is not None and ":" in head and head != f"{pull.head_owner}:{pull.head_ref}":
            continue
        rows.append(item)
    sort = query.get("sort", "created")
    direction = query.get("direction", "desc" if sort == "created" else "asc")
    rows.sort(
        key=lambda item: (item.updated_at if sort == "updated" else item.created_at, item.number),
        reverse=direction == "desc",
    )
    return Listing(rows, lambda item: render.simple(call.world, call.repo, item))


@route("POST", "/repos/{owner}/{repo}/pulls", app=_WRITE, role="read")
def create_pull(call: Call) -> Any:
    """A new pull request from a branch here, or (`owner:branch`) of a fork."""
    body = call.body
    if "title" not in body:
        raise invalid("PullRequest", "title", "missing_field")
    check_text("PullRequest", body["title"], body.get("body"))
    item = open_pull(
        call.world,
        call.repo,
        call.actor,
        title=body["title"],
        body=body.get("body"),
        head=body["head"],
        base=body["base"],
        draft=bool(body.get("draft")),
        maintainer_can_modify=bool(body.get("maintainer_can_modify", True)),
    )
    return Reply(render.full(call.world, call.repo, item, asked=True), 201)


@route("GET", "/repos/{owner}/{repo}/pulls/{pull_number}", app=_READ)
def get_pull(call: Call) -> Any:
    """One pull request; its diff where the Accept header asks for it."""
    item = call.pull()
    assert item.pull is not None
    if ".diff" in call.headers.get("accept", ""):
        base = merging.changes(call.world, call.repo, item.pull).base
        text = call.world.store(call.repo).run("diff", base, item.pull.head_sha)
        return Reply(raw=text, media_type="text/plain; charset=utf-8")
    return render.full(call.world, call.repo, item, asked=True)


@route("PATCH", "/repos/{owner}/{repo}/pulls/{pull_number}", app=_WRITE, role="read")
def update_pull(call: Call) -> Any:
    """Change title, body, base or state."""
    item, body = call.pull(), call.body
    pull = item.pull
    assert pull is not None
    if item.user != call.login and not may_triage(call):
        raise ApiError(403, "Must have admin rights to Repository.")
    check_text("PullRequest", body.get("title"), body.get("body"))
    if body.get("state") == "open" and item.state == "closed":
        _reopenable(call, item)
    apply_text(call, item)
    if body.get("base") not in (None, pull.base_ref):
        sha = call.world.store(call.repo).ref(f"refs/heads/{body['base']}")
        if sha is None:
            raise invalid("PullRequest", "base")
        before = {"base": {"ref": {"from": pull.base_ref}, "sha": {"from": pull.base_sha}}}
        pull.base_ref, pull.base_sha = body["base"], sha
        events.issue_event(call.world, call.repo, item, "edited", call.login, changes=before)
    apply_state(call, item)
    return render.full(call.world, call.repo, item)


def _reopenable(call: Call, item: Issue) -> None:
    pull = item.pull
    assert pull is not None
    head = call.world.repository(pull.head_repo) if pull.head_repo else None
    sha = call.world.store(head).ref(f"refs/heads/{pull.head_ref}") if head is not None else None
    if pull.merged_at is not None or sha is None:
        message = "state cannot be changed. " + (
            "The pull request is merged." if pull.merged_at else f"The {pull.head_ref} branch has been deleted."
        )
        raise ApiError(
            422,
            "Validation Failed",
            [{"resource": "PullRequest", "code": "custom", "field": "state", "message": message}],
        )
    if sha != pull.head_sha:
        changes.bring_head(call.world, call.repo, item, sha)
        pull.head_sha = sha


@route("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/files", app=_READ)
def pull_files(call: Call) -> Any:
    """The files that it changes, never more than 3,000."""
    item = call.pull()
    assert item.pull is not None
    sha = item.pull.head_sha
    files = merging.changes(call.world, call.repo, item.pull).files[:MAX_FILES]
    return Listing(files, lambda one: render_git.file(call.world, call.repo, sha, one))


@route("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/commits", app=_READ)
def pull_commits(call: Call) -> Any:
    """Its commits, oldest first, never more than 250."""
    item = call.pull()
    assert item.pull is not None
    commits = merging.changes(call.world, call.repo, item.pull).commits[:MAX_COMMITS]
    return Listing(commits, lambda data: render_git.commit(call.world, call.repo, data))


@route("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/merge", app=_READ)
def is_merged(call: Call) -> Any:
    """204 if merged, 404 if not."""
    item = call.pull()
    assert item.pull is not None
    if item.pull.merged_at is None:
        raise not_found()
    return None


@route("PUT", "/repos/{owner}/{repo}/pulls/{pull_number}/merge", app="contents:write")
def merge_pull(call: Call) -> Any:
    """Merge it, if nothing stands in the way: 405 with the reason, 409 where the head is not `sha`."""
    world, repo, item, body = call.world, call.repo, call.pull(), call.body or {}
    pull = item.pull
    assert pull is not None
    method = body.get("merge_method", "merge")
    if pull.merged_at is not None or item.state == "closed":
        raise ApiError(405, "Pull Request is not mergeable")
    if body.get("sha") not in (None, pull.head_sha):
        raise ApiError(409, "Head branch was modified. Review and try the merge again.")
    allowed = {"merge": repo.allow_merge_commit, "squash": repo.allow_squash_merge, "rebase": repo.allow_rebase_merge}
    if not allowed[method]:
        raise ApiError(405, f"{method.capitalize()} merges are not allowed on this repository.")
    rule = world.protection(repo, pull.base_ref)
    if rule is not None and rule.merge_queue:
        raise ApiError(405, merging.MESSAGES["queue"])
    user = call.login if call.actor.installation is None else None
    stopping = merging.blockers(world, repo, item, user)
    if stopping:
        if stopping[0].kind == "conflict":
            raise ApiError(405, "Pull Request is not mergeable")
        messages = [blocker.message for blocker in stopping]
        raise ApiError(405, messages[0] if len(messages) == 1 else "\n".join(messages))
    commit = merging.build(
        world,
        repo,
        item,
        method=method,
        login=call.login,
        title=body.get("commit_title"),
        message=body.get("commit_message"),
    )
    if commit is None:
        raise ApiError(405, "This branch can't be rebased" if method == "rebase" else "Pull Request is not mergeable")
    changes.land(world, repo, item, commit, login=call.login)
    return {"sha": commit, "merged": True, "message": "Pull Request successfully merged"}


@route("PUT", "/repos/{owner}/{repo}/pulls/{pull_number}/update-branch", app=_WRITE)
def update_branch(call: Call) -> Any:
    """Merge the base branch into the head branch."""
    world, repo, item = call.world, call.repo, call.pull()
    pull = item.pull
    assert pull is not None
    if (call.body or {}).get("expected_head_sha") not in (None, pull.head_sha):
        raise ApiError(422, "expected head sha didn't match current head ref.")
    source = world.repository(pull.head_repo) if pull.head_repo else None
    if source is None or not (may_push(world, call.actor, source) or pull.maintainer_can_modify):
        raise ApiError(403, "Must have push access to the head repository")
    tried = merging.trial(world, repo, item)
    if tried is None or tried.merge is None:
        raise ApiError(422, "merge conflict between base and head")
    store = world.store(repo)
    if store.is_ancestor(tried.base, pull.head_sha):
        raise ApiError(422, "There are no new commits on the base branch.")
    me = merging.signature(world, call.login)
    text = f"Merge branch '{pull.base_ref}' into {pull.head_ref}"
    commit = store.write_commit(
        store.commit(tried.merge).tree, [pull.head_sha, tried.base], text, me, merging.web_flow(world)
    )
    if source is not repo:
        store.set_ref("refs/internal/update", commit)
        world.store(source).run("fetch", "-q", "--no-write-fetch-head", str(repo.path), "refs/internal/update")
    refusal = guard.refusal(world, source, call.actor, f"refs/heads/{pull.head_ref}", pull.head_sha, commit)
    if refusal is not None and refusal.kind != "permission":
        raise ApiError(403, refusal.message)
    changes.set_ref(world, source, f"refs/heads/{pull.head_ref}", commit, login=call.login)
    return Reply(
        {"message": "Updating pull request branch.", "url": common.repository_api(world, repo, "pulls", item.number)},
        202,
    )


@route("GET", "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers", app=_READ)
def requested_reviewers(call: Call) -> Any:
    """Who is asked to review."""
    pull = call.pull().pull
    assert pull is not None
    return {
        "users": [common.user(call.world, login) for login in pull.requested_reviewers],
        "teams": [common.team(call.world, call.world.teams[call.repo.owner, slug]) for slug in pull.requested_teams],
    }


@route("POST", "/repos/{owner}/{repo}/pulls/{pull_number}/requested_reviewers", app=_WRITE)
def request_reviewers(call: Call) -> Any:
    """Ask users and teams to review; 422 for who can't, 422 for the author."""
    world, repo, item = call.world, call.repo, call.pull()
    pull = item.pull
    assert pull is not None
    logins, slugs = call.body.get("reviewers", []), call.body.get("team_reviewers", [])
    if item.user in logins:
        raise ApiError(422, "Review cannot be requested from pull request author.")
    for login in logins:
        if world.user(login) is None or world.explicit_role(login, repo) == "none":
            message = (
                "Reviews may only be requested from collaborators. One or more of the users or teams you specified is "
                f"not a collaborator of the {repo.full_name} repository."
            )
            raise ApiError(422, message)
    for slug in slugs:
        if (repo.owner, slug) not in world.teams:
            raise ApiError(422, f"Could not resolve to a node with the slug {slug!r}")
    for login in [one for one in logins if one not in pull.requested_reviewers]:
        pull.requested_reviewers.append(login)
        changes.note(
            world, item, "review_requested", call.login, call.actor.app_id, requested_reviewer=common.user(world, login)
        )
        events.issue_event(
            world, repo, item, "review_requested", call.login, requested_reviewer=common.user(world, login)
        )
    for slug in [one for one in slugs if one not in pull.requested_teams]:
        pull.requested_teams.append(slug)
        team = common.team(world, world.teams[repo.owner, slug])
        events.issue_event(world, repo, item, "review_requested", call.login, requested_team=team)
    return Reply(render.simple(world, repo, item), 201)
