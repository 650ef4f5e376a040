"""How long a failed job waits: longer each time, spread by a jitter that is a function of the job."""

from __future__ import annotations

import hashlib
from datetime import timedelta

_FIRST = 2.0
_LONGEST = 900.0


def retry_delay(*, job_id: int, attempt: int) -> timedelta:
    """The wait after the `attempt`-th failure (from 1): 2 s doubled each time, at most 15 minutes, ±25 %."""
    base = min(_FIRST * 2.0 ** min(attempt - 1, 30), _LONGEST)
    digest = hashlib.sha256(f"{job_id}:{attempt}".encode()).digest()
    share = int.from_bytes(digest[:4], "big") / 0xFFFFFFFF
    return timedelta(seconds=base * (0.75 + share / 2))
