"""Machines with disks in a world of two clusters, to be moved; pyVmomi as shipped is the client."""

from __future__ import annotations

from typing import Any

from pyVmomi import vim

CARD = "0000:3b:00.0"
GPU = {"id": CARD, "vendor": 0x10DE, "device": 0x1DB6, "name": "V100", "class": 0x0302, "memory": "32GiB"}
SCSI, PCI = vim.vm.device.ParaVirtualSCSIController, vim.vm.device.VirtualPCIPassthrough
FARM: dict[str, Any] = {
    "clusters": {
        "farm": {"hosts": {"gpu": {"memory": "64GiB", "pci": [GPU]}, "small": {"memory": "8GiB"}}},
        "compute": {"hosts": {"far": {}, "further": {}}},
    },
    "datastores": {
        "local": {"capacity": "4TiB", "hosts": ["gpu"]},
        "shared": {"capacity": "20TiB"},
        "tiny": {"capacity": "1GiB"},
        "remote": {"capacity": "1TiB", "hosts": ["further"]},
    },
}
"""A cluster of a host with a GPU and of a small one, and another cluster."""


def host(client: Any, name: str) -> Any:
    cluster = "farm" if name in ("gpu", "small") else "compute"
    return client.find(f"Singapore/host/{cluster}/{name}")


def store(client: Any, name: str) -> Any:
    return client.find(f"Singapore/datastore/{name}")


def root(client: Any, cluster: str) -> Any:
    return client.find(f"Singapore/host/{cluster}").resourcePool


def below(pool: Any, name: str) -> Any:
    allocation = vim.ResourceAllocationInfo(
        reservation=0, limit=-1, expandableReservation=True, shares=vim.SharesInfo(level="normal", shares=0)
    )
    return pool.CreateResourcePool(
        name, vim.ResourceConfigSpec(cpuAllocation=allocation, memoryAllocation=allocation)
    )


def added(device: Any, **words: Any) -> Any:
    return vim.vm.device.VirtualDeviceSpec(operation="add", device=device, **words)


def disk(unit: int, size: int = 2 << 20, at: str = "") -> Any:
    """A disk of 2 GiB; `at`: a datastore of its own."""
    backing = vim.vm.device.VirtualDisk.FlatVer2BackingInfo(
        fileName=f"[{at}]" if at else "", diskMode="persistent"
    )
    made = vim.vm.device.VirtualDisk(
        key=-10 - unit, controllerKey=-1, unitNumber=unit, capacityInKB=size, backing=backing
    )
    return added(made, fileOperation="create")


def machine(client: Any, name: str = "vm", *, at: str = "local", on: str = "gpu", **spec: Any) -> Any:
    """A machine with two disks."""
    wanted = vim.vm.ConfigSpec(
        name=name,
        files=vim.vm.FileInfo(vmPathName=f"[{at}]"),
        memoryMB=4096,
        deviceChange=[
            added(SCSI(key=-1, busNumber=0, sharedBus="noSharing")),
            disk(0),
            disk(1),
            *spec.pop("devices", ()),
        ],
        **spec,
    )
    place = host(client, on)
    return client.run(client.find("Singapore/vm").CreateVM_Task(wanted, place.parent.resourcePool, place))


def files(vm: Any) -> list[str]:
    return [each.backing.fileName for each in disks(vm)]


def disks(vm: Any) -> list[Any]:
    return [each for each in vm.config.hardware.device if isinstance(each, vim.vm.device.VirtualDisk)]


def relocate(client: Any, vm: Any, **spec: Any) -> None:
    client.run(vm.Relocate(vim.vm.RelocateSpec(**spec)))


def located(vm: Any, number: int, at: Any, **words: Any) -> Any:
    return vim.vm.RelocateSpec.DiskLocator(diskId=disks(vm)[number].key, datastore=at, **words)


def moves(client: Any, vm: Any) -> list[Any]:
    """Events of moves, the oldest first."""
    entity = vim.event.EventFilterSpec.ByEntity(entity=vm, recursion="self")
    found = client.content.eventManager.QueryEvents(vim.event.EventFilterSpec(entity=entity))
    return [e for e in found if isinstance(e, (vim.event.VmMigratedEvent, vim.event.VmRelocatedEvent))]


def card() -> Any:
    backing = PCI.DeviceBackingInfo(
        id=CARD, deviceId="1db6", vendorId=0x10DE, systemId="BYPASS", deviceName="V100"
    )
    return added(PCI(key=-30, backing=backing))


def running(client: Any, vm: Any) -> Any:
    client.run(vm.PowerOn())
    return vm
