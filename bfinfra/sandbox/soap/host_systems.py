"""What a host's systems of time, services and storage tell of it. They change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.host_network import host_of

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

STORAGE = "vim.host.StorageSystem"
VOLUMES = ("VMFS", "NFS", "NFS41", "vsan", "VVOL", "VFFS", "OTHER", "PMEM")


@computed("vim.host.DateTimeSystem", "dateTimeInfo")
def _clock(inventory: Inventory, system: Managed) -> object:
    return host_of(inventory, system)["config"].dateTimeInfo


@computed("vim.host.ServiceSystem", "serviceInfo")
def _services(inventory: Inventory, system: Managed) -> object:
    return host_of(inventory, system)["config"].service


@computed(STORAGE, "fileSystemVolumeInfo")
def _volumes(inventory: Inventory, system: Managed) -> object:
    stores = [inventory.get(each) for each in host_of(inventory, system)["datastore"]]
    return vim.host.FileSystemVolumeInfo(
        volumeTypeList=list(VOLUMES), mountInfo=[_mount(store) for store in stores]
    )


def _mount(store: Managed) -> object:
    path = store["info"].url.removeprefix("ds://").rstrip("/")
    return vim.host.FileSystemMountInfo(
        mountInfo=vim.host.MountInfo(path=path, accessMode="readWrite", mounted=True, accessible=True),
        volume=vim.host.FileSystemVolume(type="VMFS", name=store.name, capacity=store.hidden["capacity"]),
        vStorageSupport="vStorageUnknown",
    )


@computed(STORAGE, "storageDeviceInfo")
def _devices(_: Inventory, __: Managed) -> object:
    return vim.host.StorageDeviceInfo(softwareInternetScsiEnabled=False)
