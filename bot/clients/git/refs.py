"""The refs of one repository, and how its git is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from bot.clients.git.process import run, text


class Refs:
    """A repository's own refs. `path` is its folder, `_env` what its git children see."""

    path: Path
    _env: dict[str, str]

    def set_ref(self, ref: str, sha: str | None, *, expected: str | None = None) -> None:
        """Set a ref of this repository, or delete it (None), if it stands at `expected` (where given)."""
        guard = [expected] if expected is not None else []
        self._run(["update-ref", "-d", ref, *guard] if sha is None else ["update-ref", ref, sha, *guard])

    def drop_refs(self, refs: Mapping[str, str]) -> None:
        """Delete refs, each where it stands at that commit; all of them, or none and a GitError."""
        lines = "".join(f"delete {ref} {sha}\n" for ref, sha in refs.items())
        self._run(["update-ref", "--stdin"], stdin=lines.encode())

    def set_head(self, ref: str) -> None:
        """Let HEAD stand for a branch, whether it is there or not."""
        self._run(["symbolic-ref", "HEAD", ref])

    def refs(self, prefix: str = "refs/heads/") -> dict[str, str]:
        """The refs of this repository under `prefix`."""
        lines = text(self._run(["for-each-ref", "--format=%(objectname) %(refname)", prefix])).splitlines()
        return {name: sha for sha, _, name in (line.partition(" ") for line in lines)}

    def _run(
        self,
        arguments: Sequence[str],
        *,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> bytes:
        return run(arguments, env=self._env | dict(env or {}), cwd=self.path, stdin=stdin, timeout=timeout).stdout
