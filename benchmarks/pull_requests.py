"""Requests to GitHub for one batch from opening to landing, counted on the sandbox, by the commits that it carries.

    python benchmarks/pull_requests.py [--sizes 8 60 250] [--json]

Each size is a world of its own: one bundle of that many commits is opened, looked at again (nothing happened), and
merged by a person. Counted is what Graft sends to the REST API, by phase, what is asked once for each installation
included; a 304 costs nothing of GitHub's limit and is counted apart. GitHub lists 100 files of a pull request at once,
and the gate reads them all: these pages are counted apart too. Exit 1 where a larger batch took more of the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import structlog

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.handlers.pair import CONFIG, FORK, Clone, Pair, pair

PHASES = ("open", "look again", "land")


@dataclass
class Cost:
    """What one batch of so many commits took, by phase: requests that count, and those answered by 304."""

    commits: int
    counted: dict[str, int] = field(default_factory=dict)
    unchanged: dict[str, int] = field(default_factory=dict)
    pages: int = 0
    most: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """All that count, but for the pages of the list of files."""
        return sum(self.counted.values())


async def measure(commits: int) -> Cost:
    """Open, look again, land."""

    def make(upstream: Clone, fork: Clone, shas: dict[str, str]) -> None:
        for number in range(commits):
            shas[str(number)] = upstream.commit(f"Add {number} (#{number + 1})", {f"f{number}.txt": f"{number}\n"})

    cost = Cost(commits)
    seen: Counter[str] = Counter()
    bundle = f"{{max_commits: {commits}, watch_max_commits: {commits}, max_files: {commits + 1}}}"
    config = CONFIG + f"ingest: {{bundle: {bundle}}}\n"
    with tempfile.TemporaryDirectory() as folder:
        async with pair(Path(folder), make=make, config=config) as p:
            p.install()
            await p.settle()
            _take(p, cost, "open", seen)
            await p.ingest()
            _take(p, cost, "look again", seen)
            (pull,) = p.pulls()
            await p.sandbox.as_user("maria").merge_pull(FORK, pull.number, "squash")
            p.sandbox.state.requests.pop()  # the person's own
            await p.settle()
            _take(p, cost, "land", seen)
            if len((await p.plan()).ledger.entries) != commits or (await p.plan()).ledger.metrics.days_behind:
                raise RuntimeError("the batch did not land")
    cost.most = dict(seen.most_common(12))
    return cost


def _take(p: Pair, cost: Cost, phase: str, seen: Counter[str]) -> None:
    sent = [one for one in p.sandbox.state.requests if "/access_tokens" not in one[1]]
    p.sandbox.state.requests.clear()
    pages = sum(path.partition("?")[0].endswith("/files") and status != 304 for _, path, status in sent)
    cost.pages += pages
    cost.unchanged[phase] = sum(status == 304 for _, _, status in sent)
    cost.counted[phase] = len(sent) - cost.unchanged[phase] - pages
    seen.update(f"{method} {_general(path)}" for method, path, status in sent if status != 304)


def _general(path: str) -> str:
    """A path without what names one commit or number."""
    return re.sub(r"/(?:[0-9a-f]{40}|\d+)(?=/|$)", "/…", path.partition("?")[0])


def main() -> int:
    """Measure and print; 1 where requests grow with the commits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 60, 250])
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    costs = []
    for size in given.sizes:
        print(f"{size} commits …", file=sys.stderr)
        costs.append(asyncio.run(measure(size)))
    grows = any(cost.total > costs[0].total for cost in costs)
    if given.json:
        print(json.dumps({"costs": [asdict(cost) for cost in costs], "grows": grows}))
        return int(grows)
    print(f"{'commits':>8} " + " ".join(f"{phase:>18}" for phase in PHASES) + f" {'all':>6} {'pages of files':>15}")
    for cost in costs:
        cells = [f"{cost.counted[phase]} (+{cost.unchanged[phase]} × 304)" for phase in PHASES]
        print(f"{cost.commits:>8} " + " ".join(f"{cell:>18}" for cell in cells) + f" {cost.total:>6} {cost.pages:>15}")
    for request, count in costs[-1].most.items():
        print(f"{count:>8} {request}")
    print("Requests grow with the commits." if grows else "Requests do not grow with the commits.")
    return int(grows)


if __name__ == "__main__":
    sys.exit(main())
