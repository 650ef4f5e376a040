"""Objects written as git writes them loose, without a process for each."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import zlib
from pathlib import Path


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
