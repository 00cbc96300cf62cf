"""A machine to try things on, made as bfinfra makes one: imported. Without disks nothing is uploaded, so a
cassette can hold it.
"""

from __future__ import annotations

import io
import uuid
from typing import Any

from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.vm import Hardware, Import
from bfinfra.sandbox.factories.descriptor import Appliance, Disk, descriptor
from bfinfra.sandbox.factories.vmdk import make_vmdk

MARK = "bfinfra.contract"
GIB = 1 << 30
DATA = make_vmdk(GIB, 300_000, "contract")
REQUIRED = {
    "hostname": "machine",
    "customer_password": "long-enough",
    "vcenter_url": "https://vc.test",
    "vcenter_guid": "6f0b9c2e-8f7d-4c39-9d6a-1f0e2d3c4b5a",
    "vcenter_username": "u",
    "vcenter_password": "p",
    "vcenter_thumbprint": "AB",
    "network.ip_cidr.1": "10.0.0.5/24",
}


def import_spec(
    side: VCenterSide,
    vc: VCenter,
    name: str,
    *,
    disk: bool = False,
    properties: dict[str, str] | None = None,
    **changes: Any,
) -> Import:
    """What an import of this name needs; `disk`: with something to upload."""
    inventory = vc.inventory.read()
    host, cluster = only(inventory.host(side.host)), only(inventory.cluster(side.cluster))
    datastore, network, folder = (
        only(inventory.datastore(side.datastore)),
        only(inventory.network(side.network)),
        only(inventory.folder("", "/DC0")),
    )
    assert host and cluster and datastore and network and folder
    disks = (Disk("disk1.vmdk", len(DATA), GIB),) if disk else ()
    text = descriptor(Appliance(name, "Server", "1-1", disks, ("Network 1",)))
    given: dict[str, Any] = {
        "name": name,
        "descriptor": text,
        "networks": {"Network 1": network.moid},
        "properties": {**REQUIRED, **(properties or {})},
        "folder": folder.moid,
        "pool": cluster.pool,
        "host": host.moid,
        "datastore": datastore.moid,
        "files": {"disk1.vmdk": len(DATA)} if disk else {},
        "open": lambda _: io.BytesIO(DATA),
        "hardware": Hardware(
            cpus=2,
            memory=4 * GIB,
            extra={MARK: f"mark of {name}"},
            instance_uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
        ),
    }
    return Import(**{**given, **changes})


def imported(side: VCenterSide, vc: VCenter, name: str, **changes: Any) -> str:
    """The id of a machine that is gone when the test is."""
    moid = vc.imports.run(import_spec(side, vc, name, **changes), lambda *_: None)
    side.closing.append(lambda: gone(vc, moid))
    return moid


def gone(vc: VCenter, moid: str) -> None:
    """Whatever state it is in."""
    if vc.machines.read([moid], []):
        vc.machines.stop(moid)
        vc.machines.destroy(moid)


def active(vc: VCenter, side: VCenterSide) -> None:
    """Passthrough of the first card is on and in effect."""
    host = only(vc.inventory.read().host(side.host))
    assert host
    (found,) = vc.hosts.read([host.moid], MARK)
    if not any(d.active for d in found.devices if d.address == "0000:17:00.0"):
        switch(side, vc, host.moid, on=True)
    side.closing.insert(1, lambda: switch(side, vc, host.moid, on=False))


def switch(side: VCenterSide, vc: VCenter, moid: str, *, on: bool) -> None:
    vc.hosts.set_passthrough(moid, {"0000:17:00.0": on})
    (found,) = vc.hosts.read([moid], MARK)
    if any(d.active != on for d in found.devices if d.address == "0000:17:00.0"):
        vc.hosts.enter_maintenance(moid)
        vc.hosts.reboot(moid, found.boot)
        side.until(lambda: vc.hosts.read([moid], MARK)[0].connected)
        vc.hosts.exit_maintenance(moid)
