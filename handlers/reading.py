"""Read footprints and divergences from git, in processes of their own where there is much to read."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from bot.context import Git, ObjectMissing
from bot.core.divergence import FileDivergence, decode_file, encode_file, file_divergence
from bot.core.footprint import (
    Footprint,
    SymbolTable,
    Tables,
    decode_footprint,
    encode_footprint,
    footprint,
    needed_blobs,
    needed_tables,
    table_key,
)
from bot.core.types import Commit

PORTION = 25  # commits, or files, whose blobs are held in memory at once
_WORTH_IT = 4  # portions below which another process costs more than it saves
_MOST = 4  # processes: each holds some two hundred MiB

Item = TypeVar("Item")
Task = dict[str, Any]
Wanted = tuple[str, str, tuple[str, ...]]
"""A file of the fork: its path, its blob, and the blobs that upstream had there."""


class Reader:
    """Reads portions one after the other; what it has parsed helps with the next."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._tables = Tables()
        self._known: dict[str, SymbolTable] = {}

    def footprints(self, commits: Sequence[Commit]) -> dict[str, Footprint]:
        """The footprint of each commit against its first parent, by sha."""
        changes = self._git.changes_of(commits)
        blobs = blobs_of(self._git, sorted({oid for c in commits for oid in needed_blobs(changes[c.sha])}))
        tables: dict[str, SymbolTable] = {}
        for commit in commits:
            for oid, language, before in needed_tables(changes[commit.sha]):
                key = table_key(oid, language)
                if key not in tables and oid in blobs:
                    tables[key] = self._known.get(key) or self._tables.of(oid, blobs[oid], language, before=before)
        self._known = tables
        return {c.sha: footprint(commit=c, changes=changes[c.sha], blobs=blobs, tables=tables) for c in commits}

    def divergences(self, files: Sequence[Wanted]) -> dict[str, FileDivergence]:
        """How each file of the fork differs from what upstream had there, by path."""
        found: dict[str, FileDivergence] = {}
        for path, oid, theirs in files:
            blobs = blobs_of(self._git, [oid, *theirs])
            there = [blobs[version] for version in theirs if version in blobs]
            found[path] = file_divergence(path=path, fork=blobs.get(oid, b""), upstream=there)
        return found


def read_footprints(git: Git, commits: Sequence[Commit]) -> Iterator[dict[str, Footprint]]:
    """The footprints of the commits, by sha, a portion at a time."""
    tasks = [{"commits": [commit.sha for commit in portion]} for portion in portions(commits)]
    for raw in _spread(git, tasks):
        yield {sha: decode_footprint(value) for sha, value in raw.items()}


def read_divergences(git: Git, files: Sequence[Wanted]) -> Iterator[dict[str, FileDivergence]]:
    """How the files of the fork differ, by path, a portion at a time."""
    for raw in _spread(git, [{"files": [list(file) for file in portion]} for portion in portions(files)]):
        yield {path: decode_file(value) for path, value in raw.items()}


def blobs_of(git: Git, oids: Sequence[str]) -> dict[str, bytes]:
    """The contents of these blobs; one that the mirror lacks is left out."""
    try:
        return git.read_blobs(oids)
    except ObjectMissing:
        there: dict[str, bytes] = {}
        for oid in oids:
            try:
                there[oid] = git.read_blob(oid)
            except ObjectMissing:
                continue
        return there


def portions(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The items in runs of at most PORTION."""
    for start in range(0, len(items), PORTION):
        yield items[start : start + PORTION]


def main(path: str) -> None:
    """Answer the tasks on standard input, a line of JSON each, until it ends."""
    with Git(Path(path)) as git:
        reader = Reader(git)
        for line in sys.stdin:
            answer = _work(git, reader, json.loads(line))
            encoded = {name: base64.b64encode(value).decode("ascii") for name, value in answer.items()}
            print(json.dumps(encoded), flush=True)


def _work(git: Git, reader: Reader, task: Task) -> dict[str, bytes]:
    if "commits" in task:
        found = reader.footprints(git.commits_of(task["commits"]))
        return {sha: encode_footprint(value) for sha, value in found.items()}
    files = [(path, oid, tuple(theirs)) for path, oid, theirs in task["files"]]
    return {path: encode_file(value) for path, value in reader.divergences(files).items()}


def _spread(git: Git, tasks: Sequence[Task]) -> Iterator[dict[str, bytes]]:
    """The answer to each task, in order; what another process can't do is done here."""
    workers = min(os.cpu_count() or 1, _MOST, len(tasks))
    reader = Reader(git)
    if len(tasks) < _WORTH_IT or workers < 2:
        yield from (_work(git, reader, task) for task in tasks)
        return
    with contextlib.ExitStack() as stack:
        idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        for _ in range(workers):
            idle.put(stack.enter_context(_Process(git.path)))
        pool = stack.enter_context(ThreadPoolExecutor(workers))
        for task, answer in zip(tasks, pool.map(partial(_ask, idle), tasks), strict=True):
            yield answer if answer is not None else _work(git, reader, task)


def _ask(idle: queue.SimpleQueue[_Process], task: Task) -> dict[str, bytes] | None:
    process = idle.get()
    try:
        return process.ask(task)
    finally:
        idle.put(process)


class _Process:
    """A process that runs this module. Not multiprocessing, which would run the caller's main module again."""

    def __init__(self, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "handlers.reading", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            text=True,
        )

    def ask(self, task: Task) -> dict[str, bytes] | None:
        """The answer, None where the process can give none (any more)."""
        if self._process.stdin is None or self._process.stdout is None:  # pragma: no cover - both are pipes
            return None
        try:
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
            answer: dict[str, str] = json.loads(self._process.stdout.readline())
        except (OSError, ValueError):
            return None
        return {name: base64.b64decode(value) for name, value in answer.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    main(sys.argv[1])
