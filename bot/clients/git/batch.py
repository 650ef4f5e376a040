"""Objects read through one long-lived `git cat-file`: a process started once, not once an object."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from bot.clients.git.errors import GitError, ObjectMissing

# as many requests as surely fit into the pipe while git is still busy with writing the first answer
_PORTION = 400


class Child:
    """A long-lived git process, held apart from its owner so that it can be ended when the owner is gone."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """True where the process was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def running(self) -> subprocess.Popen[bytes]:
        """The process; raises OSError where there is none."""
        if self.process is None:
            raise OSError("not started")
        return self.process

    def end(self) -> None:
        """Close its pipes, which is how it is told to end, and wait for it."""
        process, self.process = self.process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        process.wait()


class Objects:
    """Reads objects by any name that git understands; safe to share between threads."""

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        self._directory = directory
        self._env = dict(env)
        self._lock = threading.Lock()
        self._child = Child()
        weakref.finalize(self, self._child.end)

    def read(self, name: str) -> tuple[str, str, bytes] | None:
        """Id, type and content of one object; None where there is none."""
        return self.read_many([name])[name]

    def read_many(self, names: Iterable[str]) -> dict[str, tuple[str, str, bytes] | None]:
        """The same for many, in one go."""
        wanted = list(dict.fromkeys(names))
        found: dict[str, tuple[str, str, bytes] | None] = {}
        with self._lock:
            for start in range(0, len(wanted), _PORTION):
                portion = wanted[start : start + _PORTION]
                try:
                    found |= zip(portion, self._ask(portion), strict=True)
                except (OSError, ValueError) as error:
                    self._child.end()
                    raise GitError(
                        ["cat-file", "--batch-command"], f"ended in the middle of an answer: {error}", 1
                    ) from error
        return found

    def close(self) -> None:
        """End the process; a later read starts another."""
        with self._lock:
            self._child.end()

    def _ask(self, names: list[str]) -> list[tuple[str, str, bytes] | None]:
        process = self._started()
        stdin, stdout = process.stdin, process.stdout
        if stdin is None or stdout is None:  # pragma: no cover - both are pipes
            raise OSError("no pipe")
        if any("\n" in name for name in names):
            raise ObjectMissing(["cat-file"], "an object's name holds a line break", 128)
        stdin.write("".join(f"contents {name}\n" for name in names).encode("utf-8", "surrogateescape"))
        stdin.flush()
        return [_answer(stdout) for _ in names]

    def _started(self) -> subprocess.Popen[bytes]:
        if not self._child.alive:
            self._child.process = subprocess.Popen(
                ["git", "cat-file", "--batch-command"],
                cwd=self._directory,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._child.running()


def _answer(stdout: IO[bytes]) -> tuple[str, str, bytes] | None:
    head = stdout.readline()
    if not head.endswith(b"\n"):
        raise OSError("no answer")
    words = head.split()
    if words[-1] in {b"missing", b"ambiguous"}:
        return None
    oid, kind, size = (word.decode() for word in words)
    content = stdout.read(int(size))
    stdout.read(1)
    return oid, kind, content
