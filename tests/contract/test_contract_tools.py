"""kubectl and the official client do the same on the sandbox and on kube-apiserver."""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kubernetes.client
import kubernetes.config
import pytest
import yaml
from contract.sides import api_address
from peers.found import Peers

from bfinfra import sandbox

pytestmark = pytest.mark.peers


@dataclass
class Cluster:
    """kubectl and the official client on one API; `space` is a namespace of the test's own."""

    kubectl: Callable[..., subprocess.CompletedProcess[str]]
    config: dict[str, Any]
    space: str


@pytest.fixture(params=["sandbox", "kube-apiserver"])
def cluster(
    request: pytest.FixtureRequest, peers: Peers, world_process: sandbox.Running, tmp_path: Path
) -> Iterator[Cluster]:
    if request.param == "sandbox":
        world_process.reset()
        config = yaml.safe_load((world_process.files / "other.kubeconfig").read_text())
        host, _, port = api_address(config).rpartition(":")
        there = world_process.lookup(host, int(port))
        assert there
        config["clusters"][0]["cluster"]["server"] = f"https://{there[0]}:{there[1]}"
    else:
        config = yaml.safe_load(peers.kubeconfig.read_text())
    file, space = tmp_path / "kubeconfig", f"tools-{uuid.uuid4().hex[:8]}"
    file.write_text(yaml.safe_dump(config))
    command = [str(peers.bin / "kubectl"), "--kubeconfig", str(file), "-n", space]

    def kubectl(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *words],
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            input=given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    kubectl("create", "namespace", space)
    yield Cluster(kubectl, config, space)
    kubectl("delete", "namespace", space, "--wait=false")


def manifest(**data: str) -> str:
    return json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}
    )


POD = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "busybox", "command": ["sleep", "1d"]}]},
    }
)
APPLY = ("apply", "--server-side", "-f", "-")


def outcome(done: subprocess.CompletedProcess[str]) -> tuple[int, str]:
    return done.returncode, done.stdout.strip()


def test_kubectl_applies_differs_and_conflicts_alike(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    assert outcome(kubectl(*APPLY, given=manifest(a="1"))) == (0, "configmap/settings serverside-applied")
    assert kubectl("diff", "--server-side", "-f", "-", given=manifest(a="1")).returncode == 0
    differs = kubectl("diff", "--server-side", "-f", "-", given=manifest(a="2"))
    assert differs.returncode == 1, differs.stderr
    assert {line for line in differs.stdout.splitlines() if re.match(r"[-+] ", line)} >= {
        '-  a: "1"',
        '+  a: "2"',
    }
    conflict = kubectl(*APPLY, "--field-manager=other", given=manifest(a="3"))
    assert conflict.returncode == 1
    assert 'conflict with "kubectl": .data.a' in conflict.stderr
    assert (
        kubectl(*APPLY, "--field-manager=other", "--force-conflicts", given=manifest(a="3")).returncode == 0
    )
    assert outcome(kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.a}")) == (0, "3")


def test_kubectl_waits_alike(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    assert kubectl(*APPLY, given=POD).returncode == 0
    assert outcome(kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s")) == (
        0,
        "pod/p condition met",
    )
    assert kubectl("delete", "pod", "p", "--wait=false").returncode == 0
    assert kubectl("wait", "--for=delete", "pod/p", "--timeout=40s").returncode == 0
    late = kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=1s")
    assert late.returncode == 1
    assert "not found" in late.stderr


def test_kubectl_is_refused_alike(cluster: Cluster) -> None:
    kubectl = cluster.kubectl
    missing = kubectl("get", "configmap", "nothing")
    assert (missing.returncode, missing.stderr.strip()) == (
        1,
        'Error from server (NotFound): configmaps "nothing" not found',
    )
    assert kubectl("create", "-f", "-", given=manifest()).returncode == 0
    again = kubectl("create", "-f", "-", given=manifest())
    assert "(AlreadyExists)" in again.stderr and 'configmaps "settings" already exists' in again.stderr
    unknown = kubectl(*APPLY, "--validate=false", given=manifest()[:-1] + ', "nonsense": true}')
    assert unknown.returncode == 1
    assert "nonsense" in unknown.stderr
    assert outcome(kubectl("auth", "can-i", "delete", "secrets")) == (0, "yes")


def test_the_official_client_sees_the_same(cluster: Cluster) -> None:
    with kubernetes.config.new_client_from_config_dict(cluster.config) as client:
        core = kubernetes.client.CoreV1Api(client)
        made = core.create_namespaced_config_map(
            cluster.space, {"metadata": {"name": "settings"}, "data": {"a": "1"}}
        )
        assert made.data == {"a": "1"}
        core.patch_namespaced_config_map("settings", cluster.space, {"data": {"b": "2"}})
        assert core.read_namespaced_config_map("settings", cluster.space).data == {"a": "1", "b": "2"}
        assert "settings" in {
            each.metadata.name for each in core.list_namespaced_config_map(cluster.space).items
        }
        with pytest.raises(kubernetes.client.ApiException) as failed:
            core.create_namespaced_config_map(cluster.space, {"metadata": {"name": "settings"}})
        assert (failed.value.status, json.loads(failed.value.body)["reason"]) == (409, "AlreadyExists")
        core.delete_namespaced_config_map("settings", cluster.space)
        with pytest.raises(kubernetes.client.ApiException) as failed:
            core.read_namespaced_config_map("settings", cluster.space)
        assert (failed.value.status, json.loads(failed.value.body)["details"]["kind"]) == (404, "configmaps")
