"""bitfusion_device_plugin on a real kube-apiserver: its webhooks are really called, by the certificates that
bfinfra made.
"""

from __future__ import annotations

import base64
import json
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from peers.found import Peers
from peers.site_files import SPECS, SiteFile, all_are, endings
from peers.webhook import AMOUNT, GPU, PERCENT, Webhook, serving
from waiting import until

from bfinfra.lint import Asked, lint
from bfinfra.sandbox.factories.token import make_token

ONCE = "nodes"
KEY = "bitfusion_device_plugin/k8s"
NOTES = {
    "auto-management/bitfusion": "all",
    "bitfusion-client/os": "ubuntu20",
    "bitfusion-client/version": "450",
}
OF_CLUSTER = "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations"
ALL = f"daemonsets,deployments,services,configmaps,secrets,serviceaccounts,resourcequotas,namespaces,{OF_CLUSTER}"


@pytest.fixture
def site(alone: None, peers: Peers, tmp_path: Path) -> Iterator[SiteFile]:
    """specs/peers/device-plugin.yaml with names of the test's own, and a free port for the webhook. Its
    webhooks are the cluster's: one test at a time.
    """
    own = uuid.uuid4().hex[:8]
    found = SiteFile(SPECS / "peers/device-plugin.yaml", tmp_path)
    found.given["site"] += f"-{own}"
    for space in found.given["namespace"].values():
        space["namespace"] += f"-{own}"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found.given["bitfusion_device_plugin"]["k8s"]["port"] = free.getsockname()[1]
    make_token(tmp_path / "token.tar")
    found.put("admin.kubeconfig", peers.kubeconfig.read_text())
    yield found
    advertise(peers, None)
    found.apply(destroy=True)
    peers.kubectl(
        "delete",
        "namespace",
        *(space["namespace"] for space in found.given["namespace"].values()),
        "--ignore-not-found",
        "--wait=false",
    )


def space(site: SiteFile, name: str) -> str:
    return str(site.given["namespace"][name]["namespace"])


def advertise(peers: Peers, count: str | None) -> None:
    """What a real plug-in makes a kubelet say; kwok has no kubelets. A tainted node is another test's own."""
    nodes = json.loads(peers.kubectl("get", "nodes", "-o", "json"))["items"]
    for node in (each for each in nodes if not each["spec"].get("taints")):
        body = json.dumps({"status": {part: {GPU: count} for part in ("capacity", "allocatable")}})
        peers.kubectl(
            "patch", "node", node["metadata"]["name"], "--subresource=status", "--type=merge", "-p", body
        )


def reachable(peers: Peers, site: SiteFile, folder: Path) -> Path:
    """The Service leads to loopback; the webhook's certificate and key as a PEM file, as a pod would mount
    them.
    """
    home = space(site, "bwki")
    peers.kubectl(
        "patch",
        "service",
        "bwki-webhook-svc",
        "-n",
        home,
        "--type=merge",
        "-p",
        (
            '{"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null, '
            '"clusterIPs": null}}'
        ),
    )
    data = json.loads(peers.kubectl("get", "secret", "bwki-webhook-certs", "-n", home, "-o", "json"))["data"]
    path = folder / "webhook.pem"
    path.write_bytes(base64.b64decode(data["cert.pem"]) + base64.b64decode(data["key.pem"]))
    return path


def pod(name: str, **changes: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "i",
        "env": [{"name": "A", "value": "b"}],
        "command": ["python train.py"],
        "resources": {"limits": {AMOUNT: "1", PERCENT: "50"}},
        **changes,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": NOTES},
        "spec": {"containers": [container]},
    }


def made(peers: Peers, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        peers.kubectl("create", "-n", namespace, "-f", "-", "-o", "json", given=json.dumps(body))
    )
    return found


def heard(peers: Peers, namespace: str, hook: Webhook) -> None:
    """The API server learns of a webhook a moment after it was configured: until then nobody is asked."""

    def asked() -> bool:
        peers.kubectl(
            "create", "-n", namespace, "-f", "-", "--dry-run=server", given=json.dumps(pod("heard"))
        )
        return len(hook.asked) >= 2

    until(asked)
    hook.asked.clear()


@pytest.mark.thorough
def test_until_nodes_advertise_gpus_nobody_is_asked_and_then_pods_are_changed_and_denied(
    site: SiteFile, peers: Peers, tmp_path: Path
) -> None:
    late = site.apply(deadline=8)
    assert "registers no bitfusion.io/gpu yet" in endings(late)[KEY]
    assert site.given["site"] not in peers.kubectl(
        "get", "mutatingwebhookconfigurations,validatingwebhookconfigurations", "-o", "yaml"
    )
    advertise(peers, "1000")
    all_are(site.apply(), "done", "kept")
    assert site.apply().writes == 0
    training, hook = space(site, "training"), Webhook()
    with serving(
        hook, int(site.given["bitfusion_device_plugin"]["k8s"]["port"]), reachable(peers, site, tmp_path)
    ):
        heard(peers, training, hook)
        found = made(peers, training, pod("good"))
        (container,) = found["spec"]["containers"]
        assert container["command"] == [
            "/bin/bash",
            "-c",
            "/bitfusion/usr/bin/bitfusion run -n 1 -p 0.500000  -- python train.py",
        ]
        assert container["resources"] == {"limits": {GPU: "50"}, "requests": {GPU: "50"}}
        assert [each["name"] for each in found["spec"]["initContainers"]] == ["populate"]
        assert [(path, version) for path, version, _ in hook.asked] == [
            ("/mutate", "admission.k8s.io/v1beta1"),
            ("/validate", "admission.k8s.io/v1"),
        ]
        hook.advertised = False
        with pytest.raises(AssertionError, match="Resource validation failed"):
            made(peers, training, pod("denied"))
        hook.advertised = True
        with pytest.raises(AssertionError, match="exceeded quota"):  # 50 of 200 are used
            made(peers, training, pod("much", resources={"limits": {AMOUNT: "2"}}))
        before = len(hook.asked)
        made(peers, space(site, "bwki"), pod("elsewhere"))
        assert len(hook.asked) == before
    assert made(peers, training, pod("alone"))["spec"]["containers"][0]["command"] == ["python train.py"], (
        "failurePolicy: Ignore"
    )


