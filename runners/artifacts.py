"""What a run leaves, kept in a folder or an S3-compatible store: no secrets, bounded, never in the report's way."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from bot.core.validation import Artifact, Report
from runners.harnesses import CANARY_FOLDER

MOST_FILES = 200
LARGEST_FILE = 512 * 1024 * 1024
LARGEST_RUN = 2 * 1024 * 1024 * 1024
KEEP_SECONDS = 600.0
_WHOLE = 32 * 1024 * 1024  # a text up to this size is searched for secrets that span lines
_STRANGE = re.compile(r"[^A-Za-z0-9._+@/-]")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class KeepError(Exception):
    """An artifact that could not be kept; the text says why."""


class Keeper(Protocol):
    """A place for artifacts."""

    async def put(self, key: str, path: Path) -> str:
        """Keep a file under a key of plain characters; gives where it is to be found. Raises KeepError."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder, a network share for example; `public` is the https address under which it can be read, if any."""

    root: Path
    public: str = ""

    async def put(self, key: str, path: Path) -> str:
        """Copy the file: whole under its name, or not at all."""
        target = self.root / key
        part = target.with_name(target.name + ".part")
        try:
            await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
            await asyncio.to_thread(shutil.copyfile, path, part)
            await asyncio.to_thread(os.replace, part, target)
        except OSError as error:
            raise KeepError(f"{type(error).__name__}: {error}") from error
        return f"{self.public}/{quote(key)}" if self.public else str(target)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of an S3-compatible store; `address` is what its objects' addresses begin with."""

    store: Any = field(repr=False)
    address: str

    async def put(self, key: str, path: Path) -> str:
        """Upload the file; what the network or the store refuses for a moment is tried again."""
        import obstore
        from obstore.exceptions import BaseError

        try:
            await obstore.put_async(self.store, key, path)
        except (BaseError, OSError) as error:
            raise KeepError(" ".join(f"{type(error).__name__}: {error}".split())[:500]) from error
        return f"{self.address}/{quote(key)}"


def keeper_of(
    target: str, *, endpoint: str = "", public: str = "", environment: Mapping[str, str] = os.environ
) -> Keeper | None:
    """The place that a setting names: a folder, or s3://bucket/prefix; None where it is empty.

    The store's key is in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (AWS_SESSION_TOKEN), or in the two lines of the
    file that GRAFT_ARTIFACTS_KEY_FILE names. Raises ValueError with what to mend.
    """
    if not target:
        return None
    if public and (urlsplit(public).scheme != "https" or not urlsplit(public).hostname):
        raise ValueError(f"the artifacts' public address {public!r} is none: write https://host/path")
    if not target.startswith("s3://"):
        if "://" in target:
            raise ValueError(f"artifacts can't go to {target!r}: write a folder, or s3://bucket/prefix")
        return Folder(Path(target).resolve(), public.rstrip("/"))
    bucket, _, prefix = target.removeprefix("s3://").partition("/")
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", bucket) or _STRANGE.search(prefix):
        raise ValueError(f"artifacts can't go to {target!r}: write s3://bucket/prefix in plain letters")
    return _bucket(bucket, prefix.strip("/"), endpoint.rstrip("/"), public.rstrip("/"), environment)


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What of the store's key must never be shown."""
    try:
        secret = _key(environment)[1]
    except ValueError:
        secret = ""
    return tuple(part for part in (secret, environment.get("AWS_SESSION_TOKEN", "")) if part)


def _bucket(bucket: str, prefix: str, endpoint: str, public: str, environment: Mapping[str, str]) -> Bucket:
    try:
        from obstore.store import S3Store
    except ImportError as error:
        raise ValueError("artifacts in an S3-compatible store need: pip install 'graft[s3]'") from error
    host = urlsplit(endpoint)
    local = host.scheme == "http" and host.hostname in _LOOPBACK
    if endpoint and host.scheme != "https" and not local:
        raise ValueError(f"the artifacts' endpoint {endpoint!r} is none: write https://host")
    key, secret = _key(environment)
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
    settings: dict[str, Any] = {"access_key_id": key, "secret_access_key": secret, "region": region}
    if environment.get("AWS_SESSION_TOKEN") and not environment.get("GRAFT_ARTIFACTS_KEY_FILE"):
        settings["session_token"] = environment["AWS_SESSION_TOKEN"]
    if endpoint:
        settings |= {"endpoint": endpoint, "virtual_hosted_style_request": False}
    store = S3Store(
        bucket,
        prefix=prefix or None,
        retry_config={"max_retries": 4, "retry_timeout": timedelta(seconds=60)},
        client_options={"allow_http": local, "timeout": "60s"},
        **settings,
    )
    plain = f"{endpoint}/{bucket}" if endpoint else f"https://{bucket}.s3.{region}.amazonaws.com"
    return Bucket(store, public or "/".join(part for part in (plain, prefix) if part))


