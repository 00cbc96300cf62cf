"""Pools and machines whose VM class has a vendor device group: the hosts of specs/vks-gpu.yaml have two and four
cards here, linked in pairs, and a machine of specs/dlvm.yaml beside the cluster.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from documents import started
from kinds.lifecycle import SPECS, apply, drift, endings, made, plan
from rights.given import Kube, guest, supervisor
from waiting import until

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

PAIR, WHOLE = "Nvidia:2@nvidia_h100-80c%NVLink", "nvidia_h100-80c"
CLUSTER = "/apis/cluster.x-k8s.io/v1beta2/namespaces/ml/clusters/ml-01"
MACHINE = "/apis/vmoperator.vmware.com/v1alpha6/namespaces/ml/virtualmachines/dl-01"
ROLLOUT = {"max_surge": 0, "max_unavailable": 1}


def described(folder: Path) -> Path:
    """The world: a host with two cards and one with four, and the library of the Deep Learning VM."""
    world = yaml.safe_load((SPECS / "worlds/vks-gpu.yaml").read_text())
    other = yaml.safe_load((SPECS / "worlds/dlvm.yaml").read_text())
    world["published"], world["env"] = other["published"], {**world["env"], **other["env"]}
    world["files"] = {**other["files"], **world["files"]}
    for host, count in zip(world["clusters"]["gpu"]["hosts"].values(), (2, 4), strict=True):
        host["pci"] = [{**host["pci"][0], "id": f"0000:{n:02x}:00.0"} for n in range(1, count + 1)]
        host["device_groups"] = {PAIR: [WHOLE, WHOLE]}
    (folder / "world.yaml").write_text(json.dumps(world))
    return folder / "world.yaml"


def site(folder: Path, nodes: int, *, machine: bool = True) -> Path:
    """The cluster with a pool of so many nodes, and the machine, all of a class with a group of two."""
    given: dict[str, Any] = yaml.safe_load((SPECS / "vks-gpu.yaml").read_text())
    other = yaml.safe_load((SPECS / "dlvm.yaml").read_text())
    vm_class = {**given["vm_class"]["h100-40c"], "vgpus": [], "device_groups": [PAIR]}
    given["vm_class"] = {"h100-pair": vm_class}
    space = given["supervisor_namespace"]["ml"]
    space |= {"vm_classes": ["guaranteed-large", "h100-pair"], "content_libraries": ["deep-learning"]}
    del space["reserved"], given["vks_addon"], given["workload"]
    workers = given["vks_cluster"]["ml-01"]["workers"]
    workers["gpu"] = {"vm_class": "h100-pair", "count": nodes, "rollout": ROLLOUT}
    given["gpu_operator"]["ml-01"]["files"] = [str(SPECS / "manifests/gpu-operator")]
    given["content_library"] = other["content_library"]
    given["service_vm"] = (
        {"dl-01": {**other["service_vm"]["dl-01"], "vm_class": "h100-pair"}} if machine else {}
    )
    (folder / "site.yaml").write_text(yaml.safe_dump(given))
    return folder / "site.yaml"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The site with two nodes and the machine, applied."""
    folder = tmp_path_factory.mktemp("device-groups")
    with started(described(folder), folder) as sandbox:
        done = apply(site(folder, 2), sandbox)
        assert made(done), endings(done)
        assert drift(site(folder, 2), sandbox).found == ()
        yield sandbox


def gpus(kube: Kube) -> list[str]:
    """The GPUs that each node of the pool offers to pods."""
    return [
        each.get("status", {}).get("allocatable", {}).get("nvidia.com/gpu", "0")
        for each in kube.call("GET", "/api/v1/nodes")["items"]
        if each["metadata"]["name"].startswith("ml-01-gpu-")
    ]


def scale(kube: Kube, nodes: int) -> None:
    """As `kubectl edit cluster` does."""
    pools = kube.call("GET", CLUSTER)["spec"]["topology"]["workers"]["machineDeployments"]
    changed = [{**each, "replicas": nodes} if each["name"] == "gpu" else each for each in pools]
    kube.call("PATCH", CLUSTER, {"spec": {"topology": {"workers": {"machineDeployments": changed}}}})


def test_more_nodes_than_there_are_groups_are_refused(running: Running, tmp_path: Path) -> None:
    (problem,) = map(str, plan(site(tmp_path, 3), running).problems)
    assert f"its nodes can take 4 device groups {PAIR}; the hosts of gpu have 3" in problem
    assert "each takes 2 linked cards of one host" in problem
    assert "write fewer, or add hosts to gpu" in problem
    assert ".yaml:" in problem, "it says where"


def test_nodes_of_a_tanzu_cluster_count_with_those_of_a_vks_cluster(running: Running, tmp_path: Path) -> None:
    given = yaml.safe_load(site(tmp_path, 2, machine=False).read_text())
    nodes = {"vm_class": "h100-pair", "storage_class": "gold"}
    given["tanzu_cluster"] = {
        "old": {
            "namespace": "ml",
            "api": "cluster.x-k8s.io/v1beta1",
            "version": "v1.34",
            "control_plane": {**nodes, "vm_class": "guaranteed-large", "count": 1},
            "workers": {"gpu": {**nodes, "count": 2}},
        }
    }
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(given))
    problems = [*map(str, plan(tmp_path / "site.yaml", running).problems)]
    (told,) = [each for each in problems if "device groups" in each]
    assert f"tanzu_cluster/old: its nodes can take 4 device groups {PAIR}; the hosts of gpu have 3" in told
    assert "see vks_cluster/ml-01 at" in told


def test_workers_of_an_mpi_job_count_the_gpus_in_their_nodes_groups(running: Running, tmp_path: Path) -> None:
    given = yaml.safe_load(site(tmp_path, 2).read_text())
    job = {"cluster": "ml-01", "image": "tf", "command": ["train"], "transport": "tcp", "gpus": 2}
    for workers, refused in ((3, True), (2, False)):
        given["mpi_job"] = {"train": {**job, "workers": workers}}
        (tmp_path / "site.yaml").write_text(yaml.safe_dump(given))
        problems = " ".join(map(str, plan(tmp_path / "site.yaml", running).problems))
        assert ("mpi_job/train: 3 workers with 2 GPUs each find space for 2" in problems) is refused
    assert problems == ""


def test_a_pool_is_full_where_linked_cards_run_out_and_a_machine_frees_them(running: Running) -> None:
    kube, inside = supervisor(running, "GPU"), guest(running, "ml", "ml-01", "GPU")
    until(lambda: gpus(inside) == ["2", "2"])
    assert kube.call("GET", MACHINE)["status"]["powerState"] == "PoweredOn"
    scale(kube, 3)
    until(lambda: "graphics resource" in str(kube.call("GET", CLUSTER)["status"]))
    assert gpus(inside) == ["2", "2"]
    kube.call("PATCH", MACHINE, {"spec": {"powerState": "PoweredOff"}})
    until(lambda: gpus(inside) == ["2", "2", "2"])
    kube.call("PATCH", MACHINE, {"spec": {"powerState": "PoweredOn"}})
    until(lambda: "graphics resource" in str(kube.call("GET", MACHINE)["status"]))
    scale(kube, 2)
    until(lambda: kube.call("GET", MACHINE)["status"]["powerState"] == "PoweredOn")
    until(lambda: gpus(inside) == ["2", "2"])
