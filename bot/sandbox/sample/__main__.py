"""`python -m bot.sandbox.sample DIR`: writes the pair, to be looked at."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from bot.sandbox.sample import build


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bot.sandbox.sample", description="Write the sample pair.")
    parser.add_argument("folder", type=Path, help="where upstream.git and fork.git are written")
    parser.add_argument("--stage", type=int, default=2, choices=[1, 2], help="where upstream's main stands")
    parser.add_argument("--json", action="store_true", help="print the commits by role")
    options = parser.parse_args(argv)
    try:
        sample = build(options.folder, stage=options.stage - 1)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if options.json:
        facts = {
            "upstream": str(sample.upstream),
            "fork": str(sample.fork),
            "base": sample.base,
            "upstream_tip": sample.upstream_tip,
            "fork_tip": sample.fork_tip,
            "roles": sample.roles,
            "fork_roles": sample.fork_roles,
        }
        sys.stdout.write(json.dumps(facts, indent=2) + "\n")
    else:
        sys.stdout.write(f"{sample.upstream}\n{sample.fork}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
