"""Clean work trees: the commit fetched into a local object cache, a tree for each run, a build kept for each commit."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.core.validation import RunRequest
from runners.process import captured
from runners.relay import GIT_OPTIONS, relay

_GIT_SECONDS = 900.0
_LEFT_SECONDS = 86_400.0


class SourceError(Exception):
    """The source could not be fetched or checked out: the machine's or the network's affair."""


class Workspace:
    """The runner's folder: `objects` (bare repositories), `trees`, `builds`, `caches` (of one commit each), `runs`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("objects", "trees", "builds", "caches", "runs"):
            (root / name).mkdir(parents=True, exist_ok=True)

    def run_path(self, request: RunRequest) -> Path:
        """The folder of one attempt."""
        return self.root / "runs" / f"{request.run_id}-{request.attempt}"

    def run_folder(self, request: RunRequest) -> Path:
        """The folder of one attempt, made empty but for one for its results."""
        folder = self.run_path(request)
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "results").mkdir(parents=True)
        return folder

    def cache_folder(self, request: RunRequest) -> Path:
        """Compiler caches of one commit."""
        return self.root / "caches" / _safe(request.repository) / request.commit

    def build_key(self, request: RunRequest) -> str:
        """What a build depends on: repository, commit, command and its variables."""
        parts = [request.repository, request.commit, list(request.suite.build), sorted(request.suite.env.items())]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    async def fetch(self, request: RunRequest, *, url: str, token: str | None) -> Path:
        """Bring the commit into the object cache and give its bare repository. Raises SourceError."""
        bare = self.root / "objects" / f"{_safe(request.repository)}.git"
        async with _locked(bare.with_suffix(".lock")):
            if not (bare / "HEAD").is_file():
                await git("init", "--quiet", "--bare", str(bare))
            if not await _holds(bare, request.commit):
                if token is None:
                    await _fetch(bare, request.commit, url)
                else:
                    await _fetch_by_relay(bare, request.commit, url, token)
                if not await _holds(bare, request.commit):
                    raise SourceError(f"{request.commit} is not in what the bot gave for {request.repository}")
        return bare

    @asynccontextmanager
    async def tree(self, request: RunRequest, bare: Path) -> AsyncIterator[tuple[Path, bool]]:
        """A clean tree of the commit for one run, and whether it is built already; gone afterwards.

        A build's paths may be baked into what it makes, so a built tree stays where it was built: it is put back from
        the snapshot that `keep_build` made. One run at a time uses it.
        """
        if not request.suite.build:
            place = self.root / "trees" / f"{request.run_id}-{request.attempt}"
            await asyncio.to_thread(shutil.rmtree, place, True)
            try:
                await checkout(bare, request.commit, place)
                yield place, False
            finally:
                await asyncio.to_thread(shutil.rmtree, place, True)
            return
        folder = self.root / "builds" / self.build_key(request)
        folder.mkdir(parents=True, exist_ok=True)
        place, snapshot = folder / "src", folder / "snapshot"
        async with _locked(folder / "lock"):
            await asyncio.to_thread(shutil.rmtree, place, True)
            built = (folder / "built").is_file()
            if built:
                await _copy(snapshot, place)
                os.utime(folder)
            else:
                await asyncio.to_thread(shutil.rmtree, snapshot, True)
                await checkout(bare, request.commit, place)
            try:
                yield place, built
            finally:
                await asyncio.to_thread(shutil.rmtree, place, True)

    async def keep_build(self, request: RunRequest, place: Path) -> None:
        """Keep a tree that has just been built, for further runs of this commit."""
        folder = self.root / "builds" / self.build_key(request)
        await _copy(place, folder / "snapshot")
        (folder / "built").touch()

    def prune(self, *, keep: int, busy: frozenset[str] = frozenset(), now: float | None = None) -> int:
        """Drop all but the newest `keep` builds and compiler caches, and what runs left a day ago; gives how many.

        Builds in use and caches of the commits `busy` stay.
        """
        now = time.time() if now is None else now
        caches = [path for path in (self.root / "caches").glob("*/*") if path.name not in busy]
        gone = sorted((self.root / "builds").iterdir(), key=_age, reverse=True)[keep:]
        gone += sorted(caches, key=_age, reverse=True)[keep:]
        left = (*(self.root / "runs").iterdir(), *(self.root / "trees").iterdir())
        gone += [path for path in left if now - _age(path) > _LEFT_SECONDS]
        return sum(self.drop(path) for path in gone)

    def disposable(self, busy: frozenset[str]) -> list[Path]:
        """Builds, and caches of other commits than `busy`, the oldest first."""
        caches = (path for path in (self.root / "caches").glob("*/*") if path.name not in busy)
        return sorted([*(self.root / "builds").iterdir(), *caches], key=_age)

    def drop(self, path: Path) -> bool:
        """Drop a build, cache, tree or folder of a run; False where it is a build in use."""
        if path.parent.name != "builds":
            shutil.rmtree(path, ignore_errors=True)
            return True
        try:
            handle = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    async def trim_objects(self, busy: frozenset[str], *, keep: int = 50) -> None:
        """Forget all fetched commits but the newest `keep` and `busy`, and pack what is left."""
        for bare in sorted((self.root / "objects").glob("*.git")):
            async with _locked(bare.with_suffix(".lock")):
                listing = await git("-C", str(bare), "for-each-ref", "--sort=-creatordate", "--format=%(refname)")
                old = [name for name in listing.split() if name.rpartition("/")[2] not in busy][keep:]
                for name in old:
                    await git("-C", str(bare), "update-ref", "-d", name)
                await git("-C", str(bare), "gc", "--quiet", "--prune=now")


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _safe(repository: str) -> str:
    return repository.replace("/", "+")


