"""What a watch reads again: what its servers report as changed, and at intervals what no server reports."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bfinfra.app.polling import Again, Polling
from bfinfra.app.wiring import IN_CLUSTERS
from bfinfra.model.mark import Mark

if TYPE_CHECKING:
    from bfinfra.app.following import Arrivals, Following
    from bfinfra.backends.kubernetes import Clusters
    from bfinfra.backends.vcenter.changes import Change
    from bfinfra.engine.watch import Watched
    from bfinfra.model.refs import Key

VM, MARK = "VirtualMachine", "bfinfra:"


class Looking:
    """Keeps `watched` current. `interval`: seconds between two reads of a kind whose changes are not
    reported.
    """

    def __init__(self, watched: Watched, clusters: Clusters, follows: Following, interval: float) -> None:
        self._watched, self._clusters, self._follows = watched, clusters, follows
        kinds = watched.kinds
        self._followed = frozenset(name for name, kind in kinds.items() if kind.followed)
        self._in_clusters = IN_CLUSTERS & kinds.keys()
        self._used = frozenset(key.kind for key in watched.desired.wanted)
        polled = watched.in_order(kinds.keys() - self._followed)
        self._has = self._used | {key.kind for key in watched.observed.states}
        self._polling = Polling(polled, self._has, interval, time.monotonic())
        self._again = Again()
        self._words = frozenset[str]()

    def start(self) -> None:
        """Read again what may have changed between the survey and the first answer of the servers. Raises
        RemoteError.
        """
        inside = self._in_clusters & self._used
        with self._clusters.following_all():  # what the site has there may come later
            self._read(set(), inside)
        self._read(set(), self._followed | (self._in_clusters & self._has) - inside)
        self._words = self._watched.words()

    def at(self, arrivals: Arrivals) -> bool:
        """Read what these changes touch, and what is due. Returns whether anything was decided again. Raises
        RemoteError.
        """
        now = time.monotonic()
        kinds = self._polling.due(now) | self._again.due(self._watched.unread_kinds, now)
        if any(self._may_be_ours(each) for each in arrivals.changes):
            kinds |= self._followed
        if arrivals.clusters:
            kinds |= self._in_clusters
        touched = self._watched.naming(each.moid for each in arrivals.changes)
        touched |= {key for key in arrivals.keys if key.kind in self._watched.kinds}
        return self._read(touched, kinds)

    def _read(self, touched: set[Key], kinds: frozenset[str]) -> bool:
        """Read these resources and kinds, and follow what was not read before."""
        if not (touched or kinds):
            return False
        unread, before = self._watched.unread_kinds, touched & self._watched.observed.states.keys()
        self._watched.look([key for key in touched if key.kind not in kinds])
        # what was in a namespace that goes need not be reported
        passed = before ^ (touched & self._watched.observed.states.keys())
        moved = self._watched.survey(kinds)
        if back := unread - self._watched.unread_kinds:
            # what is behind these kinds was not read, and would be missing
            moved |= self._watched.survey(self._watched.behind(back) - kinds)
        self._polling.hasten(self._watched.dependants(moved | passed))
        if self._follows.extend():
            moved |= self._watched.survey(self._followed)
        if not (touched or moved or back):
            return False
        self._watched.decide(touched | moved)
        return True

    def _may_be_ours(self, change: Change) -> bool:
        """Return whether the change may concern more than the resources that have the object: an object that
        gets a name of the site or the mark of another resource, or whatever is not a machine and comes, goes,
        or is renamed.
        """
        if change.type == VM:
            marks = {Mark.address_in(word) for word in change.words if word.startswith(MARK)}
            known = {str(key) for key in self._watched.naming([change.moid])}
            return not (marks <= known and self._words.isdisjoint(change.words))
        return change.how != "modify" or "name" in change.paths
