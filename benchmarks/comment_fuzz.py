"""A hundred thousand made-up comments through the parser: `python -m benchmarks.comment_fuzz [--comments 100000]`.

The same properties as `tests/core/test_command.py`, with as many examples as asked for: nothing crashes, nothing that
is no command runs, nothing of what CommonMark calls code or a comment is one. Exit status 1 where one is found.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from bot.core.command import parse
from tests.core import test_command as properties

SHARES: tuple[tuple[str, SearchStrategy[str], Callable[[str], None], float], ...] = (
    ("nothing crashes, only commands run", properties.BODIES, properties.only_commands_run, 0.6),
    ("no command in code or comments", properties.TEXTS, properties.nothing_in_code_runs, 0.4),
)


def counting(check: Callable[[str], None], seen: Counter[bool]) -> Callable[[str], None]:
    """The check, which counts the comments without and with commands."""

    def counted(body: str) -> None:
        seen[bool(parse(body))] += 1
        check(body)

    return counted


def main() -> int:
    """Run both properties; print how many comments they saw and how many commands stood in them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comments", type=int, default=100_000)
    options = parser.parse_args()
    wrong = 0
    for name, bodies, check, share in SHARES:
        wanted = max(1, round(options.comments * share))
        started = time.perf_counter()
        quick = settings(max_examples=wanted, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        seen = Counter[bool]()
        try:
            fuzz: Callable[[], None] = quick(given(bodies)(counting(check, seen)))
            fuzz()
        except AssertionError as error:
            wrong += 1
            print(f"{name}: broken: {error}", *getattr(error, "__notes__", ()), sep="\n")
        seconds = time.perf_counter() - started
        print(f"{name}: {seen.total()} comments, {seen[True]} of them with commands, {seconds:.0f} s")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
