"""The operator's chart: the real helm renders and installs it, kubectl's kustomize says what it ought to be, and
a real kube-apiserver judges each object.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs.commands import blocks
from peers.found import Peers, run
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]
ONCE = "operators"
CHART = ROOT / "deploy/helm/bfinfra-operator"
OWN = {"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "bfinfra-operator-0.1.0"}
"""Labels of whatever helm makes."""
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.test/bfinfra", "digest": f"sha256:{'a' * 64}", "pullPolicy": "Always"},
    "imagePullSecrets": [{"name": "registry"}],
    "replicas": 3,
    "resources": {"requests": {"cpu": "200m"}, "limits": {"memory": "1Gi"}},
    "watchNamespaces": ["default", "kube-public"],
    "jobs": {"atATime": 5, "image": "registry.test/jobs:2", "imagePullSecrets": ["registry"]},
    "siteSecrets": [{"name": "poc", "namespace": "default", "data": {"VCENTER_PASSWORD": 'it\'s "{{ x }}"'}}],
    "watchers": {
        "namespaces": ["default", "kube-public"],
        "replicas": 5,
        "sitesPerReplica": 50,
        "interval": "5m",
        "resources": {"limits": {"memory": "2Gi"}},
    },
    "serviceAccount": {"name": "keeper", "annotations": {"a.test/b": "c"}},
    "metrics": {
        "port": 9090,
        "service": {"annotations": {"a.test/b": "c"}},
        "podMonitor": {"create": True, "interval": "30s", "labels": {"release": "prometheus"}},
        "prometheusRule": {"create": True, "labels": {"release": "prometheus"}},
    },
    "podAnnotations": {"a.test/b": "c"},
    "podLabels": {"team": "gpu"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "infra", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClassName": "system-cluster-critical",
    "extraArgs": ["--metrics=0.0.0.0:9090"],
}

Objects = dict[tuple[str, str, str], dict[str, Any]]


def parsed(text: str) -> Objects:
    """By kind, namespace and name."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in yaml.safe_load_all(text)
        if each
    }


def rendered(peers: Peers, folder: Path, values: dict[str, Any], release: str = "bfinfra-operator") -> str:
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    words = ["--namespace", "bfinfra-system", "--values", str(folder / "values.yaml")]
    return peers.helm("template", release, str(CHART), *words)


def test_helm_lint_finds_nothing(peers: Peers) -> None:
    assert "0 chart(s) failed" in peers.helm("lint", "--strict", str(CHART))


def test_the_chart_makes_what_kustomize_makes(peers: Peers, tmp_path: Path) -> None:
    from_chart = parsed(rendered(peers, tmp_path, {}))
    from_kustomize = parsed(peers.kubectl("kustomize", str(ROOT / "deploy/operator")))
    del from_kustomize["Namespace", "", "bfinfra-system"]  # helm's own: --create-namespace
    assert len(from_kustomize) > 8
    for made in from_chart.values():
        labels = made["metadata"]["labels"]
        assert {name: labels.pop(name) for name in OWN} == OWN
    definition = from_chart["CustomResourceDefinition", "", "sites.bfinfra.io"]["metadata"]
    assert definition.pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert from_chart.keys() == from_kustomize.keys()
    for made in (from_chart, from_kustomize):  # immutable, so each keeps the one of its first version
        spec = made["Deployment", "bfinfra-system", "bfinfra-operator"]["spec"]
        selector = spec.pop("selector")["matchLabels"]
        assert selector.items() <= spec["template"]["metadata"]["labels"].items()
    for name, made in from_chart.items():
        assert made == from_kustomize[name], name


def test_the_charts_watchers_are_those_of_kustomize(peers: Peers, tmp_path: Path) -> None:
    from_chart = parsed(rendered(peers, tmp_path, {"watchers": {"namespaces": ["gpu"]}}))
    mine = {place: made for place, made in from_chart.items() if place[1] == "gpu"}
    from_kustomize = parsed(peers.kubectl("kustomize", str(ROOT / "deploy/watcher")))
    for made in mine.values():
        labels = made["metadata"]["labels"]
        assert {name: labels.pop(name) for name in OWN} == OWN
    assert mine == from_kustomize
    assert len(mine) == 6


@pytest.fixture
def monitoring(peers: Peers, alone: None) -> Iterator[None]:
    """The Prometheus operator's own definitions."""
    files = [
        word for file in sorted((peers.bin / "definitions").glob("*.yaml")) for word in ("-f", str(file))
    ]
    peers.kubectl("apply", "--server-side", *files)
    for name in ("podmonitors", "prometheusrules"):
        peers.established(f"{name}.monitoring.coreos.com")
    yield
    peers.kubectl("delete", *files)


