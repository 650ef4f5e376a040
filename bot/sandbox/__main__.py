"""The sandbox as a process of its own: `python -m bot.sandbox --root DIR --port N`."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any


def main() -> int:
    """Serve until SIGINT or SIGTERM; 2 where it can't start."""
    parser = argparse.ArgumentParser(prog="python -m bot.sandbox", description="A GitHub on loopback.")
    parser.add_argument("--root", type=Path, help="folder for the git repositories (default: a fresh temporary one)")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument(
        "--world", type=Path, help="JSON that says what to set up: {users, orgs, teams, repositories, apps, protect}"
    )
    parser.add_argument("--json", action="store_true", help="print address, Apps and tokens as JSON")
    options = parser.parse_args()
    root = options.root or Path(tempfile.mkdtemp(prefix="sandbox-"))
    try:
        wanted = json.loads(options.world.read_text()) if options.world is not None else {}
        return asyncio.run(_serve(root, options.port, wanted, as_json=options.json))
    except (OSError, ValueError, LookupError) as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 2


async def _serve(root: Path, port: int, wanted: dict[str, Any], *, as_json: bool) -> int:
    from bot.sandbox.driver import Sandbox
    from bot.sandbox.setup import set_up

    sandbox = Sandbox(root)
    await sandbox.start(port)
    try:
        made = set_up(sandbox, wanted)
        if as_json:
            print(json.dumps({"url": sandbox.url, "api": sandbox.api_url, "root": str(root), **made}), flush=True)
        else:
            print(f"sandbox: {sandbox.url} (API {sandbox.api_url}, repositories below {root})", flush=True)
        stopped = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
        await stopped.wait()
    finally:
        await sandbox.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
