"""A supervisor's vSphere Kubernetes Service on real Cluster API, whose machines are in memory: two cluster classes
with its variables, releases, images, and what its admission rewrites, played by a policy of the API server.
"""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.kubernetes.tanzu_definitions import definitions
from bfinfra.sandbox.kubernetes.vks.definitions import definitions as of_the_service
from bfinfra.sandbox.kubernetes.vks.offered import NEWEST, OLDEST, PUBLIC, VARIABLES, Vks, offered

RELEASES = ("v1.33.3+vmware.1-vkr.1", "v1.34.2+vmware.2-vkr.2", "v1.35.0+vmware.1-vkr.1")
FIRST, NEXT = "builtin-generic-v3.6.0", "builtin-generic-v3.7.0"
CLUSTER_API = "cluster.x-k8s.io/v1beta2"
SOON = {"provisioning": {"startupDuration": "100ms", "startupJitter": "0.1"}}
OWN = ("KubernetesRelease", "OSImage", "VirtualMachineClass")
"""The kinds of the service that Cluster API doesn't bring."""


def known() -> list[Any]:
    """Definitions of what Cluster API doesn't bring."""
    every = [*definitions(namespaced_classes=True), *of_the_service(v1beta2=True)]
    return [each for each in every if each["spec"]["names"]["kind"] in OWN]


def service() -> list[Any]:
    """Releases, images, classes and their templates."""
    found = [
        each for each in offered(Vks(releases=RELEASES), "") if each["kind"] not in ("ClusterClass", "Addon")
    ]
    return [
        *({**each, "status": {}} if "status" in each else each for each in found),
        *_templates(),
        _class(FIRST, "v1.33", "v1.35"),
        _class(NEXT, "v1.33", "v1.35"),
    ]


def rewriting(to: str = "") -> list[Any]:
    """What admission rewrites: a version's beginning to the version in full, and the class to the newest."""
    newest = {
        version.rpartition(".")[0].partition("+")[0]: version.partition("-vkr")[0] for version in RELEASES
    }
    full = {short.rpartition(".")[0]: version for short, version in newest.items()}
    choice = "object.spec.topology.version"
    for short, version in full.items():
        choice = f'object.spec.topology.version == "{short}" ? "{version}" : ({choice})'
    patches = [f'JSONPatch{{op: "replace", path: "/spec/topology/version", value: {choice}}}']
    if to:
        patches.append(f'JSONPatch{{op: "replace", path: "/spec/topology/classRef/name", value: "{to}"}}')
    rule = {
        "apiGroups": ["cluster.x-k8s.io"],
        "apiVersions": ["v1beta2"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["clusters"],
    }
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "vks"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{', '.join(patches)}]"}}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "vks"},
        "spec": {"policyName": "vks"},
    }
    return [policy, binding]


def _templates() -> list[Any]:
    joined = {"joinConfiguration": {"nodeRegistration": {"criSocket": "unix:///run/containerd.sock"}}}
    memory = dict.fromkeys(("vm", "node", "apiServer", "etcd"), SOON)
    return [
        _template("infrastructure", "DevClusterTemplate", {"backend": {"inMemory": {}}}),
        _template("controlplane", "KubeadmControlPlaneTemplate", {"kubeadmConfigSpec": joined}),
        _template("infrastructure", "DevMachineTemplate", {"backend": {"inMemory": memory}}),
        _template("bootstrap", "KubeadmConfigTemplate", joined),
    ]


def _template(group: str, kind: str, spec: Any) -> Any:
    return {
        "apiVersion": f"{group}.cluster.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": "memory", "namespace": PUBLIC},
        "spec": {"template": {"spec": spec}},
    }


def _reference(group: str, kind: str) -> Any:
    names = {"apiVersion": f"{group}.cluster.x-k8s.io/v1beta2", "kind": kind, "name": "memory"}
    return {"templateRef": names}


def _class(name: str, oldest: str, newest: str) -> Any:
    machines = _reference("infrastructure", "DevMachineTemplate")
    pool = {
        "class": "node-pool",
        "bootstrap": _reference("bootstrap", "KubeadmConfigTemplate"),
        "infrastructure": machines,
    }
    return {
        "apiVersion": CLUSTER_API,
        "kind": "ClusterClass",
        "metadata": {"name": name, "namespace": PUBLIC, "labels": {OLDEST: oldest, NEWEST: newest}},
        "spec": {
            "infrastructure": _reference("infrastructure", "DevClusterTemplate"),
            "controlPlane": {
                **_reference("controlplane", "KubeadmControlPlaneTemplate"),
                "machineInfrastructure": machines,
            },
            "workers": {"machineDeployments": [pool]},
            "variables": [
                {"name": variable, "required": required, "schema": {"openAPIV3Schema": schema}}
                for variable, (schema, required) in sorted(VARIABLES.items())
            ],
        },
    }
