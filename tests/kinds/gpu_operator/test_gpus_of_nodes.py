"""An operator is ready once each node with GPUs offers them; none is owed where no node has any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kinds.at_cluster import Site
from kinds.gpu_operator.at_gpus import ADDRESS, LICENSED, VGPU, drivers, given, labels, made, offered, policy

from bfinfra.model.events import Ending

pytestmark = [pytest.mark.parametrize("api", ["sandbox"], indirect=True), pytest.mark.thorough]


@pytest.fixture
def site(api: Any, node_gpus: Any, tmp_path: Path) -> Site:
    return made(api, tmp_path)


def test_each_node_with_gpus_offers_them_when_the_apply_ends(site, cluster):
    site.applied()
    assert offered(cluster, "g1") == {"nvidia.com/gpu": "2"}
    assert offered(cluster, "g2") == {"nvidia.com/gpu": "2"}
    assert offered(cluster, "worker") == {}
    assert labels(cluster, "g1")["feature.node.kubernetes.io/pci-10de.present"] == "true"
    assert set(drivers(cluster)) == {"g1", "g2"}
    assert policy(cluster)["status"]["state"] == "ready"
    assert site.item(ADDRESS).steps == ()


def test_a_node_that_offers_nothing_is_named(site, cluster, node_gpus):
    node_gpus["g2"] = VGPU
    outcome = site.apply(deadline=1)
    (ended,) = [each for key, each in outcome.endings.items() if str(key) == ADDRESS]
    assert ended.ending is Ending.WAITING
    assert "states not ready: [state-device-plugin]" in str(ended.problem)
    assert offered(cluster, "g2") == {}


def test_a_cluster_without_gpus_owes_none(site, cluster, node_gpus):
    node_gpus.clear()
    site.applied()
    assert drivers(cluster) == {}


def test_vgpus_are_offered_with_a_license_that_the_driver_read(site, cluster, node_gpus):
    node_gpus |= {"g1": VGPU, "g2": VGPU}
    given(site, license=LICENSED).applied()
    assert offered(cluster, "g1") == {"nvidia.com/gpu": "1"}
