"""Workload clusters: machine after machine until status agrees with spec."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.tanzu_admission import TanzuAdmission
from bfinfra.sandbox.kubernetes.guests import PORT, Guests, Where
from bfinfra.sandbox.kubernetes.objects import (
    Object,
    condition,
    dig,
    name_of,
    namespace_of,
    owned_by,
    stamp,
    uid_of,
)
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.releases import newer
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.tanzu_security import secure
from bfinfra.sandbox.kubernetes.tanzu_shapes import (
    CLUSTER_API,
    CONTROL_PLANE,
    Pool,
    Progress,
    Shape,
    variables,
)

CONTROLLER = "vmware-system-tkg-controller-manager"
OFFERS: tuple[Key, ...] = (
    ("vmoperator.vmware.com", "virtualmachineclassbindings"),
    ("", "resourcequotas"),
    ("rbac.authorization.k8s.io", "rolebindings"),
)
UP = ("running", "updating", "updateFailed")


class WorkloadClusters:
    """The clusters of one kind of object. One machine at a time: new ones come before old ones of the same
    role go.
    """

    def __init__(
        self, shape: Shape, loop: Loop, guests: Guests, outside: Outside, admission: TanzuAdmission
    ) -> None:
        self.kinds, self._shape = (shape.key,), shape
        self._loop, self._cluster, self._guests, self._outside, self._admission = (
            loop,
            loop.cluster,
            guests,
            outside,
            admission,
        )
        self._off: dict[tuple[Where, str], str] = {}
        """Machines that can't be powered on, and why. They are tried again when GPUs may be free."""

    def look_again(self) -> None:
        """Try to power on what could not be."""
        self._off.clear()
        self._loop.look_again(self)

    def touched(self, change: Change) -> Iterable[Item]:
        """The clusters of a namespace whose offers or rights changed."""
        if change.key in OFFERS:
            for each in self._cluster.store.all(self._shape.key, namespace_of(change.after)):
                yield (self._shape.key, namespace_of(each), name_of(each))

    def look(self, item: Item, thing: Object | None) -> None:
        """The next step of one cluster."""
        where = (item[1], item[2])
        if thing is not None and not self._shape.holds(thing):
            return
        if thing is None:
            self._guests.close(where)
        elif thing["metadata"].get("deletionTimestamp"):
            self._write(
                thing,
                {
                    **thing.get("status", {}),
                    "phase": self._shape.status(thing, _going(self._nodes(where)))["phase"],
                },
            )
            self._loop.once(("deleted", uid_of(thing)), "delete", lambda: self._deleted(where, thing))
        elif why := self._admission.unmet(thing, list(self._pools(thing))):
            self._fail(thing, why)
        else:
            self._proceed(where, thing)

    def _proceed(self, where: Where, thing: Object) -> None:
        wanted, nodes = list(self._machines(thing)), self._nodes(where)
        if where in self._guests.running:
            self._furnish(where, thing)
        absent = [(name, pool) for name, pool in wanted if nodes.get(name) != "ready"]
        missing = next((each for each in absent if (where, each[0]) not in self._off), None)
        surplus = [name for name in nodes if name not in dict(wanted)]
        if missing is None:  # old machines stay until the new ones of their pool can be powered on
            kept = tuple(f"{where[1]}-{pool.name}-" for _, pool in absent if pool.surge)
            surplus = [name for name in surplus if not name.startswith(kept)]
        elif not missing[1].surge:
            first = [name for name in surplus if name.startswith(f"{where[1]}-{missing[1].name}-")]
            missing, surplus = (None, first) if first else (missing, surplus)
        if missing:
            name, pool = missing
            self._write(thing, self._status(thing, {**nodes, name: nodes.get(name, "pending")}))
            self._loop.once(
                ("machine", uid_of(thing), name),
                pool.duration,
                lambda: self._joined(where, uid_of(thing), name),
            )
        elif surplus:
            self._write(thing, self._status(thing, nodes))
            self._loop.once(
                ("leave", uid_of(thing), surplus[0]),
                "delete",
                lambda: self._left(where, uid_of(thing), surplus[0]),
            )
        else:
            self._write(thing, self._status(thing, nodes, done=not absent))

    def _joined(self, where: Where, uid: str, machine: str) -> None:
        thing = self._present(where, uid)
        if thing is None:
            return
        pool = dict(self._machines(thing)).get(machine)
        address = self._guests.address(where)
        if pool is None or address is None:
            if address is None:
                self._fail(
                    thing, ("LoadBalancerFailed", "no address is left for the API server of the cluster")
                )
            return
        if why := self._guests.power_on(where, machine, pool.vm_class):
            self._off[(where, machine)] = why
            self._cluster.event("PowerOnFailed", f"{machine}: {why}", thing)
            self._onwards(where, uid)
            return
        version = self._shape.release(thing).partition("-tkg")[0]
        guest = self._guests.open(where, version)
        size = self._outside.machine_classes()[pool.vm_class]
        number = int(hashlib.sha256(machine.encode()).hexdigest()[:4], 16)
        roles = ("control-plane", "master") if pool.name == CONTROL_PLANE else ()
        guest.add_node(
            machine,
            cpus=size.cpus,
            memory=size.memory,
            version=version,
            roles=roles,
            address=f"10.244.{number >> 8}.{number & 255}",
            labels=dict(pool.labels),
            taints=[json.loads(each) for each in pool.taints],
        )
        if guest.cluster.version != version:
            guest.upgrade(version)
        old = [
            name
            for name in self._nodes(where)
            if name not in dict(self._machines(thing)) and self._replaces(where, pool, machine, name)
        ]
        for name in old[:1]:
            self._drop_node(where, name)
        self._write(self._reachable(thing, address), self._status(thing, self._nodes(where)))
        self._onwards(where, uid)

    def _replaces(self, where: Where, pool: Pool, machine: str, old: str) -> bool:
        """Return whether a new machine of this pool replaces an old one."""
        return _role_of(old) == _role_of(machine)

    def _pools(self, thing: Object) -> Iterator[Pool]:
        return self._shape.pools(thing)

    def _left(self, where: Where, uid: str, machine: str) -> None:
        thing = self._present(where, uid)
        if thing is not None and machine not in dict(self._machines(thing)):
            self._drop_node(where, machine)
            self._write(thing, self._status(thing, self._nodes(where)))
            self._onwards(where, uid)

    def _onwards(self, where: Where, uid: str) -> None:
        """Add or remove the next machine. Not every status shows that, and an object whose status doesn't
        change is not reconciled again.
        """
        thing = self._present(where, uid)
        if thing:
            self._proceed(where, thing)

    def _reachable(self, thing: Object, address: str) -> Object:
        """Write the address of its API into a Cluster's spec."""
        if self._shape.key != CLUSTER_API or dig(thing, "spec", "controlPlaneEndpoint"):
            return thing
        return (
            self._cluster.change(
                thing,
                lambda live: live["spec"].__setitem__(
                    "controlPlaneEndpoint", {"host": address, "port": PORT}
                ),
                CONTROLLER,
            )
            or thing
        )

    def _nodes(self, where: Where) -> dict[str, str]:
        """The machines that joined."""
        guest = self._guests.running.get(where)
        return {name_of(node): "ready" for node in guest.cluster.all("", "nodes")} if guest else {}

    def _machines(self, thing: Object) -> Iterator[tuple[str, Pool]]:
        return machines(thing, self._shape.release(thing), self._pools(thing))

    def _drop_node(self, where: Where, name: str) -> None:
        guest = self._guests.running[where].cluster
        for pod in guest.all("", "pods"):
            if dig(pod, "spec", "nodeName") == name:
                guest.remove(pod)
        node = guest.get("", "nodes", name)
        if node:
            guest.remove(node)
        self._guests.power_off(where, name)

    def _why_off(self, thing: Object) -> str:
        """Which of its machines can't be powered on, and why; "" if all can."""
        where, wanted = (namespace_of(thing), name_of(thing)), dict(self._machines(thing))
        return "; ".join(
            f"{machine}: {why}"
            for (home, machine), why in self._off.items()
            if home == where and machine in wanted
        )

    def _present(self, where: Where, uid: str) -> Object | None:
        thing = self._cluster.store.get(self._shape.key, *where)
        return (
            thing
            if thing and uid_of(thing) == uid and not thing["metadata"].get("deletionTimestamp")
            else None
        )

    def _status(self, thing: Object, nodes: Mapping[str, str], *, done: bool = False) -> Object:
        before = thing.get("status", {})
        version = self._shape.release(thing)
        ran = self._shape.phase(thing) in UP
        ready = (
            ("Ready", True, "", "")
            if done
            else (
                "Ready",
                False,
                "WaitingForMachines",
                f"{_count(nodes)} of {len(list(self._machines(thing)))} machines are ready"
                + (f"; {off}" if (off := self._why_off(thing)) else ""),
            )
        )
        updates = newer(version, self._admission.releases)
        conditions = self._conditions(
            before,
            [
                ready,
                ("TanzuKubernetesReleaseCompatible", True, "", ""),
                ("UpdatesAvailable", bool(updates), "", f"[{' '.join(updates)}]" if updates else ""),
            ],
        )
        address = self._guests.addresses.get((namespace_of(thing), name_of(thing)), "")
        phase = "running" if done else ("updating" if ran else "creating")
        return self._shape.status(
            thing, Progress(phase, nodes, conditions, _addons(thing, version, done=done), address)
        )

    def _conditions(self, before: Object, wanted: Sequence[tuple[str, bool, str, str]]) -> list[Object]:
        old = {each["type"]: each for each in before.get("conditions", [])}
        made = [
            condition(
                kind, status=status, when=stamp(self._cluster.clock.now()), reason=reason, message=message
            )
            for kind, status, reason, message in wanted
        ]
        return [old[each["type"]] if _same(old.get(each["type"]), each) else each for each in made]

    def _fail(self, thing: Object, why: tuple[str, str]) -> None:
        before = thing.get("status", {})
        phase = "updateFailed" if self._shape.phase(thing) in UP else "failed"
        conditions = self._conditions(before, [("Ready", False, *why)])
        status = self._shape.status(
            thing,
            Progress(
                phase,
                {},
                conditions,
                {},
                self._guests.addresses.get((namespace_of(thing), name_of(thing)), ""),
            ),
        )
        self._write(thing, {**before, "phase": status["phase"], "conditions": conditions})
        self._cluster.event(why[0], why[1], thing)

    def _write(self, thing: Object, status: Object) -> None:
        if thing.get("status") != status:
            self._cluster.set_status(thing, status, CONTROLLER)

    def _furnish(self, where: Where, thing: Object) -> None:
        settings = dig(thing, "spec", "settings", "storage", default={})
        values = variables(dig(thing, "spec", "topology", "variables"))
        persistent = dig(values, "vsphereOptions", "persistentVolumes", default={})
        classes = (
            settings.get("classes")
            or values.get("storageClasses")
            or persistent.get("availableStorageClasses")
            or self._admission.storage_classes(where[0])
        )
        default = (
            settings.get("defaultClass")
            or values.get("defaultStorageClass")
            or persistent.get("defaultStorageClass", "")
        )
        subjects = [
            subject
            for binding in self._cluster.all("rbac.authorization.k8s.io", "rolebindings", where[0])
            if dig(binding, "roleRef", "name") in ("edit", "admin")
            for subject in binding.get("subjects", [])
        ]
        self._guests.furnish(where, classes, default, subjects)
        secure(self._guests.running[where].cluster, values)
        value = base64.b64encode(self._guests.kubeconfig(where).encode()).decode()
        secret = {
            "metadata": {
                "name": f"{where[1]}-kubeconfig",
                "namespace": where[0],
                "ownerReferences": [owned_by(thing)],
            }
        }
        self._cluster.ensure(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                **secret,
                "type": "cluster.x-k8s.io/secret",
                "data": {"value": value},
            },
            CONTROLLER,
        )

    def _deleted(self, where: Where, thing: Object) -> None:
        self._guests.close(where)
        left = [each for each in thing["metadata"].get("finalizers", []) if each != self._shape.finalizer]
        self._cluster.change(thing, lambda live: live["metadata"].__setitem__("finalizers", left), CONTROLLER)


