"""The runner's credentials out of reach of the suites: not even /proc shows the environment that it was started with.

A program's first environment stays readable to all processes of its user for as long as it lives. So a runner with
credentials in it starts itself once more without them, and takes them over through a file that only it has open. That
file, and the memory into which they are read, the kernel then shows to nobody but root.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import re
import sys
from collections.abc import Mapping

log = logging.getLogger("graft.runner")

_FILE = "GRAFT_HIDDEN_FD"
_SET_DUMPABLE = 4  # PR_SET_DUMPABLE of prctl(2)
_NAME = re.compile(r"TOKEN(?!.*_FILE$)|SECRET|PASSW|CREDENTIAL|PRIVATE|(?:API|ACCESS|_)KEY|COOKIE", re.IGNORECASE)
_VALUE = re.compile(r"://[^/\s:@]*:[^/\s@]+@")


def secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an environment looks like a credential, by its name or as an address with a password."""
    return {name: value for name, value in environment.items() if _NAME.search(name) or _VALUE.search(value)}


def hide() -> None:
    """Take over what the first start handed on; or start once more, with the very same arguments, if there is something
    to hide. Does nothing where there is no /proc to read it from. What the kernel refuses is said once, as a warning.
    """
    refused = _shut()
    handed = os.environ.pop(_FILE, None)
    secret = secret_variables(os.environ)
    if handed is not None:
        with os.fdopen(int(handed), "rb") as file:
            os.environ.update(json.loads(file.read()))
    if handed is not None or not secret or not sys.platform.startswith("linux"):
        if refused:
            log.warning(
                "the kernel refuses to close this process to others of its user (%s): a suite that runs as the same "
                "user may read the runner's memory, and its token in it",
                refused,
            )
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


def _shut() -> str:
    """Let no other process of this user look into this one: not into its memory, descriptors or environment; gives why
    the kernel refuses, "" where it does not.

    It writes no core file then either. Programs that it starts are not concerned: each begins open.
    """
    if not sys.platform.startswith("linux"):
        return ""
    kernel = ctypes.CDLL(None, use_errno=True)
    done = kernel.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    return "" if done == 0 else os.strerror(ctypes.get_errno())
