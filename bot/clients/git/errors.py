"""What git refused, sorted so that a caller can branch on it: the kind says who has to mend what."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

FetchKind = Literal["auth", "missing", "network", "moved"]
PushKind = Literal["stale_lease", "workflow_permission", "protected", "auth", "other"]


class GitError(Exception):
    """A git command failed; `stderr` is what it said, without any credential (none is ever given on the line)."""

    def __init__(self, command: Sequence[str], stderr: str, returncode: int) -> None:
        self.command = tuple(command)
        self.stderr = stderr.strip()
        self.returncode = returncode
        super().__init__(
            f"`git {' '.join(self.command[:4])}` ended with {returncode}: {self.stderr or 'it said nothing'}"
        )


class ObjectMissing(GitError):
    """An object that was asked for is not in the repository."""


class FetchError(GitError):
    """A repository could not be read: `auth`, `missing` (it, or the branch), `moved` (history rewritten), `network`."""

    def __init__(self, kind: FetchKind, stderr: str, command: Sequence[str] = ("fetch",), returncode: int = 1) -> None:
        super().__init__(command, stderr, returncode)
        self.kind: FetchKind = kind


class PushRejected(GitError):
    """The other side refused the push: `stale_lease` (somebody pushed), `workflow_permission` (the App may not update
    workflow files), `protected` (a rule on the branch), `auth`, or `other`.
    """

    def __init__(self, kind: PushKind, stderr: str, command: Sequence[str] = ("push",), returncode: int = 1) -> None:
        super().__init__(command, stderr, returncode)
        self.kind: PushKind = kind


_FETCH: tuple[tuple[FetchKind, re.Pattern[str]], ...] = (
    ("moved", re.compile(r"non-fast-forward|\[rejected\]|forced update", re.I)),
    (
        "missing",
        re.compile(
            r"couldn't find remote ref|repository .* not found|repository not found|returned error: 404"
            r"|does not appear to be a git repository|no such remote ref|not our ref",
            re.I,
        ),
    ),
    (
        "auth",
        re.compile(
            r"authentication failed|could not read (username|password)|returned error: 40[13]"
            r"|permission denied|access denied|terminal prompts disabled",
            re.I,
        ),
    ),
)
_PUSH: tuple[tuple[PushKind, re.Pattern[str]], ...] = (
    ("workflow_permission", re.compile(r"refusing to allow .*workflow|without `?workflows?`? permission", re.I | re.S)),
    ("stale_lease", re.compile(r"stale info|fetch first|cannot lock ref|remote ref updated since", re.I)),
    ("protected", re.compile(r"protected branch|GH006|GH013|repository rule violations|hook declined", re.I)),
    (
        "auth",
        re.compile(
            r"authentication failed|could not read (username|password)|returned error: 40[13]|permission .* denied"
            r"|write access to repository not granted",
            re.I,
        ),
    ),
)


def fetch_error(command: Sequence[str], stderr: str, returncode: int) -> FetchError:
    """Sort what a failed fetch said; what is not known counts as the network's doing, which is retried."""
    kind: FetchKind = next((kind for kind, pattern in _FETCH if pattern.search(stderr)), "network")
    return FetchError(kind, stderr, command, returncode)


def push_error(command: Sequence[str], text: str, returncode: int) -> PushRejected:
    """Sort what a failed push said, on both of its outputs."""
    kind: PushKind = next((kind for kind, pattern in _PUSH if pattern.search(text)), "other")
    return PushRejected(kind, text, command, returncode)
