"""nvidia_device_plugin on a real kube-apiserver with its DaemonSet controller; kwok's nodes run the pods, and
what a kubelet would report of GPUs is written by hand.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.nvidia_manifests import OLD, OLDEST, UPSTREAM
from peers.found import Peers
from peers.site_files import SPECS, SiteFile, all_are, endings

from bfinfra.kinds.cluster.nvidia_device_plugin.manifest import NAME, fields
from bfinfra.model.refs import Key

ONCE = "nodes"
KEY, GPU = "nvidia_device_plugin/gpus", "nvidia.com/gpu"


@pytest.fixture
def site(alone: None, peers: Peers, tmp_path: Path) -> Iterator[SiteFile]:
    """With a namespace of the test's own; the nodes are everybody's: one test at a time."""
    own = f"peers-nvidia-{uuid.uuid4().hex[:8]}"
    found = SiteFile(SPECS / "peers/nvidia-device-plugin.yaml", tmp_path)
    found.given["site"] = own
    found.given["namespace"]["gpus"]["namespace"] = own
    found.put("admin.kubeconfig", peers.kubeconfig.read_text())
    yield found
    try:
        offer(peers, None)
    finally:
        found.apply(destroy=True)
    peers.kubectl("delete", "namespace", own, "--ignore-not-found", "--wait=false")


def offer(peers: Peers, count: str | None) -> None:
    """What a kubelet says once a plug-in has registered, on every node; those of other tests come and go."""
    body = json.dumps({"status": {part: {GPU: count} for part in ("capacity", "allocatable")}})
    for node in json.loads(peers.kubectl("get", "nodes", "-o", "json"))["items"]:
        name = node["metadata"]["name"]
        try:
            peers.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", body)
        except AssertionError as error:
            if f'nodes "{name}" not found' not in str(error):
                raise


def existing(peers: Peers, site: SiteFile) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        peers.kubectl("get", "daemonset", NAME, "-n", site.given["site"], "-o", "json")
    )
    return found


def test_it_waits_for_gpus_of_every_node_and_puts_right_what_others_change(
    site: SiteFile, peers: Peers
) -> None:
    late = site.apply(deadline=10)
    assert f"it offers no {GPU}, though the plug-in's pod runs there" in endings(late)[KEY]
    offer(peers, "2")
    all_are(site.apply(), "done", "kept")
    assert site.apply().writes == 0
    peers.kubectl(
        "set",
        "image",
        f"daemonset/{NAME}",
        "*=nvcr.io/nvidia/k8s-device-plugin:v0.17.0",
        "-n",
        site.given["site"],
    )
    peers.kubectl("rollout", "restart", f"daemonset/{NAME}", "-n", site.given["site"])
    assert site.changes() == {KEY: {"version"}}
    all_are(site.apply(), "done", "kept")
    template = existing(peers, site)["spec"]["template"]
    assert template["spec"]["containers"][0]["image"].endswith(":v0.20.0")
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    assert site.changes() == {}


def test_a_missing_node_for_its_pods_is_reported_and_a_selector_can_go_again(
    site: SiteFile, peers: Peers
) -> None:
    offer(peers, "1")
    site.given["nvidia_device_plugin"]["gpus"] |= {"node_selector": {"gpu": "nowhere"}, "time_slicing": "4"}
    late = site.apply(deadline=6)
    assert "no node takes its pods: none has the labels gpu=nowhere" in endings(late)[KEY]
    for field in ("node_selector", "time_slicing"):
        del site.given["nvidia_device_plugin"]["gpus"][field]
    all_are(site.apply(), "done", "kept")
    pod = existing(peers, site)["spec"]["template"]
    assert (pod["spec"].get("nodeSelector"), [each["name"] for each in pod["spec"]["volumes"]]) == (
        None,
        ["kubelet-device-plugins-dir"],
    )
    assert site.changes() == {}


@pytest.mark.parametrize("text", [UPSTREAM, OLD, OLDEST], ids=["v0.20.0", "v0.14.5", "v0.7.3"])
def test_what_kubectl_create_made_is_adopted(site: SiteFile, peers: Peers, text: str) -> None:
    manifest = yaml.safe_load(text)
    manifest["metadata"]["namespace"] = site.given["site"]
    peers.kubectl("create", "namespace", site.given["site"])
    peers.kubectl("create", "-f", "-", given=json.dumps(manifest))
    before = existing(peers, site)
    offer(peers, "1")
    all_are(site.apply(adopt=frozenset({Key.parse(KEY), Key("namespace", "gpus")})), "done", "kept")
    assert fields(existing(peers, site)) == fields(before)
    all_are(site.apply(), "done", "kept")
    after = existing(peers, site)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert fields(after)["version"] == "v0.20.0"
    assert [each["name"] for each in after["spec"]["template"]["spec"]["volumes"]] == [
        "kubelet-device-plugins-dir"
    ]
    assert site.apply().writes == 0
