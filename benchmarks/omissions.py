"""Graft's verdicts on the omission cases and their score: `python benchmarks/omissions.py [TRIAGE_FOLDER] [--errors]`.

The folder (default ../shared/triage) holds `omissions/CASE/` and `omissions.json` with the right answers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from bot.cli.judge import judge_case


def main() -> int:
    """Judge every case, print the score as JSON; 1 where a verdict is green over an omission or a failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "triage")
    parser.add_argument("--errors", action="store_true", help="print each case that differs")
    parser.add_argument("--predictions", type=Path, help="write the predictions there, for score_omissions.py")
    options = parser.parse_args()
    gold = json.loads((options.folder / "omissions.json").read_text())
    started = time.perf_counter()
    answers = {}
    for name in gold:
        judgement = judge_case(options.folder / "omissions" / name)
        answers[name] = {"verdict": judgement.verdict.value, "missing": sorted(judgement.missing)}
    seconds = time.perf_counter() - started
    if options.predictions:
        options.predictions.write_text(json.dumps(answers))
    wrong = [name for name, right in gold.items() if answers[name]["verdict"] != right["verdict"]]
    inexact = [name for name, right in gold.items() if answers[name]["missing"] != sorted(right["missing"])]
    green = [name for name in wrong if answers[name]["verdict"] == "passed"]
    alarms = [
        name
        for name, right in gold.items()
        if right["legit_change"] and (answers[name]["missing"] or answers[name]["verdict"] != "passed")
    ]
    score = {
        "cases": len(gold),
        "verdict_right": round(1 - len(wrong) / len(gold), 4),
        "missing_exact": round(1 - len(inexact) / len(gold), 4),
        "green_over_omission": sum(gold[name]["verdict"] == "omitted" for name in green),
        "green_over_failure": sum(gold[name]["verdict"] == "failed" for name in green),
        "false_alarms_on_legit_changes": len(alarms),
        "seconds": round(seconds, 3),
    }
    print(json.dumps(score, indent=1))
    if options.errors:
        for name in dict.fromkeys([*wrong, *inexact]):
            right = gold[name]
            print(
                f"{name}: want {right['verdict']} ({len(right['missing'])}), got {answers[name]['verdict']}"
                f" ({len(answers[name]['missing'])}): {right['why']}"
            )
    return 1 if green else 0


if __name__ == "__main__":
    sys.exit(main())
