"""Virtual machines: a survey by mark, one machine in detail, and one small method for each write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyVmomi import vim

from bfinfra.backends.vcenter import devices, guests, properties, refs
from bfinfra.backends.vcenter.hardware import config_spec, needed, relocate_spec
from bfinfra.backends.vcenter.names import sent
from bfinfra.backends.vcenter.origins import ORIGIN, full_key, origin
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.vcenter.tasks import Progress, Tasks, Values
from bfinfra.backends.vcenter.tree import texts
from bfinfra.backends.vcenter.vm import CONNECTED, Brief, Clone, Hardware, Origin, Relocation, Vm
from bfinfra.model.errors import Busy, Missing, Rejected, StillRunning

DETAIL = [
    "name",
    "parent",
    "resourcePool",
    "datastore",
    "runtime.powerState",
    "runtime.host",
    "runtime.connectionState",
    "config.instanceUuid",
    "config.changeVersion",
    "config.hardware.numCPU",
    "config.hardware.memoryMB",
    "config.memoryReservationLockedToMax",
    "config.firmware",
    "config.hardware.device",
    "config.vAppConfig.property",
    "guest.ipAddress",
    "guest.toolsRunningStatus",
    "recentTask",
]
SOCKETS = CORES, CHOSEN = ["config.hardware.numCoresPerSocket", "config.hardware.autoCoresPerSocket"]
LAPSE = 360  # seconds after which a lease without keep-alive has expired
HANDOVER = 10  # seconds from the end of an import until its machine is noted as finished: one request
SHUTDOWN = 300  # seconds that a guest may take to shut down


class Machines:
    """Reads are bulk. Every write raises RemoteError or has happened."""

    def __init__(self, session: SoapSession, tasks: Tasks) -> None:
        self._session = session
        self._tasks = tasks

    def survey(self, mark_key: str, *keys: str) -> list[Brief]:
        """Every VM, with the value of one extraConfig key, or of several."""
        path, *others = _extra([mark_key, *keys])

        def brief(row: Row) -> Brief:
            return Brief(
                row.moid,
                row.name,
                refs.moid(row["parent"]),
                _option(row[path]),
                tuple(_option(row[each]) for each in others),
            )

        asked = {vim.VirtualMachine: ["name", "parent", path, *others]}
        return self._session.read(lambda content: properties.below(content, content.rootFolder, asked, brief))

    def read(self, moids: Iterable[str], keys: Iterable[str]) -> list[Vm]:
        """These VMs in detail, with these extraConfig keys; deleted ones are left out."""
        wanted, listed = list(keys), list(moids)

        def read(content: vim.ServiceInstanceContent) -> list[Vm]:
            return _grouped(
                properties.of(
                    content, vim.VirtualMachine, listed, _paths(wanted), lambda row: _machine(row, wanted)
                ),
                content,
            )

        return self._session.read(read)

    def sockets(self, moids: Iterable[str]) -> dict[str, int]:
        """The cores per socket of these VMs, by id; without those for which vSphere chooses them."""
        read = self._session.read(
            lambda content: properties.of(content, vim.VirtualMachine, list(moids), SOCKETS, properties.whole)
        )
        return {row.moid: int(row[CORES]) for row in read if row[CORES] and not row[CHOSEN]}

    def addresses(self, moids: Sequence[str]) -> Mapping[str, frozenset[str]]:
        """All addresses that VMware Tools report of these VMs, by id."""
        return self._session.read(lambda content: guests.addresses(content, moids))

    def origins(self) -> list[Origin]:
        """Every VM, with what shows its origin."""
        asked = {vim.VirtualMachine: ["name", *ORIGIN]}
        return self._session.read(
            lambda content: properties.below(content, content.rootFolder, asked, origin)
        )

    def reconfigure(
        self, moid: str, wanted: Hardware, what: str = "the reconfiguration", *, version: str = ""
    ) -> None:
        """One ReconfigVM_Task with the whole change. Raises Conflict if the configuration is no longer of
        this version; "": whatever it is.
        """

        def start(content: vim.ServiceInstanceContent) -> Any:
            vm = refs.refer(content, vim.VirtualMachine, moid)
            paths = needed(wanted)
            row = properties.one(content, vm, paths) if paths else Row(vm, {})
            spec = config_spec(
                wanted,
                content,
                row["runtime.host"],
                row["config.hardware.device"],
                row["config.vAppConfig.property"],
            )
            spec.changeVersion = version or None
            return vm.ReconfigVM_Task(spec)

        self._tasks.run(start, what)

    def clone(self, wanted: Clone, progress: Progress | None = None) -> None:
        """One CloneVM_Task, with the clone's desired hardware. Raises Exists if the name is taken."""

        def start(content: vim.ServiceInstanceContent) -> Any:
            source = refs.refer(content, vim.VirtualMachine, wanted.source)
            row = properties.one(content, source, ["config.hardware.device"])
            where = vim.vm.RelocateSpec(
                pool=refs.refer(content, vim.ResourcePool, wanted.pool),
                datastore=refs.refer(content, vim.Datastore, wanted.datastore),
            )
            where.host = refs.refer(content, vim.HostSystem, wanted.host) if wanted.host else None
            config = config_spec(wanted.hardware, content, where.host, row["config.hardware.device"], None)
            spec = vim.vm.CloneSpec(location=where, config=config, template=False, powerOn=False)
            return source.CloneVM_Task(
                refs.refer(content, vim.Folder, wanted.folder), sent(wanted.name), spec
            )

        self._tasks.run(start, f"cloning {wanted.name}", progress=progress)

    def power_on(self, moid: str) -> None:
        """Power on. Fine for a VM that is on."""
        if self._on(moid):
            return
        try:
            self._tasks.run(
                lambda content: refs.refer(content, vim.VirtualMachine, moid).PowerOnVM_Task(None),
                "powering on",
            )
        except Rejected:
            if not self._on(moid):  # otherwise another run of the site was faster
                raise

    def stop(self, moid: str, progress: Progress | None = None) -> None:
        """Shut down the guest if its tools run, else power off. Fine for a VM that is off."""
        row = self._session.read(
            lambda content: properties.one(
                content, self._ref(moid), ["runtime.powerState", "guest.toolsRunningStatus"]
            )
        )
        if row["runtime.powerState"] != "poweredOn":
            return
        if row["guest.toolsRunningStatus"] == "guestToolsRunning":
            try:
                self._session.write(
                    lambda content: refs.refer(content, vim.VirtualMachine, moid).ShutdownGuest()
                )
            except Rejected:
                if self._on(moid):  # otherwise another run of the site was faster
                    raise
            self._tasks.watch(
                self._ref(moid),
                ("runtime.powerState",),
                lambda v: v.get("runtime.powerState") == "poweredOff",
                "the shutdown",
                limit=SHUTDOWN,
            )
            return
        try:
            self._tasks.run(
                lambda content: refs.refer(content, vim.VirtualMachine, moid).PowerOffVM_Task(),
                "powering off",
                progress=progress,
            )
        except Rejected:
            if self._on(moid):  # otherwise it went off meanwhile
                raise

    def move(self, moid: str, folder: str, pool: str) -> None:
        """Move to another folder and resource pool ("" keeps the current one)."""
        if folder:
            self._tasks.run(
                lambda content: refs.refer(content, vim.Folder, folder).MoveIntoFolder_Task(
                    [refs.refer(content, vim.VirtualMachine, moid)]
                ),
                "moving to another folder",
            )
        if pool:
            self._session.write(
                lambda content: refs.refer(content, vim.ResourcePool, pool).MoveIntoResourcePool(
                    [refs.refer(content, vim.VirtualMachine, moid)]
                )
            )

    def relocate(self, moid: str, to: Relocation, progress: Progress | None = None) -> None:
        """One RelocateVM_Task: to another pool, host or datastore, on or off."""

        def start(content: vim.ServiceInstanceContent) -> object:
            return refs.refer(content, vim.VirtualMachine, moid).RelocateVM_Task(relocate_spec(to, content))

        self._tasks.run(start, "moving", progress=progress)

    def destroy(self, moid: str) -> None:
        """Delete a VM that is off, with its disks."""
        self._tasks.run(
            lambda content: refs.refer(content, vim.VirtualMachine, moid).Destroy_Task(), "deleting"
        )

    def discard(self, moid: str, flag: str, *, cancel: bool) -> None:
        """Remove a half-imported VM once its import is over. A VM without the extraConfig `flag` was
        finished, and is kept.

        `cancel`: no process works on it any more, so end its import now instead of waiting until its lease
        expires, or until it is noted as finished.
        """
        with contextlib.suppress(Missing):  # an import that ends deletes its VM
            for task in (task for found in self.read([moid], [flag]) for task in found.tasks):
                if cancel:
                    with contextlib.suppress(Rejected):  # it is over, or can't be cancelled
                        task.CancelTask()
                self._tasks.watch(task, ("info.state",), _ended, "an earlier task", limit=LAPSE)
            self._tasks.watch(
                self._ref(moid),
                ("disabledMethod", "runtime.powerState"),
                _deletable,
                "an earlier import",
                limit=LAPSE,
            )
            if any(found.extra for found in self.read([moid], [flag])) and (
                cancel or not self._finished(moid, flag, HANDOVER)
            ):
                self.stop(moid)
                self._delete_or_lapse(moid, flag)

    def _delete_or_lapse(self, moid: str, flag: str) -> None:
        try:
            self.destroy(moid)
        except Busy:  # its lease is still open: it expires, or its owner finishes
            if not self._finished(moid, flag, LAPSE):
                raise

    def _finished(self, moid: str, flag: str, limit: float) -> bool:
        """Return whether the machine is noted as finished within so many seconds. Raises Missing if it is
        deleted instead.
        """

        def noted(values: Values) -> bool:
            return not any(
                option.key == flag and option.value for option in values.get("config.extraConfig") or ()
            )

        try:
            self._tasks.watch(
                self._ref(moid), ("config.extraConfig",), noted, "an earlier import", limit=limit
            )
        except StillRunning:
            return False
        return True

    def _on(self, moid: str) -> bool:
        row = self._session.read(
            lambda content: properties.one(content, self._ref(moid), ["runtime.powerState"])
        )
        return bool(row["runtime.powerState"] == "poweredOn")

    def _ref(self, moid: str) -> Any:
        return refs.refer(self._session.content(), vim.VirtualMachine, moid)


