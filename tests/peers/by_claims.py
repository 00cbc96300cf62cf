"""A site with the GPU operator on a real kube-apiserver, whose GPUs are given by claims."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kinds.lifecycle import SPECS
from peers.found import Peers
from peers.site_files import SiteFile

GPU = "gpu.nvidia.com"


@contextmanager
def gpus_by_claims(peers: Peers, folder: Path, rendering: str, sort: str) -> Iterator[SiteFile]:
    """With a namespace and a node with GPUs of the test's own, both called as the site, and NVIDIA's class of
    this sort of devices: gpu or mig. `rendering`: the operator's, in specs/manifests.
    """
    own, of_class = f"peers-{sort}-{uuid.uuid4().hex[:8]}", f"{sort}.nvidia.com"
    found = SiteFile(SPECS / "peers/gpu-operator.yaml", folder)
    found.given["site"] = found.given["namespace"]["gpus"]["namespace"] = own
    gpus = found.given["gpu_operator"]["gpus"]
    del gpus["mig"]
    gpus["allocate"] = "dra"
    found.put("admin.kubeconfig", peers.kubeconfig.read_text())
    found.take(f"manifests/{rendering}/operator.yaml", "operator.yaml")
    labels = {"nvidia.com/gpu.present": "true", "type": "kwok", "kubernetes.io/hostname": own}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": own, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [{"key": own, "effect": "NoSchedule"}]},
    }
    expression = f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == '{sort}'"
    devices = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": of_class},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }
    for each in (node, devices):
        peers.kubectl("apply", "-f", "-", given=json.dumps(each))
    try:
        yield found
    finally:
        everything = (("node", own), ("resourceslice", own), ("deviceclass", of_class), ("namespace", own))
        for kind, name in everything:
            peers.kubectl("delete", kind, name, "--ignore-not-found", "--wait=false")
