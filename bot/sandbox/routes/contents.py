"""Files by path: read, and write as one commit."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import quote

from bot.sandbox import changes, guard, merging
from bot.sandbox.bare import Entry, Signature
from bot.sandbox.http import ApiError, Call, Reply, not_found, route
from bot.sandbox.model import ZERO
from bot.sandbox.render import git as render
from bot.sandbox.render.common import repository_api

MAX_INLINE = 1_000_000  # bytes; above it content is empty and encoding `none`
_KINDS = {"blob": "file", "tree": "dir", "commit": "submodule"}


def _entry(call: Call, ref: str, path: str, item: Entry, content: bytes | None = None) -> dict[str, Any]:
    quoted = quote(path)
    own = repository_api(call.world, call.repo, f"contents/{quoted}?ref={ref}")
    git = repository_api(call.world, call.repo, f"git/{item.kind}s", item.oid)
    html = f"{call.world.url}/{call.repo.full_name}/{'blob' if item.kind == 'blob' else 'tree'}/{ref}/{quoted}"
    kind = "symlink" if item.mode == "120000" else _KINDS[item.kind]
    raw = f"{call.world.url}/{call.repo.full_name}/raw/{ref}/{quoted}" if item.kind == "blob" else None
    body: dict[str, Any] = {
        "name": path.rsplit("/", 1)[-1],
        "path": path,
        "sha": item.oid,
        "size": item.size or 0,
        "url": own,
        "html_url": html,
        "git_url": git,
        "download_url": raw,
        "type": kind,
        "_links": {"self": own, "git": git, "html": html},
    }
    if content is not None:
        small = len(content) <= MAX_INLINE
        body["content"] = base64.encodebytes(content).decode() if small else ""
        body["encoding"] = "base64" if small else "none"
        if kind == "symlink":
            body["target"] = content.decode(errors="replace")
    return body


@route("GET", "/repos/{owner}/{repo}/contents/{path}", app="contents:read")
def get_contents(call: Call) -> Any:
    """A file, or the list of a directory."""
    store = call.world.store(call.repo)
    path = call.params["path"].strip("/")
    ref = call.query.get("ref") or call.repo.default_branch
    sha = store.resolve(ref)
    if sha is None:
        raise ApiError(404, f"No commit found for the ref {ref}")
    found = store.tree(sha, path) if path else []
    if path and not found:
        raise not_found()
    if found and found[0].kind == "blob":
        content = store.blob(found[0].oid)
        if "raw" in call.headers.get("accept", ""):
            return Reply(raw=content, media_type="application/vnd.github.raw; charset=utf-8")
        return _entry(call, ref, path, found[0], content)
    entries = store.tree(sha, f"{path}/" if path else "")
    return [_entry(call, ref, item.path, item) for item in entries]


@route("PUT", "/repos/{owner}/{repo}/contents/{path}", app="contents:write")
def put_contents(call: Call) -> Any:
    """Write one file as one commit; `sha` of the old content is needed to replace it."""
    world, repo, body = call.world, call.repo, call.body
    store = world.store(repo)
    path = call.params["path"].strip("/")
    branch = body.get("branch") or repo.default_branch
    ref = f"refs/heads/{branch}"
    tip = store.ref(ref)
    if tip is None and store.refs():
        raise ApiError(404, f"Branch {branch} not found")
    present = store.tree(tip, path) if tip else []
    if present and present[0].kind != "blob":
        raise ApiError(422, f"{path} is a directory")
    if present and "sha" not in body:
        raise ApiError(422, 'Invalid request.\n\n"sha" wasn\'t supplied.')
    if body.get("sha") and (not present or present[0].oid != body["sha"]):
        raise ApiError(409, f"{path} does not match {body['sha']}")
    try:
        content = base64.b64decode(body["content"])
    except binascii.Error as error:
        raise ApiError(422, "content is not valid Base64") from error
    tree = store.write_tree(tip, [(present[0].mode if present else "100644", path, store.write_blob(content))])
    me = merging.signature(world, call.login)
    author, committer = (_person(body.get(role), me) for role in ("author", "committer"))
    commit = store.write_commit(tree, [tip] if tip else [], body["message"], author, committer)
    refusal = guard.refusal(world, repo, call.actor, ref, tip or ZERO, commit)
    if refusal is not None:
        raise ApiError(409 if refusal.kind == "protected" else 403, refusal.message)
    changes.set_ref(world, repo, ref, commit, login=call.login)
    item = store.tree(commit, path)[0]
    rendered = render.git_commit(world, repo, store.commit(commit))
    return Reply({"content": _entry(call, branch, path, item), "commit": rendered}, 200 if present else 201)


def _person(given: dict[str, str] | None, me: Signature) -> Signature:
    return Signature(given["name"], given["email"], given.get("date", me.date)) if given else me
