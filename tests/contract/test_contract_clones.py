"""A machine made from another one, with what it shall have."""

from __future__ import annotations

from contract.calls import Account, call
from contract.machines import GIB, MARK, imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.places import only
from bfinfra.backends.vcenter.vm import Clone, Hardware, NewDisk
from bfinfra.model.errors import Exists, Rejected


@call("machines.clone", case="another name, other sizes, its own mark, a disk more; a name that is taken")
def test_a_clone_has_what_it_was_given(vcenter: VCenterSide, account: Account) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "original")
    (source,) = vc.machines.read([moid], [MARK])
    network = only(vc.inventory.read().network(vcenter.network))
    assert network
    hardware = Hardware(
        cpus=4,
        memory=8 * GIB,
        extra={MARK: "mark of clone"},
        drop=tuple(nic.key for nic in source.nics),
        add_nics=(network.moid,),
        add_disks=(NewDisk("scsi0:1", GIB),),
    )
    wanted = Clone(
        source=moid,
        name="clone",
        folder=source.folder,
        pool=source.pool,
        host=source.host,
        datastore=min(source.datastores),
        hardware=hardware,
    )
    vc.machines.clone(wanted)
    (found,) = [b for b in vc.machines.survey(MARK) if b.name == "clone"]
    vcenter.closing.append(lambda: vc.machines.destroy(found.moid))
    (made,) = vc.machines.read([found.moid], [MARK])
    assert (made.cpus, made.memory, made.on, made.extra) == (4, 8 * GIB, False, {MARK: "mark of clone"})
    assert [nic.network for nic in made.nics] == [network.moid]
    assert [(disk.address, disk.capacity) for disk in made.disks] == [("scsi0:1", GIB)]
    with account.refused(Exists, Rejected):
        vc.machines.clone(wanted)
