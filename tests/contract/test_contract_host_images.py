"""Images of clusters in vSphere Lifecycle Manager."""

from __future__ import annotations

from contract.calls import call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.host_images import HostImages

LOCATION = "https://repo.contract.test/vgpu-host.zip"
DRIVER = {"NVIDIA-vGPU": "580.95.02"}
NO_VLCM = "vcsim: one depot can be imported twice, and images have no compliance"


@call(
    "host_images.depots",
    "host_images.import_depot",
    "host_images.drop_depot",
    case="a depot comes, once, and goes",
)
@lacks(NO_VLCM)
def test_a_depot_comes_and_goes(vcenter: VCenterSide) -> None:
    images = HostImages(vcenter.open().rest)
    images.import_depot(LOCATION, "ours")
    images.import_depot(LOCATION, "ours")
    found = images.depots()
    assert [(each.location, each.description) for each in found] == [(LOCATION, "ours")]
    images.drop_depot(found[0].id)
    images.drop_depot(found[0].id)
    assert images.depots() == ()


@call(
    "host_images.image",
    "host_images.commit",
    "host_images.hosts",
    "host_images.check",
    "host_images.apply",
    "host_images.discard",
    case="a component is set, installed and removed",
)
@lacks(NO_VLCM)
def test_a_component_is_installed_and_removed(vcenter: VCenterSide) -> None:
    vc = vcenter.open()
    images, inventory = HostImages(vc.rest), vc.inventory.read()
    cluster = next(each.moid for each in inventory.clusters if each.name == vcenter.cluster)
    host = next(each.moid for each in inventory.hosts if each.cluster == cluster)
    images.import_depot(LOCATION, "ours")
    assert images.image(cluster) == {}
    drafts = f"/api/esx/settings/clusters/{cluster}/software/drafts"
    vc.rest.post(drafts)  # as a killed run leaves one
    images.discard(cluster, DRIVER)
    assert vc.rest.get(drafts) == {}
    vc.rest.post(drafts)
    images.commit(cluster, DRIVER, (), "set")
    assert images.image(cluster) == DRIVER
    assert images.hosts(cluster)[host].status == "NON_COMPLIANT"
    assert images.check(cluster, [host]) == ()
    images.apply(cluster, [host], eula=True)
    images.apply(cluster, [host], eula=True)
    assert images.hosts(cluster)[host].components == DRIVER
    images.commit(cluster, {}, ["NVIDIA-vGPU"], "remove")
    images.apply(cluster, [host], eula=True)
    assert images.hosts(cluster)[host].components == {}
    for each in images.depots():
        images.drop_depot(each.id)