@pytest.mark.parametrize("values", [{}, EVERYTHING], ids=["the defaults", "every value"])
def test_the_server_takes_every_object_field_by_field(
    peers: Peers, monitoring: None, tmp_path: Path, values: dict[str, Any]
) -> None:
    text = rendered(peers, tmp_path, values, "gpu")
    peers.kubectl("create", "namespace", "bfinfra-system")
    try:
        words = ("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
        taken = peers.kubectl(*words, given=text)
        assert taken.count("(server dry run)") == len(parsed(text))
        with pytest.raises(AssertionError, match="replica: field not declared"):
            peers.kubectl(*words, given=text.replace("replicas:", "replica:"))
    finally:
        peers.kubectl("delete", "namespace", "bfinfra-system")


def test_each_value_is_found_where_it_belongs(peers: Peers, tmp_path: Path) -> None:
    made = parsed(rendered(peers, tmp_path, EVERYTHING, "gpu"))
    name = "gpu-bfinfra-operator"
    deployment = made["Deployment", "bfinfra-system", name]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    assert (deployment["replicas"], pod["serviceAccountName"]) == (3, "keeper")
    assert container["image"] == f"registry.test/bfinfra@sha256:{'a' * 64}"
    assert container["args"] == [
        *("operator", "run", "--jobs", "5", "--image=registry.test/jobs:2", "--pull-secret=registry"),
        *("--namespace=default", "--namespace=kube-public", f"--lease=/{name}", "--metrics=0.0.0.0:9090"),
        "--metrics=0.0.0.0:9090",
    ]
    assert not any(kind == "ClusterRoleBinding" for kind, _, _ in made), (
        "rights in the named namespaces alone"
    )
    for space in ("default", "kube-public"):
        binding = made["RoleBinding", space, f"{name}-sites"]
        assert binding["roleRef"]["name"] == name
        assert binding["subjects"] == [
            {"kind": "ServiceAccount", "name": "keeper", "namespace": "bfinfra-system"}
        ]
    assert made["Secret", "default", "poc"]["data"] == {"VCENTER_PASSWORD": "aXQncyAie3sgeCB9fSI="}
    monitor = made["PodMonitor", "bfinfra-system", name]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    pods = deployment["template"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= pods.items()
    assert monitor["spec"]["podMetricsEndpoints"][0]["port"] == container["ports"][0]["name"]
    for space in ("default", "kube-public"):
        watcher = made["Deployment", space, "gpu-bfinfra-watcher"]["spec"]
        (own,) = watcher["template"]["spec"]["containers"]
        assert watcher["replicas"] == 5
        assert own["args"] == [
            *("operator", "watcher", "--sites", "50", "--interval=5m", "--metrics=0.0.0.0:9090")
        ]
        assert own["resources"]["limits"] == {"memory": "2Gi"}
        labels = watcher["template"]["metadata"]["labels"]
        assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert space in monitor["spec"]["namespaceSelector"]["matchNames"]
    rule = made["PrometheusRule", "bfinfra-system", name]["spec"]
    assert rule == yaml.safe_load((ROOT / "deploy/operator/alerts.yaml").read_text())


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"replica": 1}, "replica"),
        ({"replicas": "two"}, "replicas"),
        ({"watchNamespaces": ["No_Name"]}, "watchNamespaces"),
        ({"metrics": {"podMonitor": {"enabled": True}}}, "enabled"),
        ({"image": {"digest": "latest"}}, "digest"),
        ({"siteSecrets": [{"name": "a", "data": {}}]}, "siteSecrets"),
        ({"serviceAccount": {"create": False}}, "which one"),
    ],
)
def test_a_wrong_value_is_refused_by_name(
    peers: Peers, tmp_path: Path, values: dict[str, Any], word: str
) -> None:
    with pytest.raises(AssertionError, match=word):
        rendered(peers, tmp_path, values)


def own_address() -> str:
    """One of this machine's that isn't loopback: kube-apiserver goes to no other."""
    return run(["hostname", "-I"], {}).split()[0]


@pytest.fixture
def installed(peers: Peers, alone: None) -> Iterator[None]:
    """Nothing of an operator in the cluster, before and after."""

    def away() -> None:
        with contextlib.suppress(AssertionError):
            peers.helm("uninstall", "bfinfra-operator", "--namespace", "bfinfra-system")
        peers.kubectl("delete", "-k", str(ROOT / "deploy/operator"), "--ignore-not-found")

    away()
    yield
    away()


