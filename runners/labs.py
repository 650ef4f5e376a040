"""Credentials for outside labs: by name, from the environment or files of the runner, each for one address only."""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_VARIABLE = re.compile(r"GRAFT_LAB_([A-Z0-9][A-Z0-9_]*?)_(URL|TOKEN|TOKEN_FILE)")


@dataclass(frozen=True, slots=True)
class Credential:
    """What a runner shows to a lab: a bearer token, sent to `origin` (scheme, host and port) and nowhere else."""

    name: str
    origin: str
    token: str = field(repr=False)


def origin(url: str) -> str:
    """Scheme, host and port of an address, the usual port written out. Raises ValueError where it has none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no address of a lab: write https://host")
    return f"{parts.scheme}://{parts.hostname.lower()}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def credentials(environment: Mapping[str, str]) -> dict[str, Credential]:
    """Those of GRAFT_LAB_<NAME>_URL with GRAFT_LAB_<NAME>_TOKEN or …_TOKEN_FILE, by name in small letters with dashes.

    Raises ValueError with what to mend.
    """
    told: dict[str, dict[str, str]] = {}
    for variable, value in environment.items():
        match = _VARIABLE.fullmatch(variable)
        if match is not None:
            told.setdefault(match[1], {})[match[2]] = value.strip()
    return {name.lower().replace("_", "-"): _credential(name, parts) for name, parts in told.items()}


def take_credentials(environment: MutableMapping[str, str]) -> dict[str, Credential]:
    """As `credentials`, and out of the environment, so that nothing started later inherits them."""
    found = credentials(environment)
    for variable in [name for name in environment if _VARIABLE.fullmatch(name)]:
        del environment[variable]
    return found


def _credential(name: str, parts: Mapping[str, str]) -> Credential:
    url, token, path = (parts.get(part, "") for part in ("URL", "TOKEN", "TOKEN_FILE"))
    if not url:
        raise ValueError(f"GRAFT_LAB_{name}_URL is not set: it says which lab the token is for")
    if path:
        try:
            token = Path(path).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"GRAFT_LAB_{name}_TOKEN_FILE names {path}, which can't be read: {error}") from error
    if not token or not token.isprintable() or not token.isascii():
        raise ValueError(f"GRAFT_LAB_{name}_TOKEN or GRAFT_LAB_{name}_TOKEN_FILE has to give a token of one line")
    return Credential(name.lower().replace("_", "-"), origin(url), token)
