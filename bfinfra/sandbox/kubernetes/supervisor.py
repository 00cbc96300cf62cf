"""A supervisor: a cluster whose namespaces come from vCenter and whose users log in with vCenter's
accounts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.controllers.claims import storage_class
from bfinfra.sandbox.kubernetes.controllers.tanzu import WorkloadClusters
from bfinfra.sandbox.kubernetes.controllers.tanzu_admission import TanzuAdmission
from bfinfra.sandbox.kubernetes.errors import Refused, forbidden
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.guests import PORT, Guests
from bfinfra.sandbox.kubernetes.login import Login
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of, stamp
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.releases import release
from bfinfra.sandbox.kubernetes.supervisor_rights import bindings, extend_roles
from bfinfra.sandbox.kubernetes.tanzu_definitions import definitions
from bfinfra.sandbox.kubernetes.tanzu_shapes import CLUSTER_API, SHAPES, TANZU
from bfinfra.sandbox.kubernetes.tanzu_versions import convert
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.vks.addons import Addons
from bfinfra.sandbox.kubernetes.vks.admission import VksAdmission
from bfinfra.sandbox.kubernetes.vks.autoscaler import Autoscaler
from bfinfra.sandbox.kubernetes.vks.clusters import VksClusters
from bfinfra.sandbox.kubernetes.vks.definitions import definitions as vks_definitions
from bfinfra.sandbox.kubernetes.vks.offered import Vks, offered
from bfinfra.sandbox.kubernetes.vks.versions import convert as convert_cluster
from bfinfra.sandbox.kubernetes.vmservice.admission import VmAdmission
from bfinfra.sandbox.kubernetes.vmservice.definitions import definitions as vm_definitions
from bfinfra.sandbox.kubernetes.vmservice.images import Item, images
from bfinfra.sandbox.kubernetes.vmservice.machines import Exposed, Machines

WCP = "wcp"  # the manager of what vCenter writes
MANAGED = "vSphereClusterID"
UNLIMITED = "9223372036854775807"
MACHINES = "vmoperator.vmware.com/v1alpha1"
NAMESPACED_CLASSES = 26  # minor version from which machine classes are objects of namespaces, vSphere 8.0.2
FIRST_DEFINITION = 18  # minor version up to which clusters have the definition of 2021


@dataclass(frozen=True)
class Access:
    """A permission in a namespace. `subject` is name@domain; `role` OWNER, EDIT or VIEW; `kind` USER or
    GROUP.
    """

    subject: str
    role: str
    kind: str = "USER"


@dataclass(frozen=True)
class NamespaceSpec:
    """A supervisor namespace as vCenter configures it. `storage`: policy name → limit in MiB, None =
    unlimited; `counts`: quota name → most; `images`: the items of its content libraries.
    """

    storage: Mapping[str, int | None] = field(default_factory=dict)
    vm_classes: Sequence[str] = ()
    access: Sequence[Access] = ()
    counts: Mapping[str, str] = field(default_factory=dict)
    images: Sequence[Item] = ()


class Supervisor:
    """Opens <address>:443 (login, and the API behind it) and <address>:6443 (the API)."""

    def __init__(  # noqa: PLR0913 - one decision's whole input
        self,
        address: str,
        version: str,
        clock: Clock,
        outside: Outside,
        *,
        releases: Sequence[str] = (),
        pool: Sequence[str] = (),
        hosts: Sequence[str] = (),
        vks: Vks | None = None,
    ) -> None:
        self.address, self.releases, self._hosts, self._outside = (
            address,
            tuple(releases),
            tuple(hosts),
            outside,
        )
        self._namespaced_classes = int(version.split(".")[1]) >= NAMESPACED_CLASSES
        self._first_definition = int(version.split(".")[1]) <= FIRST_DEFINITION
        self.running = RunningCluster(
            address,
            version,
            clock,
            outside,
            converts={".".join(reversed(TANZU)): convert, ".".join(reversed(CLUSTER_API)): convert_cluster},
        )
        self.cluster = self.running.cluster
        self._vks = vks
        self.guests = Guests(clock, outside, pool)
        admission = TanzuAdmission(self.cluster, releases, classes=vks is not None)
        loop = self.running.loop
        self._with_gpus: list[WorkloadClusters | Machines] = [
            WorkloadClusters(shape, loop, self.guests, outside, admission) for shape in SHAPES
        ]
        if vks is not None:
            VksAdmission(self.cluster, vks)
            clusters = VksClusters(loop, self.guests, outside, admission)
            self._with_gpus.append(clusters)
            loop.add(Addons(loop), Autoscaler(loop, self.guests, outside, clusters))
        if self._namespaced_classes:
            VmAdmission(self.cluster, admission.storage_classes)
            self._with_gpus.append(Machines(loop, outside))
            loop.add(Exposed(loop, self.guests))
        loop.add(*self._with_gpus)
        self.cluster.admissions.append(self._guard)
        self.cluster.delete_admissions.append(self._guard_delete)
        self.login = Login(address, self.cluster, self.guests, self.namespaces, outside)

    def open(self) -> None:
        """Start and be reachable."""
        self.start()
        self._outside.open(f"{self.address}:443", self.login.handler, "kubernetes")
        self._outside.open(f"{self.address}:{PORT}", self.cluster.handler, "kubernetes")

    def start(self) -> None:
        """Fill in what a supervisor has, and let it work."""
        known = definitions(
            namespaced_classes=self._namespaced_classes,
            first=self._first_definition,
            v1beta2=self._vks is not None and self._vks.v1beta2,
        )
        for definition in (
            *known,
            *(vks_definitions(v1beta2=self._vks.v1beta2) if self._vks else ()),
            *(vm_definitions() if self._namespaced_classes else ()),
        ):
            self.running.definitions.serve(definition)
            self.cluster.ensure(definition, WCP)
            self.running.definitions.establish(definition["metadata"]["name"])  # a supervisor comes with them
        self.running.start()
        extend_roles(self.cluster)
        for version in self.releases:
            self.cluster.ensure(release(version, stamp(self.cluster.clock.now())), WCP)
        for each in offered(self._vks, stamp(self.cluster.clock.now())) if self._vks else ():
            self.cluster.ensure(each, WCP)
        for number in range(3):
            self.running.add_node(
                f"421c4213dca964f747952ed1167baf{number:02x}",
                cpus=4,
                memory=2**34,
                version=self.cluster.version,
                roles=("control-plane", "master"),
            )
        for host in self._hosts:
            self.running.add_node(
                host.partition(".")[0].lower(),
                cpus=40,
                memory=2**39,
                version=self.cluster.version,
                roles=("agent",),
            )
        self.sync_classes()

    def look_again(self) -> None:
        """Try to power on machines that have waited for GPUs."""
        with self.cluster.store.lock:
            for each in self._with_gpus:
                each.look_again()
            for guest in self.guests.running.values():
                guest.loop.look_at_all()

    def sync_classes(self) -> None:
        """Show the machine classes as they are now."""
        wanted = self._outside.machine_classes()
        for name in () if self._namespaced_classes else wanted:
            self.cluster.ensure(self._class(name), WCP)
        for thing in self.cluster.all("vmoperator.vmware.com", "virtualmachineclasses"):
            if name_of(thing) not in wanted:
                self.cluster.remove(thing)

    def namespace_ready(self, name: str, spec: NamespaceSpec) -> None:
        """A namespace is RUNNING in vCenter, or was changed there: let it be so here."""
        with self.cluster.store.lock:
            annotations = {
                "vmware-system-resource-pool": f"resgroup-{name}",
                "vmware-system-vm-folder": f"group-v-{name}",
            }
            labels = {MANAGED: "domain-c8"}
            self.cluster.ensure(
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": name, "annotations": annotations, "labels": labels},
                },
                WCP,
            )
            self._storage(name, spec)
            self._classes(name, spec)
            for group, plural, shown in images(name, spec.images, self._since(name)):
                if self._namespaced_classes:
                    self._sync(name, group, plural, shown)
            self._sync(
                name,
                "rbac.authorization.k8s.io",
                "rolebindings",
                bindings(name, [(each.kind, each.subject, each.role) for each in spec.access]),
            )

    def _since(self, name: str) -> str:
        """Return the time at which a namespace was made."""
        return str(dig(self.cluster.get("", "namespaces", name), "metadata", "creationTimestamp"))

    def namespace_removed(self, name: str) -> None:
        """Delete everything in a namespace that vCenter has deleted."""
        found = self.cluster.get("", "namespaces", name)
        if found:
            self.cluster.remove(found)
        self._sweep(but=name)

    def _sweep(self, but: str) -> None:
        """Delete a storage class with the last namespace that offers its policy."""
        quotas = [each for each in self.cluster.all("", "resourcequotas") if namespace_of(each) != but]
        used = {key.partition(".")[0] for each in quotas for key in dig(each, "spec", "hard") or {}}
        for thing in self.cluster.all("storage.k8s.io", "storageclasses"):
            if name_of(thing) not in used:
                self.cluster.remove(thing)

    def namespaces(self) -> list[str]:
        """Names of the namespaces that came from vCenter."""
        return [
            name_of(each)
            for each in self.cluster.all("", "namespaces")
            if MANAGED in (each["metadata"].get("labels") or {})
        ]

    def expire(self) -> None:
        """End every token that was given out, here and in the guests."""
        for cluster in (self.running, *self.guests.running.values()):
            cluster.cluster.tokens.end_all()

    def open_tokens(self) -> list[str]:
        """Names of the users whose tokens are still good, here and in the guests."""
        return [
            name
            for each in (self.running, *self.guests.running.values())
            for name in each.cluster.tokens.open()
        ]

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart."""
        with self.cluster.store.lock:
            return {"supervisor": self.running.save(), "guests": self.guests.save()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take over what `save` gave, guests and their addresses too. Before or after `open`."""
        self.running.restore(data["supervisor"])
        self.guests.restore(list(data["guests"]))
        self.start()

    def reset(self) -> None:
        """Reset it: no namespaces, no workload clusters, no tokens."""
        self.expire()
        if self.guests.running or not self.running.as_new:
            self.guests.close_all()
            if self.running.renew():
                self.sync_classes()
            else:
                self.running.clear()
                self.start()

    def dump(self) -> dict[str, Any]:
        """Without generated ids and times: two equal supervisors dump equal."""
        guests = {
            f"{namespace}/{name}": each.cluster.dump()
            for (namespace, name), each in sorted(self.guests.running.items())
        }
        return {"supervisor": self.cluster.dump(), "guests": guests}

    def close(self) -> None:
        """End every watch and guest; the addresses are closed by the part that opened them."""
        self.guests.close_all()
        self.cluster.close()

    def _storage(self, name: str, spec: NamespaceSpec) -> None:
        hard = dict(spec.counts)
        for policy, limit in spec.storage.items():
            kind = class_name(policy)
            self.cluster.ensure(storage_class(kind, policy=policy), WCP)
            hard[f"{kind}.storageclass.storage.k8s.io/requests.storage"] = (
                UNLIMITED if limit is None else f"{limit}Mi"
            )
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": f"{name}-storagequota", "namespace": name},
            "spec": {"hard": hard},
        }
        self._sync(name, "", "resourcequotas", [quota])

    def _class(self, name: str, **place: str) -> Object:
        each = self._outside.machine_classes()[name]
        hardware = {"cpus": each.cpus, "memory": f"{each.memory // 2**20}Mi"}
        return {
            "apiVersion": MACHINES,
            "kind": "VirtualMachineClass",
            "metadata": {"name": name, **place},
            "spec": {"hardware": hardware},
        }

    def _classes(self, name: str, spec: NamespaceSpec) -> None:
        """Newer supervisors have the classes in the namespace, and serve bindings that nothing fills."""
        if self._namespaced_classes:
            there = self._outside.machine_classes()
            classes = [self._class(each, namespace=name) for each in spec.vm_classes if each in there]
            self._sync(name, "vmoperator.vmware.com", "virtualmachineclasses", classes)
            return
        self._sync(
            name,
            "vmoperator.vmware.com",
            "virtualmachineclassbindings",
            [
                {
                    "apiVersion": MACHINES,
                    "kind": "VirtualMachineClassBinding",
                    "metadata": {"name": each, "namespace": name},
                    "classRef": {"apiVersion": MACHINES, "kind": "VirtualMachineClass", "name": each},
                }
                for each in spec.vm_classes
            ],
        )

    def _sync(self, namespace: str, group: str, plural: str, wanted: Sequence[Object]) -> None:
        fixed = {
            name_of(each): each.get("roleRef") for each in wanted
        }  # a binding's role can't change: it is created again
        for each in self.cluster.all(group, plural, namespace):
            kept = name_of(each) in fixed and each.get("roleRef") == fixed[name_of(each)]
            if not kept and any(
                entry.get("manager") == WCP for entry in each["metadata"].get("managedFields", [])
            ):
                self.cluster.remove(each)
        for each in wanted:
            live = self.cluster.ensure(each, WCP)
            body = {
                key: value for key, value in each.items() if key not in ("metadata", "apiVersion", "kind")
            }
            if any(live.get(key) != value for key, value in body.items()):
                self.cluster.change(live, partial(_update, body=body), WCP)

    def _guard(self, target: Target, before: Object | None, after: Object, options: Options) -> Object:
        if before is None and target.resource.key == ("", "namespaces") and options.user is not None:
            raise _not_here(name_of(after))
        return after

    def _guard_delete(self, target: Target, stored: Object, options: Options) -> None:
        if target.resource.key == ("", "namespaces") and options.user is not None:
            raise _not_here(name_of(stored))


def class_name(policy: str) -> str:
    """The storage class that a storage policy becomes."""
    return "".join(each if each.isalnum() or each in "-." else "-" for each in policy.lower()).strip("-.")


def _not_here(name: str) -> Refused:
    return forbidden("namespaces", "", name, "namespaces of a supervisor are made and removed in vCenter")


def _update(live: Object, body: Object) -> None:
    live.update(body)
