"""VM classes over REST. Source: com.vmware.vcenter.namespace_management.VirtualMachineClasses (vmware-vcenter
9.1).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.backends.vcenter import class_devices
from bfinfra.backends.vcenter.class_devices import ClassDevices, Components, Device, one_of
from bfinfra.model.errors import Malformed, Missing, Rejected
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.client import VCenter

__all__ = ["ClassStorage", "Device", "VmClass", "VmClasses", "one_of", "read"]

VM_CLASSES = "/api/vcenter/namespace-management/virtual-machine-classes"
POLICIES = "/api/vcenter/storage/policies"
CONFIG_SPEC = (8, 0, 2)
"""The first version with `config_spec`, where `devices` is for writing only."""
SETTABLE = ("cpu_count", "memory_MB", "cpu_reservation", "memory_reservation", "instance_storage")
"""What a call can set besides the description and the devices."""
Json = dict[str, Any]
Answer = Mapping[str, Any]
MIB = 2**20


@dataclass(frozen=True, slots=True)
class ClassStorage:
    """Disks on the hosts' own storage, in bytes each; `policy`: the storage policy's name."""

    policy: str
    volumes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class VmClass:
    """`memory` in bytes; the reservations are per cent of cpus and memory; `vgpus`: profiles; `groups`:
    vendor device groups; `others`: PCI devices that a site has no words for; `namespaces`: those that offer
    it.
    """

    cpus: int
    memory: int
    cpu_reservation: int = 0
    memory_reservation: int = 0
    description: str = ""
    vgpus: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    groups: tuple[str, ...] = ()
    storage: ClassStorage | None = None
    others: int = field(default=0, compare=False)
    namespaces: tuple[str, ...] = field(default=(), compare=False)


class VmClasses:
    """The VM classes of one vCenter. Raises RemoteError."""

    def __init__(self, vcenter: VCenter) -> None:
        self._vcenter = vcenter
        self._rest = vcenter.rest

    def list(self) -> Mapping[str, VmClass]:
        """Every class that isn't being deleted, in one read; () without vSphere with Tanzu."""
        try:
            found = self._rest.get(VM_CLASSES)
        except Missing:
            return {}
        if not isinstance(found, list):
            raise Malformed(
                "the VM classes can't be read", server=self._rest.server, why=type(found).__name__
            )
        there = [each for each in found if each.get("config_status") != "REMOVING"]
        stored = any(each.get("instance_storage") for each in there)
        names = {identity: name for name, identity in self._policies().items()} if stored else {}
        return {each["id"]: read(each, names) for each in there}

    @property
    def specified(self) -> bool:
        """True if this vCenter has the devices of classes in `config_spec`."""
        version = self._vcenter.about()[1].split(".")
        return tuple(int(each) for each in version[:3] if each.isdigit()) >= CONFIG_SPEC

    def create(self, name: str, wanted: VmClass, components: Components | None = None) -> None:
        """Make a class. `components`: the devices of its groups. Raises Rejected for a group that isn't among
        them.
        """
        fields = self._body(wanted, lambda _: True)
        devices = self._devices(wanted, class_devices.SORTS, components or {}, {})
        self._rest.post(VM_CLASSES, {"id": name, "description": wanted.description, **fields, **devices})

    def update(
        self, name: str, wanted: VmClass, writes: Callable[[str], bool], components: Components | None = None
    ) -> None:
        """Set the description, and the fields of which `writes` says so, by their names in a site. All others
        stay, and are sent as they are, as a call without a reservation removes it. Existing VMs keep what
        they have.
        """
        now = self._rest.get(f"{VM_CLASSES}/{quote(name)}")
        told = (*SETTABLE, "config_spec" if self.specified else "devices")
        kept = {each: now[each] for each in told if now.get(each) is not None}
        given = self._body(wanted, writes)
        sorts = {sort for sort in class_devices.SORTS if writes(sort)}
        if sorts:
            given |= self._devices(wanted, sorts, components or {}, now)
        self._rest.patch(f"{VM_CLASSES}/{quote(name)}", {**kept, **given, "description": wanted.description})

    def delete(self, name: str) -> None:
        """Delete a class. One that is already gone is fine. Refused while a namespace offers it."""
        try:
            self._rest.delete(f"{VM_CLASSES}/{quote(name)}")
        except Missing:
            return

    def _policies(self) -> Mapping[str, str]:
        """Name → id of every storage policy."""
        return {str(each["name"]): str(each["policy"]) for each in self._rest.get(POLICIES)}

    def _body(self, wanted: VmClass, writes: Callable[[str], bool]) -> Json:
        """The fields to write, without description and devices."""
        found = {
            "cpus": ("cpu_count", wanted.cpus),
            "memory": ("memory_MB", wanted.memory // MIB),
            "cpu_reservation": ("cpu_reservation", wanted.cpu_reservation),
            "memory_reservation": ("memory_reservation", wanted.memory_reservation),
        }
        body: Json = {name: value for field, (name, value) in found.items() if writes(field)}
        if wanted.storage is not None and writes("instance_storage"):
            volumes = [{"size": each // MIB} for each in wanted.storage.volumes]
            policy = self._policies().get(wanted.storage.policy)
            if policy is None:
                raise Rejected(
                    f"there is no storage policy {wanted.storage.policy}", server=self._rest.server
                )
            body["instance_storage"] = {"policy": policy, "volumes": volumes}
        return body

    def _devices(self, wanted: VmClass, sorts: Container[str], components: Components, now: Answer) -> Json:
        """The devices of the class with the desired ones of these sorts. `now`: the class as it is."""
        devices = ClassDevices(wanted.vgpus, wanted.devices, wanted.groups)
        if not self.specified:
            return {"devices": class_devices.relisted(now.get("devices"), devices, sorts)}
        try:
            spec = class_devices.written(now.get("config_spec"), devices, components, sorts)
        except KeyError as error:
            raise Rejected(
                f"no host offers the device group {error.args[0]}", server=self._rest.server
            ) from None
        return {} if spec is None else {"config_spec": spec}


def read(info: Answer, policies: Mapping[str, str] | None = None) -> VmClass:
    """A class from the API's description. `policies`: id → name; one that isn't there stays an id."""
    listed = info.get("devices")
    found = class_devices.listed(listed) if listed else class_devices.specified(info.get("config_spec") or {})
    return VmClass(
        info.get("cpu_count") or 0,
        (info.get("memory_MB") or 0) * MIB,
        info.get("cpu_reservation") or 0,
        info.get("memory_reservation") or 0,
        info.get("description") or "",
        found.vgpus,
        found.devices,
        found.groups,
        _storage(info.get("instance_storage"), policies or {}),
        found.others,
        tuple(sorted(info.get("namespaces") or ())),
    )


def _storage(found: Answer | None, policies: Mapping[str, str]) -> ClassStorage | None:
    if not found:
        return None
    sizes = (each["size"] * MIB for each in found["volumes"])
    return ClassStorage(policies.get(found["policy"], found["policy"]), tuple(sorted(sizes)))
