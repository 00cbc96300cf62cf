"""Hosts: PCI devices and passthrough, the VMs that have them, maintenance, reboot, and notes in custom
attributes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyVmomi import vim

from bfinfra.backends import background
from bfinfra.backends.vcenter import attributes, properties, refs, tree
from bfinfra.backends.vcenter.esxi import Card, Holder, HostDetail, PciDevice, Room
from bfinfra.backends.vcenter.leases import Leases
from bfinfra.backends.vcenter.machines import with_devices
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.vcenter.tasks import Tasks
from bfinfra.backends.vcenter.tree import number, truth
from bfinfra.backends.vcenter.vm import Vm
from bfinfra.model import waits
from bfinfra.model.errors import Conflict, Denied, Rejected

DETAIL = [
    "name",
    "parent",
    "runtime.connectionState",
    "runtime.inMaintenanceMode",
    "runtime.bootTime",
    "hardware.pciDevice",
    "config.pciPassthruInfo",
    "config.sharedPassthruGpuTypes",
    "customValue",
    "vm",
    "datastore",
    "network",
]
ROOM = [
    "hardware.memorySize",
    "hardware.cpuInfo.numCpuThreads",
    "config.sharedPassthruGpuTypes",
    "config.graphicsInfo",
    "network",
    "vm",
]
RESERVED = ["name", "runtime.powerState", "runtime.host", "config.memoryAllocation.reservation"]
NOTED: Mapping[type[Any], Sequence[str]] = {
    vim.HostSystem: ["name", "customValue", "vm"],
    vim.ComputeResource: ["name"],
}
SHARED = "sharedDirect"  # the graphics type of cards that give vGPUs
LEAVING = 900  # seconds that a host may take to shut down


class Hosts:
    """Bulk reads, and one small method for each write."""

    def __init__(self, session: SoapSession, tasks: Tasks) -> None:
        self._session = session
        self._tasks = tasks
        self._notes = attributes.LastOne()
        self.leases = Leases(session)

    def notes(self, *noted: str) -> dict[str, tuple[str, str]]:
        """Every host by name: its id and the values of these custom attributes, one after the other ("" if
        none is set). Names may repeat never.
        """
        return self.survey(*noted)[0]

    def survey(
        self, *noted: str
    ) -> tuple[dict[str, tuple[str, str]], dict[str, str], dict[str, tuple[str, ...]]]:
        """In one bulk read: the notes; id → name of each cluster (or standalone host); the ids of the VMs on
        each host.
        """

        def read(
            content: vim.ServiceInstanceContent,
        ) -> tuple[dict[str, tuple[str, str]], dict[str, str], dict[str, tuple[str, ...]]]:
            rows = properties.below(
                content, content.rootFolder, NOTED, properties.whole, _definitions(content)
            )
            keys = {key: name for row in rows for key, name in attributes.names(row).items()}
            hosts = [row for row in rows if isinstance(row.ref, vim.HostSystem)]
            notes = {
                row.name: (row.moid, "".join(values.get(each, "") for each in noted))
                for row in hosts
                for values in [_attributes(_values(row), keys)]
            }
            clusters = {row.moid: row.name for row in rows if isinstance(row.ref, vim.ComputeResource)}
            return notes, clusters, {row.moid: tuple(map(refs.moid, row["vm"] or ())) for row in hosts}

        return self._session.read(read)

    def read(
        self, moids: Iterable[str], mark_key: str, keys: Iterable[str] = (), machines: Collection[str] = ()
    ) -> list[HostDetail]:
        """These hosts in detail, with the VMs there that have PCI devices.

        `mark_key`: the extraConfig key of VMs' marks; `keys`: further ones to read; `machines`: ids of known
        VMs there, which are read meanwhile.
        """
        listed, wanted, known = list(moids), list(dict.fromkeys([mark_key, *keys])), frozenset(machines)

        def read(content: vim.ServiceInstanceContent) -> list[HostDetail]:
            seen = background.start(lambda: with_devices(content, machines, wanted), "machines")
            defined: dict[int, str] = {}
            found: list[tuple[HostDetail, dict[int, str], Sequence[Any]]] = []

            def take(row: Row) -> None:
                if isinstance(row.ref, vim.HostSystem):
                    found.append((_detail(row), _values(row), row["vm"] or ()))
                defined.update(attributes.names(row))

            properties.of(content, vim.HostSystem, listed, DETAIL, take, _definitions(content))
            self.leases.look(content, defined)
            held: dict[str, list[Holder]] = {}
            since = [moid for *_, there in found for vm in there if (moid := refs.moid(vm)) not in known]
            for machine in (*seen.result(), *with_devices(content, since, wanted)):
                held.setdefault(machine.host, []).append(_holder(machine, mark_key))
            holders = {moid: sorted(each, key=lambda holder: holder.moid) for moid, each in held.items()}
            return [
                replace(
                    host, attributes=_attributes(values, defined), holders=tuple(holders.get(host.moid, ()))
                )
                for host, values, _ in found
            ]

        return self._session.read(read)

    def rooms(self, moids: Collection[str]) -> dict[str, Room]:
        """What these hosts have for VMs, by id. Of VMs that the account may not see nothing is known."""

        def read(content: vim.ServiceInstanceContent) -> dict[str, Room]:
            hosts = properties.of(content, vim.HostSystem, moids, ROOM, properties.whole)
            there = [refs.moid(vm) for row in hosts for vm in row["vm"] or ()]
            vms = _seen(content, there)
            found: dict[str, dict[str, tuple[str, int]]] = {}
            for row in vms:
                if row["runtime.powerState"] == "poweredOn" and row["config.memoryAllocation.reservation"]:
                    reserved = (row.name, int(row["config.memoryAllocation.reservation"]) << 20)
                    found.setdefault(refs.moid(row["runtime.host"]), {})[row.moid] = reserved
            return {
                row.moid: Room(
                    memory=int(row["hardware.memorySize"] or 0),
                    cpus=int(row["hardware.cpuInfo.numCpuThreads"] or 0),
                    profiles=tuple(row["config.sharedPassthruGpuTypes"] or ()),
                    cards=tuple(
                        _card(each)
                        for each in row["config.graphicsInfo"] or ()
                        if each.graphicsType == SHARED
                    ),
                    networks=frozenset(map(refs.moid, row["network"] or ())),
                    reserved=found.get(row.moid, {}),
                )
                for row in hosts
            }

        return self._session.read(read)

    def set_passthrough(self, moid: str, wanted: Mapping[str, bool]) -> None:
        """Enable or disable passthrough by PCI address; at once if the device can, else with the next
        reboot.
        """

        def write(content: vim.ServiceInstanceContent) -> None:
            host = _host(content, moid)
            system = properties.one(content, host, ["configManager.pciPassthruSystem"])[
                "configManager.pciPassthruSystem"
            ]
            config = [
                vim.host.PciPassthruConfig(id=address, passthruEnabled=on, applyNow=True)
                for address, on in sorted(wanted.items())
            ]
            system.UpdatePassthruConfig(config)

        self._session.write(write)

    def set_attribute(self, moid: str, name: str, value: str) -> None:
        """Set a custom attribute of a host; it is defined for hosts if it isn't yet."""
        self._session.write(lambda content: attributes.write(content, _host(content, moid), name, value))

    def clear_attribute(self, moid: str, name: str) -> None:
        """Empty a custom attribute of a host; its definition stays."""
        self._session.write(lambda content: attributes.drop(content, _host(content, moid), name, last=False))

    def drop_attribute(self, moid: str, name: str) -> bool:
        """Empty a custom attribute of a host; the last host also removes its definition. Return whether it
        was the last.
        """
        return self._notes.drop(
            moid,
            lambda: self.notes(name),
            lambda last: self._session.write(
                lambda content: attributes.drop(content, _host(content, moid), name, last=last)
            ),
        )

    def begin(self, moid: str, attribute: str, text: str, *, boot: str, maintenance: bool) -> None:
        """Note what begins on a host. Raises Conflict if the host is no longer as it was decided for: another
        run was faster.
        """
        self.set_attribute(moid, attribute, text)
        now = self._session.read(
            lambda content: properties.one(
                content,
                _host(content, moid),
                ["runtime.bootTime", "runtime.inMaintenanceMode", "customValue"],
            )
        )
        same = (_time(now["runtime.bootTime"]), bool(now["runtime.inMaintenanceMode"])) == (boot, maintenance)
        if not same or text not in _values(now).values():
            self.clear_attribute(moid, attribute)
            raise Conflict(
                "the host has changed since it was read",
                server=self._session.server,
                why="somebody else restarts it, or puts it into maintenance mode",
            )

    def enter_maintenance(self, moid: str, *, limit: int = 3600) -> None:
        """Enter maintenance mode; running VMs must leave within `limit` seconds, or those that the step has:
        vCenter ends the task then, so that no host enters it when nobody waits any more. Fine if it is in
        it already.
        """
        limit = math.ceil(min(limit, max(waits.left(), 1)))
        with self._unless_already(moid, maintenance=True):
            self._tasks.run(
                lambda content: _host(content, moid).EnterMaintenanceMode_Task(
                    timeout=limit, evacuatePoweredOffVms=False
                ),
                "entering maintenance mode",
                limit=limit + 60,
            )

    def exit_maintenance(self, moid: str) -> None:
        """Leave maintenance mode. Fine if it is out of it already."""
        with self._unless_already(moid, maintenance=False):
            self._tasks.run(
                lambda content: _host(content, moid).ExitMaintenanceMode_Task(timeout=600),
                "leaving maintenance mode",
                limit=660,
            )

    @contextlib.contextmanager
    def _unless_already(self, moid: str, *, maintenance: bool) -> Iterator[None]:
        """Ignores a refusal if another run of the site was faster."""
        try:
            yield
        except Rejected:
            if bool(self._now(moid, "runtime.inMaintenanceMode")) != maintenance:
                raise

    def _now(self, moid: str, path: str) -> Any:
        return self._session.read(lambda content: properties.one(content, _host(content, moid), [path]))[path]

    def reboot(self, moid: str, boot: str) -> None:
        """Reboot a host in maintenance mode, and return when it went down or came back. `boot`: its start as
        last read.

        A host that has started since is not rebooted again: another run was faster.
        """
        if _time(self._now(moid, "runtime.bootTime")) != boot:
            return
        self._tasks.run(lambda content: _host(content, moid).RebootHost_Task(force=False), "the reboot")

        def left(values: Mapping[str, object]) -> bool:
            return (
                values.get("runtime.connectionState") != "connected"
                or _time(values.get("runtime.bootTime")) != boot
            )

        host = _host(self._session.content(), moid)
        self._tasks.watch(
            host, ("runtime.connectionState", "runtime.bootTime"), left, "the reboot", limit=LEAVING
        )


