"""The contents of a rendering: objects by type and place, and the stages of their creation."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bfinfra.model.names import DNS_NAME

Manifest = dict[str, Any]
RENDERED = "bfinfra.io/rendered"
"""The annotation with the digest of an object's manifest, without its mark."""
HOOK = "helm.sh/hook"
FEW = 3  # objects that a title names one by one

EXTENSIONS = "apiextensions.k8s.io"
DEFINITION = (EXTENSIONS, "CustomResourceDefinition")
WEBHOOKS = ("admissionregistration.k8s.io", "apiregistration.k8s.io")
BUILT_IN = re.compile(r"|apps|batch|autoscaling|policy|extensions|[a-z.-]+\.k8s\.io")
"""The groups of Kubernetes itself; `cluster.x-k8s.io` and the like are none, see `custom`."""
OF_PROJECTS = re.compile(r".*\.x-k8s\.io|(?!metrics\.).*\.(x|sigs)\.k8s\.io")
CLUSTER_WIDE = frozenset(
    {
        "Namespace",
        "Node",
        "PersistentVolume",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "APIService",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "PriorityClass",
        "StorageClass",
        "RuntimeClass",
        "IngressClass",
        "CSIDriver",
        "CSINode",
        "VolumeAttachment",
        "VolumeAttributesClass",
        "FlowSchema",
        "PriorityLevelConfiguration",
        "DeviceClass",
        "ResourceSlice",
        "ClusterTrustBundle",
        "CertificateSigningRequest",
        "IPAddress",
        "ServiceCIDR",
    }
)
"""Built-in types without a namespace."""
WORKLOADS = frozenset({"Pod", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"})
FIRST = ("Namespace", "PriorityClass", "StorageClass", "RuntimeClass", "IngressClass")
BESIDE_PODS = (
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DeviceClass",
    "ResourceClaim",
    "ResourceClaimTemplate",
)
PRECIOUS = frozenset({"PersistentVolumeClaim", "PersistentVolume", "Namespace", "CustomResourceDefinition"})
"""Types whose deletion deletes data, or objects of others."""
DEFINITIONS, OBJECTS, CUSTOM = 0, 1, 2
"""The stages of creation."""


class Id(NamedTuple):
    """An object's type, without version, and place."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def type(self) -> tuple[str, str]:
        """Group and kind."""
        return self.group, self.kind

    @property
    def stage(self) -> int:
        """The stage of its creation: definitions first, objects of types that are defined by others last."""
        if self.type == DEFINITION:
            return DEFINITIONS
        return CUSTOM if custom(self.group) else OBJECTS


def id_of(manifest: Mapping[str, Any]) -> Id:
    """The id of an object."""
    metadata = manifest["metadata"]
    return Id(
        group_of(manifest["apiVersion"]), manifest["kind"], metadata.get("namespace") or "", metadata["name"]
    )


def group_of(api_version: str) -> str:
    """`apps/v1` → `apps`; "" for the core."""
    return api_version.rpartition("/")[0]


def custom(group: str) -> bool:
    """Return whether a group's types come from definitions, judged by its name."""
    return not BUILT_IN.fullmatch(group) or bool(OF_PROJECTS.fullmatch(group))


def order(each: Id) -> tuple[int, int, str]:
    """The order of creation."""
    if each.stage != OBJECTS:
        return each.stage, 0, ""
    for place, kinds in enumerate((FIRST, BESIDE_PODS)):
        if each.kind in kinds:
            return OBJECTS, place, f"{kinds.index(each.kind):02}"
    late = 4 if each.group in WEBHOOKS else 3 if each.kind in WORKLOADS else 2
    return OBJECTS, late, each.kind


def listed(objects: Collection[Id]) -> str:
    """`ConfigMap a/b, Job a/c`; of many their numbers by kind."""
    if len(objects) <= FEW:
        return ", ".join(str(each) for each in objects)
    counts = Counter(each.kind for each in objects)
    return f"{len(objects)} objects ({', '.join(f'{number} {kind}' for kind, number in counts.items())})"


def digest(manifest: Manifest) -> str:
    """The digest of a manifest, without bfinfra's marks."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def definitions(manifests: Iterable[Manifest]) -> Iterator[tuple[tuple[str, str], bool, str]]:
    """Of each definition: group and kind, whether its objects have namespaces, and their plural."""
    for each in manifests:
        if each["kind"] == DEFINITION[1] and group_of(each["apiVersion"]) == DEFINITION[0]:
            spec = each.get("spec") or {}
            names = spec.get("names") or {}
            yield (
                (str(spec.get("group")), str(names.get("kind"))),
                spec.get("scope") != "Cluster",
                str(names.get("plural")),
            )


def prepared(manifest: Manifest, namespace: str, *, namespaced: bool) -> Manifest:
    """The manifest as it is sent: in its namespace, without status, texts of a Secret encoded."""
    metadata = {
        name: value
        for name, value in manifest["metadata"].items()
        if name not in ("namespace", "creationTimestamp", "managedFields") and value is not None
    }
    if namespaced:
        metadata["namespace"] = manifest["metadata"].get("namespace") or namespace
    found = {name: value for name, value in manifest.items() if name not in ("status", "stringData")}
    if manifest["kind"] == "Secret" and manifest["apiVersion"] == "v1" and manifest.get("stringData"):
        texts = {
            name: base64.b64encode(str(text).encode()).decode()
            for name, text in manifest["stringData"].items()
        }
        found["data"] = {**(manifest.get("data") or {}), **texts}
    return {**found, "metadata": metadata}


def checked(document: Any, where: str) -> Iterator[Manifest]:
    """The objects in a document. Raises ValueError for what is no object with a name."""
    if isinstance(document, dict) and str(document.get("kind")).endswith("List") and "items" in document:
        items = document["items"]
        for item in items if isinstance(items, list) else ():
            yield from checked(item, where)
        return
    kind = document.get("kind") if isinstance(document, dict) else None
    if not (isinstance(kind, str) and kind and isinstance(document.get("apiVersion"), str)):
        raise ValueError(f"{where}: a document has no apiVersion and kind")
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not re.fullmatch(rf"{DNS_NAME}|[A-Za-z0-9:._-]+", name):
        raise ValueError(
            f"{where}: a {kind} has no metadata.name; an object with a generated name can't be found again"
        )
    yield document


def hooks(manifest: Mapping[str, Any]) -> tuple[str, ...]:
    """Return when Helm would run the object as a hook: `pre-upgrade`, …; () if it is none."""
    noted = (manifest["metadata"].get("annotations") or {}).get(HOOK) or ""
    return tuple(part.strip() for part in str(noted).split(",") if part.strip())
