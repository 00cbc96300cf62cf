"""Public charts on a real kube-apiserver, rendered by the real helm: applied, the same without a write, changed,
removed. kwok's nodes run their pods, so that no operator does anything.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from oci_registry import running
from peers.found import Peers, run
from peers.site_files import SPECS, SiteFile, all_are, endings
from recorded.sources import fetched

ONCE = "definitions"
KEY = "manifests/it"


@dataclass(frozen=True)
class Chart:
    """A chart in a module, its two versions, and what the second apply changes if there is only one."""

    module: str
    path: str
    first: str
    then: str
    values: dict[str, Any] = field(default_factory=dict)
    change: dict[str, Any] = field(default_factory=dict)
    skip: tuple[str, ...] = ()
    wait: str = "ready"
    """`served` for what needs a program that answers, which kwok's pods are not."""


PRUNING = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Job")
CHECK = "cert-manager-startupapicheck"
CERT_MANAGER = Chart(
    "cert-manager",
    "deploy/charts/cert-manager",
    "v1.19.1",
    "v1.20.0",
    values={"crds": {"enabled": True}, "global": {"leaderElection": {"namespace": "peers-charts"}}},
    skip=(
        f"ServiceAccount/{CHECK}",
        f"Role/{CHECK}:create-cert",
        f"RoleBinding/{CHECK}:create-cert",
        f"Job/{CHECK}",
    ),
)
KUEUE = """\
managedJobsNamespaceSelector: {matchLabels: {kueue.example.com/managed: "true"}}
integrations: {frameworks: [batch/job, deployment]}
"""
"""Its webhooks, which nobody answers, let the Jobs and Deployments of all namespaces through."""
CHARTS = {
    "kueue": Chart(
        "kueue",
        "charts/kueue",
        "v0.19.1",
        "v0.19.2",
        values={"managerConfig": {"controllerManagerConfigYaml": KUEUE}},
        wait="served",
    ),
    "cert-manager": CERT_MANAGER,
    "gpu-operator": Chart(
        "gpu-operator",
        "deployments/gpu-operator",
        "v1.11.1",
        "v1.11.1",
        values={"operator": {"cleanupCRD": False, "upgradeCRD": False}},
        change={"driver": {"version": "515.65.01"}},
    ),
    "jobset": Chart("jobset", "charts/jobset", "v0.10.1", "v0.10.1", change={"controller": {"replicas": 2}}),
    "node-feature-discovery": Chart(
        "node-feature-discovery",
        "deployment/helm/node-feature-discovery",
        "v0.18.2",
        "v0.18.2",
        skip=tuple(f"{kind}/node-feature-discovery-prune" for kind in PRUNING),
        change={"master": {"replicaCount": 2}},
    ),
}


@pytest.fixture
def helm(peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{peers.bin}:{os.environ['PATH']}")


@pytest.fixture
def site(alone: None, peers: Peers, tmp_path: Path, helm: None) -> Iterator[SiteFile]:
    found = SiteFile(SPECS / "peers/manifests.yaml", tmp_path)
    found.put("admin.kubeconfig", peers.kubeconfig.read_text())
    yield found
    found.apply(destroy=True, deadline=120)


def packed(chart: Chart, version: str, site: SiteFile, peers: Peers) -> dict[str, Any]:
    """The chart's archive beside the site, as the site names it."""
    source, name = fetched(f"module/{chart.module}-{version}") / chart.path, f"{chart.module}-{version}"
    folder = site.folder / name
    if not folder.exists():
        shutil.copytree(source, folder, copy_function=shutil.copy)
        for each in (folder, *folder.rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)
        if not (folder / "Chart.yaml").exists():
            text = (folder / "Chart.template.yaml").read_text()
            (folder / "Chart.yaml").write_text(text.replace("v0.0.0", version))
        run([str(peers.bin / "helm"), "package", str(folder), "--destination", str(folder)], {})
    (archive,) = folder.glob("*.tgz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return {"file": f"{name}/{archive.name}", "digest": f"sha256:{digest}"}


def left(peers: Peers, site: SiteFile) -> list[str]:
    """What still has the site's mark, of all types."""
    kinds = peers.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    wanted = [each for each in kinds if not each.startswith(("events", "componentstatuses", "endpoints"))]
    label = f"bfinfra.io/site={site.given['site']}"
    return peers.kubectl(
        "get", ",".join(wanted), "-A", "-l", label, "-o", "name", "--ignore-not-found"
    ).split()


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.thorough("cert-manager")
def test_a_public_chart_is_applied_kept_changed_and_removed(name: str, site: SiteFile, peers: Peers) -> None:
    chart = CHARTS[name]
    it = site.given["manifests"]["it"]
    it |= {"values": chart.values, "release": name, "skip_hooks": list(chart.skip), "wait": chart.wait}
    it["chart"] = packed(chart, chart.first, site, peers)
    all_are(site.apply(deadline=120), "done", "kept")
    assert len(left(peers, site)) > 8
    again = site.apply()
    assert (again.writes, set(endings(again).values())) == (0, {"kept"})
    it["chart"] = packed(chart, chart.then, site, peers)
    it["values"] = {**chart.values, **chart.change}
    assert KEY in site.changes()
    all_are(site.apply(deadline=120), "done", "kept")
    assert site.changes() == {}
    all_are(site.apply(destroy=True, deadline=120), "done", "deleted", "kept")
    assert left(peers, site) == []


def test_a_chart_that_helm_pushed_is_pulled_by_its_digest(
    site: SiteFile, peers: Peers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    chart, helm, it = CHARTS["jobset"], str(peers.bin / "helm"), site.given["manifests"]["it"]
    archive = site.folder / packed(chart, chart.first, site, peers)["file"]
    with running(tmp_path) as registry:
        ca = ("--ca-file", str(registry.ca_file))
        pushed = run([helm, "push", str(archive), f"oci://{registry.server}/charts", *ca], {})
        (digest,) = set(registry.tags.values())
        assert digest in pushed or not pushed
        registry.account = ("me", "hush")
        site.put("password", "hush")
        it["chart"] = {
            "oci": f"oci://{registry.server}/charts/jobset",
            "version": "0.10.1",
            "digest": digest,
            "username": "me",
            "password": {"file": "password"},
            "trust": {"ca_file": str(registry.ca_file)},
        }
        it["release"] = "jobset"
        all_are(site.apply(deadline=120), "done", "kept")
    again = site.apply()  # the registry is gone, and nobody asks it
    assert (again.writes, set(endings(again).values())) == (0, {"kept"})
    it["chart"]["version"] = "0.10.0"
    (problem,) = site.plan().problems
    assert "is version 0.10.1, and the site names 0.10.0" in str(problem)
    it["chart"]["version"] = "0.10.1"


def test_an_operator_from_its_manifest_is_upgraded(site: SiteFile, peers: Peers) -> None:
    it = site.given["manifests"]["it"]
    del it["chart"]
    for version in ("v0.7.0", "v0.8.0"):
        source = fetched(f"module/mpi-operator-{version}") / "deploy/v2beta1/mpi-operator.yaml"
        site.put("mpi-operator.yaml", source.read_text())
        it |= {"files": ["mpi-operator.yaml"], "namespace": "default"}
        all_are(site.apply(deadline=120), "done", "kept")
        assert site.changes() == {}
    image = json.loads(
        peers.kubectl("get", "deployment", "mpi-operator", "-n", "mpi-operator", "-o", "json")
    )["spec"]["template"]["spec"]["containers"][0]["image"]
    peers.kubectl("set", "image", "deployment/mpi-operator", "*=theirs:1", "-n", "mpi-operator")
    field = "Deployment mpi-operator/mpi-operator.spec.template.spec.containers.mpi-operator.image"
    assert site.changes() == {KEY: {field}}
    assert "kubectl-set" in str(site.drift().found)
    all_are(site.apply(), "done", "kept")
    peers.kubectl("rollout", "restart", "deployment/mpi-operator", "-n", "mpi-operator")
    assert site.changes() == {}
    assert image.endswith("0.8.0")


HOOKS = {"save": ("pre-delete", -1), "drain": ("pre-delete", 2), "sweep": ("post-delete", 0)}
TEMPLATE = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{{{ .Release.Name }}}}-{name}
  annotations: {{helm.sh/hook: {event}, helm.sh/hook-weight: "{weight}", helm.sh/hook-delete-policy: hook-succeeded}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: c, image: "tool:1", command: [go, {name}]}}]
