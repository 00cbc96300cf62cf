"""Metrics for Prometheus: of each Site from its status and last check, and of the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from bfinfra.model.redact import encodable
from bfinfra.operator.desired import Desired
from bfinfra.operator.result import Result

SECONDS = (0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
Row = tuple[Desired, Result | None, float]
"""A Site, its last result and when that check started, seconds since the epoch."""


class Figures:
    """Counters of this process. `show` adds metrics of the Sites, which are read at each scrape."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._waited = Histogram(
            "bfinfra_look_wait_seconds",
            "Seconds from when a check was due to when its Job was made.",
            buckets=SECONDS,
            registry=self.registry,
        )
        self._seconds = Histogram(
            "bfinfra_look_seconds",
            "Duration of checks and applies.",
            ["phase"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._looks = Counter(
            "bfinfra_looks", "Checks by how they ended.", ["outcome"], registry=self.registry
        )

    def waited(self, seconds: float) -> None:
        """Count the time by which a Job was late."""
        self._waited.observe(seconds)

    def looked(self, found: Result) -> None:
        """Count an ended check."""
        self._looks.labels(str(found.outcome)).inc()
        for phase, seconds in zip(("look", "apply"), found.seconds, strict=True):
            if seconds:
                self._seconds.labels(phase).observe(seconds)

    def show(
        self, rows: Callable[[], Iterable[Row]], running: Callable[[], int], leading: Callable[[], bool]
    ) -> None:
        """Register the metrics, once. `rows` and the others are called at each scrape."""
        self.registry.register(_Sites(rows, running, leading))


class _Sites(Collector):
    """Read at each scrape: a deleted Site has no metrics."""

    def __init__(
        self, rows: Callable[[], Iterable[Row]], running: Callable[[], int], leading: Callable[[], bool]
    ) -> None:
        self._rows, self._running, self._leading = rows, running, leading

    def collect(self) -> Iterator[Metric]:
        """All metric families."""
        rows = list(self._rows())
        yield _one("bfinfra_operator_leading", "Whether this replica leads.", float(self._leading()))
        yield _one("bfinfra_jobs_running", "Jobs of Sites that run.", float(self._running()))
        yield from _of_status(rows)
        yield from _of_looks(rows)


def _of_status(rows: list[Row]) -> Iterator[Metric]:
    ready = _family("bfinfra_site_ready", "Whether the Site is in its desired state.")
    drifted = _family("bfinfra_site_drifted", "Fields and resources that have drifted.")
    waiting = _family("bfinfra_site_changes_waiting", "Changes that wait for approval.")
    resources = _family("bfinfra_site_resources", "Resources of the Site.")
    watched = _family("bfinfra_site_watched", "Whether a watcher follows the Site; only where one is to.")
    for wanted, _, _ in rows:
        at, status = [wanted.namespace, wanted.name], wanted.status
        if condition := wanted.condition("Ready"):
            ready.add_metric(at, float(condition.get("status") == "True"))
        if wanted.condition("Drifted"):
            drifted.add_metric(at, float((status.get("drift") or {}).get("count", 0)))
        if condition := wanted.condition("Watched"):
            watched.add_metric(at, float(condition.get("status") == "True"))
        waiting.add_metric(at, float((status.get("plan") or {}).get("count", 0)))
        resources.add_metric(at, float(status.get("resources", 0)))
    yield from (ready, drifted, waiting, resources, watched)


def _of_looks(rows: list[Row]) -> Iterator[Metric]:
    last = _family(
        "bfinfra_site_last_look_timestamp_seconds",
        "When the last check with a result started; not for suspended Sites.",
    )
    seconds = _family("bfinfra_site_look_seconds", "Duration of the last check.")
    certificates = _family(
        "bfinfra_certificate_expiry_timestamp_seconds", "When a server's certificate expires.", "server"
    )
    tokens = _family("bfinfra_token_expiry_timestamp_seconds", "When a Bitfusion token expires.", "token")
    for wanted, result, began in rows:
        if result is None:
            continue
        at = [wanted.namespace, wanted.name]
        if not wanted.suspend:
            last.add_metric(at, began)
        seconds.add_metric(at, sum(result.seconds))
        for server, ends in result.certificates.items():
            certificates.add_metric([*at, encodable(server)], float(ends))
        for token, ends in result.tokens.items():
            tokens.add_metric([*at, encodable(token)], float(ends))
    yield from (last, seconds, certificates, tokens)


def _family(name: str, about: str, *more: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, labels=["namespace", "site", *more])


def _one(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, value=value)
