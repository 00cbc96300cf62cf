"""CustomResourceDefinitions: established as soon as they are there, served from then on, their objects gone
with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.controllers.loop import Item
from bfinfra.sandbox.kubernetes.objects import Object, condition, dig, stamp
from bfinfra.sandbox.kubernetes.registry import Convert, of_definition, relabel
from bfinfra.sandbox.kubernetes.store import Change, Key

DEFINITIONS: Key = ("apiextensions.k8s.io", "customresourcedefinitions")


class Definitions:
    """Serves what is defined. `converts`: how objects of a definition go between versions (its name →
    function).
    """

    kinds = (DEFINITIONS,)

    def __init__(self, cluster: Cluster, converts: Mapping[str, Convert] | None = None) -> None:
        self._cluster, self._converts = cluster, converts or {}

    def touched(self, _: Change) -> Iterable[Item]:
        """Nothing else."""
        return ()

    def look(self, item: Item, thing: Object | None) -> None:
        """Serve it, or stop."""
        plural, _, group = item[2].partition(".")
        if thing is None or thing["metadata"].get("deletionTimestamp"):
            for each in self._cluster.store.all((group, plural)):
                self._cluster.remove(each)
            if thing is None:
                self._cluster.registry.drop(group, plural)
            return
        self.serve(thing)
        if not any(each["type"] == "Established" for each in dig(thing, "status", "conditions", default=[])):
            self._establish(thing)

    def serve(self, thing: Object) -> None:
        """Let its resources be found."""
        names = thing["spec"]["names"]
        self._cluster.registry.drop(thing["spec"]["group"], names["plural"])
        for resource in of_definition(thing, self._converts.get(thing["metadata"]["name"], relabel)):
            self._cluster.registry.add(resource)

    def _establish(self, thing: Object) -> None:
        when = stamp(self._cluster.clock.now())
        conditions = [
            condition(
                "NamesAccepted", status=True, when=when, reason="NoConflicts", message="no conflicts found"
            ),
            condition(
                "Established",
                status=True,
                when=when,
                reason="InitialNamesAccepted",
                message="the initial names have been accepted",
            ),
        ]
        stored = [each["name"] for each in thing["spec"]["versions"] if each.get("storage")]
        self._cluster.set_status(
            thing,
            {"conditions": conditions, "acceptedNames": thing["spec"]["names"], "storedVersions": stored},
        )
