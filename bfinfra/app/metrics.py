"""Serves metrics to Prometheus, and counts what a watch sees."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, start_http_server

from bfinfra.app.listener import Listener
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.files import write_named
from bfinfra.model.redact import encodable

if TYPE_CHECKING:
    from bfinfra.app.sight import Sight
    from bfinfra.model.site import Site

SECONDS = (0.25, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600)
WRITTEN = 15.0  # seconds until the file is written anew where nothing happened


def serve(address: tuple[str, int], registry: CollectorRegistry) -> WSGIServer:
    """A server in a thread, at a host and a port. Raises BfinfraError."""
    try:
        return start_http_server(address[1], address[0], registry)[0]
    except OSError as error:
        raise BfinfraError(
            Problem(
                "the metrics can't be served",
                f"{address[0]}:{address[1]}",
                error.strerror or "",
                "give another --metrics ADDRESS:PORT",
            )
        ) from None


class WatchFamilies:
    """The metrics of watches. `labels`: the names of a watch's labels."""

    def __init__(self, registry: CollectorRegistry, labels: tuple[str, ...]) -> None:
        self.seconds = Histogram(
            "bfinfra_drift_seconds",
            "Seconds from a change, as its server dates it, to the report. Both clocks count.",
            labels,
            buckets=SECONDS,
            registry=registry,
        )
        self.changes = Counter(
            "bfinfra_watch_changes", "Changes that the servers reported.", labels, registry=registry
        )
        self.blind = Counter(
            "bfinfra_watch_blind_seconds",
            "Seconds in which changes were not followed.",
            labels,
            registry=registry,
        )
        self.following = Gauge(
            "bfinfra_watch_following", "Whether changes are followed now.", labels, registry=registry
        )
        self.turn = Gauge(
            "bfinfra_watch_last_turn_timestamp_seconds",
            "When the watch was last seen at work.",
            labels,
            registry=registry,
        )

    def forget(self, *values: str) -> None:
        """Remove the metrics of a watch."""
        for each in (self.seconds, self.changes, self.blind, self.following, self.turn):
            each.remove(*values)


class WatchCounts(Listener):
    """Counts what one watch sees. `values`: those of its labels."""

    def __init__(self, families: WatchFamilies, *values: str) -> None:
        values = tuple(map(encodable, values))
        self._families, self._values = families, values
        self._began, self._lost = time.time(), 0.0
        self._seconds = families.seconds.labels(*values)
        self._changes = families.changes.labels(*values)
        self._blind = families.blind.labels(*values)
        self._following = families.following.labels(*values)
        self._turn = families.turn.labels(*values)

    def report(self, sight: Sight) -> None:
        """Count its drift. The delay of what changed before the watch started is not counted."""
        if not self._lost:
            self._blind.inc(sight.blind)
        self._seen()
        if not sight.lost:
            self._lost = 0.0
        self._following.set(not sight.lost)
        for each in sight.report.alarming:
            if each.identity in sight.report.new and each.at is not None and each.at >= self._began:
                self._seconds.observe(max(0.0, time.time() - each.at))

    def interrupted(self, why: str, blind: float) -> None:
        """Count the time until all is followed again."""
        self._lost = self._lost or time.monotonic() - blind
        self._following.set(0)

    def turned(self, changes: int) -> None:
        """Count the changes."""
        self._seen()
        self._changes.inc(changes)

    def close(self) -> None:
        """Nothing is followed any more."""
        self._following.set(0)

    def _seen(self) -> None:
        self._turn.set_to_current_time()
        if self._lost:
            now = time.monotonic()
            self._blind.inc(now - self._lost)
            self._lost = now


class WatchMetrics(WatchCounts):
    """What a watch of a site sees. Served at `address`, and written to `file` for node_exporter, if given.
    `failed` gets why the file can't be written.
    """

    def __init__(
        self,
        site: Site,
        address: tuple[str, int] | None = None,
        file: str = "",
        failed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._failed = failed
        self.registry = CollectorRegistry()
        super().__init__(WatchFamilies(self.registry, ("site",)), site.name)
        self._written, self._file = 0.0, file
        self._drifted = self._gauge("bfinfra_site_drifted", "Fields and resources that have drifted.", site)
        self._unreadable = self._gauge("bfinfra_site_unreadable", "What can't be read or decided.", site)
        self._gauge("bfinfra_site_resources", "Resources of the Site.", site).set(len(site.resources))
        self._server = serve(address, self.registry) if address else None

    @property
    def port(self) -> int:
        """The port that is served; 0 without one."""
        return self._server.server_port if self._server else 0

    def report(self, sight: Sight) -> None:
        """Count its drift."""
        super().report(sight)
        found = sight.report
        self._drifted.set(len(found.alarming))
        self._unreadable.set(len(found.unreadable) + len(found.problems))
        self._write()

    def interrupted(self, why: str, blind: float) -> None:
        """Count the time until all is followed again."""
        super().interrupted(why, blind)
        self._write()

    def turned(self, changes: int) -> None:
        """Count the changes."""
        super().turned(changes)
        if self._file and time.monotonic() - self._written > WRITTEN:
            self._write()

    def close(self) -> None:
        """Serve no more. The file tells that nothing is followed."""
        super().close()
        self._write()
        if self._server:
            self._server.shutdown()
            self._server.server_close()

    def _write(self) -> None:
        if not self._file:
            return
        self._written = time.monotonic()
        try:
            write_named(self._file, generate_latest(self.registry))
        except BfinfraError as error:
            self._failed(str(error))

    def _gauge(self, name: str, about: str, site: Site) -> Gauge:
        return Gauge(name, about, ["site"], registry=self.registry).labels(encodable(site.name))
