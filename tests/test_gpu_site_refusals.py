"""What a GPU site is refused for before the first write: each by its message, with where and what next. The site
is specs/vks-gpu.yaml or specs/dlvm.yaml, changed as an overlay would.
"""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EVERYTHING, SPECS, plan, run_context
from rights.given import administrator

import bfinfra
from bfinfra import sandbox as sandboxes
from bfinfra.engine.apply import Options
from bfinfra.model.errors import BfinfraError
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

Fields = dict[str, Any]


def merged(below: Fields, above: Fields) -> Fields:
    """As overlays are merged; None takes away."""
    found = {**below}
    for name, value in above.items():
        inner = found.get(name)
        found[name] = merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
        if value is None:
            del found[name]
    return found


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Running]]:
    """The sandboxes of both sites; that of VKS has an older release and class, too."""
    folder = tmp_path_factory.mktemp("refusals")
    given = yaml.safe_load((SPECS / "worlds/vks-gpu.yaml").read_text())
    given["vks"]["releases"].insert(0, "v1.33.3+vmware.1-vkr.1")
    given["vks"]["classes"]["builtin-generic-v3.6.0"] = ["v1.33", "v1.33"]
    (folder / "vks-gpu.yaml").write_text(yaml.safe_dump(given))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BFINFRA_STATE_HOME", str(folder / "state"))
        worlds = {"vks-gpu": folder / "vks-gpu.yaml", "dlvm": SPECS / "worlds/dlvm.yaml"}
        yield {name: sandboxes.start(path, folder / name, pace=0) for name, path in worlds.items()}
    for name in worlds:
        sandboxes.stop(folder / name)


def token(ends: float) -> str:
    parts = ({"alg": "RS256"}, {"exp": int(ends)}, {})
    return ".".join(
        base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts
    )


def refused(folder: Path, sandbox: Running, name: str, over: Fields) -> str:
    """What `plan` refuses, or what loading the file does; an apply of it writes nothing."""
    given = merged(yaml.safe_load((SPECS / f"{name}.yaml").read_text()), over)
    operators = given.get("gpu_operator", {}).values()
    for each in operators:
        each["files"] = [str(SPECS / "manifests/gpu-operator")] if "files" in each else []
    path = folder / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    for file, text in (("empty", ""), ("expired", token(1_600_000_000)), ("good", token(time.time() + 9e6))):
        (folder / f"{file}.tok").write_text(text)
    before = sandbox.tally()["written"]
    try:
        found = "\n".join(map(str, plan(path, sandbox).problems))
        site = bfinfra.load(path, sandbox=sandbox)
        with pytest.raises(BfinfraError):
            bfinfra.apply(site, approve=lambda _: EVERYTHING, options=Options(), context=run_context(sandbox))
    except BfinfraError as error:
        found = str(error)
    assert sandbox.tally()["written"] == before
    return found


def cluster(**fields: Any) -> Fields:
    return {"vks_cluster": {"ml-01": fields}}


def pool(**fields: Any) -> Fields:
    return cluster(workers={"gpu": fields})


def operator(**fields: Any) -> Fields:
    return {"gpu_operator": {"ml-01": fields}}


