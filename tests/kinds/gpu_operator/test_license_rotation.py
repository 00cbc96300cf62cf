"""A new license token: the Secret changes, the drivers that hold the old one are named, and are restarted with
leave alone.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from kinds.at_cluster import Site
from kinds.gpu_operator.at_gpus import (
    ADDRESS,
    LICENSED,
    VGPU,
    deployed,
    drivers,
    given,
    jwt,
    made,
    names,
    offered,
    pods_of,
)
from kube_api import somebody_patches

from bfinfra.engine.guard import Allow, objections
from bfinfra.sandbox.kubernetes.nvidia import Gpus

pytestmark = [pytest.mark.parametrize("api", ["sandbox"], indirect=True), pytest.mark.thorough]


@pytest.fixture
def node_gpus() -> dict[str, Gpus]:
    return {"g1": VGPU, "g2": VGPU}


@pytest.fixture
def site(api: Any, node_gpus: Any, tmp_path: Path) -> Site:
    found = made(api, tmp_path, license=LICENSED)
    found.begun(node_gpus)
    return found


def another(site: Site) -> str:
    """Another token; drivers that run now started in an earlier second."""
    time.sleep(1.1)
    text = jwt(time.time() + 7200)
    (site.folder / "token.tok").write_text(text)
    return text


def listed(cluster: Any) -> str:
    return ", ".join(f"pod {pod} on node {node}" for node, pod in sorted(drivers(cluster).items()))


def warned(found: Any) -> str:
    (warning,) = [each for each in found.warnings if "license token" in str(each)]
    return str(warning)


def test_the_drivers_that_will_hold_the_old_token_are_named_and_none_is_restarted(site, cluster):
    before = drivers(cluster)
    text = another(site)
    assert f"drivers will hold the earlier license token: {listed(cluster)}" in warned(site.plan())
    assert names(site.item(ADDRESS).steps) == ["Update", "Commit"]
    outcome = site.applied()
    (ended,) = [each for key, each in outcome.endings.items() if str(key) == ADDRESS]
    assert ended.note == f"with the earlier license token until they are restarted: {listed(cluster)}"
    assert drivers(cluster) == before
    assert "write restart_drivers: if_needed" in warned(site.drift())
    assert f"drivers hold the earlier license token: {listed(cluster)}" in warned(site.plan())
    assert site.item(ADDRESS).steps == ()
    assert text not in str(site.plan()) + str(site.drift()) + str(outcome)


def test_a_restart_takes_an_allowance(site, cluster):
    another(site)
    plan = given(site, restart_drivers="if_needed").plan()
    (problem,) = objections(plan, Allow())
    assert "the plan needs a restart of gpu_operator/gpus" in str(problem)
    assert "the pods of a node lose its GPUs while its driver restarts" in str(problem)
    assert "--allow-disruption gpu_operator/gpus" in str(problem)
    assert not objections(plan, Allow(every_disruption=True))


def test_with_it_drivers_are_restarted_node_after_node(site, cluster):
    before = drivers(cluster)
    deployed(cluster, "train", "g1")
    (held,) = pods_of(cluster, "train")
    another(site)
    given(site, restart_drivers="if_needed")
    titles = site.titles(ADDRESS)
    assert titles[:3] == [
        "change Secret default/bfinfra-vgpu-license in k",
        f"restart the driver of node g1 of k, pod {before['g1']}, which holds the earlier license token",
        f"restart the driver of node g2 of k, pod {before['g2']}, which holds the earlier license token",
    ]
    site.applied()
    after = drivers(cluster)
    assert not {*before.values()} & {*after.values()}
    assert site.item(ADDRESS).steps == ()
    assert not site.plan().warnings
    assert offered(cluster, "g1") == {"nvidia.com/gpu": "1"}
    assert held["metadata"]["name"] not in [pod["metadata"]["name"] for pod in pods_of(cluster, "train")]


def test_who_restarts_pods_by_hand_is_not_warned_any_more(site, cluster):
    another(site)
    site.applied()
    time.sleep(1.1)
    cluster.delete("v1", "Pod", drivers(cluster)["g1"], "default")
    time.sleep(0.5)
    assert re.findall("on node (g.)", warned(site.plan())) == ["g2"]


def test_another_change_does_not_make_a_token_new(site, cluster):
    another(site)
    site.applied()
    noted = cluster.get("v1", "Secret", "bfinfra-vgpu-license", "default")["metadata"]["annotations"]
    secret = {"metadata": {"labels": {"bfinfra.io/site": "theirs"}}}
    somebody_patches(cluster, "namespaces/default/secrets/bfinfra-vgpu-license", secret)
    time.sleep(1.1)
    site.applied()
    after = cluster.get("v1", "Secret", "bfinfra-vgpu-license", "default")["metadata"]["annotations"]
    assert after["bfinfra.io/tokenWrittenAt"] == noted["bfinfra.io/tokenWrittenAt"]


def test_a_license_that_expired_gives_no_gpus_once_the_driver_restarts(site, cluster):
    expired = {"data": {"client_configuration_token.tok": ""}}
    somebody_patches(cluster, "namespaces/default/secrets/bfinfra-vgpu-license", expired)
    assert offered(cluster, "g1") == {"nvidia.com/gpu": "1"}, "a driver reads it when it starts"
    cluster.delete("v1", "Pod", drivers(cluster)["g1"], "default")
    time.sleep(0.5)
    assert offered(cluster, "g1") == {}
    changes = [change.field for change in site.item(ADDRESS).changes]
    assert any("bfinfra-vgpu-license.data" in field for field in changes)
