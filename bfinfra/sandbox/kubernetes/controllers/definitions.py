"""CustomResourceDefinitions: established soon after they are there, served from then on, their objects gone
with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.objects import Object, condition, dig, stamp
from bfinfra.sandbox.kubernetes.registry import Convert, of_definition, relabel
from bfinfra.sandbox.kubernetes.store import Change, Key

DEFINITIONS: Key = ("apiextensions.k8s.io", "customresourcedefinitions")


class Definitions:
    """Serves what is defined. `converts`: how objects of a definition go between versions (its name →
    function).
    """

    kinds = (DEFINITIONS,)

    def __init__(self, loop: Loop, converts: Mapping[str, Convert] | None = None) -> None:
        self._loop, self._cluster, self._converts = loop, loop.cluster, converts or {}

    def touched(self, _: Change) -> Iterable[Item]:
        """Nothing else."""
        return ()

    def look(self, item: Item, thing: Object | None) -> None:
        """Serve it, or stop serving it. Its group names it before it is served, and after it is deleted."""
        plural, _, group = item[2].partition(".")
        if thing is None or thing["metadata"].get("deletionTimestamp"):
            for each in self._cluster.store.all((group, plural)):
                self._cluster.remove(each)
            if thing is None:
                self._cluster.registry.drop(group, plural)
                self._soon(item[2])
        elif dig(thing, "status", "conditions", default=[]):
            self.serve(thing)
        else:
            self._announce(thing)
            self._soon(item[2])

    def serve(self, thing: Object) -> None:
        """Let its resources be found."""
        self._announce(thing)
        self._cluster.registry.drop(thing["spec"]["group"], thing["spec"]["names"]["plural"])
        for resource in of_definition(thing, self._converts.get(thing["metadata"]["name"], relabel)):
            self._cluster.registry.add(resource)

    def _announce(self, thing: Object) -> None:
        spec = thing["spec"]
        versions = (each["name"] for each in spec["versions"] if each.get("served"))
        self._cluster.registry.announce(spec["group"], spec["names"]["plural"], versions)

    def _soon(self, name: str) -> None:
        self._loop.once(("definition", name), "definition", lambda: self._catch_up(name))

    def _catch_up(self, name: str) -> None:
        """Establish it; if it was deleted, name it no longer."""
        plural, _, group = name.partition(".")
        if self._cluster.store.get(DEFINITIONS, "", name) is None:
            self._cluster.registry.announce(group, plural, ())
        else:
            self.establish(name)

    def establish(self, name: str) -> None:
        """Set the condition that it is served, where it is not set yet."""
        thing = self._cluster.store.get(DEFINITIONS, "", name)
        if thing is None or dig(thing, "status", "conditions", default=[]):
            return
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
