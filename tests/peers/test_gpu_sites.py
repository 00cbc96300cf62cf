"""Drift of today's GPU sites that kubectl, govc, REST and pyVmomi made: the sandbox is their server, and each change
is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import SPECS, apply, drift, endings, made
from peers.found import Peers, run
from pyVmomi import vim
from rights.given import administrator
from sandbox.asking import Rest
from test_dlvm import lazy

from bfinfra import sandbox as sandboxes
from bfinfra.sandbox import Running

USER = "administrator@vsphere.local"
CLASS = "/api/vcenter/namespace-management/virtual-machine-classes/h100-40c"
SPACE = "/api/vcenter/namespaces/instances/ml"
IMAGES = "/api/esx/settings/clusters"
HOST = "/Datacenter/host/gpu/esx1-1.sandbox.test"
POOL = "/spec/topology/workers/machineDeployments"
MOST = "cluster.x-k8s.io~1cluster-api-autoscaler-node-group-max-size"


class Clients:
    """kubectl and govc on a sandbox, with the files that it hands out."""

    def __init__(self, sandbox: Running, peers: Peers) -> None:
        self.sandbox, self._peers = sandbox, peers
        self.rest = Rest(sandbox, USER)

    def kubectl(self, context: str, *words: str) -> str:
        return self._run("kubectl", "--context", context, *words)

    def govc(self, *words: str) -> str:
        return self._run("govc", *words)

    def patch(self, context: str, what: str, *operations: tuple[str, str, Any]) -> None:
        """A JSON patch: (op, path, value) each."""
        listed = [{"op": op, "path": path, "value": value} for op, path, value in operations]
        self.kubectl(context, "patch", *what.split(), "--type=json", "-p", json.dumps(listed))

    def _run(self, program: str, *words: str) -> str:
        shell = '. "$1"; shift; exec "$@"'
        command = ["/bin/sh", "-ec", shell, "sh", str(self.sandbox.env_file), str(self._peers.bin / program)]
        return run([*command, *words], {"GOVC_PERSIST_SESSION": "false"})


@pytest.fixture
def clients(
    request: pytest.FixtureRequest, tmp_path: Path, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Clients]:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "home"))
    running = sandboxes.start(SPECS / f"worlds/{request.param}.yaml", tmp_path / "state", pace=0)
    assert made(apply(SPECS / f"{request.param}.yaml", running))
    yield Clients(running, peers)
    sandboxes.stop(tmp_path / "state")


def found(sandbox: Running, site: str) -> dict[str, str]:
    """Address and field → who changed it."""
    return {f"{each.key}: {each.field}": each.by for each in drift(SPECS / f"{site}.yaml", sandbox).found}


def mended(sandbox: Running, site: str) -> None:
    done = apply(SPECS / f"{site}.yaml", sandbox)
    assert made(done), endings(done)
    assert found(sandbox, site) == {}


OPERATOR = "gpu_operator/ml-01"
BY_OTHERS = {
    "vks_cluster/ml-01: workers.cpu.count": "kubectl-patch",
    "vks_cluster/ml-01: workers.gpu.autoscale.max": "kubectl-patch",
    "vks_addon/autoscaler: ": "",
    "namespace/gpu-operator: pod_security.enforce": "kubectl-label",
    f"{OPERATOR}: ClusterPolicy cluster-policy.spec.dcgmExporter.enabled": "kubectl-patch",
    f"{OPERATOR}: Deployment gpu-operator/gpu-operator.spec.template.spec.containers.gpu-operator.image": (
        "kubectl-set"
    ),
    f"{OPERATOR}: ServiceAccount gpu-operator/gpu-operator": "",
    "supervisor_namespace/ml: vm_classes": "",
    "supervisor_namespace/ml: storage.gold": "",
    "vm_class/h100-40c: cpus": "",
    "host_image/gpu: components.NVIDIA-vGPU": "",
    "host_graphics/vgpu: hosts.esx1-1.sandbox.test.placement": "",
    "cluster_option/evacuate: clusters.gpu": "",
}


@pytest.mark.parametrize("clients", ["vks-gpu"], indirect=True)
def test_what_others_change_of_a_gpu_cluster_is_named_and_mended(clients: Clients) -> None:
    clients.kubectl("gpu", "scale", "machinedeployment", "ml-01-gpu", "-n", "ml", "--replicas=2")
    assert found(clients.sandbox, "vks-gpu") == {}, "the autoscaler's hand is nobody's drift"
    clients.patch(
        "gpu",
        "cluster ml-01 -n ml",
        ("replace", f"{POOL}/0/replicas", 4),
        ("replace", f"{POOL}/1/metadata/annotations/{MOST}", "6"),
    )
    clients.kubectl("gpu", "delete", "addoninstalls.addons.kubernetes.vmware.com", "autoscaler", "-n", "ml")
    guest, of = "ml/ml-01", "pod-security.kubernetes.io/enforce=baseline"
    clients.kubectl(guest, "label", "namespace", "gpu-operator", of, "--overwrite")
    clients.patch(guest, "clusterpolicy cluster-policy", ("replace", "/spec/dcgmExporter/enabled", False))
    image = ("image", "deployment/gpu-operator", "*=theirs:1")
    clients.kubectl(guest, "set", *image, "-n", "gpu-operator")
    clients.kubectl(guest, "delete", "serviceaccount", "gpu-operator", "-n", "gpu-operator")
    clients.govc("namespace.update", "-vmclass", "guaranteed-large", "ml")
    by_rest(clients.rest)
    by_pyvmomi(clients.sandbox)
    seen = found(clients.sandbox, "vks-gpu")
    assert BY_OTHERS.items() <= seen.items(), seen
    mended(clients.sandbox, "vks-gpu")


def by_rest(rest: Rest) -> None:
    """A smaller class, somebody who may look, and an image without its driver."""
    assert rest.call("PATCH", CLASS, {"cpu_count": 8}).status == 204
    owner = {"subject_type": "USER", "subject": "administrator", "domain": "vsphere.local", "role": "VIEW"}
    assert rest.call("PATCH", SPACE, {"access_list": [owner]}).status == 204
    (cluster,) = (each["cluster"] for each in rest.get("/api/vcenter/namespace-management/clusters"))
    draft = rest.call("POST", f"{IMAGES}/{cluster}/software/drafts").data
    path = f"{IMAGES}/{cluster}/software/drafts/{draft}"
    without = {"components_to_set": {}, "components_to_delete": ["NVIDIA-vGPU"]}
    assert rest.call("PATCH", f"{path}/software/components", without).status == 204
    rest.call("POST", f"{path}?action=commit&vmw-task=true", {})


def by_pyvmomi(sandbox: Running) -> None:
    """Another placement of vGPUs on one host, and no more option of DRS."""
    with administrator(sandbox) as si:
        index = si.content.searchIndex
        manager = index.FindByInventoryPath(HOST).configManager.graphicsManager
        config = manager.graphicsConfig
        config.sharedPassthruAssignmentPolicy = "performance"
        manager.UpdateGraphicsConfig(config)
        drs = vim.cluster.DrsConfigInfo(
            option=[vim.option.OptionValue(key="VgpuMMAutomationTimeoutSecs", value="60")]
        )
        spec = vim.cluster.ConfigSpecEx(drsConfig=drs)
        index.FindByInventoryPath("/Datacenter/host/gpu").ReconfigureComputeResource_Task(spec, True)


MACHINE = "service_vm/dl-01"
OF_MACHINE = {
    f"{MACHINE}: power": "kubectl-patch",
    f"{MACHINE}: vm_class": "kubectl-patch",
    f"{MACHINE}: ready.tcp": "kubectl-patch",
    f"{MACHINE}: properties.hostname": "kubectl-patch",
    f"{MACHINE}: disks.data.attached": "",
    f"{MACHINE}: expose": "kubectl-patch",
    f"{MACHINE}: secrets": "",
    "vm_class/h100-40c: cpus": "",
    "supervisor_namespace/ml: vm_classes": "",
    "supervisor_namespace/ml: content_libraries": "",
    "supervisor_namespace/ml: storage.gold": "",
    "content_library/deep-learning: subscription.automatic_sync": "",
    "content_library/deep-learning: subscription.on_demand": "",
}


@pytest.mark.parametrize("clients", ["dlvm"], indirect=True)
def test_what_others_change_of_a_machine_is_named_and_mended(clients: Clients) -> None:
    vm = json.loads(clients.kubectl("gpu", "get", "vm", "dl-01", "-n", "ml", "-o", "json"))
    properties = vm["spec"]["bootstrap"]["vAppConfig"]["properties"]
    (at,) = (number for number, each in enumerate(properties) if each["key"] == "hostname")
    clients.patch(
        "gpu",
        "vm dl-01 -n ml",
        ("replace", "/spec/powerState", "PoweredOff"),
        ("replace", "/spec/className", "another"),
        ("replace", "/spec/volumes", []),
        ("replace", "/spec/readinessProbe/tcpSocket/port", 23),
        ("replace", f"/spec/bootstrap/vAppConfig/properties/{at}/value", {"value": "elsewhere"}),
    )
    ports = [{"name": "ssh", "protocol": "TCP", "port": 2222, "targetPort": 22}]
    clients.patch("gpu", "virtualmachineservice dl-01 -n ml", ("replace", "/spec/ports", ports))
    clients.kubectl("gpu", "delete", "secret", "dl-01-bootstrap", "-n", "ml")
    assert clients.rest.call("PATCH", CLASS, {"cpu_count": 8}).status == 204
    small = {"id": "small", "cpu_count": 2, "memory_MB": 4096}
    assert clients.rest.call("POST", CLASS.rpartition("/")[0], small).status in (201, 204)
    clients.govc("namespace.update", "-vmclass", "small", "ml")
    lazy(clients.rest)
    seen = found(clients.sandbox, "dlvm")
    assert OF_MACHINE.items() <= seen.items(), seen
    mended(clients.sandbox, "dlvm")
