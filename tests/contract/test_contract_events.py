"""Events: who did what to a machine, the newest first."""

from __future__ import annotations

from contract.calls import call
from contract.machines import GIB, gone, imported
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.vm import Hardware


@call("events.of", case="reconfigured, powered on and off")
def test_changes_to_a_machine_are_reported(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    moid = imported(vcenter, vc, "eventful")
    other = imported(vcenter, vc, "uneventful")
    vc.machines.reconfigure(moid, Hardware(cpus=4, memory=8 * GIB))
    vc.machines.power_on(moid)
    vc.machines.stop(moid)
    happened = vc.events.of(moid)
    assert [each.what for each in reversed(happened)][-3:] == ["reconfigured", "powered", "powered"]
    assert {each.moid for each in happened} == {moid}
    assert all(each.by and each.at > 0 and each.name == "eventful" for each in happened)
    assert [each.at for each in happened] == sorted((each.at for each in happened), reverse=True)
    named = next(each for each in happened if each.what == "reconfigured").set
    assert {"numCPUs", "memoryMB"} <= named and "firmware" not in named
    assert "powered" not in {each.what for each in vc.events.of(other)}


@call("events.removed", case="a machine that is gone")
def test_who_removed_a_machine_is_reported(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    gone(vc, imported(vcenter, vc, "removed"))
    removed = [each for each in vc.events.removed() if each.name == "removed"]
    assert [(each.what, bool(each.by)) for each in removed[:1]] == [("removed", True)]