def _seen(content: vim.ServiceInstanceContent, moids: list[str]) -> list[Row]:
    """What the VMs reserve, without those that the account may not see: then each is asked for alone."""
    try:
        return properties.of(content, vim.VirtualMachine, moids, RESERVED, properties.whole)
    except Denied:
        if len(moids) < 2:
            return []
        return [row for each in moids for row in _seen(content, [each])]


def _host(content: vim.ServiceInstanceContent, moid: str) -> Any:
    return refs.refer(content, vim.HostSystem, moid)


def _detail(row: Row) -> HostDetail:
    """All but its attributes, known by key only, and the VMs with its devices."""
    return HostDetail(
        moid=row.moid,
        name=row.name,
        cluster=refs.moid(row["parent"]),
        connection=str(row["runtime.connectionState"] or "disconnected"),
        maintenance=bool(row["runtime.inMaintenanceMode"]),
        boot=_time(row["runtime.bootTime"]),
        devices=_devices(row["hardware.pciDevice"], row["config.pciPassthruInfo"]),
        vgpu_profiles=tuple(row["config.sharedPassthruGpuTypes"] or ()),
        attributes={},
        holders=(),
        datastores=frozenset(refs.moid(d) for d in row["datastore"] or ()),
        networks=frozenset(refs.moid(n) for n in row["network"] or ()),
        ref=row.ref,
    )


