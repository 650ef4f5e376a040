"""Result files that were there before the suite began: whatever they say, they are not its report.

A suite may hand in what it did not make: a file committed to the repository, or left in its work tree by the build or
by an earlier run. A file older than the start of the suite is one, and so is a copy of one.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

_TAKEN_OUT = ".leftover"


def empty(folder: Path) -> None:
    """The folder, there and with nothing in it. Raises OSError."""
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def tick(folder: Path) -> int:
    """The present moment by the clock that the folder's files are dated by, in nanoseconds. Raises OSError."""
    mark = folder / "began"
    mark.unlink(missing_ok=True)
    mark.touch()
    return mark.stat().st_mtime_ns


def take_out(results: Path, patterns: Sequence[str], *, source: Path, since: int, apart: Path) -> list[str]:
    """Put the result files that were there before `since` (nanoseconds) under other names; says of each why.

    A copy is looked for among the files of `source`, but those below `apart`.
    """
    found = sorted({path for pattern in patterns for path in results.glob(pattern) if path.is_file()})
    why: dict[Path, str] = {}
    fresh: dict[int, list[Path]] = {}
    for path in found:
        seen = path.stat()
        if _date(seen) < since:
            why[path] = f"{path.name} was there before the suite began"
        elif seen.st_size:
            fresh.setdefault(seen.st_size, []).append(path)
    for old, size in _older(source, since, apart) if fresh else ():
        for path in fresh.get(size, ()):
            if path not in why and filecmp.cmp(old, path, shallow=False):
                said = f"the same, byte for byte, as {old.relative_to(source)}, which was there before the suite began"
                why[path] = f"{path.name} is {said}"
    for path in why:
        path.rename(path.with_name(path.name + _TAKEN_OUT))
    return list(why.values())


def _date(seen: os.stat_result) -> int:
    """When a file was written, by its own word; or when it was last touched, if it claims to be newer than that."""
    return min(seen.st_mtime_ns, seen.st_ctime_ns)


def _older(source: Path, since: int, apart: Path) -> Iterator[tuple[Path, int]]:
    """The files of a tree that are older, with their sizes in bytes."""
    for folder, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name != ".git" and Path(folder, name) != apart]
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - of every file of a large tree
            try:
                seen = os.lstat(path)
            except OSError:
                continue
            if stat.S_ISREG(seen.st_mode) and _date(seen) < since:
                yield Path(path), seen.st_size
