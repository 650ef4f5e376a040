"""Graft's search as a policy of `score_bisect.py CASES -- python benchmarks/bisect_policy.py [FILE]`: JSON lines.

FILE gets a line for each case, with the confidence that was stated: the scorer's protocol has no place for it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bot.core.bisect import Ask, Culprit, Next, NoCulprit, Rates, Run, Search, Seen, Step, next_metric_step, next_step


def main() -> None:
    """Answer every case on stdin; ends with it."""
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "start":
            answer, confidence = _answer(message)
            if len(sys.argv) > 1:
                with Path(sys.argv[1]).open("a") as file:
                    file.write(json.dumps({"case": message["case"], **answer, "confidence": confidence}) + "\n")
            _say(answer)


def _answer(start: dict[str, Any]) -> tuple[dict[str, Any], float]:
    search, step = _search(start), _step(start)
    runs: list[Run] = []
    while True:
        asked = _next(search, step, runs)
        if not isinstance(asked, Ask):
            return _told(asked), asked.confidence
        _say({"type": "run", "commits": list(asked.positions), **({"host": asked.host} if asked.host else {})})
        reply = json.loads(sys.stdin.readline())
        if reply["type"] == "over":
            return {"type": "answer", "inconclusive": True}, 0.0
        runs.extend(_run(result) for result in reply["results"])


def _next(search: Search, step: Step | None, runs: list[Run]) -> Next:
    return next_metric_step(search=search, step=step, runs=runs) if step else next_step(search=search, runs=runs)


def _search(start: dict[str, Any]) -> Search:
    hint = start.get("hint")
    return Search(
        n=start["n"],
        hint=Rates(hint["fp"], hint["fn"]) if hint else None,
        suspects=start.get("prior"),
        never=frozenset(start.get("docs_only") or ()),
        max_runs=start["max_runs"],
    )


def _step(start: dict[str, Any]) -> Step | None:
    if start["mode"] != "metric":
        return None
    return Step(
        claimed=start["claimed_step"],
        noise=start["run_sd"],
        good=[_run(result) for result in start["good"]],
        bad=[_run(result) for result in start["bad"]],
        hosts=start["hosts"],
    )


def _run(result: dict[str, Any]) -> Run:
    return Run(result["commit"], Seen(result["outcome"]), result.get("value") or 0.0, result.get("host") or "")


def _told(answer: Next) -> dict[str, Any]:
    if isinstance(answer, Culprit):
        return {"type": "answer", "commits": list(answer.positions)}
    if isinstance(answer, NoCulprit):
        return {"type": "answer", "commits": []}
    return {"type": "answer", "inconclusive": True}


def _say(message: dict[str, Any]) -> None:
    print(json.dumps(message), flush=True)


if __name__ == "__main__":
    main()
