"""Describes an existing virtual machine as a site writes it."""

from __future__ import annotations

from bfinfra.backends.vcenter.vm import Nic, Origin, Vm
from bfinfra.kinds.vcenter.base.machine.notes import appliance
from bfinfra.kinds.vcenter.base.machine.places import MachinePlaces, datastore_of, unplaced
from bfinfra.kinds.vcenter.virtual_machine.devices import vgpus_alone
from bfinfra.kinds.vcenter.virtual_machine.state import State
from bfinfra.model.description import Description, Path

TEMPLATE = "fill-in"
GROUPED = "it has device groups, which no field describes"
FILL_IN: dict[Path, str] = {
    ("template",): "the template to create it from again; not read while the VM exists"
}


def described(origin: Origin) -> bool:
    """Return whether a site describes a VM: not if it is a template, a Bitfusion server, or made by a vCenter
    extension (nodes of clusters, agents).
    """
    return not (origin.template or origin.owner or appliance(origin))


def description(state: State, places: MachinePlaces) -> Description:
    """Its sizes, devices and places. vCenter doesn't have the template: the user must fill in that field."""
    machine = state.machine
    fields: dict[str, object] = {
        "template": TEMPLATE,
        "cluster": places.cluster,
        "datastore": places.datastore,
        "folder": places.folder,
        **({"resource_pool": places.pool} if places.pool else {}),
        "cpus": machine.cpus,
        "memory": machine.memory,
        "reserve": machine.reserved,
        "adapters": [
            _adapter(nic, network) for nic, network in zip(machine.nics, places.networks, strict=True)
        ],
        "disks": _disks(machine, places.datastore),
        "vgpus": [each.profile for each in vgpus_alone(machine)],
        "power": "on" if machine.on else "off",
    }
    grouped = GROUPED if any(each.grouped for each in machine.pci) else ""
    return Description(machine.name, fields, state, FILL_IN, unplaced(places) or grouped)


def _adapter(nic: Nic, network: str) -> dict[str, str]:
    rdma = {"type": "pvrdma", "protocol": nic.rdma} if nic.rdma else {}
    return {"network": network, **rdma, **({"mac": nic.mac.lower()} if nic.manual else {})}


def _disks(machine: Vm, home: str) -> dict[str, object]:
    """The disks beside the first, on SCSI controllers."""
    found: dict[str, object] = {}
    for disk in machine.disks[1:]:
        if disk.address:
            store = datastore_of(disk)
            found[disk.address] = {
                "size": disk.capacity,
                "thin": disk.thin is not False,
                **({"datastore": store} if store and store != home else {}),
            }
    return found
