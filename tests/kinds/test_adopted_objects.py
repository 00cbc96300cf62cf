"""An object in Kubernetes is adopted by its mark alone, by every kind: nothing else of it, and of what is beside
it, is written, whatever the file says. The next plan shows what differs and what is missing, and an apply brings it.

vCenter's objects: test_left_out_stays.py. On a real server: test_adopting_in_a_cluster.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, MADE_ANEW, apply, difference, endings, made, plan
from rights.given import Kube, other, supervisor

import bfinfra
import bfinfra.kinds as registry
from bfinfra.backends.kubernetes.marks import MARK, SITE
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED
from bfinfra.model.compare import UNFINISHED
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

OWN = "bfinfra.io/"
SELECTED = "bfinfra.io/service-vm"  # a service finds its machine by it: no mark
RECORD = "bfinfra-"
OS = "run.tanzu.vmware.com/resolve-os-image"
NO_ACCOUNT = base64.b64encode(b'{"auths": {}}').decode()
Object = dict[str, Any]


@dataclass(frozen=True)
class Hand:
    """`set`: what somebody changes of `at`, as PLURAL NAME, where the file says something else. `missing`: what
    somebody deletes.
    """

    at: str
    set: Mapping[str, Any]
    missing: str = ""


HANDS = {
    "namespace": Hand("namespaces training", {"metadata": {"labels": {"team": "b"}}}),
    "token_secret": Hand(
        "secrets bitfusion-client-secret-ca.crt",
        {"data": {"ca.crt": "eA=="}},
        "secrets bitfusion-client-secret-client.yml",
    ),
    "registry_credential": Hand("secrets pull", {"data": {".dockerconfigjson": NO_ACCOUNT}}),
    "manifests": Hand("configmaps queues", {"data": {"policy": "first"}}, "serviceaccounts queues"),
    "gpu_operator": Hand(
        "clusterpolicies.nvidia.com cluster-policy",
        {"spec": {"dcgmExporter": {"enabled": False}}},
        "serviceaccounts gpu-operator",
    ),
    "bitfusion_device_plugin": Hand(
        "configmaps bwki-webhook-configmap",
        {"data": {"sidecarconfig.yaml": "initContainers: []"}},
        "services bwki-webhook-svc",
    ),
    "nvidia_device_plugin": Hand(
        "daemonsets.apps nvidia-device-plugin-daemonset",
        {"spec": {"template": {"spec": {"priorityClassName": "system-cluster-critical"}}}},
    ),
    "mpi_operator": Hand(
        "clusterroles.rbac.authorization.k8s.io mpi-operator", {"rules": []}, "serviceaccounts mpi-operator"
    ),
    "mpi_job": Hand("mpijobs.kubeflow.org tensorflow-benchmarks", {"spec": {"slotsPerWorker": 2}}),
    "workload": Hand("jobs.batch hello", {"spec": {"activeDeadlineSeconds": 900}}),
    "tanzu_cluster": Hand(
        "tanzukubernetesclusters.run.tanzu.vmware.com cluster-01",
        {"spec": {"topology": {"workers": {"count": 2}}}},
    ),
    "vks_cluster": Hand(
        "clusters.cluster.x-k8s.io ml-01",
        {"spec": {"topology": {"controlPlane": {"metadata": {"annotations": {OS: "os-name=photon"}}}}}},
    ),
    "service_vm": Hand(
        "virtualmachines.vmoperator.vmware.com dl-01",
        {"spec": {"readinessProbe": {"tcpSocket": {"port": 23}}}},
    ),
    "vks_addon": Hand(
        "addonconfigs.addons.kubernetes.vmware.com ml-01-cluster-autoscaler",
        {"spec": {"values": {"arguments": {"expander": "random"}}}},
    ),
}
BESIDES = {
    "supervisor_namespace": "an object of vCenter: test_left_out_stays.py",
    "network_path": "it is a check: what it makes is a Job of its own",
    "registry": "it is part of its supervisor",
    "supervisor": "it is a setting of a vSphere cluster",
}
"""Kinds of the two groups without a mark on an object of Kubernetes, and why."""
AS_FOUND = {"workload"}
"""What runs or ran is not made anew because it was adopted: it counts as made of the file's manifest."""


def lists(world: Mapping[str, Any]) -> Iterator[tuple[bool, str, list[Object]]]:
    """Whether they are in a supervisor, their plural, and the objects."""
    homes = [(False, each) for each in world["elsewhere"].values()]
    homes += [(True, each["supervisor"]) for each in world["supervisors"].values()]
    for above, home in homes:
        yield from ((above, plural, found) for plural, found in home.items() if isinstance(found, list))


