"""What Prometheus may read: how webhooks, jobs and pages fare. One registry an app, so that tests don't share any."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The process's own counters."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.webhooks = Counter(
            "graft_webhooks_total", "Webhooks by what became of them", ["event", "outcome"], registry=self.registry
        )
        self.webhook_seconds = Histogram(
            "graft_webhook_seconds",
            "From the first byte to the answer",
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
            registry=self.registry,
        )
        self.jobs = Gauge("graft_jobs", "Jobs in the store by state", ["state"], registry=self.registry)
        self.deliveries = Gauge("graft_deliveries", "Deliveries in the store", registry=self.registry)
        self.last_delivery = Gauge(
            "graft_last_delivery_timestamp_seconds", "When the newest delivery came in", registry=self.registry
        )
