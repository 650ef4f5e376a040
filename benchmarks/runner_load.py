"""What Graft adds around a suite: 50 runners, 500 stub runs on one machine; nothing lost, nothing twice, in order.

`python -m benchmarks.runner_load [--runners 50] [--runs 500]` prints JSON: p50/p95 in seconds from offered to leased
(all at once, and one at a time on idle runners), from the suite's end to the recorded report, and the order. Real store
(SQLite), Valkey, HTTP and git; the suite is `true`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from bot.clients.store import Run, Store
from bot.core.config import Suite
from bot.core.validation import Report
from tests.runners.world import commit, world

STUB = Suite.model_validate({"suite": "stub", "harness": "command", "run": ["true"], "timeout": "60s"})


def quantile(values: list[float], share: float) -> float:
    """The value below which this share of them lies."""
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4)


async def measure(runners: int, runs: int, root: Path) -> dict[str, object]:
    """Offer all runs at once and wait until each is done."""
    store = await Store.open(f"sqlite:///{root / 'graft.db'}")
    tokens = ",".join(f"r{n}=token-number-{n}" for n in range(runners))
    async with world(root, store, tokens=tokens, lease=120.0) as bot:
        sha = commit(root / "fork", {"a": "b"})
        bot.publish(root / "fork")
        for n in range(runners):
            bot.runner(token=f"token-number-{n}", name=f"r{n}", poll=0.1)
        await asyncio.sleep(2)
        alone: list[float] = []
        for _ in range(20):
            one = await bot.done(await bot.offer(sha, STUB))
            if one.started_at is not None:
                alone.append((one.started_at - one.queued_at).total_seconds())
        began = time.perf_counter()
        ids = [await bot.offer(sha, STUB, deadline=3600) for _ in range(runs)]
        done: list[Run] = [await bot.done(run_id, 1800) for run_id in ids]
        seconds = time.perf_counter() - began
        starts = [(run.started_at - run.queued_at).total_seconds() for run in done if run.started_at]
        ends = []
        for run in done:
            report = Report.model_validate(run.report)
            if run.finished_at is not None:
                ends.append((run.finished_at - report.finished_at).total_seconds())
        # how many places a run began away from where it stood in the queue
        order = sorted(range(runs), key=lambda n: done[n].started_at or done[n].queued_at)
        moved = [abs(place - n) for place, n in enumerate(order)]
        result = {
            "runners": runners,
            "runs": runs,
            "passed": sum(run.outcome == "passed" for run in done),
            "attempts": sum(run.attempt for run in done),
            "seconds": round(seconds, 1),
            "runs_per_second": round(runs / seconds, 1),
            "queue_to_lease": {"p50": quantile(starts, 0.5), "p95": quantile(starts, 0.95)},
            "queue_to_lease_idle": {"p50": quantile(alone, 0.5), "p95": quantile(alone, 0.95)},
            "suite_end_to_recorded": {"p50": quantile(ends, 0.5), "p95": quantile(ends, 0.95)},
            "places_out_of_order": {"p50": quantile([float(m) for m in moved], 0.5), "max": max(moved)},
        }
    await store.close()
    return result


def main() -> int:
    """Print the numbers; 1 where a run was lost or done twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runners", type=int, default=50)
    parser.add_argument("--runs", type=int, default=500)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="graft-load-") as folder:
        result = asyncio.run(measure(options.runners, options.runs, Path(folder)))
    print(json.dumps(result, indent=1))
    return 0 if result["passed"] == result["attempts"] == options.runs else 1


if __name__ == "__main__":
    sys.exit(main())