def _deletable(values: Values) -> bool:
    """Return whether only its power state prevents deletion: a running one is stopped first."""
    return values.get("runtime.powerState") == "poweredOn" or "Destroy_Task" not in (
        values.get("disabledMethod") or ()
    )


def _ended(values: Values) -> bool:
    return values.get("info.state") in ("success", "error")


def port_groups(content: vim.ServiceInstanceContent) -> dict[str, str]:
    """Distributed port groups: key → id."""
    kind = vim.dvs.DistributedVirtualPortgroup
    return dict(
        properties.below(
            content, content.rootFolder, {kind: ["key"]}, lambda row: (str(row["key"]), row.moid)
        )
    )


def with_devices(
    content: vim.ServiceInstanceContent, machines: Iterable[str], keys: Sequence[str]
) -> list[Vm]:
    """The VMs with PCI devices among these; part of a read in progress."""

    def held(row: Row) -> Vm | None:
        hardware = devices.found(row["config.hardware.device"])
        return _machine(row, keys, hardware) if hardware.pci else None

    return _grouped(
        [
            found
            for found in properties.of(content, vim.VirtualMachine, machines, _paths(keys), held)
            if found
        ],
        content,
    )


def _grouped(found: Sequence[Vm], content: vim.ServiceInstanceContent) -> list[Vm]:
    """The machines, with ids instead of keys for distributed port groups, which are read only if there are
    any.
    """
    if not any(nic.grouped for machine in found for nic in machine.nics):
        return list(found)
    groups = port_groups(content)
    return [
        replace(
            m,
            nics=tuple(
                replace(n, network=groups.get(n.network, n.network)) if n.grouped else n for n in m.nics
            ),
        )
        for m in found
    ]