SMALL = {"autoscale": {"min": 0, "max": 8}}
SPARE = "no vGPU nvidia_h100-40c is spare while its nodes are replaced"
CHART = {"oci": "oci://registry.example.com/nvaie/gpu-operator", "version": "v26.7.0"}
REFUSED = {
    "class in no namespace": (
        pool(vm_class="h100-80c"),
        "supervisor_namespace/ml offers no VM class h100-80c",
        "add it to its vm_classes; did you mean h100-40c?",
    ),
    "an autoscaler that is told a wrong number of GPUs": (
        pool(autoscale={"gpus": 2}),
        "each node has 1 GPUs, not 2",
        "write 1",
    ),
    "more vGPUs than the hosts have": (
        pool(autoscale={"min": 0, "max": 9}),
        "its nodes can take 9 vGPUs nvidia_h100-40c; the hosts of gpu have 8",
        "write fewer, or add hosts to gpu",
    ),
    "surge without a spare GPU": (
        pool(**SMALL, rollout={"max_surge": 1, "max_unavailable": 0}),
        SPARE,
        "write rollout: {max_surge: 0, max_unavailable: 1}",
    ),
    "surge that nobody wrote": (pool(**SMALL, rollout=None), SPARE, "write rollout: {max_surge: 0"),
    "count beside autoscale": (
        pool(count=2),
        "the pool has autoscale, too; the autoscaler would undo the count",
        "write only one of them",
    ),
    "a variable that the class lacks": (
        cluster(variables={"kubernete": {}}),
        "builtin-generic-v3.7.0 has no variable kubernete",
        "did you mean kubernetes?",
    ),
    "a value outside of the class's schema": (
        cluster(variables={"kubernetes": {"security": {"podSecurityStandard": {"enforce": "lax"}}}}),
        "kubernetes.security.podSecurityStandard.enforce is lax",
        "one of: privileged, baseline, restricted",
    ),
    "version outside of the class's labels": (
        cluster(version="v1.33"),
        "builtin-generic-v3.7.0 makes no clusters of v1.33",
        "write cluster_class: builtin-generic-v3.6.0",
    ),
    "version without a release": (
        cluster(version="v1.34.9"),
        "the supervisor has no release v1.34.9 that it can use",
        "choose one of these, or subscribe the content library that holds it",
    ),
    "an operating system without an image": (
        cluster(os="ubuntu-20.04"),
        "v1.34.8+vmware.1-vkr.1 has no image of ubuntu-20.04",
        "choose one of these",
    ),
    "pod network too small": (
        cluster(network={"pods": ["100.96.0.0/21"]}),
        "the pod network is too small: 10 nodes and 1 more while they are replaced take 11 networks of /24",
        "write at least a /20",
    ),
    "Pod Security below privileged": (
        {"namespace": {"gpu-operator": {"pod_security": {"enforce": "baseline"}}}},
        "its pods are refused in a namespace of the level baseline",
        "write enforce: privileged there",
    ),
    "Pod Security that nobody wrote": (
        {"namespace": {"gpu-operator": {"pod_security": None}}},
        "a namespace without a level of its own: vks_cluster/ml-01 enforces restricted",
        "write pod_security: {enforce: privileged} in namespace/gpu-operator",
    ),
    "an empty license token": (
        operator(license={"token": {"file": "empty.tok"}}),
        "the license token is empty",
        "get the client configuration token from NVIDIA's license portal",
    ),
    "an expired license token": (
        operator(license={"token": {"file": "expired.tok"}}),
        "the license token expired on 2020-09-13",
        "get the client configuration token from NVIDIA's license portal",
    ),
    "a chart without its digest": (
        operator(files=None, chart=CHART),
        "chart.digest is missing",
        "bfinfra explain gpu_operator.chart describes it",
    ),
    "claims without their API": (
        merged(cluster(version="v1.33", cluster_class="builtin-generic-v3.6.0"), operator(allocate="dra")),
        "resource claims need Kubernetes 1.34, and vks_cluster/ml-01 is of v1.33",
        "write allocate: device_plugin, or a newer version of the cluster",
    ),
    "parts of GPUs on nodes with vGPUs": (
        operator(mig="single", license=None),
        "nodes of vks_cluster/ml-01 have vGPUs, which are divided on their host",
        "remove mig",
    ),
    "parts of GPUs beside a license": (
        operator(mig="single", license={"token": {"file": "good.tok"}}),
        "mig: vGPUs, which need a license, are divided on their host",
        "remove mig",
    ),
    "a guest driver newer than the hosts'": (
        operator(driver={"version": "590.44.01"}),
        "its driver is of branch 590, newer than the hosts' 580",
        "write a driver of branch 580, or update the hosts first",
    ),
}
MACHINE = yaml.safe_load((SPECS / "dlvm.yaml").read_text())["service_vm"]["dl-01"]
UNLIKE = {"properties": {"hostname": "other"}}
REFUSED_MACHINES = {
    "profile on no host": (
        {"vm_class": {"h100-40c": {"vgpus": ["nvidia_h100-20c"]}}},
        "no host of the cluster gpu offers the vGPU profile nvidia_h100-20c",
        "did you mean nvidia_h100-",
    ),
    "class in no namespace": (
        {"service_vm": {"dl-01": {"vm_class": "h100-80c"}}},
        "supervisor_namespace/ml offers no VM class h100-80c",
        "add it to its vm_classes; did you mean h100-40c?",
    ),
    "more vGPUs than the hosts have": (
        {"service_vm": {f"dl-0{n}": {**MACHINE, **UNLIKE} for n in range(2, 6)}},
        "this machine and the others of the site can take 5 vGPUs nvidia_h100-40c; the hosts of gpu have 4",
        "write fewer, or add hosts to gpu",
    ),
}


