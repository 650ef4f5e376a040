"""Git, by the git of this machine: bare mirrors, picks in memory, pushes with a lease. Decides nothing."""

from __future__ import annotations

from bot.clients.git.errors import FetchError, GitError, ObjectMissing, PushRejected
from bot.clients.git.picks import Merge
from bot.clients.git.process import EMPTY_TREE
from bot.clients.git.repository import Git
from bot.clients.git.values import ZERO, ConflictFile, FileChange, PickResult, TreeEntry

__all__ = [
    "EMPTY_TREE",
    "ZERO",
    "ConflictFile",
    "FetchError",
    "FileChange",
    "Git",
    "GitError",
    "Merge",
    "ObjectMissing",
    "PickResult",
    "PushRejected",
    "TreeEntry",
]