"""


def leaving(site: SiteFile, peers: Peers) -> dict[str, str]:
    """A chart with hooks of its removal, packed by helm, as the site names it."""
    folder = site.folder / "leaving"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: leaving\nversion: 1.0.0\n")
    settings = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {mode: fair}\n"
    (folder / "templates/settings.yaml").write_text(settings)
    for name, (event, weight) in HOOKS.items():
        text = TEMPLATE.format(name=name, event=event, weight=weight)
        (folder / f"templates/{name}.yaml").write_text(text)
    run([str(peers.bin / "helm"), "package", str(folder), "--destination", str(folder)], {})
    archive = folder / "leaving-1.0.0.tgz"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return {"file": "leaving/leaving-1.0.0.tgz", "digest": f"sha256:{digest}"}


def ended(peers: Peers, space: str) -> list[str]:
    """The Jobs that ended well, in the order in which they did, by the API server's events."""
    listed = json.loads(peers.kubectl("get", "events", "-n", space, "-o", "json"))["items"]
    done = [
        each for each in listed if each["reason"] == "Completed" and each["involvedObject"]["kind"] == "Job"
    ]
    in_order = sorted(done, key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [each["involvedObject"]["name"] for each in in_order]


def test_hooks_of_a_removal_run_in_order_when_the_chart_is_gone(site: SiteFile, peers: Peers) -> None:
    it, space = site.given["manifests"]["it"], uuid.uuid4().hex[:8]
    it |= {
        "chart": leaving(site, peers),
        "release": "gone",
        "run_hooks": [f"Job/gone-{each}" for each in HOOKS],
    }
    it["namespace"] = f"leaving-{space}"
    site.given["namespace"] = {f"leaving-{space}": {"cluster": "k"}}
    all_are(site.apply(deadline=120), "done", "kept")
    assert ended(peers, f"leaving-{space}") == []
    again = site.apply()
    assert (again.writes, set(endings(again).values())) == (0, {"kept"})
    shutil.rmtree(site.folder / "leaving")
    del site.given["manifests"]
    titles = [step.title() for step in site.plan().pending[0].steps]
    ran = [title.partition(" hook Job ")[2].partition(" ")[0] for title in titles if title.startswith("run ")]
    assert ran == [f"leaving-{space}/gone-{each}" for each in HOOKS]
    settings = next(number for number, title in enumerate(titles) if "ConfigMap" in title)
    last = next(number for number, title in enumerate(titles) if "post-delete hook" in title)
    assert settings < last, "post-delete hooks come when the objects are gone"
    all_are(site.apply(deadline=120), "done", "deleted", "kept")
    assert ended(peers, f"leaving-{space}") == ["gone-save", "gone-drain", "gone-sweep"]
    kinds = "jobs,configmaps"
    label = f"bfinfra.io/site={site.given['site']}"
    assert peers.kubectl("get", kinds, "-n", f"leaving-{space}", "-l", label, "-o", "name").split() == []
