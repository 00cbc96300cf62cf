"""Connects the supervisors with vCenter: namespaces and classes from REST, accounts, GPUs, addresses."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.handler import Handler
from bfinfra.sandbox.handout import Api
from bfinfra.sandbox.inventory.vgpus import NONE, Wanted
from bfinfra.sandbox.kubernetes.outside import Outside, Person
from bfinfra.sandbox.kubernetes.supervisor import Access, NamespaceSpec, Supervisor
from bfinfra.sandbox.kubernetes.vmservice.images import Item
from bfinfra.sandbox.machine_gpus import MachineGpus
from bfinfra.sandbox.rest.class_devices import wanted
from bfinfra.sandbox.rest.published import source_of
from bfinfra.sandbox.sessions import full_name

if TYPE_CHECKING:
    from bfinfra.sandbox.bitfusion import BitfusionServers
    from bfinfra.sandbox.rest import RestState
    from bfinfra.sandbox.server import Listeners
    from bfinfra.sandbox.world import World
    from bfinfra.sandbox.world_hosts import Supervisor as Described

MIB = 2**20
PORTS = (443, 6443)
COUNTS = {  # vAPI's name → Kubernetes' name
    "pod_count": "pods",
    "service_count": "services",
    "deployment_count": "count/deployments.apps",
    "daemon_set_count": "count/daemonsets.apps",
    "replica_set_count": "count/replicasets.apps",
    "replication_controller_count": "replicationcontrollers",
    "stateful_set_count": "count/statefulsets.apps",
    "config_map_count": "configmaps",
    "secret_count": "secrets",
    "persistent_volume_claim_count": "persistentvolumeclaims",
    "job_count": "count/jobs.batch",
}


@dataclass(frozen=True)
class MachineClass:
    """A virtual machine class as the supervisor shows it. `memory` in bytes; `devices`: its GPUs."""

    cpus: int
    memory: int
    devices: Wanted = NONE

    @property
    def gpus(self) -> int:
        """How many it has."""
        return self.devices.count


class Supervisors:
    """The supervisors by the id of their cluster. They follow the changes in vCenter."""

    def __init__(self, rest: RestState, listeners: Listeners, bitfusion: BitfusionServers) -> None:
        self._rest, self._listeners, world = rest, listeners, rest.world
        self._homes: dict[
            str, str
        ] = {}  # namespace → cluster; its record no longer exists when the supervisor is notified
        self._saved: Mapping[str, Any] = {}  # of those that run again only once vCenter has them RUNNING
        self._outside = Outside(
            durations=world.durations,
            ca_pem=rest.pki.ca_pem,
            registries=world.registries,
            images=world.images,
            machine_classes=self._classes,
            gpu_server=bitfusion.running.get,
            gpu_servers=lambda: dict(bitfusion.running),
            serves=bitfusion.serves,
            login=_logins(world),
            open=listeners.open,
            close=listeners.close,
        )
        self.all = {
            moid: self._built(str(cluster.name), each) for moid, (cluster, each) in rest.supervisors().items()
        }
        self._names = {moid: str(cluster.name) for moid, (cluster, _) in rest.supervisors().items()}
        rest.supervisor_hooks.append(self._supervisor)
        rest.namespace_hooks.append(self._namespace)
        rest.class_hooks.append(lambda _name, _info: self._sync())
        rest.inventory.room_hooks.append(self._look_again)

    def open(self) -> None:
        """Start to listen."""
        for each in self.all.values():
            each.open()

    def save(self) -> dict[str, Any]:
        """Return the state that survives a restart, by address."""
        return {each.address: each.save() for each in self.all.values()}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Load what `save` returned."""
        self._saved = data
        for each in self.all.values():
            if each.address in data:
                each.restore(data[each.address])

    def reset(self) -> None:
        """Reset all supervisors to their state at the start."""
        self._homes.clear()
        for each in self.all.values():
            each.reset()

    def expire(self) -> None:
        """Expire every token."""
        for each in self.all.values():
            each.expire()

    def dump(self) -> dict[str, Any]:
        """A dump without generated ids and times, by address."""
        return {each.address: each.dump() for each in self.all.values()}

    def open_sessions(self) -> list[str]:
        """Names of users with valid tokens."""
        clusters = [
            cluster for each in self.all.values() for cluster in (each.running, *each.guests.running.values())
        ]
        return sorted(name for each in clusters for name in each.cluster.tokens.open())

    def logins(self) -> dict[str, str]:
        """Address of the supervisor's login by the name of its cluster."""
        return {self._names[moid]: f"{each.address}:{PORTS[0]}" for moid, each in self.all.items()}

    def apis(self) -> dict[str, Api]:
        """The APIs of supervisors by their cluster's name, and of their workload clusters by
        namespace/name.
        """
        found = {
            self._names[moid]: Api(f"{each.address}:{PORTS[1]}", each.cluster.admin_token)
            for moid, each in self.all.items()
        }
        for each in self.all.values():
            addresses = dict(each.guests.addresses)  # a copy: guests come and go in other threads
            for where, guest in sorted(dict(each.guests.running).items()):
                found["/".join(where)] = Api(
                    f"{addresses.get(where, '')}:{PORTS[1]}", guest.cluster.admin_token
                )
        return found

    def as_administrator(self, address: str) -> tuple[Handler | None, dict[str, str]]:
        """The API behind an address, and the headers of its administrator; None where there is none."""
        for each in self.all.values():
            apis = {f"{each.address}:{port}": each.cluster for port in PORTS}
            apis |= {
                f"{each.guests.addresses[where]}:6443": guest.cluster
                for where, guest in each.guests.running.items()
            }
            if address in apis:
                return apis[address].handler, {"authorization": f"Bearer {apis[address].admin_token}"}
        return None, {}

    def _built(self, cluster: str, each: Described) -> Supervisor:
        world = self._rest.world
        hosts = tuple(world.clusters[cluster].hosts)
        gpus = MachineGpus(self._rest.inventory, cluster, self._wanted)
        return Supervisor(
            each.address,
            each.version,
            self._rest.clock,
            replace(self._outside, power_on=gpus.power_on, power_off=gpus.power_off, devices=gpus.devices),
            releases=world.tanzu_releases,
            pool=each.guest_addresses(),
            hosts=hosts,
            vks=world.vks,
        )

    def _supervisor(self, moid: str) -> None:
        """Start a supervisor that was enabled, or remove one that was disabled."""
        described = self._rest.supervisors().get(moid)
        if described is None:
            gone = self.all.get(moid)
            if gone:
                self.all = {
                    cluster: each for cluster, each in self.all.items() if cluster != moid
                }  # others look through it meanwhile
                gone.close()
                for port in PORTS:
                    self._listeners.close(f"{gone.address}:{port}")
        elif moid not in self.all:
            self._names[moid] = str(described[0].name)
            made = self._built(self._names[moid], described[1])
            made.open()
            if made.address in self._saved:
                made.restore(self._saved[made.address])
            self.all = {**self.all, moid: made}

    def _namespace(self, name: str, info: dict[str, Any] | None) -> None:
        if info is None:
            supervisor = self.all.get(self._homes.pop(name, ""))
            if supervisor:
                supervisor.namespace_removed(name)
        elif info["cluster"] in self.all:
            self._homes[name] = info["cluster"]
            self.all[info["cluster"]].namespace_ready(name, self._spec(info))

    def _spec(self, info: dict[str, Any]) -> NamespaceSpec:
        policies, quota = self._rest.policies(), info.get("resource_spec", {})
        counts = {kubernetes: str(quota[name]) for name, kubernetes in COUNTS.items() if name in quota}
        if "storage_request_limit" in quota:
            counts["requests.storage"] = f"{quota['storage_request_limit']}Mi"
        return NamespaceSpec(
            storage={policies[each["policy"]][0]: each.get("limit") for each in info["storage_specs"]},
            vm_classes=tuple(info["vm_service_spec"].get("vm_classes", ())),
            access=tuple(
                Access(f"{each['subject']}@{each['domain']}", each["role"], each["subject_type"])
                for each in info["access_list"]
            ),
            counts=counts,
            images=tuple(self._images(info["vm_service_spec"].get("content_libraries", ()))),
        )

    def _images(self, libraries: Sequence[str]) -> Iterator[Item]:
        """The items of a namespace's libraries that machines can be made of."""
        for each in self._rest.items.values():
            library = self._rest.libraries.get(each["library_id"])
            if library is not None and library["id"] in libraries and each["type"] == "ovf":
                listens = self._rest.world.published.get(source_of(library), {}).get(each["name"], ())
                yield Item(library["name"], library["id"], each["name"], each["id"], tuple(listens))

    def _classes(self) -> Mapping[str, MachineClass]:
        with self._rest.lock:
            return {
                name: MachineClass(each["cpu_count"], each["memory_MB"] * MIB, wanted(each))
                for name, each in self._rest.vm_classes.items()
            }

    def _wanted(self, vm_class: str) -> Wanted:
        with self._rest.lock:
            return wanted(self._rest.vm_classes.get(vm_class, {}))

    def _look_again(self) -> None:
        """Machines that wait for GPUs may get them now."""
        for each in self.all.values():
            each.look_again()

    def _sync(self) -> None:
        for each in self.all.values():
            each.sync_classes()


def _logins(world: World) -> Callable[[str, str], Person | None]:
    users = {user.name.lower(): user for user in world.users}

    def login(name: str, password: str) -> Person | None:
        user = users.get(full_name(name).lower())
        if user is None or not secrets.compare_digest(str(user.password).encode(), password.encode()):
            return None
        return Person(user.name, user.groups, user.role == "admin")

    return login
