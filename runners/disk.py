"""The runner's disk: what is free of it, what its folder takes, and what of that goes when it is too much."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from runners.workspace import Workspace

GIB = 1024**3
_LOOK_SECONDS = 600.0
log = logging.getLogger("graft.runner")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bytes that the runner's folder may take, bytes of the disk that stay free, builds and caches that are kept."""

    most: int = 200 * GIB
    least_free: int = 2 * GIB
    builds: int = 10


class Janitor:
    """Keeps a workspace within its bounds; a run's own things are left alone while it is under way."""

    def __init__(self, workspace: Workspace, bounds: Bounds) -> None:
        self._workspace, self._bounds = workspace, bounds
        self._used: int | None = None
        self._looked = float("-inf")
        self._one = asyncio.Lock()

    def low(self) -> str:
        """Why no run may begin here; empty where there is room."""
        free = self._free()
        if free >= self._bounds.least_free:
            return ""
        return f"the disk is nearly full: {_gib(free)} free, {_gib(self._bounds.least_free)} are to stay free"

    def out_of_room(self) -> bool:
        """Whether a run under way has to end before it fills the disk: half of what is to stay free is gone."""
        return self._free() < self._bounds.least_free // 2

    def facts(self) -> dict[str, object]:
        """The disk for the bot, in GiB; `used` is what the runner's folder took when it was last looked at."""
        used = None if self._used is None else round(self._used / GIB, 1)
        return {"free": round(self._free() / GIB, 1), "used": used, "low": bool(self.low())}

    async def tidy(self, busy: Iterable[str]) -> None:
        """Drop what is too many, then what is too much, oldest first; `busy` are the commits of runs under way."""
        commits = frozenset(busy)
        async with self._one:
            await asyncio.to_thread(self._drop, commits)
            if self._used is not None and self._used > self._bounds.most:
                # forgotten commits come last: each is a fetch that has to be made again
                await self._workspace.trim_objects(commits)
                self._used = await asyncio.to_thread(size_of, self._workspace.root)

    def _drop(self, busy: frozenset[str]) -> None:
        self._workspace.prune(keep=self._bounds.builds, busy=busy)
        if time.monotonic() - self._looked < _LOOK_SECONDS and not self.low():
            return  # going through a large folder takes its time
        self._looked = time.monotonic()
        self._used = size_of(self._workspace.root)
        for path in self._workspace.disposable(busy):
            if self._used <= self._bounds.most and not self.low():
                return
            size = size_of(path)
            if self._workspace.drop(path):
                self._used -= size
                log.info("dropped %s, %s, for want of room", path, _gib(size))

    def _free(self) -> int:
        return shutil.disk_usage(self._workspace.root).free


def size_of(folder: Path) -> int:
    """Bytes on disk below a folder, links not followed; what vanishes meanwhile is not counted."""
    total, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    try:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(Path(entry.path))
                    except OSError:
                        continue
        except OSError:
            continue
    return total


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
