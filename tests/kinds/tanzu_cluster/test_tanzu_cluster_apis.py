"""One cluster in each API that a supervisor serves: made, agreed with, mended, upgraded over several minor
versions, deleted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import KILLED, SPECS, apply, endings, kill_at, made, plan, world
from kinds.unmanaged import TANZU
from rights.given import supervisor

from bfinfra.engine import guard
from bfinfra.model.errors import Unsafe

pytestmark = pytest.mark.thorough

APIS = [
    "run.tanzu.vmware.com/v1alpha1",
    "run.tanzu.vmware.com/v1alpha2",
    "run.tanzu.vmware.com/v1alpha3",
    "cluster.x-k8s.io/v1beta1",
]
EXAMPLE = yaml.safe_load((SPECS / "kinds/tanzu_cluster.yaml").read_text())
POOL = {"vm_class": "best-effort-small", "storage_class": "gold"}


def site(folder: Path, **changes: Any) -> Path:
    """The example, its cluster changed."""
    given = {
        **EXAMPLE,
        "tanzu_cluster": {"cluster-01": {**EXAMPLE["tanzu_cluster"]["cluster-01"], **changes}},
    }
    path = folder / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    return path


@pytest.mark.parametrize("api", APIS[2:])
def test_made_in_two_pools_agreed_with_scaled_and_gone(api, sandbox, tmp_path):
    before = world(sandbox)
    pools = {
        "a": {"count": 1, **POOL},
        "b": {
            "count": 1,
            **POOL,
            "volumes": {"containerd": {"mount_path": "/var/lib/containerd", "capacity": "20GiB"}},
        },
    }
    path = site(
        tmp_path, api=api, workers=pools, network={"pods": ["192.168.0.0/16"]}, storage_classes=["gold"]
    )
    first = apply(path, sandbox)
    assert made(first), endings(first)
    assert plan(path, sandbox).pending == ()
    pools["b"]["count"] = 2
    path = site(
        tmp_path, api=api, workers=pools, network={"pods": ["192.168.0.0/16"]}, storage_classes=["gold"]
    )
    (item,) = plan(path, sandbox).pending
    assert [change.field for change in item.changes] == ["workers.b.count"]
    assert made(apply(path, sandbox))
    assert plan(path, sandbox).pending == ()
    del pools["b"]
    path = site(
        tmp_path, api=api, workers=pools, network={"pods": ["192.168.0.0/16"]}, storage_classes=["gold"]
    )
    found = plan(path, sandbox)
    (item,) = found.pending
    assert [step.title() for step in item.steps] == [
        "remove the node pool b of cluster cluster-01 in team-a, with what is on its nodes alone"
    ]
    with pytest.raises(Unsafe, match="destroy a part of tanzu_cluster/cluster-01"):
        guard.check(found, guard.Allow())
    assert made(apply(path, sandbox))
    assert plan(path, sandbox).pending == ()
    assert made(apply(path, sandbox, destroy=True))
    assert world(sandbox) == before


@pytest.mark.parametrize("api", [APIS[0], APIS[3]])
def test_two_minor_versions_are_walked_in_one_apply_and_a_killed_walk_goes_on(api, sandbox, tmp_path):
    assert made(apply(site(tmp_path, api=api), sandbox))
    path = site(tmp_path, api=api, version="v1.22")
    (item,) = plan(path, sandbox).pending
    assert [step.changes[0].wanted[:5] for step in item.steps] == ["v1.21", "v1.22"]
    assert kill_at(path, sandbox, 1, "after", tmp_path / "state") == KILLED
    finished = apply(path, sandbox)
    assert made(finished), endings(finished)
    assert set(re.findall(r'"kubeletVersion": "(v1\.2[012][^"]*)"', world(sandbox))) == {"v1.22.9+vmware.1"}
    assert plan(path, sandbox).pending == ()


def test_a_cluster_stays_the_kind_of_object_that_it_was_made_as(sandbox, tmp_path):
    assert made(apply(site(tmp_path, api=APIS[2]), sandbox))
    assert "it can't become a Cluster" in str(plan(site(tmp_path, api=APIS[3]), sandbox).problems)
    (item,) = plan(site(tmp_path, api=APIS[1]), sandbox).pending
    assert [change.field for change in item.changes] == ["api"]


@pytest.mark.parametrize("api", APIS[:2])
def test_workers_that_kubectl_scales_in_the_first_version_are_drift_and_are_scaled_back(
    api, sandbox, tmp_path
):
    path = site(tmp_path, api=api)
    assert made(apply(path, sandbox))
    kube = supervisor(sandbox)
    assert "nodePools" not in kube.call("GET", f"{TANZU}/cluster-01")["spec"]["topology"]
    kube.call("PATCH", f"{TANZU}/cluster-01", {"spec": {"topology": {"workers": {"count": 2}}}})
    (item,) = plan(path, sandbox).pending
    assert [(change.field, change.now, change.wanted) for change in item.changes] == [
        ("workers.workers.count", 2, 1)
    ]
    assert made(apply(path, sandbox))
    assert plan(path, sandbox).pending == ()
    assert kube.call("GET", f"{TANZU}/cluster-01")["spec"]["topology"]["workers"]["count"] == 1