@pytest.mark.parametrize("program", ["helm", "kubectl apply -k"])
def test_the_pages_commands_install_it(peers: Peers, installed: None, program: str) -> None:
    page = (ROOT / "docs/how-to/run-the-operator.md").read_text()
    (block,) = (each.text for each in blocks(page) if each.language == "sh" and each.text.startswith(program))
    path = f"{peers.bin}:{os.environ['PATH']}"
    env = {"PATH": path, "HOME": "/nonexistent", "KUBECONFIG": str(peers.kubeconfig)}
    done = subprocess.run(
        ["bash", "-ec", block], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    where = ("--namespace", "bfinfra-system")
    peers.kubectl("wait", "--for=condition=Available", "deployment/bfinfra-operator", *where, "--timeout=60s")
    peers.established("sites.bfinfra.io")
    levels = peers.kubectl("get", "namespace", "bfinfra-system", "-o", "jsonpath={.metadata.labels}")
    assert json.loads(levels)["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.fixture
def space(peers: Peers, alone: None) -> Iterator[str]:
    space = f"charted-{secrets.token_hex(3)}"
    for each in (space, f"{space}-sites"):
        peers.kubectl("create", "namespace", each)
    yield space
    with contextlib.suppress(AssertionError):
        peers.helm("uninstall", space, "--namespace", space)
    peers.kubectl("delete", "namespace", space, f"{space}-sites", "--wait=false", "--ignore-not-found")


def test_an_installed_operator_keeps_its_namespace_and_its_service_gives_the_figures(
    peers: Peers, space: str, tmp_path: Path
) -> None:
    address = own_address()
    with socket.socket() as free:
        free.bind((address, 0))
        port = int(free.getsockname()[1])
    values = {"replicas": 1, "watchNamespaces": [f"{space}-sites"], "metrics": {"port": port}}
    values |= {"rbac": {"userRoles": False}, "image": {"repository": "registry.test/bfinfra"}}
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    words = ("--namespace", space, "--values", str(tmp_path / "values.yaml"), "--wait")
    # other tests bring the definition without helm: it is taken over, and has to stay
    peers.helm("upgrade", "--install", space, str(CHART), "--take-ownership", *words)
    peers.established("sites.bfinfra.io")
    name = f"{space}-bfinfra-operator"
    (pod,) = json.loads(peers.kubectl("get", "pods", "-n", space, "-o", "json"))["items"]
    status = json.dumps({"status": {"podIP": address, "podIPs": [{"ip": address}]}})
    patch = (
        "patch",
        "pod",
        pod["metadata"]["name"],
        "-n",
        space,
        "--subresource=status",
        "--type=merge",
        "-p",
    )
    peers.kubectl(*patch, status)

    config = yaml.safe_load(peers.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": peers.kubectl("create", "token", name, "-n", space).strip()}
    (tmp_path / "operator.kubeconfig").write_text(yaml.safe_dump(config))
    args = pod["spec"]["containers"][0]["args"]
    args = [*args, "--kubeconfig", str(tmp_path / "operator.kubeconfig"), "--lease", f"{space}/{name}"]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "HOSTNAME": pod["metadata"]["name"]}
    with (tmp_path / "log").open("w") as log:
        operator = subprocess.Popen(
            [sys.executable, "-m", "bfinfra", *args, "--metrics", f"{address}:{port}"],
            stdout=log,
            stderr=log,
            env=env,
        )
    try:
        for where in (space, f"{space}-sites"):
            site = {"kind": "Site", "metadata": {"name": "poc", "namespace": where}}
            spec = {"suspend": True, "site": {"site": where}}
            peers.kubectl(
                "create",
                "--validate=strict",
                "-f",
                "-",
                given=yaml.safe_dump({"apiVersion": "bfinfra.io/v1alpha1", **site, "spec": spec}),
            )
        raw = f"/api/v1/namespaces/{space}/services/{name}-metrics:metrics/proxy/metrics"
        found = scraped(peers, raw, tmp_path / "log")
        assert found["bfinfra_operator_leading"] == {"": 1.0}
        assert found["bfinfra_site_resources"] == {f"{space}-sites": 0.0}, (
            "the other namespace is not watched"
        )
    finally:
        operator.kill()
        operator.wait()
    peers.helm("uninstall", space, "--namespace", space, "--wait")
    peers.established("sites.bfinfra.io")
    left = peers.kubectl(
        "get", "deployment,service,role,rolebinding,serviceaccount", "-n", space, "-o", "name"
    )
    assert name not in left


def scraped(peers: Peers, raw: str, log: Path) -> dict[str, dict[str, float]]:
    """The figures, by name and namespace, once the operator leads and has seen a Site."""
    end = time.monotonic() + 90
    while True:
        try:
            families = list(text_string_to_metric_families(peers.kubectl("get", "--raw", raw)))
        except AssertionError as error:
            families, why = [], str(error)
        else:
            why = str(families)
        found = {
            each.name: {sample.labels.get("namespace", ""): sample.value for sample in each.samples}
            for each in families
        }
        if found.get("bfinfra_operator_leading") == {"": 1.0} and found.get("bfinfra_site_resources"):
            return found
        assert time.monotonic() < end, f"{why}\n{log.read_text()[-3000:]}"
        time.sleep(0.3)
