"""Score the search as shared/perf does: `python benchmarks/bisect_score.py [FOLDER] [--seed 2] [--per 20]`.

The folder (default ../shared/perf) holds `gen_bisect.py` and `score_bisect.py`; numpy and scipy are needed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Make the cases, run the policy on them, print the scorer's figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "perf")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--per", type=int, default=20, help="cases of each class")
    parser.add_argument("--only", help="only classes that begin so")
    options = parser.parse_args()
    policy = Path(__file__).with_name("bisect_policy.py")
    with tempfile.TemporaryDirectory() as folder:
        cases = str(Path(folder, "cases.json"))
        make = [str(options.folder / "gen_bisect.py"), cases, "--seed", str(options.seed), "--per", str(options.per)]
        subprocess.run([sys.executable, *make], check=True)
        only = ["--only", options.only] if options.only else []
        score = [str(options.folder / "score_bisect.py"), cases, "--max-runs", "300", *only]
        return subprocess.run([sys.executable, *score, "--", sys.executable, str(policy)], check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
