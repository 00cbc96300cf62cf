"""Which Sites the watchers follow, as the operator sees it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bfinfra.model.errors import BfinfraError
from bfinfra.operator.desired import Desired
from bfinfra.operator.event import moment
from bfinfra.operator.held import Held
from bfinfra.operator.lease import API, KIND
from bfinfra.operator.replicas import SELECTOR, Replicas
from bfinfra.operator.status import Status, difference, watched

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

CHANGES_HANDS = 60.0  # seconds for which a Site may be without a watcher until Jobs check it at its interval
SILENT = 30.0  # seconds without a renewal after which a watcher counts as gone
log = logging.getLogger("bfinfra.operator")


class Watchers:
    """The watchers of some namespaces ("" for all), by their Leases."""

    def __init__(self, api: ClusterClient, spaces: Sequence[str], clock: Callable[[], float]) -> None:
        self._api, self._spaces, self._clock = api, spaces, clock
        self._replicas = Replicas(SILENT, clock)
        self._refused = ""

    def renew(self) -> None:
        """Read the Leases. An operator that may not read them takes every Site as not followed."""
        try:
            self._replicas.take(
                each for space in self._spaces for each in self._api.list(API, KIND, space, SELECTOR)
            )
            self._refused = ""
        except BfinfraError as error:
            if str(error) != self._refused:
                log.warning("it is not known which watchers live: %s", error)
            self._refused = str(error)

    def reported(self, held: Held) -> Status | None:
        """The status with what a watcher reports; None if that is in it already."""
        wanted, found = held.wanted, held.wanted.watching
        if not (wanted.watch or wanted.condition("Watched") or "watch" in wanted.status):
            return None
        fresh, held.shown = found.changed != held.shown, found.changed
        new = watched(wanted, moment(self._clock()), alive=self._alive(wanted), fresh=fresh)
        return new if difference(wanted.status, new) else None

    def follow(self, held: Held) -> bool:
        """Whether a watcher follows the Site. For a short time it may be between two."""
        if not held.wanted.watch:
            return False
        if held.wanted.watching.following and self._alive(held.wanted):
            held.unfollowed = 0
            return True
        held.unfollowed = held.unfollowed or self._clock()
        return self._clock() < held.unfollowed + CHANGES_HANDS

    def _alive(self, wanted: Desired) -> bool:
        """Whether the replica lives that has taken the Site."""
        return (wanted.namespace, wanted.watching.replica) in self._replicas.alive(wanted.namespace)
