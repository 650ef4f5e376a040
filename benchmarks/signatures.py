"""Graft's signatures on labelled failures and their score: `python benchmarks/signatures.py [FOLDER] [--cases FILE]`.

The folder (default ../shared/triage) holds `failures.json` and `score_signatures.py`, whose figures are printed. Other
cases of the same form, as tests/data/signature-apart.json (with a `set` in each, of which `--set` takes one), may stand
in their place.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bot.core.signature import signature


def main() -> int:
    """Sign every case, print the scorer's figures; 1 where code was called infra."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "triage")
    parser.add_argument("--cases", type=Path, help="a file with other cases")
    parser.add_argument("--set", help="only the cases of this set")
    parser.add_argument("--families", help="only these families, by commas; `-a,b` all but these")
    parser.add_argument("--errors", action="store_true", help="list what was merged, split or misnamed")
    options = parser.parse_args()
    file = options.cases or options.folder / "failures.json"
    cases: list[dict[str, Any]] = json.loads(file.read_text())["cases"]
    cases = [case for case in cases if options.set in (None, case.get("set"))]
    if options.families:
        named = set(options.families.lstrip("-").split(","))
        cases = [case for case in cases if (case["family"] in named) != options.families.startswith("-")]
    started = time.perf_counter()
    signed = {case["id"]: signature(case["text"], case["test"]) for case in cases}
    seconds = time.perf_counter() - started
    answers = {name: {"signature": one.key, "class": one.cls} for name, one in signed.items()}
    with tempfile.TemporaryDirectory() as folder:
        right, given = Path(folder, "cases.json"), Path(folder, "predictions.json")
        right.write_text(json.dumps({"cases": cases}))
        given.write_text(json.dumps(answers))
        scorer = options.folder / "score_signatures.py"
        command = [sys.executable, str(scorer), str(right), str(given)]
        print(
            subprocess.run(
                [*command, *(["--errors"] if options.errors else [])], check=True, capture_output=True, text=True
            ).stdout
        )
    print(f"{seconds / max(len(cases), 1) * 1e6:.0f} microseconds a case")
    return int(any(case["class"] == "code" and answers[case["id"]]["class"] == "infra" for case in cases))


if __name__ == "__main__":
    raise SystemExit(main())
