"""The runner's credentials out of reach of the suites: not even /proc shows the environment that it was started with.

A program's first environment stays readable to all processes of its user for as long as it lives. So a runner with
credentials in it starts itself once more without them, and takes them over through a file that only it has open.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping

_FILE = "GRAFT_HIDDEN_FD"
_NAME = re.compile(r"TOKEN(?!.*_FILE$)|SECRET|PASSW|CREDENTIAL|PRIVATE|(?:API|ACCESS|_)KEY|COOKIE", re.IGNORECASE)
_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment looks like a credential, by its name or as an address with a password."""
    return {name: value for name, value in environment.items() if _NAME.search(name) or _VALUE.search(value)}


def hide() -> None:
    """Take over what the first start handed on; or start once more, with the very same arguments, if there is something
    to hide. Does nothing where there is no /proc to read it from.
    """
    handed = os.environ.pop(_FILE, None)
    if handed is not None:
        with os.fdopen(int(handed), "rb") as file:
            os.environ.update(json.loads(file.read()))
        return
    secret = secret_variables(os.environ)
    if not secret or not sys.platform.startswith("linux"):
        return
    number = os.memfd_create("graft", 0)
    with os.fdopen(os.dup(number), "wb") as file:
        file.write(json.dumps(secret).encode())
    os.lseek(number, 0, os.SEEK_SET)
    os.set_inheritable(number, True)
    left = {name: value for name, value in os.environ.items() if name not in secret}
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**left, _FILE: str(number)})  # noqa: S606