def of_kind(world: Mapping[str, Any], kind: str) -> dict[str, tuple[bool, str, Object]]:
    """By PLURAL NAME, the objects with a mark of the kind: whether it is in a supervisor, path and object."""
    found = {}
    for above, plural, obj in ((above, plural, obj) for above, plural, each in lists(world) for obj in each):
        if f"address={kind}/" in (obj["metadata"].get("annotations") or {}).get(MARK, ""):
            name, space = obj["metadata"]["name"], obj["metadata"].get("namespace")
            api = f"/{'apis' if '/' in obj['apiVersion'] else 'api'}/{obj['apiVersion']}"
            inside = f"/namespaces/{space}" if space else ""
            path = f"{api}{inside}/{plural.partition('.')[0]}/{name}"
            found[f"{plural} {name}"] = above, path, obj
    return found


def bare(world: Mapping[str, Any], marks: tuple[str, ...]) -> str:
    """The world without marks and records, in lines; objects in any order."""
    copy = json.loads(json.dumps(world))
    for _, _, found in lists(copy):
        found[:] = [obj for obj in found if not obj["metadata"]["name"].startswith(RECORD)]
        for metadata in (obj["metadata"] for obj in found):
            for part in ("labels", "annotations"):
                kept = {name: text for name, text in metadata.pop(part, {}).items() if name not in marks}
                metadata.update({part: kept} if kept else {})
        found.sort(key=lambda obj: (obj["metadata"].get("namespace") or "", obj["metadata"]["name"]))
    text = json.dumps(copy, sort_keys=True).replace(', "', ',\n"')
    for pattern in MADE_ANEW:
        text = pattern.sub(r"\1…", text)
    return text


def keys(kind: str, sandbox: Running) -> list[Key]:
    return [key for key in bfinfra.load(EXAMPLES[kind], sandbox=sandbox).resources if key.kind == kind]


def shown(found: Plan) -> set[str]:
    return {change.field for item in found.items for step in item.steps for change in step.changes}


@pytest.fixture
def existing(kind, sandbox):
    """Applied, without any mark of the kind, changed by hand."""
    assert made(done := apply(EXAMPLES[kind], sandbox)), endings(done)
    there, hand = of_kind(sandbox.world(), kind), HANDS[kind]
    homes: dict[bool, Kube] = {}
    for above, path, obj in there.values():
        kube = homes.setdefault(above, supervisor(sandbox) if above else other(sandbox))
        if obj["metadata"]["name"].startswith(RECORD):
            kube.call("DELETE", path)
            continue
        gone = {
            part: {
                name: None
                for name in obj["metadata"].get(part) or {}
                if name.startswith(OWN) and name != SELECTED
            }
            for part in ("labels", "annotations")
        }
        kube.call("PATCH", path, {"metadata": gone})
    above, path, _ = there[hand.at]
    homes[above].call("PATCH", path, hand.set)
    if hand.missing:
        homes[above].call("DELETE", there[hand.missing][1])
    assert not of_kind(sandbox.world(), kind)
    return sandbox


def test_every_kind_of_clusters_and_supervisors_is_here():
    kinds = {*registry.names("cluster", "supervisor")}
    assert kinds == HANDS.keys() | BESIDES.keys()
    unmanaged = {kind for kind in kinds if not registry.kind(kind).managed}
    assert BESIDES.keys() - unmanaged == {"supervisor_namespace"}


@pytest.mark.parametrize("kind", sorted(BESIDES.keys() - {"supervisor_namespace"}))
def test_what_bears_no_mark_needs_no_adoption(kind, sandbox):
    (key,) = keys(kind, sandbox)
    found = plan(EXAMPLES[kind], sandbox, adopt=frozenset({key}), adopt_only=True)
    assert [problem.what for problem in found.problems] == [f"{key} needs no adoption"]


@pytest.mark.thorough("namespace", "token_secret", "manifests", "service_vm")
@pytest.mark.parametrize("kind", sorted(HANDS))
def test_it_is_marked_and_nothing_else_is_written(kind, existing):
    sandbox, path = existing, EXAMPLES[kind]
    (key,) = keys(kind, sandbox)
    assert "bfinfra adopt" in " ".join(map(str, plan(path, sandbox).problems))
    before, marks = sandbox.world(), (SITE, MARK, *((RENDERED,) if kind in AS_FOUND else ()))

    found = plan(path, sandbox, adopt=frozenset({key}), adopt_only=True)
    assert (shown(found), found.problems) == ({UNFINISHED}, ())
    assert made(done := apply(path, sandbox, adopt=frozenset({key}))), endings(done)
    now, whole = bare(sandbox.world(), marks), bare(before, marks)
    assert now == whole, difference(now, whole)
    assert of_kind(sandbox.world(), kind).keys() >= {HANDS[kind].at}

    left = plan(path, sandbox)
    assert left.problems == ()
    assert bool(left.pending) == (kind not in AS_FOUND), shown(left)
    assert made(done := apply(path, sandbox)), endings(done)
    assert plan(path, sandbox).pending == ()
    assert {HANDS[kind].missing} - {""} <= of_kind(sandbox.world(), kind).keys()
    assert made(done := apply(path, sandbox, destroy=True)) or "deleted" in str(endings(done)), endings(done)
    assert not of_kind(sandbox.world(), kind)