def machines(thing: Object, version: str, pools: Iterable[Pool]) -> Iterator[tuple[str, Pool]]:
    """(name, pool) of the machines that a cluster should have; another version, class or storage class means
    other machines.
    """
    for pool in pools:
        seed = (
            f"{namespace_of(thing)}/{name_of(thing)} {pool.name} {version} {pool.vm_class} "
            f"{pool.storage_class} {pool.volumes}{pool.rest}"
        )
        group = hashlib.sha256(seed.encode()).hexdigest()
        for number in pool.numbers():
            own = hashlib.sha256(f"{seed} {number}".encode()).hexdigest()[:5]
            kind = (
                f"control-plane-{own}"
                if pool.name == CONTROL_PLANE
                else f"{pool.name}-{group[:5]}-{group[5:14]}-{own}"
            )
            yield f"{name_of(thing)}-{kind}", pool


def _going(nodes: Mapping[str, str]) -> Progress:
    return Progress("deleting", nodes, [], {}, "")


def _role_of(machine: str) -> bool:
    return "-control-plane-" in machine


def _count(nodes: Mapping[str, str]) -> int:
    return sum(1 for state in nodes.values() if state == "ready")


def _same(old: Object | None, new: Object) -> bool:
    return old is not None and all(old.get(key) == new.get(key) for key in ("status", "reason", "message"))


def _addons(thing: Object, version: str, *, done: bool) -> Object:
    cni = dig(thing, "spec", "settings", "network", "cni", "name", default="antrea")
    state = "applied" if done else "pending"
    names = {
        "cni": cni,
        "cloudprovider": "vmware-guest-cluster",
        "csi": "pvcsi",
        "dns": "CoreDNS",
        "proxy": "kube-proxy",
        "psp": "defaultpsp",
    }
    return {kind: {"name": name, "status": state, "version": version} for kind, name in names.items()}
