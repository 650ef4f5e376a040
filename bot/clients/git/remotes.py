"""What a repository fetches from others and pushes to them: under a lease, the token seen by one child alone."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Sequence

from bot.clients.git.errors import GitError, fetch_error, push_error
from bot.clients.git.process import credentials, run, text
from bot.clients.git.refs import Refs


class Remotes(Refs):
    """A repository's dealings with others."""

    def fetch(
        self,
        url: str,
        refspecs: Sequence[str],
        *,
        token: str | None = None,
        timeout: float = 1800,
        prune: bool = False,
    ) -> None:
        """Fetch `refspecs` from `url`; one without `+` refuses a rewritten history (FetchError of kind `moved`). With
        `prune` the refs that a pattern among them made go where the other side has them no more.
        """
        options, secret = credentials(url, token)
        command = [
            *options,
            "fetch",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            *(["--prune"] if prune else []),
            "--end-of-options",
            url,
            *refspecs,
        ]
        try:
            # two fetches that move the same ref at once end in an error of git's that says nothing of the other side
            with self._alone("fetch"):
                self._run(command, env=secret, timeout=timeout)
        except GitError as error:
            raise fetch_error(command[len(options) :], error.stderr, error.returncode) from None

    @contextlib.contextmanager
    def _alone(self, what: str) -> Iterator[None]:
        """One process or thread at a time does this in this repository; the others wait."""
        with (self.path / f"graft-{what}.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def remote_refs(
        self, url: str, patterns: Sequence[str] = (), *, token: str | None = None, timeout: float = 120
    ) -> dict[str, str]:
        """The refs of another repository by name; `HEAD` is given as the name of the branch that it stands for."""
        options, secret = credentials(url, token)
        command = [*options, "ls-remote", "--quiet", "--symref", "--end-of-options", url, *patterns]
        try:
            done = self._run(command, env=secret, timeout=timeout)
        except GitError as error:
            raise fetch_error(command[len(options) :], error.stderr, error.returncode) from None
        refs: dict[str, str] = {}
        for line in text(done).splitlines():
            value, _, name = line.partition("\t")
            if value.startswith("ref: "):
                refs[name] = value.removeprefix("ref: ")
            else:
                refs.setdefault(name, value)
        return refs

    def push(
        self, url: str, sha: str, ref: str, *, expected: str | None, token: str | None = None, timeout: float = 600
    ) -> None:
        """Set another repository's `ref` to `sha` (empty: delete it) if it stands at `expected` (None: it isn't there).

        Raises PushRejected, nothing written then.
        """
        name = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
        options, secret = credentials(url, token)
        command = [
            *options,
            "push",
            "--quiet",
            "--porcelain",
            "--no-verify",
            f"--force-with-lease={name}:{expected or ''}",
            "--end-of-options",
            url,
            f"{sha}:{name}",
        ]
        done = run(command, env=self._env | secret, cwd=self.path, ok=range(256), timeout=timeout)
        if done.returncode != 0:
            said = text(done.stderr + b"\n" + done.stdout)
            raise push_error(command[len(options) :], said, done.returncode)
