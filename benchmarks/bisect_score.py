"""Score the search as shared/perf does: `python benchmarks/bisect_score.py [FOLDER] [--seed 2] [--per 20]`.

The folder (default ../shared/perf) holds `gen_bisect.py` and `score_bisect.py`; numpy and scipy are needed. Below the
scorer's figures stand the mean runs as multiples of the information floor, log2(n) over what one run can tell, and how
many of the answers that were stated with so much confidence were right.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

_BANDS = (0.99, 0.995, 0.997, 0.998, 0.999)


def main() -> int:
    """Make the cases, run the policy on them, print the scorer's figures and the multiples of the floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parents[2] / "shared" / "perf")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--per", type=int, default=20, help="cases of each class")
    parser.add_argument("--only", help="only classes that begin so")
    options = parser.parse_args()
    policy = Path(__file__).with_name("bisect_policy.py")
    with tempfile.TemporaryDirectory() as folder:
        cases, figures = Path(folder, "cases.json"), Path(folder, "figures.json")
        make = [str(options.folder / "gen_bisect.py"), str(cases)]
        make += ["--seed", str(options.seed), "--per", str(options.per)]
        subprocess.run([sys.executable, *make], check=True)
        only = ["--only", options.only] if options.only else []
        score = [str(options.folder / "score_bisect.py"), str(cases), "--max-runs", "300", *only]
        told = Path(folder, "told.jsonl")
        command = [sys.executable, *score, "--json", str(figures), "--", sys.executable, str(policy), str(told)]
        if (status := subprocess.run(command, check=False).returncode) != 0:
            return status
        made = json.loads(cases.read_text())
        _tell(made, json.loads(figures.read_text()))
        calibrated(made, [json.loads(line) for line in told.read_text().splitlines()])
    return 0


def floor(n: int, false_fail: float, false_pass: float) -> float:
    """The fewest runs, on average, that can tell `n` commits apart with these flake rates (0..1, sum below 1)."""
    return math.log2(n) / bits(false_fail, false_pass)


@lru_cache(maxsize=256)
def bits(false_fail: float, false_pass: float) -> float:
    """The most that one run can tell: the capacity of a channel that lies with these rates, in bits."""
    best = 0.0
    for step in range(1, 1000):
        bad = step / 1000
        fails = bad * (1 - false_pass) + (1 - bad) * false_fail
        best = max(best, _entropy(fails) - bad * _entropy(false_pass) - (1 - bad) * _entropy(false_fail))
    return best


def _entropy(p: float) -> float:
    return 0.0 if p <= 0 or p >= 1 else -(p * math.log2(p) + (1 - p) * math.log2(1 - p))


def _tell(cases: list[dict[str, Any]], figures: dict[str, dict[str, float]]) -> None:
    floors: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        if case["mode"] == "passfail" and case["culprit"] and case["cls"] in figures:
            floors[case["cls"]].append(floor(case["n"], case["fp"], case["fn"]))
    groups = {"flaky, rates told": "/told", "flaky, rates unknown or wrong": "/untold /wrong", "bundles": "bundle/"}
    print("\nruns as multiples of the information floor")
    for name, words in groups.items():
        chosen = [cls for cls in floors if any(word in cls for word in words.split()) and "clean" not in cls]
        runs = sum(figures[cls]["runs"] * len(floors[cls]) for cls in chosen)
        if chosen:
            print(f"{name:32s} {runs / sum(sum(floors[cls]) for cls in chosen):.2f}")
    for cls, mine in floors.items():
        print(f"{cls:32s} {figures[cls]['runs'] * len(mine) / sum(mine):.2f}")


def calibrated(cases: list[dict[str, Any]], told: list[dict[str, Any]]) -> None:
    """Print, by the confidence that was stated, how many answers were right; the inconclusive ones state none."""
    truth = {case["id"]: case for case in cases}
    answers = []
    for one in told:
        if "commits" in one:
            case = truth[one["case"]]
            answers.append((one["confidence"], right(case["culprit"], case["skip"], one["commits"])))
    print("\nstated confidence          answers    stated     right")
    for low, high in pairwise((0.0, *_BANDS, 1.0)):
        band = [(sure, good) for sure, good in answers if low < sure <= high]
        if band:
            stated, found = (sum(column) / len(band) for column in zip(*band, strict=True))
            print(f"{low:.3f} to {high:.3f} {len(band):16d} {100 * stated:8.2f} % {100 * found:7.2f} %")


def right(culprit: int, dead: Collection[int], named: Collection[int]) -> bool:
    """Whether an answer holds the culprit, and with it only what no build can tell apart; none where that is 0."""
    if not culprit or not named:
        return not culprit and not named
    high, low = culprit, culprit - 1
    while high in dead:
        high += 1
    while low in dead:
        low -= 1
    return culprit in named and set(named) <= set(range(low + 1, high + 1))


if __name__ == "__main__":
    raise SystemExit(main())
