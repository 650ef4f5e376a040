"""Real servers for tests: PostgreSQL from the system's binaries, on a free port, gone at the end."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bot.sandbox.processes import free_port


def wait_for_port(port: int, process: subprocess.Popen[Any], seconds: float = 30) -> None:
    """Wait until someone listens; RuntimeError where the process ends or time is up."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"nobody listens on port {port}")


def postgres_binaries() -> Path | None:
    """Where initdb and postgres are, or None."""
    folders = [Path(found) for found in sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin")), reverse=True)]
    if config := shutil.which("pg_config"):
        said = subprocess.run([config, "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(said.stdout.strip()))
    if initdb := shutil.which("initdb"):
        folders.append(Path(initdb).resolve().parent)
    return next((one for one in folders if (one / "initdb").exists() and (one / "postgres").exists()), None)


class Postgres:
    """A PostgreSQL server of its own; it refuses to run as root, so root hands it to another user."""

    def __init__(self, binaries: Path) -> None:
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="graft-postgres-"))
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            known = {one.pw_name: one for one in pwd.getpwall()}
            other = known.get("postgres") or known["nobody"]
            os.chown(self.folder, other.pw_uid, other.pw_gid)
            self._as = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
        data = self.folder / "data"
        make = [str(binaries / "initdb"), "-D", str(data), "-U", "graft", "-A", "trust", "--no-sync", "--locale=C"]
        subprocess.run(make, check=True, capture_output=True, cwd=self.folder, **self._as)
        settings = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "200",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [binaries / "postgres", "-D", data, "-p", str(self.port), *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                **self._as,
            )
        wait_for_port(self.port, self.process)

    def url(self, name: str) -> str:
        """The address of one of its databases."""
        return f"postgresql://graft@127.0.0.1:{self.port}/{name}"

    def close(self) -> None:
        """Stop at once and remove all."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(10)
        shutil.rmtree(self.folder, ignore_errors=True)
