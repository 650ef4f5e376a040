"""The switches that make this GitHub misbehave, as the real one does now and then."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

KINDS = ("forbidden", "secondary", "abuse", "server_error", "bad_gateway_after_write", "bad_gateway", "reset", "slow")


@dataclass(slots=True)
class RequestFault:
    """The next `times` requests that match are answered by `kind` instead."""

    method: str
    path: re.Pattern[str]
    kind: str
    times: int
    retry_after: int
    hits: int = 0


@dataclass(slots=True)
class DeliveryFault:
    """What becomes of the next `times` deliveries whose event (and action) match."""

    event: str | None
    action: str | None
    kind: str
    times: int
    seconds: float = 0.0


@dataclass(slots=True)
class Faults:
    """What is switched on now. A fault that was used up is gone; `clear` takes all away."""

    requests: list[RequestFault] = field(default_factory=list)
    deliveries: list[DeliveryFault] = field(default_factory=list)
    expire: Callable[[], None] = lambda: None
    limit: Callable[[int], None] = lambda remaining: None
    limit_of_writes: Callable[[int | None], None] = lambda per_minute: None

    def fail(
        self, kind: str, *, method: str = ".*", path: str = ".*", times: int = 1, retry_after: int = 1
    ) -> RequestFault:
        """Answer the next `times` requests by a fault; `path` is a regular expression, searched in the path below /api.

        Kinds: `secondary` (403 with Retry-After, seconds), `abuse` (422 with code abuse), `forbidden` (403 resource not
        accessible), `server_error` (500), `bad_gateway` (502, nothing done), `bad_gateway_after_write` (502, done all
        the same), `reset` (the connection breaks before an answer; done all the same), `slow` (waits `retry_after`
        seconds first).
        """
        if kind not in KINDS:
            raise ValueError(f"unknown fault {kind!r}; there are: {', '.join(KINDS)}")
        fault = RequestFault(method.upper() if method != ".*" else method, re.compile(path), kind, times, retry_after)
        self.requests.append(fault)
        return fault

    def drop_deliveries(self, times: int = 1, *, event: str | None = None, action: str | None = None) -> None:
        """Lose deliveries on the way: the App's list shows them as failed to connect."""
        self.deliveries.append(DeliveryFault(event, action, "drop", times))

    def duplicate_deliveries(self, times: int = 1, *, event: str | None = None, action: str | None = None) -> None:
        """Send deliveries twice under one guid."""
        self.deliveries.append(DeliveryFault(event, action, "duplicate", times))

    def delay_deliveries(
        self, seconds: float, times: int = 1, *, event: str | None = None, action: str | None = None
    ) -> None:
        """Hold deliveries back for some seconds, while later ones overtake them."""
        self.deliveries.append(DeliveryFault(event, action, "delay", times, seconds))

    def reorder_deliveries(self, times: int = 2, *, event: str | None = None, action: str | None = None) -> None:
        """Collect the next `times` deliveries and send them last one first."""
        self.deliveries.append(DeliveryFault(event, action, "reorder", times))

    def expire_tokens(self) -> None:
        """Let all installation tokens that were given out expire now."""
        self.expire()

    def exhaust_rate_limit(self, remaining: int = 0) -> None:
        """Leave so many requests of the primary limit to every installation token that was given out."""
        self.limit(remaining)

    def limit_writes(self, per_minute: int | None) -> None:
        """Answer an App's writes beyond so many a minute by the secondary limit; None switches it off."""
        self.limit_of_writes(per_minute)

    def clear(self) -> None:
        """Take all faults away."""
        self.requests.clear()
        self.deliveries.clear()

    def request(self, method: str, path: str) -> RequestFault | None:
        """The fault for this request, counted as used."""
        for fault in self.requests:
            if re.fullmatch(fault.method, method) and fault.path.search(path):
                fault.hits += 1
                fault.times -= 1
                if fault.times <= 0:
                    self.requests.remove(fault)
                return fault
        return None

    def delivery(self, event: str, action: str | None) -> tuple[str, float, bool] | None:
        """Kind, seconds, and whether it was the last one that this fault asks for; None where there is no fault."""
        for fault in self.deliveries:
            if fault.event in (None, event) and fault.action in (None, action):
                fault.times -= 1
                if fault.times <= 0:
                    self.deliveries.remove(fault)
                return fault.kind, fault.seconds, fault.times <= 0
        return None