@pytest.mark.parametrize("name", REFUSED_MACHINES)
def test_a_machine_is_refused_before_the_first_write(
    name: str, worlds: dict[str, Running], tmp_path: Path
) -> None:
    over, what, then = REFUSED_MACHINES[name]
    found = refused(tmp_path, worlds["dlvm"], "dlvm", over)
    assert what in found
    assert then in found
    assert re.search(r"\S+site\.yaml:\d+:\d+: ", found), "it says where"


def test_a_machine_whose_hosts_share_no_card_is_refused(worlds: dict[str, Running], tmp_path: Path) -> None:
    with administrator(worlds["dlvm"]) as si:
        for number in (1, 2):
            path = f"/Datacenter/host/gpu/esx1-{number}.sandbox.test"
            manager = si.content.searchIndex.FindByInventoryPath(path).configManager.graphicsManager
            config = manager.graphicsConfig
            config.hostDefaultGraphicsType = "shared"
            manager.UpdateGraphicsConfig(config)
    found = refused(tmp_path, worlds["dlvm"], "dlvm", {})
    worlds["dlvm"].reset()
    assert "no host of the cluster gpu offers a vGPU profile yet" in found
    assert "add a host_image with the driver, and host_graphics" in found


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_before_the_first_write(name: str, worlds: dict[str, Running], tmp_path: Path) -> None:
    over, what, then = REFUSED[name]
    found = refused(tmp_path, worlds["vks-gpu"], "vks-gpu", over)
    assert what in found
    assert then in found
    assert re.match(r"\S+site\.yaml:\d+:\d+: ", found), "it says where"


def test_what_is_not_changed_is_not_refused(worlds: dict[str, Running], tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    for name, sandbox in worlds.items():
        path.write_text((SPECS / f"{name}.yaml").read_text().replace("manifests/", f"{SPECS}/manifests/"))
        assert plan(path, sandbox).problems == ()


@pytest.mark.parametrize(
    "standard", [{"deactivated": "true"}, {"enforce": "privileged"}], ids=["none", "privileged"]
)
def test_a_cluster_whose_own_level_lets_the_operator_in(
    standard: Fields, worlds: dict[str, Running], tmp_path: Path
) -> None:
    variables = {"kubernetes": {"security": {"podSecurityStandard": standard}}}
    over = merged(cluster(variables=variables), {"namespace": {"gpu-operator": {"pod_security": None}}})
    given = merged(yaml.safe_load((SPECS / "vks-gpu.yaml").read_text()), over)
    given["gpu_operator"]["ml-01"]["files"] = [str(SPECS / "manifests/gpu-operator")]
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    assert plan(path, worlds["vks-gpu"]).problems == ()
