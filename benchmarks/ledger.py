"""Read the ledger as it stood on past days, to hold its metrics against what a fork reports of itself.

python benchmarks/ledger.py --repository fbtriton.git 2026-03-01 2026-06-01 2026-08-15
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.clients.git import Git
from bot.core.ledger import dispositions
from handlers.planning import read_range

REACTOR = r"Reactor (?:Backport|Cherry-pick) Revision:\s*(?P<sha>[0-9a-f]{40})"
MARKERS = {
    "the tool's marker alone": (REACTOR,),
    "all three ways of recording": (
        REACTOR,
        r"^Original Commit:\s*(?P<sha>[0-9a-f]{40})",
        r"^Upstream commit:\s*(?P<sha>[0-9a-f]{40})",
    ),
}
DAYS = ["2026-01-01", "2026-02-01", "2026-03-01", "2026-03-15", "2026-04-01", "2026-05-01", "2026-06-01"]
DAYS += ["2026-07-01", "2026-08-01", "2026-08-15"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("days", nargs="*", default=DAYS, help="YYYY-MM-DD, midnight UTC")
    parser.add_argument("--repository", type=Path, required=True, help="bare repository that holds both histories")
    parser.add_argument("--upstream", default="refs/heads/upstream")
    parser.add_argument("--fork", default="refs/heads/fork")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with Git(arguments.repository) as git:
        span = read_range(git, upstream=arguments.upstream, fork=arguments.fork)
        base = git.commit(span.base)
        for name, markers in MARKERS.items():
            for day in arguments.days:
                now = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
                upstream = [commit for commit in span.upstream if commit.committer_time <= now]
                fork = [commit for commit in span.fork if commit.committer_time <= now]
                start = time.perf_counter()
                ledger = dispositions(upstream=upstream, fork=fork, base=base, now=now, markers=markers)
                seconds = time.perf_counter() - start
                counts = Counter(entry.disposition.value for entry in ledger.entries)
                rows.append(
                    {
                        "markers": name,
                        "day": day,
                        "days_behind": round(ledger.metrics.days_behind, 1),
                        "backlog": ledger.metrics.backlog,
                        "unpicked": len(upstream) - counts["picked"],
                        "seconds": round(seconds, 3),
                        **counts,
                    }
                )
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    for name in MARKERS:
        heads = f"{'day':12}{'days behind':>12}{'backlog':>9}{'unpicked':>10}{'picked':>8}{'reverted':>10}{'s':>7}"
        print(f"\n{name}\n{heads}")
        for row in (row for row in rows if row["markers"] == name):
            print(
                f"{row['day']:12}{row['days_behind']:>12}{row['backlog']:>9}{row['unpicked']:>10}"
                f"{row.get('picked', 0):>8}{row.get('reverted', 0):>10}{row['seconds']:>7}"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
