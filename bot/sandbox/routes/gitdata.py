"""Git's objects and refs by the API."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from bot.sandbox import changes, guard, merging
from bot.sandbox.bare import Bare, GitFailure, Signature
from bot.sandbox.http import ApiError, Call, Listing, Reply, not_found, route
from bot.sandbox.model import ZERO
from bot.sandbox.render import git as render
from bot.sandbox.render.common import repository_api


def _store(call: Call) -> Bare:
    return call.world.store(call.repo)


def _object(call: Call, name: str, kind: str) -> str:
    oid = str(call.params[name])
    if _store(call).kind(oid) != kind:
        raise not_found()
    return oid


@route("GET", "/repos/{owner}/{repo}/git/ref/{ref}", app="contents:read")
def get_ref(call: Call) -> Any:
    """One ref; the path leaves out `refs/`."""
    name = f"refs/{call.params['ref']}"
    oid = _store(call).refs(name).get(name)
    if oid is None:
        raise not_found()
    return render.ref(call.world, call.repo, _store(call), name, oid)


@route("GET", "/repos/{owner}/{repo}/git/matching-refs/{ref}", app="contents:read")
def matching_refs(call: Call) -> Any:
    """All refs whose name begins so."""
    prefix = f"refs/{call.params['ref']}"
    found = [(name, oid) for name, oid in sorted(_store(call).refs("refs/").items()) if name.startswith(prefix)]
    return Listing(found, lambda row: render.ref(call.world, call.repo, _store(call), *row))


@route("POST", "/repos/{owner}/{repo}/git/refs", app="contents:write")
def create_ref(call: Call) -> Any:
    """A new branch or tag."""
    name, sha = call.body["ref"], call.body["sha"]
    if not name.startswith("refs/") or name.count("/") < 2:
        raise ApiError(422, "Reference name must start with 'refs/' and contain at least two slashes")
    store = _store(call)
    if store.kind(sha) is None:
        raise ApiError(422, "Object does not exist")
    if store.ref(name) is not None:
        raise ApiError(422, "Reference already exists")
    try:
        store.run("check-ref-format", name)
    except GitFailure as error:
        raise ApiError(422, f"{name} is not a valid ref name") from error
    _guarded(call, name, ZERO, sha)
    changes.set_ref(call.world, call.repo, name, sha, login=call.login)
    return Reply(render.ref(call.world, call.repo, store, name, sha), 201)


@route("PATCH", "/repos/{owner}/{repo}/git/refs/{ref}", app="contents:write")
def update_ref(call: Call) -> Any:
    """Move a branch; not backwards or aside without `force`."""
    name, sha = f"refs/{call.params['ref']}", call.body["sha"]
    store = _store(call)
    old = store.ref(name)
    if old is None:
        raise ApiError(422, "Reference does not exist")
    if store.kind(sha) is None:
        raise ApiError(422, "Object does not exist")
    if not call.body.get("force") and not store.is_ancestor(old, sha):
        raise ApiError(422, "Update is not a fast forward")
    _guarded(call, name, old, sha)
    changes.set_ref(call.world, call.repo, name, sha, login=call.login)
    return render.ref(call.world, call.repo, store, name, sha)


@route("DELETE", "/repos/{owner}/{repo}/git/refs/{ref}", app="contents:write")
def delete_ref(call: Call) -> Any:
    """Delete a branch or tag."""
    name = f"refs/{call.params['ref']}"
    old = _store(call).ref(name)
    if old is None:
        raise ApiError(422, "Reference does not exist")
    _guarded(call, name, old, ZERO)
    changes.set_ref(call.world, call.repo, name, ZERO, login=call.login)
    return Reply(None, 204)


def _guarded(call: Call, ref: str, old: str, new: str) -> None:
    refusal = guard.refusal(call.world, call.repo, call.actor, ref, old, new)
    if refusal is not None:
        raise ApiError(422 if refusal.kind == "protected" else 403, refusal.message)


@route("GET", "/repos/{owner}/{repo}/git/commits/{commit_sha}", app="contents:read")
def get_commit(call: Call) -> Any:
    """One commit object."""
    return render.git_commit(call.world, call.repo, _store(call).commit(_object(call, "commit_sha", "commit")))


def _person(call: Call, given: dict[str, str] | None, fallback: Signature) -> Signature:
    if not given:
        return fallback
    return Signature(
        given.get("name", fallback.name), given.get("email", fallback.email), given.get("date", fallback.date)
    )


@route("POST", "/repos/{owner}/{repo}/git/commits", app="contents:write")
def create_commit(call: Call) -> Any:
    """A new commit object."""
    store, body = _store(call), call.body
    if store.kind(body["tree"]) != "tree":
        raise ApiError(422, "Tree SHA does not exist")
    parents = body.get("parents", [])
    if any(store.kind(parent) != "commit" for parent in parents):
        raise ApiError(422, "Parent SHA does not exist or is not a commit object")
    author = _person(call, body.get("author"), merging.signature(call.world, call.login))
    committer = _person(call, body.get("committer"), author)
    sha = store.write_commit(body["tree"], parents, body["message"], author, committer)
    return Reply(render.git_commit(call.world, call.repo, store.commit(sha)), 201)


@route("GET", "/repos/{owner}/{repo}/git/trees/{tree_sha}", app="contents:read")
def get_tree(call: Call) -> Any:
    """The entries of a tree (or of a commit's)."""
    store = _store(call)
    name = str(call.params["tree_sha"])
    sha = name if store.kind(name) == "tree" else None
    if sha is None:
        commit = store.resolve(name)
        if commit is None:
            raise not_found()
        sha = store.commit(commit).tree
    entries = store.tree(sha, recursive="recursive" in call.query)
    return _tree(
        call,
        sha,
        [
            {
                "path": one.path,
                "mode": one.mode,
                "type": one.kind,
                "sha": one.oid,
                **({"size": one.size} if one.size is not None else {}),
            }
            for one in entries
        ],
    )


def _tree(call: Call, sha: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [{**one, "url": repository_api(call.world, call.repo, f"git/{one['type']}s", one["sha"])} for one in entries]
    url = repository_api(call.world, call.repo, "git/trees", sha)
    return {"sha": sha, "url": url, "tree": rows[:100_000], "truncated": len(rows) > 100_000}


@route("POST", "/repos/{owner}/{repo}/git/trees", app="contents:write")
def create_tree(call: Call) -> Any:
    """A new tree: a base with some paths changed."""
    store = _store(call)
    base = call.body.get("base_tree")
    if base is not None:
        if store.kind(base) == "commit":
            base = store.commit(base).tree
        if store.kind(base) != "tree":
            raise ApiError(422, "base_tree is not a valid tree oid")
    rows: list[tuple[str, str, str | None]] = []
    for item in call.body["tree"]:
        oid = store.write_blob(item["content"].encode()) if "content" in item else item.get("sha")
        if oid is not None and store.kind(oid) is None:
            raise ApiError(422, f"tree.sha {oid} is not a valid object")
        rows.append((item.get("mode", "100644"), item["path"], oid))
    sha = store.write_tree(base, rows)
    entries = store.tree(sha)
    return Reply(
        _tree(call, sha, [{"path": one.path, "mode": one.mode, "type": one.kind, "sha": one.oid} for one in entries]),
        201,
    )


@route("GET", "/repos/{owner}/{repo}/git/blobs/{file_sha}", app="contents:read")
def get_blob(call: Call) -> Any:
    """The content of a blob in base64."""
    oid = _object(call, "file_sha", "blob")
    content = _store(call).blob(oid)
    return {
        "sha": oid,
        "node_id": f"B_{oid}",
        "size": len(content),
        "url": repository_api(call.world, call.repo, "git/blobs", oid),
        "content": base64.encodebytes(content).decode(),
        "encoding": "base64",
    }


@route("POST", "/repos/{owner}/{repo}/git/blobs", app="contents:write")
def create_blob(call: Call) -> Any:
    """A new blob."""
    text = call.body["content"]
    try:
        content = base64.b64decode(text) if call.body.get("encoding") == "base64" else text.encode()
    except binascii.Error as error:
        raise ApiError(422, "content is not valid Base64") from error
    oid = _store(call).write_blob(content)
    return Reply({"sha": oid, "url": repository_api(call.world, call.repo, "git/blobs", oid)}, 201)


@route("POST", "/repos/{owner}/{repo}/git/tags", app="contents:write")
def create_tag(call: Call) -> Any:
    """A new annotated tag object (no ref)."""
    store, body = _store(call), call.body
    tagger = _person(call, body.get("tagger"), merging.signature(call.world, call.login))
    if store.kind(body["object"]) != body["type"]:
        raise ApiError(422, "object does not exist or is of another type")
    seconds = _epoch(tagger.date)
    text = (
        f"object {body['object']}\ntype {body['type']}\ntag {body['tag']}\n"
        f"tagger {tagger.name} <{tagger.email}> {seconds} +0000\n\n{body['message']}\n"
    )
    sha = store.text("hash-object", "-t", "tag", "-w", "--stdin", data=text.encode())
    target = repository_api(call.world, call.repo, f"git/{body['type']}s", body["object"])
    return Reply(
        {
            "node_id": f"TA_{sha}",
            "tag": body["tag"],
            "sha": sha,
            "url": repository_api(call.world, call.repo, "git/tags", sha),
            "message": body["message"],
            "tagger": render.person(tagger),
            "object": {"sha": body["object"], "type": body["type"], "url": target},
        },
        201,
    )


def _epoch(date: str) -> int:
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(date).timestamp())
    except ValueError as error:
        raise ApiError(422, f"{date!r} is no date in ISO 8601") from error
