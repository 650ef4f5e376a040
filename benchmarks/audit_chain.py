"""How long a long audit takes to verify, and that what was changed is found: `python -m benchmarks.audit_chain`.

Builds a chain of 100,000 decisions, exports it as JSON Lines, verifies both forms, and then one with a flipped byte, a
removed, an added and a reordered entry. Exit status 1 where one of them is not found and named.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from bot.core.audit import AuditKind, Entry, Verification, append, to_line, verify, verify_lines

START = datetime(2026, 1, 1, tzinfo=UTC)


def chain(count: int) -> list[Entry]:
    """A chain of gate decisions, as many as asked for, a minute apart."""
    entries: list[Entry] = []
    for n in range(count):
        missing = [
            {"key": f"l1/suite-{n % 7}", "code": "suite", "text": f"suite-{n % 7} failed: tests/test_{n}.py::test"}
        ]
        body = {"pull": n % 400, "head": f"{n:040x}", "decision": "block", "missing": missing}
        head = entries[-1] if entries else None
        at = START + timedelta(minutes=n)
        entries.append(
            append(head, repository="acme/fork", installation=1, kind=AuditKind.GATE, body=body, at=at)
        )  # fmt: skip
    return entries


def timed(what: str, work: Callable[[], Verification], *, good: bool) -> bool:
    """Verify and tell how long it took (of the processor) and what was found; True where it is as it must be."""
    started = time.process_time()
    found = work()
    seconds = time.process_time() - started
    named = "; ".join(f"{fault.kind.value} {fault.text}"[:110] for fault in found.faults[:1]) or "no fault"
    print(f"{what:28s} {seconds:6.2f} s   {named}")
    return found.ok is good


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    options = parser.parse_args()
    started = time.process_time()
    entries = chain(options.entries)
    lines = [to_line(entry) for entry in entries]
    size = sum(map(len, lines)) / 1e6
    print(f"{options.entries} entries, {size:.0f} MB, built and exported in {time.process_time() - started:.1f} s")
    middle = options.entries // 2
    at = len(lines[middle]) // 2
    flipped = lines[middle][:at] + chr(ord(lines[middle][at]) ^ 1) + lines[middle][at + 1 :]
    swapped = [*lines[:middle], lines[middle + 1], lines[middle], *lines[middle + 2 :]]
    right = [
        timed("as rows", lambda: verify(entries), good=True),
        timed("as lines", lambda: verify_lines(lines), good=True),
        timed("one byte flipped", lambda: verify_lines([*lines[:middle], flipped, *lines[middle + 1 :]]), good=False),
        timed("one removed", lambda: verify_lines([*lines[:middle], *lines[middle + 1 :]]), good=False),
        timed("one added", lambda: verify_lines([*lines[:middle], lines[middle - 1], *lines[middle:]]), good=False),
        timed("two reordered", lambda: verify_lines(swapped), good=False),
    ]
    return int(not all(right))


if __name__ == "__main__":
    raise SystemExit(main())
