"""vGPUs that hosts offer."""

from __future__ import annotations

from contract.calls import call
from contract.sides import VCenterSide


@call("vgpus.offered", "vgpus.components", case="hosts without vGPUs")
def test_hosts_without_vgpus_offer_none(vcenter: VCenterSide) -> None:
    vgpus = vcenter.open().vgpus
    found = vgpus.offered(groups=False)
    assert vcenter.cluster in {each.cluster for each in found}
    assert {each.profiles for each in found} == {()}
    assert vgpus.components() == {}
