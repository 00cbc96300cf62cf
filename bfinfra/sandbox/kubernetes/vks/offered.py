"""The objects that the service offers: cluster classes with the schemas of their variables, releases, images
of operating systems.

Variables: those of builtin-generic-v3.7.0 as its users describe them; of each what they show of its schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object, condition

PUBLIC = "vmware-system-vks-public"
ADDONS = "addons.kubernetes.vmware.com"
ADDON_NAMES = ("cert-manager", "cluster-autoscaler", "istio", "prometheus")
OLDEST, NEWEST = (f"kubernetes.vmware.com/{each}-version-supported" for each in ("min", "max"))
SYSTEMS = (("photon", "5"), ("ubuntu", "22.04"), ("ubuntu", "24.04"))
TEXT: Mapping[str, Any] = {"type": "string"}
SWITCH: Mapping[str, Any] = {"type": "boolean"}
NUMBER: Mapping[str, Any] = {"type": "integer"}
NAMES: Mapping[str, Any] = {"type": "array", "items": TEXT}


def _fields(*required: str, default: object = None, **fields: Mapping[str, object]) -> Object:
    return {
        "type": "object",
        "properties": dict(fields),
        **({"required": list(required)} if required else {}),
        **({"default": default} if default is not None else {}),
    }


LEVEL: Mapping[str, Any] = {"type": "string", "enum": ["privileged", "baseline", "restricted"]}
STANDARD = _fields(
    enforce=LEVEL,
    enforceVersion=TEXT,
    audit=LEVEL,
    auditVersion=TEXT,
    warn=LEVEL,
    warnVersion=TEXT,
    deactivated=SWITCH,
    exemptions=_fields(namespaces=NAMES),
)
TAINT = _fields(
    "key",
    "effect",
    key=TEXT,
    value=TEXT,
    effect={"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
)
VARIABLES: Mapping[str, tuple[Object, bool]] = {
    "bootstrapAddons": (_fields(cniRef=_fields("name", name=TEXT, namespace=TEXT)), False),
    "kubeAPIServerFQDNs": (dict(NAMES), False),
    "kubernetes": (
        _fields(
            default={"certificateRotation": {"enabled": True, "renewalDaysBeforeExpiry": 90}},
            certificateRotation=_fields(
                enabled={**SWITCH, "default": True},
                renewalDaysBeforeExpiry={**NUMBER, "minimum": 7, "default": 90},
            ),
            endpointFQDNs=NAMES,
            etcdConfiguration=_fields(maximumDBSizeGiB={**NUMBER, "minimum": 2, "maximum": 8}),
            kubeletConfiguration=_fields(maxPods={**NUMBER, "minimum": 20}, podPidsLimit=NUMBER),
            security=_fields(podSecurityStandard=STANDARD),
        ),
        False,
    ),
    "node": (
        _fields(
            labels={"type": "object", "additionalProperties": TEXT}, taints={"type": "array", "items": TAINT}
        ),
        False,
    ),
    "osConfiguration": (_fields(ntp=_fields(servers=NAMES), sshd=_fields(banner=TEXT)), False),
    "resourceConfiguration": (
        _fields(systemReserved=_fields(automatic=SWITCH, cpu=TEXT, memory=TEXT)),
        False,
    ),
    "storageClass": ({**TEXT, "minLength": 1}, True),
    "vmClass": ({**TEXT, "minLength": 1}, True),
    "volumes": (
        {
            "type": "array",
            "maxItems": 8,
            "items": _fields(
                "name",
                "mountPath",
                "capacity",
                name=TEXT,
                mountPath={**TEXT, "pattern": "^/"},
                capacity={"x-kubernetes-int-or-string": True},
                storageClass=TEXT,
            ),
        },
        False,
    ),
    "vsphereOptions": (
        _fields(persistentVolumes=_fields(availableStorageClasses=NAMES, defaultStorageClass=TEXT)),
        False,
    ),
}


@dataclass(frozen=True)
class Vks:
    """vSphere Kubernetes Service on the supervisors."""

    releases: tuple[str, ...] = ()
    """Kubernetes releases that it offers, in full, such as v1.33.3+vmware.1-vkr.1."""
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Cluster classes: name → the oldest and the newest minor version of Kubernetes that it makes."""
    v1beta2: bool = True
    """Whether clusters are served in v1beta2, too."""


def offered(vks: Vks, when: str) -> Iterator[Object]:
    """All of it."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PUBLIC}}
    for name, (oldest, newest) in vks.classes.items():
        yield _class(name, oldest, newest)
    for name in ADDON_NAMES:
        yield {
            "apiVersion": f"{ADDONS}/v1alpha1",
            "kind": "Addon",
            "metadata": {"name": name, "namespace": PUBLIC},
            "spec": {"displayName": name},
        }
    for version in vks.releases:
        yield _release(version, when)
        yield from (_image(version, *each) for each in SYSTEMS)


def _class(name: str, oldest: str, newest: str) -> Object:
    return {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "ClusterClass",
        "metadata": {"name": name, "namespace": PUBLIC, "labels": {OLDEST: oldest, NEWEST: newest}},
        "spec": {"workers": {"machineDeployments": [{"class": "node-pool"}]}},
        "status": {
            "variables": [
                {
                    "name": variable,
                    "definitionsConflict": False,
                    "definitions": [
                        {"from": "vks", "required": required, "schema": {"openAPIV3Schema": schema}}
                    ],
                }
                for variable, (schema, required) in sorted(VARIABLES.items())
            ]
        },
    }


def named(version: str) -> str:
    """A version as objects' names have it."""
    return version.replace("+", "---")


def _release(version: str, when: str) -> Object:
    return {
        "apiVersion": "kubernetes.vmware.com/v1alpha1",
        "kind": "KubernetesRelease",
        "metadata": {"name": named(version)},
        "spec": {"version": version, "kubernetes": {"version": version.partition("-vkr")[0]}},
        "status": {
            "conditions": [condition(kind, status=True, when=when) for kind in ("Ready", "Compatible")]
        },
    }


def _image(version: str, name: str, of: str) -> Object:
    labels = {
        "os-name": name,
        "os-version": of,
        "os-arch": "amd64",
        "os-type": "linux",
        "run.tanzu.vmware.com/tkr": named(version),
        "run.tanzu.vmware.com/kubernetesVersion": named(version.partition("-vkr")[0]),
    }
    return {
        "apiVersion": "run.tanzu.vmware.com/v1alpha3",
        "kind": "OSImage",
        "metadata": {"name": f"vmi-{name}-{of}-{named(version)}", "labels": labels},
        "spec": {"os": {"name": name, "version": of, "arch": "amd64"}, "image": {"type": "cvmi"}},
    }
