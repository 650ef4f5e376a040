"""What an exit status says of a commit: only a real failure of the test is ever "bad"."""

from __future__ import annotations

from bot.core.bisect.values import Seen

_PYTEST = {0: Seen.PASS, 1: Seen.FAIL, 2: Seen.SKIP, 3: Seen.SKIP, 4: Seen.ABSENT, 5: Seen.ABSENT}
_SKIP, _FIRST_SHELL = 125, 126


def seen_by_exit(status: int | None, *, harness: str = "command", timed_out: bool = False, built: bool = True) -> Seen:
    """Read an exit status (negative or above 128: a signal; None: never ended).

    pytest's 2 (interrupted) and 3 (internal error) show nothing, its 4 and 5 (path wrong, nothing collected) that the
    test is not there; 125 skips by convention; 126 and 127 mean that nothing ran, and a signal may come from outside
    (137: out of memory), so none of them is ever "bad". A crash by a signal of its own (SIGSEGV, SIGABRT, SIGFPE,
    SIGBUS, SIGILL) is.
    """
    if not built or timed_out or status is None:
        return Seen.SKIP
    signal = -status if status < 0 else status - 128 if status > 128 else 0
    if signal:
        return Seen.FAIL if signal in {4, 6, 7, 8, 11} else Seen.SKIP
    if status == _SKIP or status >= _FIRST_SHELL:
        return Seen.SKIP
    if harness == "pytest":
        return _PYTEST.get(status, Seen.SKIP)
    return Seen.PASS if status == 0 else Seen.FAIL
