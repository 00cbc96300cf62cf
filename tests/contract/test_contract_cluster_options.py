"""Options of clusters' DRS."""

from __future__ import annotations

from contract.calls import call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.cluster_options import ClusterOptions

KEY, OTHER = "VgpuMMAutomationTimeoutSecs", "TryBalanceVmsPerHost"


def opened(vcenter: VCenterSide) -> tuple[ClusterOptions, str]:
    client = vcenter.open()
    moid = next(each.moid for each in client.inventory.read().clusters if each.name == vcenter.cluster)
    return ClusterOptions(client.session, client.tasks), moid


@call("cluster_options.read", case="a cluster in which nobody has set any")
def test_nobody_has_set_an_option_of_a_cluster(vcenter: VCenterSide) -> None:
    options, moid = opened(vcenter)
    assert options.read([moid]) == {moid: {}}
    assert options.read([]) == {}


@call("cluster_options.set", "cluster_options.read", case="one comes beside another, changes, and goes")
@lacks("vcsim: options of DRS are never changed")
def test_an_option_of_a_cluster_comes_and_goes(vcenter: VCenterSide) -> None:
    options, moid = opened(vcenter)
    options.set(moid, OTHER, "1")
    options.set(moid, KEY, "3600")
    options.set(moid, KEY, "-1")
    assert options.read([moid])[moid] == {OTHER: "1", KEY: "-1"}
    options.set(moid, KEY, "")
    options.set(moid, OTHER, "")
    assert options.read([moid])[moid] == {}