def _devices(pci: tree.Nodes | None, passthrough: tree.Nodes | None) -> tuple[PciDevice, ...]:
    info = (
        {
            address: flags
            for address, *flags in passthrough.table(
                "id", "passthruCapable", "passthruEnabled", "passthruActive"
            )
        }
        if passthrough
        else {}
    )
    found = pci.table("id", "classId", "vendorId", "deviceId", "deviceName") if pci else []
    return tuple(
        _device(each, info.get(each[0], (None, None, None)))
        for each in sorted(found, key=lambda values: values[0] or "")
    )


def _device(values: Sequence[str | None], passthrough: Sequence[str | None]) -> PciDevice:
    address, sort, vendor, device, name = values
    capable, enabled, active = passthrough
    return PciDevice(
        address=address or "",
        vendor=number("vendorId", vendor) & 0xFFFF,  # vSphere sends PCI ids as signed shorts
        device=number("deviceId", device) & 0xFFFF,
        name=name or "",
        display=number("classId", sort) & 0xFF00 in (0x0300, 0x1200),
        capable=truth("passthruCapable", capable),
        enabled=truth("passthruEnabled", enabled),
        active=truth("passthruActive", active),
    )


def _holder(machine: Vm, mark_key: str) -> Holder:
    addresses = tuple(device.address for device in machine.pci if device.address)
    return Holder(
        machine.moid,
        machine.name,
        machine.on,
        machine.extra.get(mark_key, ""),
        addresses,
        machine.pci,
        machine,
    )


def _definitions(content: vim.ServiceInstanceContent) -> dict[Any, list[str]]:
    """Return the paths that are read beside hosts to learn the names of their attributes."""
    return {content.customFieldsManager: ["field"]} if content.customFieldsManager is not None else {}


def _values(row: Row) -> dict[int, str]:
    return {v.key: v.value for v in row["customValue"] or () if v.value}


def _attributes(values: Mapping[int, str], keys: Mapping[int, str]) -> dict[str, str]:
    return {keys[key]: value for key, value in values.items() if key in keys}


def _time(value: Any) -> str:
    return value.isoformat() if value else ""


def _card(info: Any) -> Card:
    return Card(int(info.memorySizeInKB or 0) << 10, frozenset(map(refs.moid, info.vm or ())))
