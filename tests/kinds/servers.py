"""A host with two cards, an appliance and a server on it, as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bfinfra.backends.ova import Disk as OvaDisk
from bfinfra.backends.ova import Hardware, LocalSource, Network, Ova, Product, Property
from bfinfra.backends.vcenter.esxi import HostDetail, PciDevice
from bfinfra.backends.vcenter.places import Cluster, Datastore, Folder, Inventory, Pool
from bfinfra.backends.vcenter.places import Network as VNetwork
from bfinfra.backends.vcenter.vm import Attached, Disk, Nic, Vm
from bfinfra.kinds.vcenter.bitfusion_server.kind import BitfusionServer, Spec
from bfinfra.kinds.vcenter.bitfusion_server.state import MARK as MARK_KEY
from bfinfra.kinds.vcenter.bitfusion_server.state import (
    MMIO,
    MMIO_SIZE,
    OVA,
    BitfusionServerFacts,
    State,
    read,
    release,
)
from bfinfra.kinds.vcenter.gpu_host.spec import Spec as HostSpec
from bfinfra.kinds.vcenter.gpu_host.state import read as read_host
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.mark import Mark
from bfinfra.model.refs import Key
from bfinfra.model.sources import Sources
from bfinfra.model.step import Step

GIB = 1 << 30
PW = "a-very-secret-word"
CARDS = ("0000:3b:00.0", "0000:af:00.0")
MARK = Mark("site", "bitfusion_server/bf-01")
HERE = frozenset({"host-1"})
HOST = HostDetail(
    moid="host-1",
    name="esx1",
    cluster="c1",
    connection="connected",
    maintenance=False,
    boot="b",
    devices=tuple(PciDevice(a, 0x10DE, 0x1DB6, "V100", True, True, True, True) for a in CARDS),
    vgpu_profiles=("grid_v100d-8q",),
    attributes={},
    holders=(),
    datastores=frozenset({"ds-1"}),
    networks=frozenset({"network-1", "network-2"}),
)
INVENTORY = Inventory(
    clusters=(Cluster(moid="c1", name="farm", datacenter="dc", pool="pool-1"),),
    datastores=(
        Datastore(
            moid="ds-1",
            name="local",
            datacenter="dc",
            free=1 << 40,
            capacity=1 << 40,
            accessible=True,
            hosts=HERE,
        ),
    ),
    networks=tuple(
        VNetwork(moid=f"network-{n}", name=name, datacenter="dc", distributed=False, hosts=HERE)
        for n, name in ((1, "VM Network"), (2, "Storage"))
    ),
    folders=(Folder(moid="folder-1", name="vm", datacenter="dc", path="vm"),),
    pools=(Pool(moid="pool-1", name="Resources", datacenter="dc", owner="c1", root=True),),
)


def package(version: str = "3.0") -> Ova:
    return Ova(
        source=LocalSource(Path("server.ova"), 10, 0),
        descriptor=f"<Envelope>{version}</Envelope>",
        product=Product(),
        properties=(
            Property("hostname", required=True, user_configurable=True, label="Hostname"),
            Property(
                "password",
                "password",
                required=True,
                user_configurable=True,
                password=True,
                qualifiers="MinLen(8)",
            ),
            Property(
                "network.ip_cidr.1", user_configurable=True, label="Network adapter 1 IPv4 address/CIDR"
            ),
            Property("network.gateway.1", user_configurable=True, label="Network adapter 1 gateway"),
            Property(
                "network.ip_cidr.2", user_configurable=True, label="Network adapter 2 IPv4 address/CIDR"
            ),
            Property(
                "network.mtu.1",
                "uint16",
                user_configurable=True,
                default="1500",
                label="Network adapter 1 MTU",
            ),
        ),
        networks=(Network("Network 1"),),
        disks=(OvaDisk("d", "d.vmdk", 5, 50 * GIB),),
        hardware=Hardware(adapters=("Network 1",)),
        options=(),
        eula=(),
        files={"d.vmdk": 5},
        manifest={},
        members={},
    )


def spec(**fields: Any) -> Spec:
    written = {
        "ova": {"file": "server.ova"},
        "host": "esx1",
        "gpus": 2,
        "properties": {"hostname": "bf", "password": {"env": "PW"}},
        "networks": {"Network 1": {"network": "VM Network", "address": "10.0.0.5/24", "gateway": "10.0.0.1"}},
        **fields,
    }
    return Spec.model_validate(written, context={"sources": Sources(env={"PW": PW})})


def machine(**fields: Any) -> Vm:
    values = {
        "moid": "vm-1",
        "name": "bf-01",
        "folder": "folder-1",
        "pool": "pool-1",
        "datastores": frozenset({"ds-1"}),
        "host": "host-1",
        "on": True,
        "connection": "connected",
        "instance_uuid": "u",
        "cpus": 8,
        "memory": 96 * GIB,
        "reserved": True,
        "firmware": "efi",
        "pci": tuple(Attached(n, "static", a) for n, a in enumerate(CARDS)),
        "nics": (Nic(4000, "Network adapter 1", "network-1", "00:50"),),
        "disks": (Disk(2000, "Hard disk 1", 50 * GIB),),
        "ip": "10.0.0.5",
        "tools": True,
        "extra": {
            MARK_KEY: MARK.committed(spec().applied()).encode(),
            OVA: release(package()),
            MMIO: "TRUE",
            MMIO_SIZE: "128",
        },
        "properties": {
            "hostname": "bf",
            "password": "",
            "network.ip_cidr.1": "10.0.0.5/24",
            "network.gateway.1": "10.0.0.1",
            "network.mtu.1": "1500",
        },
        **fields,
    }
    return Vm(**values)


def state(of: Vm | None = None, *, importing: bool = False, name: str = "bf-01") -> State:
    of = of or machine()
    mark = Mark("site", f"bitfusion_server/{name}")
    extra = dict(of.extra) | ({"bfinfra.importing": "x", MARK_KEY: mark.encode()} if importing else {})
    return read(Vm(**{f: getattr(of, f) for f in of.__dataclass_fields__} | {"extra": extra}), "esx1")


def context(
    name: str = "bf-01",
    *,
    siblings: dict[str, Any] | None = None,
    secrets: Any = None,
    ova: Ova | None = None,
    host: HostDetail = HOST,
    device: str = "0x1db6",
) -> PlanContext:
    wanted = HostSpec.model_validate({"passthrough": [{"vendor": "0x10de", "device": device, "count": 2}]})
    need = ResolvedRef(Key("gpu_host", "esx1"), wanted, read_host(host, "farm"))
    facts = BitfusionServerFacts(INVENTORY, {"server.ova": ova or package()}, secrets or {})
    return PlanContext(Mark("site", f"bitfusion_server/{name}"), {"host": need}, siblings or {}, facts)


def steps(
    wanted: Spec | None, existing: State | None, how: PlanContext | None = None, *, name: str = "bf-01"
) -> list[Step]:
    return list(BitfusionServer.steps(name, wanted, existing, how or context()))


def titles(found: list[Step]) -> list[str]:
    return [type(step).__name__ for step in found]
