"""The two sides that `plan` and `ledger` look at: their options, where their histories come from, the fork's file."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.terminal import say

if TYPE_CHECKING:
    from bot.cli.pair import Pair
    from bot.clients.git import Git
    from bot.core.config import Config

CONFIG_PATH = ".github/graft.yml"
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://|^[\w.-]+@[\w.-]+:", re.IGNORECASE)

UPSTREAM = typer.Option("--upstream", help="Upstream: the path of a clone (bare or not), or a URL.", show_default=False)
FORK = typer.Option("--fork", help="The fork: the path of a clone, or a URL.", show_default=False)
Upstream = Annotated[str, UPSTREAM]
Fork = Annotated[str, FORK]
UpstreamRef = Annotated[str | None, typer.Option(help="Upstream's branch or commit; its HEAD by default.")]
ForkRef = Annotated[str | None, typer.Option(help="The fork's branch or commit; its HEAD by default.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help=f"The fork's file; {CONFIG_PATH} of its tip by default.")
]
Marker = Annotated[
    list[str] | None, typer.Option(help="A pattern with (?P<sha>…) by which older picks were recorded; may repeat.")
]


class SideError(ValueError):
    """A side that can't be read: what, where, how to mend it."""


def kept_folder() -> Path:
    """Where what was read and fetched is kept, if the caller names no other folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graft"


@contextmanager
def opened(
    upstream: str, fork: str, upstream_ref: str | None, fork_ref: str | None, folder: Path | None = None
) -> Iterator[Pair]:
    """Both histories in one throw-away repository; what is told as a URL is fetched into `folder`. Raises SideError."""
    from bot.cli.pair import open_pair

    kept = folder or kept_folder()
    sides = (_local(upstream, kept), _local(fork, kept))
    with open_pair(*sides, upstream_ref=upstream_ref, fork_ref=fork_ref) as pair:
        yield pair


def settings_of(git: Git, tip: str, path: Path | None, markers: list[str]) -> Config:
    """The fork's file (`path`, else that of its `tip`), and the markers named besides; without a file, defaults."""
    from bot.core.config import Config, load

    text = path.read_bytes() if path is not None else git.read_file(tip, CONFIG_PATH)
    plain = Config.of({"upstream": {"repository": "upstream/upstream"}})
    return with_markers(load(text.decode("utf-8", "replace")) if text is not None else plain, markers)


def with_markers(config: Config, markers: list[str]) -> Config:
    """The same, with these markers beside its own."""
    ingest = config.ingest.model_copy(update={"picked_markers": (*config.ingest.picked_markers, *markers)})
    return config.model_copy(update={"ingest": ingest})


def _local(where: str, folder: Path) -> Path:
    """The path of a repository; what is told as a URL is fetched into a mirror that is kept for the next time."""
    if not _URL.match(where):
        path = Path(where).expanduser()
        if not path.exists():
            raise SideError(f"{where} is not there: give the path of a clone, or a URL such as https://github.com/o/r")
        return path
    from bot.clients.git import Git

    path = folder / "mirrors" / f"{hashlib.sha256(where.encode()).hexdigest()[:16]}.git"
    with Git.open_mirror(path) as git:
        say(f"fetching {where}", err=True)
        refs = git.remote_refs(where)
        git.fetch(where, ["+refs/heads/*:refs/heads/*"])
        head = refs.get("HEAD", "")
        if head.startswith("refs/heads/"):
            git.set_head(head)
    return path
