"""What Graft adds around a suite: 50 runners, 500 stub runs on one machine; nothing lost, nothing twice, in turn.

`python -m benchmarks.runner_load [--runners 50] [--runs 500] [--pulls 10]` prints JSON: p50/p95 in seconds from offered
to leased (all at once, and one at a time on idle runners), from the suite's end to the recorded report; how far a run
began from its place among those of its pull request; and the place at which a pull request with a single run got its
turn that came after all others had queued theirs. Real store (SQLite), Valkey, HTTP and git; the suite is `true`.
`load` is the machine's average load before and after: where it had other work the times are upper bounds.
`cpu_seconds` is what bot and runners, which are one process here, took of a processor, without git and the suites.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
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


async def measure(runners: int, runs: int, pulls: int, root: Path) -> dict[str, object]:
    """Offer all runs at once, pull request by pull request, and wait until each is done."""
    load = os.getloadavg()[0]
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
        began, worked = time.perf_counter(), time.process_time()
        share = -(-(runs - 1) // pulls)
        numbers = [1 + n // share for n in range(runs - 1)]
        ids = [await bot.offer(sha, STUB, deadline=3600, number=number) for number in numbers]
        ids.append(await bot.offer(sha, STUB, deadline=3600, number=pulls + 1))
        done: list[Run] = [await bot.done(run_id, 1800) for run_id in ids]
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
        starts = [(run.started_at - run.queued_at).total_seconds() for run in done if run.started_at]
        ends = []
        for run in done:
            report = Report.model_validate(run.report)
            if run.finished_at is not None:
                ends.append((run.finished_at - report.finished_at).total_seconds())
        began_at = {run.id: run.started_at or run.queued_at for run in done}
        moved = []
        for number in range(1, pulls + 1):
            mine = [run.id for run in done if run.number == number]
            order = sorted(mine, key=lambda run_id: began_at[run_id])
            moved += [abs(order.index(run_id) - place) for place, run_id in enumerate(mine)]
        single = done[-1]
        waiting = [run for run in done[:-1] if began_at[run.id] >= single.queued_at]
        before = sum(began_at[run.id] < began_at[single.id] for run in waiting)
        result = {
            "runners": runners,
            "runs": runs,
            "pulls": pulls + 1,
            "load": [round(load, 1), round(os.getloadavg()[0], 1)],
            "passed": sum(run.outcome == "passed" for run in done),
            "attempts": sum(run.attempt for run in done),
            "seconds": round(seconds, 1),
            "cpu_seconds": round(cpu, 1),
            "runs_per_second": round(runs / seconds, 1),
            "queue_to_lease": {"p50": quantile(starts, 0.5), "p95": quantile(starts, 0.95)},
            "queue_to_lease_idle": {"p50": quantile(alone, 0.5), "p95": quantile(alone, 0.95)},
            "suite_end_to_recorded": {"p50": quantile(ends, 0.5), "p95": quantile(ends, 0.95)},
            "places_out_of_order": {"p50": quantile([float(m) for m in moved], 0.5), "max": max(moved)},
            "single_run": {"waiting_then": len(waiting), "leased_before_it": before},
        }
    await store.close()
    return result


def main() -> int:
    """Print the numbers; 1 where a run was lost or done twice."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runners", type=int, default=50)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--pulls", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="graft-load-") as folder:
        result = asyncio.run(measure(options.runners, options.runs, options.pulls, Path(folder)))
    print(json.dumps(result, indent=1))
    return 0 if result["passed"] == result["attempts"] == options.runs else 1


if __name__ == "__main__":
    sys.exit(main())