async def checkout(bare: Path, commit: str, place: Path) -> None:
    """A tree of the commit with a repository of its own that borrows objects; no remote, no credential in it."""
    await git("clone", "--quiet", "--shared", "--no-checkout", str(bare), str(place))
    await git("-C", str(place), "remote", "remove", "origin")
    await git("-C", str(place), "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit)
    head = (await git("-C", str(place), "rev-parse", "HEAD")).strip()
    if head != commit:
        raise SourceError(f"checked out {head}, wanted {commit}")


async def git(*argv: str) -> str:
    """Run git without the user's and the system's configuration; raises SourceError with what it says."""
    base = {name: os.environ[name] for name in ("PATH", "TMPDIR", "SSL_CERT_FILE", "LANG") if name in os.environ}
    base |= {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": os.devnull,
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    try:
        ended = await captured("git", *argv, env=base, seconds=_GIT_SECONDS)
    except TimeoutError:
        raise SourceError(f"git {argv[0]} took longer than {_GIT_SECONDS:g} s") from None
    if ended.exit_code != 0:
        verb = next((word for word in argv if not word.startswith(("-", "/")) and "=" not in word), argv[0])
        raise SourceError(f"git {verb} failed: {ended.errors.strip()[-600:]}")
    return ended.output


async def _fetch(bare: Path, commit: str, url: str) -> None:
    await git(
        "-C", str(bare), *GIT_OPTIONS, "fetch", "--quiet", "--no-tags", url, f"+{commit}:refs/graft/{commit}"
    )  # fmt: skip


async def _fetch_by_relay(bare: Path, commit: str, url: str, token: str) -> None:
    """The token stays in this process."""
    async with relay(url, token) as way:
        try:
            await _fetch(bare, commit, way.url)
        except SourceError as error:
            said = str(error).replace(way.url, url)
            raise SourceError(f"{said}; {way.trouble}" if way.trouble else said) from None


async def _holds(bare: Path, commit: str) -> bool:
    try:
        await git("-C", str(bare), "cat-file", "-e", f"{commit}^{{tree}}")
    except SourceError:
        return False
    return True


async def _copy(source: Path, target: Path) -> None:
    await asyncio.to_thread(shutil.rmtree, target, True)
    ended = await captured("cp", "-a", "--reflink=auto", str(source), str(target))
    if ended.exit_code != 0:
        raise SourceError(f"can't copy {source.name}: {ended.errors.strip()[-300:]}")


@asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    """Hold a lock that other runners on this machine respect too."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            await _flock(handle)
            if _is(path, handle):
                yield
                return
        finally:
            os.close(handle)


async def _flock(handle: int) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(0.1)
        else:
            return


def _is(path: Path, handle: int) -> bool:
    """Whether the lock held is that of the path still: its folder may have been dropped meanwhile."""
    try:
        return path.stat().st_ino == os.fstat(handle).st_ino
    except OSError:
        return False
