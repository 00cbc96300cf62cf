"""The hosts of a world file: clusters, their hosts with devices, and their supervisors."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from bfinfra.sandbox.reading import BadWorld, Bytes

PCI_ADDRESS = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
MODEL = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}")  # of a network card in a device group: vendor and device
NOTHING, MEMORY = Bytes(0), Bytes(768 * 2**30)


@dataclass(frozen=True)
class PciDevice:
    """A PCI device of a host."""

    id: str
    """Its PCI address, such as 0000:3b:00.0."""
    vendor: int
    """PCI vendor id, such as 0x10de."""
    device: int
    """PCI device id, such as 0x1eb8."""
    name: str
    """Its name in vCenter, such as TU104GL [Tesla T4]."""
    class_: int = 0x0302
    """PCI class. Classes 0x0300 to 0x03ff are GPUs."""
    memory: Bytes = NOTHING
    """The memory of a GPU, such as 16GiB."""
    sriov: bool = False
    """Whether it has virtual functions, as the T4 and the A100 have."""
    profiles: tuple[str, ...] = ()
    """The vGPU profiles that it can be shared as, such as grid_v100d-16c."""

    def __post_init__(self) -> None:
        if not PCI_ADDRESS.fullmatch(self.id):
            raise BadWorld(f"id {self.id!r} is no PCI address such as 0000:3b:00.0")
        if any(not 0 <= number <= 0xFFFF for number in (self.vendor, self.device, self.class_)):
            raise BadWorld(f"{self.id}: vendor, device and class are 16 bits")


@dataclass(frozen=True)
class Host:
    """An ESXi host."""

    cores: int = 40
    """CPU cores."""
    mhz: int = 2500
    """Speed of each core in MHz."""
    memory: Bytes = MEMORY
    """Memory, such as 768GiB."""
    pci: tuple[PciDevice, ...] = ()
    """PCI devices that can be passed through to virtual machines."""
    ntp: tuple[str, ...] = ("pool.ntp.org",)
    """NTP servers."""
    graphics: str = "shared"
    """Default graphics type: shared, or sharedDirect for vGPUs."""
    firmware: str = "2.19.1"
    """Version of its BIOS."""
    vibs: Mapping[str, str] = field(
        default_factory=lambda: {
            "esx-base": "8.0.3-0.0.24022510",
            "nmlx5-core": "4.23.6.2-15vmw.803.0.0.24022510",
        }
    )
    """Installed packages (VIBs): name → version."""
    vgpu_driver: str = ""
    """The VIB without which it offers no vGPUs. Without it, the host needs none."""
    device_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Vendor device groups: name → the vGPU profile of each of its devices, or the model of a network card,
    such as 15b3:1021. Cards that follow each other in `pci` are linked: a group of two is the first and
    second, or the third and fourth. Each of its vGPUs fills a card. Network cards go with them in their
    order, once they are passed through.
    """

    def __post_init__(self) -> None:
        if self.cores <= 0 or self.mhz <= 0 or self.memory <= 0:
            raise BadWorld("cores, mhz and memory are more than 0")
        if len({device.id for device in self.pci}) != len(self.pci):
            raise BadWorld("two PCI devices have the same id")
        for name, parts in self.device_groups.items():
            nics = [each for each in parts if MODEL.fullmatch(each)]
            profiles = {*parts} - {*nics}
            able = sum(not profiles.isdisjoint(device.profiles) for device in self.pci)
            models = [f"{device.vendor:04x}:{device.device:04x}" for device in self.pci]
            if len(parts) < 2 or not 1 <= len(parts) - len(nics) <= able:
                raise BadWorld(
                    f"device_groups: {name} needs at least two devices, and as many cards with their profiles"
                )
            if missing := [each for each in nics if models.count(each) < nics.count(each)]:
                raise BadWorld(f"device_groups: {name} needs more network cards {missing[0]} in pci")


@dataclass(frozen=True)
class Supervisor:
    """vSphere with Tanzu on a cluster."""

    address: str
    """The IP address of its API."""
    version: str = "v1.27.5+vmware.wcp.1"
    """Its Kubernetes version."""
    guests: tuple[str, ...] = ("172.24.206.10", "172.24.206.60")
    """The first and the last IP address for the APIs of workload clusters."""
    network_provider: str = "NSXT_CONTAINER_PLUGIN"
    """NSXT_CONTAINER_PLUGIN, VSPHERE_NETWORK or NSX_VPC."""
    service_cidr: str = "10.96.0.0/24"
    """CIDR of its Kubernetes services."""
    pod_cidr: str = "10.244.0.0/20"
    """CIDR of its vSphere pods, with NSX."""
    registry: str = ""
    """The IP address of its embedded Harbor. Without it there is no Harbor."""
    zones: tuple[str, ...] = ()
    """The vSphere zones that it spans. Without them it has one, with the id of its cluster."""

    def __post_init__(self) -> None:
        try:
            first, last = map(ipaddress.ip_address, self.guests)
        except ValueError:
            raise BadWorld("guests holds the first and the last address for guest clusters") from None
        if int(first) > int(last):
            raise BadWorld("the first address of guests is above the last")

    def guest_addresses(self) -> list[str]:
        """The addresses that guest clusters may get, in order."""
        first, last = map(ipaddress.ip_address, self.guests)
        return [str(first + n) for n in range(int(last) - int(first) + 1)]


@dataclass(frozen=True)
class Cluster:
    """A vSphere cluster."""

    hosts: Mapping[str, Host]
    """ESXi hosts: name → host."""
    supervisor: Supervisor | None = None
    """Its supervisor. Without it, vSphere with Tanzu is not enabled on the cluster."""
    content: tuple[str, ...] = ()
    """Content libraries that its supervisor uses, by name."""
    image: Mapping[str, str] | None = None
    """The components of its vLCM image besides the base image: name → version. Without it, the cluster is not
    managed by an image.
    """
    zone: str = ""
    """The vSphere zone that it belongs to."""