def _key(environment: Mapping[str, str]) -> tuple[str, str]:
    path = environment.get("GRAFT_ARTIFACTS_KEY_FILE", "")
    if path:
        try:
            lines = [line.strip() for line in Path(path).read_text("utf-8").splitlines() if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"GRAFT_ARTIFACTS_KEY_FILE names {path}, which can't be read: {error}") from error
        if len(lines) != 2:
            raise ValueError(f"GRAFT_ARTIFACTS_KEY_FILE names {path}: its two lines are the key's id and its secret")
        return lines[0], lines[1]
    key, secret = (environment.get(name, "") for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    if not key or not secret:
        names = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or GRAFT_ARTIFACTS_KEY_FILE"
        raise ValueError(f"artifacts go to a store and there is no key for it: set {names}")
    return key, secret


def artifacts_in(folder: Path) -> tuple[list[tuple[Artifact, Path]], str]:
    """The files that a run left, with size and digest, and what was left out; a stand-in's own files are none."""
    found: list[tuple[Artifact, Path]] = []
    large = surplus = total = 0
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        name = path.relative_to(folder)
        if path.is_symlink() or not path.is_file() or name.parts[0] == CANARY_FOLDER:
            continue
        size = path.stat().st_size
        if size > LARGEST_FILE or total + size > LARGEST_RUN:
            large += 1
        elif len(found) >= MOST_FILES:
            surplus += 1
        else:
            total += size
            found.append((Artifact(name=name.as_posix(), size=size, sha256=_digest(path)), path))
    left = [f"{large} too large" if large else "", f"{surplus} beyond the first {MOST_FILES}" if surplus else ""]
    return found, ", ".join(part for part in left if part)


async def keep(
    report: Report, folder: Path, keeper: Keeper, *, redact: Callable[[str], str], seconds: float = KEEP_SECONDS
) -> Report:
    """The report with where its artifacts are kept; what could not be kept is said in its reason, and nothing else."""
    await asyncio.to_thread(redact_files, folder, redact)
    found, left_out = await asyncio.to_thread(artifacts_in, folder)
    ends = asyncio.get_running_loop().time() + seconds
    kept, lost, why = [], 0, ""
    taken: set[str] = set()
    for artifact, path in found:
        place = f"{report.subject.repository}/{report.run_id}/{report.attempt}/{_plain(artifact.name, taken)}"
        try:
            async with asyncio.timeout_at(ends):
                kept.append(artifact.model_copy(update={"url": await keeper.put(place, path)}))
        except (KeepError, TimeoutError) as error:
            kept.append(artifact)
            lost, why = lost + 1, why or redact(str(error) or f"not done within {seconds:g} s")
    said = [
        report.reason,
        f"{lost} of {len(found)} artifacts were not kept: {why}" if lost else "",
        f"artifacts left out: {left_out}" if left_out else "",
    ]
    reason = "; ".join(part for part in said if part)[:2000]
    return report.model_copy(update={"artifacts": tuple(kept), "reason": reason})


def redact_files(folder: Path, redact: Callable[[str], str]) -> None:
    """Strike secrets out of every text below the folder, in place."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            _redact_file(path, redact)


def _redact_file(path: Path, redact: Callable[[str], str]) -> None:
    with path.open("rb") as file:
        if b"\0" in file.read(8192):
            return
    if path.stat().st_size <= _WHOLE:
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        clean = redact(text)
        if clean != text:
            path.write_bytes(clean.encode("utf-8", "surrogateescape"))
        return
    part = path.with_name(path.name + ".redacted")
    with path.open("rb") as source, part.open("wb") as target:
        while line := source.readline(_WHOLE):
            target.write(redact(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"))
    part.replace(path)


def _plain(name: str, taken: set[str]) -> str:
    """The name in characters that every store and address takes, unlike the others."""
    plain = "/".join(part for part in _STRANGE.sub("_", name).split("/") if part not in ("", ".", "..")) or "_"
    unique, number = plain, 1
    while unique in taken:
        number += 1
        unique = f"{plain}.{number}"
    taken.add(unique)
    return unique


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