def _paths(keys: Iterable[str]) -> list[str]:
    return [*DETAIL, *_extra(keys)]


def _extra(keys: Iterable[str]) -> list[str]:
    return [f'config.extraConfig["{key}"]' for key in keys]


def _machine(row: Row, keys: Iterable[str], hardware: devices.Devices | None = None) -> Vm:
    """The machine. Adapters on distributed port groups still have the groups' keys."""
    hardware = hardware or devices.found(row["config.hardware.device"])
    extra = {key: value for key in keys if (value := _option(row[f'config.extraConfig["{key}"]']))}
    return Vm(
        moid=row.moid,
        name=row.name,
        folder=refs.moid(row["parent"]),
        pool=refs.moid(row["resourcePool"]),
        datastores=frozenset(refs.moid(d) for d in row["datastore"] or ()),
        host=refs.moid(row["runtime.host"]),
        on=row["runtime.powerState"] == "poweredOn",
        connection=str(row["runtime.connectionState"] or CONNECTED),
        instance_uuid=row["config.instanceUuid"] or "",
        cpus=row["config.hardware.numCPU"] or 0,
        memory=(row["config.hardware.memoryMB"] or 0) << 20,
        reserved=bool(row["config.memoryReservationLockedToMax"]),
        firmware=row["config.firmware"] or "",
        pci=hardware.pci,
        nics=hardware.nics,
        disks=hardware.disks,
        extra=extra,
        properties={
            full_key(p): p.get("value") or p.get("defaultValue") or ""
            for p in map(texts, row["config.vAppConfig.property"] or ())
        },
        ip=row["guest.ipAddress"] or "",
        tools=row["guest.toolsRunningStatus"] == "guestToolsRunning",
        tasks=tuple(row["recentTask"] or ()),
        version=row["config.changeVersion"] or "",
    )


def _option(value: object) -> str:
    return str(getattr(value, "value", value) or "")
