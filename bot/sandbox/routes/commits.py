"""Commits: listed, read, compared, merged."""

from __future__ import annotations

from typing import Any

from bot.sandbox import changes, guard, merging
from bot.sandbox.bare import EMPTY_TREE, CommitData
from bot.sandbox.http import ApiError, Call, Listing, Reply, not_found, route
from bot.sandbox.model import Repository
from bot.sandbox.render import git as render
from bot.sandbox.render import pulls as render_pulls

COMPARE_FILES = 300
COMPARE_COMMITS = 250


def commit_named(call: Call, name: str) -> CommitData:
    """The commit that a name or an abbreviated sha stands for."""
    store = call.world.store(call.repo)
    sha = store.resolve(name)
    if sha is None:
        raise ApiError(422, f"No commit found for SHA: {name}")
    return store.commit(sha)


@route("GET", "/repos/{owner}/{repo}/commits", app="contents:read")
def list_commits(call: Call) -> Any:
    """History from `sha` (a branch or commit), newest first; by `path`, `since`, `until`."""
    world, repo, query = call.world, call.repo, call.query
    store = world.store(repo)
    name = query.get("sha") or repo.default_branch
    start = store.resolve(name)
    if start is None:
        if not store.refs():
            raise ApiError(409, "Git Repository is empty.")
        raise not_found()
    flags = [f"--{word}={query[word]}" for word in ("since", "until") if word in query]
    flags += [f"--author={query['author']}"] if "author" in query else []
    paths = ["--", query["path"]] if query.get("path") else []
    number, size = call.page()
    shas = store.text("rev-list", *flags, f"--max-count={number * size + 1}", start, *paths).split()
    return Listing(shas, lambda sha: render.commit(world, repo, store.commit(sha)))


@route("GET", "/repos/{owner}/{repo}/commits/{ref}", app="contents:read")
def get_commit(call: Call) -> Any:
    """One commit with its files (a page of 300), as JSON, or its sha or diff as text."""
    data = commit_named(call, call.params["ref"])
    store = call.world.store(call.repo)
    accept = call.headers.get("accept", "")
    if "sha" in accept.split("application/vnd.github.")[-1][:8]:
        return Reply(raw=data.sha.encode(), media_type="text/plain; charset=utf-8")
    parent = data.parents[0] if data.parents else EMPTY_TREE
    if ".diff" in accept:
        return Reply(raw=store.run("diff", parent, data.sha), media_type="text/plain; charset=utf-8")
    files = store.diff(parent, data.sha)
    page = max(int(call.query.get("page", "1")), 1)
    return render.commit(call.world, call.repo, data, files[(page - 1) * COMPARE_FILES : page * COMPARE_FILES])


@route("GET", "/repos/{owner}/{repo}/commits/{commit_sha}/pulls", app="pull_requests:read")
def commit_pulls(call: Call) -> Any:
    """The pull requests that brought a commit: merged ones on the default branch, open ones elsewhere."""
    world, repo = call.world, call.repo
    data = commit_named(call, call.params["commit_sha"])
    found = []
    for item in repo.pulls.values():
        assert item.pull is not None
        shas = {one.sha for one in merging.changes(world, repo, item.pull).commits} | {item.pull.merge_commit_sha}
        if data.sha in shas:
            found.append(item)
    return Listing(found, lambda item: render_pulls.simple(world, repo, item))


def _side(call: Call, name: str) -> tuple[Repository, str]:
    """A side of a comparison: `ref`, or `owner:ref` of a fork."""
    owner, colon, ref = name.rpartition(":")
    repo = call.repo
    if colon:
        found = next(
            (
                one
                for one in call.world.repositories.values()
                if one.owner == owner and call.repo.full_name in (one.full_name, one.parent)
            ),
            None,
        )
        if found is None:
            raise not_found()
        repo = found
    sha = call.world.store(repo).resolve(ref)
    if sha is None:
        raise not_found()
    if repo is not call.repo:
        call.world.store(call.repo).run("fetch", "-q", "--no-write-fetch-head", "--no-tags", str(repo.path), sha)
    return repo, sha


@route("GET", "/repos/{owner}/{repo}/compare/{basehead}", app="contents:read")
def compare(call: Call) -> Any:
    """Three dots: head against the merge base; commits in pages, never more than 300 files."""
    world, repo = call.world, call.repo
    base_name, dots, head_name = call.params["basehead"].partition("...")
    if not dots:
        raise not_found()
    store = world.store(repo)
    base, head = _side(call, base_name)[1], _side(call, head_name)[1]
    middle = store.merge_base(base, head)
    if middle is None:
        raise ApiError(404, f"No common ancestor between {base_name} and {head_name}.")
    if ".diff" in call.headers.get("accept", ""):
        return Reply(raw=store.run("diff", middle, head), media_type="text/plain; charset=utf-8")
    ahead, behind = store.count(base, head), store.count(head, base)
    status = "diverged" if ahead and behind else "ahead" if ahead else "behind" if behind else "identical"
    commits = store.commits("--reverse", "--topo-order", head, f"^{base}") if ahead else []
    paged = "page" in call.query or "per_page" in call.query
    number, size = call.page()
    shown = commits[(number - 1) * size : number * size] if paged else commits[-COMPARE_COMMITS:]
    files = store.diff(middle, head)[:COMPARE_FILES] if number == 1 or not paged else []
    html = f"{world.url}/{repo.full_name}/compare/{base_name}...{head_name}"
    return {
        "url": f"{world.url}/api{call.path}",
        "html_url": html,
        "permalink_url": html,
        "diff_url": f"{html}.diff",
        "patch_url": f"{html}.patch",
        "base_commit": render.commit(world, repo, store.commit(base)),
        "merge_base_commit": render.commit(world, repo, store.commit(middle)),
        "status": status,
        "ahead_by": ahead,
        "behind_by": behind,
        "total_commits": len(commits),
        "commits": [render.commit(world, repo, data) for data in shown],
        "files": [render.file(world, repo, head, one) for one in files],
    }


@route("POST", "/repos/{owner}/{repo}/merges", app="contents:write")
def merge_branch(call: Call) -> Any:
    """Merge one branch into another, without a pull request."""
    world, repo, body = call.world, call.repo, call.body
    store = world.store(repo)
    ref = f"refs/heads/{body['base']}"
    base, head = store.ref(ref), store.resolve(body["head"])
    if base is None or head is None:
        raise ApiError(404, "Base does not exist" if base is None else "Head does not exist")
    if store.is_ancestor(head, base):
        return Reply(None, 204)
    tree, _ = store.merge_tree(base, head)
    if tree is None:
        raise ApiError(409, "Merge conflict")
    message = body.get("commit_message") or f"Merge {body['head']} into {body['base']}"
    me = merging.signature(world, call.login)
    commit = store.write_commit(tree, [base, head], message, me, merging.web_flow(world))
    refusal = guard.refusal(world, repo, call.actor, ref, base, commit)
    if refusal is not None:
        raise ApiError(403, refusal.message)
    changes.set_ref(world, repo, ref, commit, login=call.login)
    return Reply(render.commit(world, repo, store.commit(commit)), 201)
