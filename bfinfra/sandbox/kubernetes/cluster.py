"""One in-memory Kubernetes cluster behind one handler."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes import api
from bfinfra.sandbox.kubernetes.admission import AdmittingCluster
from bfinfra.sandbox.kubernetes.deletion import delete
from bfinfra.sandbox.kubernetes.dump import dump
from bfinfra.sandbox.kubernetes.identity import Tokens
from bfinfra.sandbox.kubernetes.objects import Object, copied, name_of, namespace_of, stamp, uid_of
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.writes import Writer

CONTROLLER = "kube-controller-manager"


class Cluster(AdmittingCluster):
    """An API server with its controllers' hooks. `handler` answers requests; the methods below are for the
    controllers inside the cluster.
    """

    def __init__(self, name: str, version: str, clock: Clock, *, tokens: Tokens | None = None) -> None:
        super().__init__(name, version, clock, tokens=tokens)
        self.handler = partial(api.serve, self)

    def create(self, thing: Object, manager: str = CONTROLLER) -> Object:
        """Create an object from inside the cluster."""
        resource = self.registry.of_kind(thing["apiVersion"], thing["kind"])
        if resource is None:
            raise KeyError(f"{self.name}: no resource for {thing['apiVersion']} {thing['kind']}")
        target = Target(resource, "create", namespace_of(thing), "")
        made = Writer(self).create(target, copied(thing), Options(manager, validation="Ignore"))
        return (
            self.set_status(made, thing["status"], manager)
            if "status" in thing and "status" in resource.subresources
            else made
        )

    def ensure(self, thing: Object, manager: str = CONTROLLER) -> Object:
        """The object, created where it isn't there."""
        resource = self.registry.of_kind(thing["apiVersion"], thing["kind"])
        found = resource and self.store.get(resource.key, namespace_of(thing), name_of(thing))
        return found or self.create(thing, manager)

    def change(
        self, thing: Object, how: Callable[[Object], None], manager: str = CONTROLLER, subresource: str = ""
    ) -> Object | None:
        """Change the present state of an object in place. Returns None if it no longer exists."""
        resource = self.registry.of_kind(thing["apiVersion"], thing["kind"])
        if resource is None or self.store.get(resource.key, namespace_of(thing), name_of(thing)) is None:
            return None

        def changed(live: Object) -> Object:
            fresh: Object = copied(live)
            how(fresh)
            return fresh

        target = Target(resource, "patch", namespace_of(thing), name_of(thing), subresource)
        return Writer(self).patch(target, changed, Options(manager, validation="Ignore"))

    def set_status(self, thing: Object, status: Mapping[str, object], manager: str = CONTROLLER) -> Object:
        """Replace an object's status; the object as it is now."""
        return (
            self.change(thing, lambda live: live.__setitem__("status", dict(status)), manager, "status")
            or thing
        )

    def remove(self, thing: Object, policy: str = "Background") -> None:
        """Delete an object from inside the cluster, if it exists."""
        resource = self.registry.of_kind(thing["apiVersion"], thing["kind"])
        if resource and self.store.get(resource.key, namespace_of(thing), name_of(thing)):
            target = Target(resource, "delete", namespace_of(thing), name_of(thing))
            delete(self, target, {"propagationPolicy": policy, "gracePeriodSeconds": 0}, Options(CONTROLLER))

    def event(self, reason: str, message: str, about: Object | None = None, kind: str = "Warning") -> None:
        """Record an Event about an object (or about the cluster), once for the same words."""
        namespace = namespace_of(about) if about else "default"
        home = self.get("", "namespaces", namespace or "default")
        if home is None or home["metadata"].get("deletionTimestamp"):
            return
        name = (
            f"{name_of(about) if about else self.name}"
            f".{hashlib.sha256(f'{reason}{message}'.encode()).hexdigest()[:16]}"
        )
        reference: Object = {"kind": "Cluster", "name": self.name}
        if about:
            reference = {
                "kind": about["kind"],
                "apiVersion": about["apiVersion"],
                "name": name_of(about),
                "namespace": namespace,
                "uid": uid_of(about),
            }
        when = stamp(self.clock.now())
        self.ensure(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": name, "namespace": namespace or "default"},
                "involvedObject": reference,
                "reason": reason,
                "message": message,
                "type": kind,
                "count": 1,
                "firstTimestamp": when,
                "lastTimestamp": when,
                "source": {"component": CONTROLLER},
            }
        )

    def dump(self) -> dict[str, Any]:
        """Return the cluster's objects without generated ids, versions and times: two equal clusters dump
        equal.
        """
        return dump(self.store)

    def close(self) -> None:
        """End every watch."""
        self.store.close()
