"""VM classes over REST. Source: com.vmware.vcenter.namespace_management.VirtualMachineClasses (vmware-vcenter
9.1).
"""

from __future__ import annotations

from collections.abc import Mapping
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
        self._rest.post(VM_CLASSES, {"id": name, **self._body(wanted, None, components or {})})

    def update(self, name: str, wanted: VmClass, components: Components | None = None) -> None:
        """Set everything that can be set; existing VMs keep what they have, and `config_spec` what others put
        into it.
        """
        now = self._rest.get(f"{VM_CLASSES}/{quote(name)}") if self.specified else {}
        body = self._body(wanted, now.get("config_spec"), components or {})
        self._rest.patch(f"{VM_CLASSES}/{quote(name)}", body)

    def delete(self, name: str) -> None:
        """Delete a class. One that is already gone is fine. Refused while a namespace offers it."""
        try:
            self._rest.delete(f"{VM_CLASSES}/{quote(name)}")
        except Missing:
            return

    def _policies(self) -> Mapping[str, str]:
        """Name → id of every storage policy."""
        return {str(each["name"]): str(each["policy"]) for each in self._rest.get(POLICIES)}

    def _body(
        self, wanted: VmClass, now: Mapping[str, object] | None, components: Components
    ) -> dict[str, Any]:
        body = {
            "cpu_count": wanted.cpus,
            "memory_MB": wanted.memory // MIB,
            "cpu_reservation": wanted.cpu_reservation,
            "memory_reservation": wanted.memory_reservation,
            "description": wanted.description,
        }
        if wanted.storage is not None:
            volumes = [{"size": each // MIB} for each in wanted.storage.volumes]
            policy = self._policies().get(wanted.storage.policy)
            if policy is None:
                raise Rejected(
                    f"there is no storage policy {wanted.storage.policy}", server=self._rest.server
                )
            body["instance_storage"] = {"policy": policy, "volumes": volumes}
        devices = ClassDevices(wanted.vgpus, wanted.devices, wanted.groups)
        if self.specified:
            try:
                spec = class_devices.written(now, devices, components)
            except KeyError as error:
                raise Rejected(
                    f"no host offers the device group {error.args[0]}", server=self._rest.server
                ) from None
            return body if spec is None else {**body, "config_spec": spec}
        return {**body, "devices": class_devices.as_list(devices)}


def read(info: Mapping[str, Any], policies: Mapping[str, str] | None = None) -> VmClass:
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


def _storage(found: Mapping[str, Any] | None, policies: Mapping[str, str]) -> ClassStorage | None:
    if not found:
        return None
    sizes = (each["size"] * MIB for each in found["volumes"])
    return ClassStorage(policies.get(found["policy"], found["policy"]), tuple(sorted(sizes)))