def test_what_the_linter_says_is_what_the_server_does(site: SiteFile, peers: Peers, tmp_path: Path) -> None:
    site.given["bitfusion_device_plugin"]["k8s"]["failure_policy"] = "Fail"
    advertise(peers, "1000")
    all_are(site.apply(), "done", "kept")
    training = space(site, "training")
    bad = {"side": pod("side"), "share": pod("share", resources={"limits": {PERCENT: "50"}})}
    bad["side"]["spec"]["containers"].append({"name": "s", "image": "i", "command": ["nginx"]})
    hook = Webhook()
    with serving(
        hook, int(site.given["bitfusion_device_plugin"]["k8s"]["port"]), reachable(peers, site, tmp_path)
    ):
        heard(peers, training, hook)
        for name, body in bad.items():
            assert lint(Path(name), json.dumps(body), Asked()), name
            with pytest.raises(AssertionError, match="kubectl"):
                made(peers, training, body)
        assert lint(Path("good"), json.dumps(pod("good")), Asked()) == ()
        made(peers, training, pod("good"))
        made(peers, training, pod("bare", env=[]))  # a `replace` of what isn't there is taken
        peers.kubectl(
            "patch",
            "mutatingwebhookconfiguration",
            "bwki-webhook-cfg",
            "--type=json",
            "-p",
            '[{"op": "replace", "path": "/webhooks/0/admissionReviewVersions", "value": ["v1"]}]',
        )
        with pytest.raises(AssertionError, match=r"expected webhook response of admission\.k8s\.io/v1"):
            made(peers, training, pod("v1"))
    with pytest.raises(AssertionError, match="failed calling webhook"):
        made(peers, training, pod("dead"))
    for other in (space(site, "bwki"), "kube-system"):
        made(peers, other, pod(f"free-{training}"))
        peers.kubectl("delete", "pod", f"free-{training}", "-n", other, "--wait=false")
    assert {
        "MutatingWebhookConfiguration/bwki-webhook-cfg.webhooks.0.admissionReviewVersions.0"
    } <= site.changes()[KEY]


def test_kubectl_sees_all_of_it_and_after_destroy_none(site: SiteFile, peers: Peers) -> None:
    advertise(peers, "1000")
    all_are(site.apply(), "done", "kept")
    mine = f"bfinfra.io/site={site.given['site']}"
    seen = {
        f"{each['kind']}/{each['metadata']['name']}"
        for each in json.loads(peers.kubectl("get", ALL, "-A", "-l", mine, "-o", "json"))["items"]
    }
    assert seen >= {
        "DaemonSet/bitfusion-cli-device-plugin",
        "Deployment/bitfusion-webhook-deployment",
        "Service/bwki-webhook-svc",
        "ConfigMap/bwki-webhook-configmap",
        "ConfigMap/bwki-bitfusion-client-configmap",
        "Secret/bwki-webhook-ca",
        "Secret/bwki-webhook-certs",
        "ServiceAccount/bwki-webhook-deployment",
        "ResourceQuota/bitfusion-quota",
        "ClusterRole/bwki-webhook-deployment",
        "ClusterRoleBinding/bwki-webhook-deployment",
        "MutatingWebhookConfiguration/bwki-webhook-cfg",
        "ValidatingWebhookConfiguration/validation.bitfusion.io-cfg",
    }
    account = f"system:serviceaccount:{space(site, 'bwki')}:bwki-webhook-deployment"
    assert (
        peers.kubectl(
            "auth",
            "can-i",
            "get",
            "secrets/bitfusion-client-secret-ca.crt",
            "-n",
            space(site, "training"),
            "--as",
            account,
        ).strip()
        == "yes"
    )
    with pytest.raises(AssertionError, match="no"):
        peers.kubectl(
            "auth", "can-i", "get", "secrets/bwki-webhook-ca", "-n", space(site, "bwki"), "--as", account
        )
    quota = ("describe", "quota", "bitfusion-quota", "-n", space(site, "training"))
    until(lambda: "bitfusion.io/gpu" in peers.kubectl(*quota))  # a controller counts it
    all_are(site.apply(destroy=True), "done", "kept")
    assert json.loads(peers.kubectl("get", ALL, "-A", "-l", mine, "-o", "json"))["items"] == []
