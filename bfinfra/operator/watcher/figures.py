"""Metrics of a watcher for Prometheus: of each Site that it follows, and of the watcher itself."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from bfinfra.app.metrics import WatchCounts, WatchFamilies


class WatcherFigures:
    """`registry`: what is served."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._families = WatchFamilies(self.registry, ("namespace", "site"))
        self._taken = Counter(
            "bfinfra_watcher_sites_taken",
            "Sites that this watcher took, by whether their former watcher was lost.",
            ["lost"],
            registry=self.registry,
        )
        self._sites = Gauge(
            "bfinfra_watcher_sites", "Sites that this watcher follows.", registry=self.registry
        )
        self._room = Gauge(
            "bfinfra_watcher_sites_limit", "Sites that this watcher may follow now.", registry=self.registry
        )

    def site(self, namespace: str, name: str) -> _OfSite:
        """What counts a Site's watch, until it is closed."""
        return _OfSite(self._families, namespace, name)

    def took(self, *, lost: bool) -> None:
        """Count a Site that was taken."""
        self._taken.labels(str(lost).lower()).inc()

    def show(self, sites: Callable[[], float], limit: Callable[[], float]) -> None:
        """Show the numbers that these return, at each scrape."""
        self._sites.set_function(sites)
        self._room.set_function(limit)


class _OfSite(WatchCounts):
    def close(self) -> None:
        """Show the Site no more: another watcher may follow it."""
        self._families.forget(*self._values)
