"""Objects written as git writes them loose, without a process for each; and trees edited by path."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

from bot.clients.git.errors import ObjectMissing

_TREE_MODE = "40000"
Edits = Mapping[str, "tuple[str, str] | None"]


def write(directory: Path, kind: str, content: bytes) -> str:
    """Write one object into an object directory and return its id; what is there already is left alone."""
    raw = f"{kind} {len(content)}".encode() + b"\0" + content
    oid = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
    folder = directory / oid[:2]
    target = folder / oid[2:]
    if target.exists():
        return oid
    folder.mkdir(exist_ok=True)
    handle, name = tempfile.mkstemp(prefix="tmp_obj_", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(zlib.compress(raw, 1))
        os.chmod(name, 0o444)  # noqa: PTH101 - a plain name, not a Path: this runs thousands of times
        os.replace(name, target)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise
    return oid


def parse_tree(raw: bytes) -> dict[bytes, tuple[str, str]]:
    """The entries of a tree object: name to mode (as stored, without leading zero) and id."""
    entries: dict[bytes, tuple[str, str]] = {}
    at = 0
    while at < len(raw):
        space = raw.index(b" ", at)
        end = raw.index(b"\0", space)
        entries[raw[space + 1 : end]] = (raw[at:space].decode(), raw[end + 1 : end + 21].hex())
        at = end + 21
    return entries


def edit_tree(directory: Path, read: Callable[[str], bytes | None], root: str | None, edits: Edits) -> str | None:
    """The id of `root` with the files at `edits` set to (mode, blob id), or removed where None.

    Folders that fall empty vanish; None where nothing is left. Raises ObjectMissing where a tree can't be read.
    """
    entries = parse_tree(_content(read, root)) if root is not None else {}
    below: dict[bytes, dict[str, tuple[str, str] | None]] = {}
    for path, value in edits.items():
        first, _, rest = path.partition("/")
        name = first.encode("utf-8", "surrogateescape")
        if rest:
            below.setdefault(name, {})[rest] = value
        elif value is None:
            entries.pop(name, None)
        else:
            entries[name] = (value[0].lstrip("0"), value[1])
    for name, inner in below.items():
        mode, oid = entries.get(name, (_TREE_MODE, ""))
        edited = edit_tree(directory, read, oid if mode == _TREE_MODE and oid else None, inner)
        if edited is not None:
            entries[name] = (_TREE_MODE, edited)
        elif mode == _TREE_MODE:
            entries.pop(name, None)
    if not entries:
        return None
    ordered = sorted(entries.items(), key=lambda item: item[0] + (b"/" if item[1][0] == _TREE_MODE else b""))
    return write(
        directory,
        "tree",
        b"".join(f"{mode} ".encode() + name + b"\0" + bytes.fromhex(oid) for name, (mode, oid) in ordered),
    )


def _content(read: Callable[[str], bytes | None], oid: str) -> bytes:
    content = read(oid)
    if content is None:
        raise ObjectMissing(["cat-file", oid], f"no tree {oid}", 128)
    return content
