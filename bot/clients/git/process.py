"""Git as a child process that sees nothing of the user's: no configuration, hooks, prompt or credential store."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bot.clients.git.errors import GitError

RENAME_LIMIT = 20_000
_PLENTY = 2 << 30
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_KEPT = ("PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_EXEC_PATH", "LD_LIBRARY_PATH", "SSH_AUTH_SOCK")
_KEPT_LOWER = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
_SETTINGS = {
    "core.abbrev": "40",
    "core.hooksPath": "/dev/null",
    "core.quotePath": "false",
    "core.fsync": "none",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "merge.renameLimit": str(RENAME_LIMIT),
    "diff.renameLimit": str(RENAME_LIMIT),
    "merge.conflictStyle": "diff3",
    "merge.directoryRenames": "conflict",
    "advice.detachedHead": "false",
    "protocol.version": "2",
    "transfer.fsckObjects": "false",
    "fetch.writeCommitGraph": "false",
}
# the token is in the child's environment only; neither this line nor any file holds it
_HELPER = '!f() { test "$1" = get && printf "username=x-access-token\\npassword=%s\\n" "$GRAFT_GIT_TOKEN"; }; f'


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of every git child: little of ours, nothing of the user's configuration."""
    kept = {name: value for name, value in os.environ.items() if name in _KEPT or name.lower() in _KEPT_LOWER}
    kept |= {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/true",
        "GIT_ALLOW_PROTOCOL": "file:http:https:ssh",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "LC_ALL": "C",
        "TZ": "UTC",
    }
    settings = list(_SETTINGS.items())
    kept["GIT_CONFIG_COUNT"] = str(len(settings))
    for index, (key, value) in enumerate(settings):
        kept[f"GIT_CONFIG_KEY_{index}"] = key
        kept[f"GIT_CONFIG_VALUE_{index}"] = value
    return kept | dict(extra or {})


def fixed_settings() -> bytes:
    """The settings that every git child gets, as one text: what git answers depends on them."""
    return "\n".join(f"{name}={value}" for name, value in _SETTINGS.items()).encode()


def credentials(url: str, token: str | None) -> tuple[list[str], dict[str, str]]:
    """Options and environment that let one child answer the server of `url`, and no other, with `token`."""
    if token is None:
        return [], {}
    parts = urlsplit(url)
    host = parts.hostname or ""
    origin = f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    return ["-c", "credential.helper=", "-c", f"credential.{origin}.helper={_HELPER}"], {"GRAFT_GIT_TOKEN": token}


def run(
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    stdin: bytes | None = None,
    ok: Sequence[int] = (0,),
    timeout: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end; raises GitError where its status is not in `ok`, or it takes over `timeout` seconds."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            env=dict(env),
            cwd=cwd,
            input=stdin,
            capture_output=True,
            check=False,
            timeout=timeout,
            stdin=None if stdin is not None else subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise GitError(arguments, f"gave no answer within {timeout:.0f} s", 124) from error
    if done.returncode not in ok:
        raise GitError(arguments, text(done.stderr), done.returncode)
    return done


def roomy_folder() -> str | None:
    """Where many small files that live for minutes are best put: in memory where there is plenty, else None."""
    memory = Path("/dev/shm")  # noqa: S108 - only asked for room; what is put there has a name of its own
    try:
        room = os.statvfs(memory)
    except OSError:
        return None
    free = room.f_bavail * room.f_frsize
    return str(memory) if free >= _PLENTY and os.access(memory, os.W_OK | os.X_OK) else None


def text(raw: bytes) -> str:
    """Bytes of git's as text: paths and messages that are no UTF-8 survive a round trip."""
    return raw.decode("utf-8", "surrogateescape")
